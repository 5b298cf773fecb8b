"""Nodes and documents: plain data with the location of every key and value."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, cast

from tpucfg import paths
from tpucfg.findings import Finding, Location
from tpucfg.named_tuple import NamedTuple
from tpucfg.text_format import dotted, split_lines

KeyPath = paths.KeyPath
_NO_KEYS: Final[Mapping[str, "Node"]] = MappingProxyType({})


# Not a dataclass: a file may have 50,000 nodes, and a plain class with slots is the cheapest to create.
class Node:
    """One value of a document, with its location and its child nodes."""

    __slots__ = ("children", "end", "keys", "start", "text", "value")

    def __init__(self, start: Any, end: Any, value: Any, text: str = "") -> None:
        self.start = start
        """The parser's mark of the first character; marks count from 0."""
        self.end = end
        """The parser's mark after the last character."""
        self.value = value
        """Plain data: dict, list, str, int, float, bool or None."""
        self.text = text
        """The source text of a scalar, without quotes."""
        self.children: Mapping[str, Node] | Sequence[Node] = ()
        """The child nodes, by key or in order."""
        self.keys: Mapping[str, Node] = _NO_KEYS
        """The keys of a mapping, as nodes."""

    def with_children(
        self,
        children: "Mapping[str, Node] | Sequence[Node]",
        keys: "Mapping[str, Node] | None" = None,
    ) -> "Node":
        """Return a copy with other child nodes; a mapping finds their keys among its own, or among those given."""
        copy = Node(self.start, self.end, None, self.text)
        copy.children = children
        if isinstance(children, Mapping):
            known = self.keys if keys is None else keys
            copy.keys = {name: known[name] for name in children if name in known}
            copy.value = {name: child.value for name, child in children.items()}
        else:
            copy.value = [child.value for child in children]
        return copy


class Mark(NamedTuple):
    """A position in the form of the parser's marks, which count from 0."""

    line: int
    column: int


class Assignment(NamedTuple):
    """A value that replaces one of a document's."""

    path: KeyPath
    argument: str
    """The argument of the command line: `training.learning_rate=2e-4`."""
    start: int
    """The position of the value in the argument."""

    @property
    def origin(self) -> str:
        """The file of its locations: the option and the path, without the value, which may be a credential."""
        return f"--set {dotted(self.path)}"


class Document(NamedTuple):
    """A parsed text: its data, and the location of every key and value."""

    file: str
    """The file's name in findings."""
    text: str
    """The text decoded as UTF-8, without a byte order mark."""
    root: Node | None
    """None if the text could not be read to its end."""
    findings: tuple[Finding, ...] = ()
    """The mistakes in the text itself."""
    further_roots: tuple[Node, ...] = ()
    """The roots of the text's further YAML documents, where a reader allows several."""
    is_part: bool = False
    """True for a part of a text, whose root is not at its beginning."""
    changes: tuple[Assignment, ...] = ()
    """The values of the command line; their arguments are the last lines of the text."""
    first_change: int = 0
    """The line of the first of them, from 0."""
    broken: frozenset[str] = frozenset()
    """The sections with errors that are replaced by stand-ins."""

    def parts(self) -> "tuple[Document, ...]":
        """Return each YAML document of the text as a document; the findings are the first one's."""
        further = tuple(
            self._replace(root=root, findings=(), further_roots=(), is_part=True)
            for root in self.further_roots
        )
        return (self._replace(further_roots=()), *further)

    @property
    def data(self) -> Any:
        """The whole document as plain data; None if it could not be read."""
        return self.root.value if self.root else None

    def node(self, path: KeyPath) -> Node | None:
        """Return the node at a path, or None if there is none."""
        node: Any = self.root
        try:
            for step in path:
                node = node.children[step]
        except (LookupError, TypeError, AttributeError):
            # There is no such key or index, the value is a list or a scalar, or the document could not be read.
            return None
        return cast("Node | None", node)

    def value_location(self, path: KeyPath) -> Location:
        """Return the location of a value, or of its key if the value is missing or is a mapping of several lines."""
        node = self.node(path)
        if node is None or (isinstance(node.children, dict) and node.start.line != node.end.line):
            return self.key_location(path) if path else self._location(None)
        return self._location(node)

    def key_location(self, path: KeyPath) -> Location:
        """Return the location of a path's last key, or of its nearest parent if the key is missing."""
        while path:
            parent = self.node(path[:-1])
            if parent is not None and path[-1] in parent.keys:
                return self._location(parent.keys[path[-1]])  # type: ignore[index] # it is among the keys, so it is a str
            # An entry of a list has no key, so its own location is shown.
            if isinstance(path[-1], int) and (node := self.node(path)) is not None:
                return self._location(node)
            path = path[:-1]
        return self._location(None)

    def member_location(self, path: KeyPath) -> Location:
        """Return the location of a value with its key."""
        key, value = self.key_location(path), self.value_location(path)
        return value._replace(line=key.line, column=key.column)

    def finding(
        self, id_: str, message: str, path: KeyPath, *, at_key: bool = False, **options: Any
    ) -> Finding:
        """Return a finding about the value at a path, or about its key; the options are those of `Finding.of`."""
        location = self.key_location(path) if at_key else self.value_location(path)
        return Finding.of(id_, message, location, **options)

    def text_location(self, path: KeyPath, part: str) -> Location:
        """Return the location of a part of a text, or of the whole value if escapes or folded lines hide the part."""
        node = self.node(path)
        if node is None or node.start.line != node.end.line:
            return self.value_location(path)
        line = node.start.line
        column = split_lines(self.text)[line].find(part, node.start.column, node.end.column)
        if column < 0:
            return self.value_location(path)
        return self._shown(
            Location(self.file, line + 1, column + 1, line + 1, column + len(part) + 1)
        )

    def source_text(self, path: KeyPath) -> str:
        """Return the source text of a scalar: `1e-3` stays `1e-3`."""
        node = self.node(path)
        return node.text if node else ""

    def _location(self, node: Node | None) -> Location:
        if node is None and self.is_part and self.root:
            start = self.root.start
            return Location(self.file, start.line + 1, start.column + 1)
        if node is None:
            return Location(self.file)
        return self._shown(range_of_marks(self.file, node.start, node.end))

    def _shown(self, location: Location) -> Location:
        """Return the location as it is shown: in an argument of the command line if the value comes from there."""
        number = location.line - 1 - self.first_change
        if not self.changes or number < 0:
            return location
        return location._replace(file=self.changes[number].origin, line=1, end_line=1)

    def changed_section(self, location: Location) -> str | None:
        """Return the section of the document that the argument at a location changes; None for another location."""
        sections = (
            str(change.path[0]) for change in self.changes if change.origin == location.file
        )
        return next(sections, None)


def range_of_marks(file: str, start: Any, end: Any) -> Location:
    """Return the location between two marks of the parser, which count from 0."""
    return Location(file, start.line + 1, start.column + 1, end.line + 1, end.column + 1)


def without_nulls(node: Node) -> Node:
    """Return a node without the keys that are null, at any depth; a null entry of a list stays."""
    children = node.children
    if isinstance(children, Mapping):
        kept = {
            key: without_nulls(child) for key, child in children.items() if child.value is not None
        }
        return node.with_children(kept)
    return node.with_children([without_nulls(child) for child in children]) if children else node


def count_values_and_depth(node: Node) -> tuple[int, int]:
    """Return the number of values in a node, itself included, and the levels of lists and mappings that they form."""
    child_counts = [count_values_and_depth(child) for _, child in paths.children(node.children)]
    is_leaf = not isinstance(node.value, dict | list)
    values = 1 + sum(values for values, _ in child_counts)
    return values, 0 if is_leaf else 1 + max((depth for _, depth in child_counts), default=0)
