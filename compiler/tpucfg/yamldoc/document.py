"""YAML (and JSON) with the place of every key and value.

The text is read as a stream of libyaml's events, so nothing in it is ever constructed or evaluated, and size, depth and
repetition are bounded while it is read.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from tpucfg.findings import Finding, Location
from tpucfg.text_format import lines

KeyPath = tuple[str | int, ...]
"""The keys and indices that lead from the root to a value."""


_NO_KEYS: Final[Mapping[str, "Node"]] = MappingProxyType({})


class Node:
    """One value of the document, where it stands, and what lies below it."""

    __slots__ = ("children", "end", "keys", "start", "text", "value")

    def __init__(self, start: Any, end: Any, value: Any, text: str = "") -> None:
        self.start = start
        """Mark of its first character."""
        self.end = end
        """Mark behind its last character."""
        self.value = value
        """Plain data: dict, list, str, int, float, bool or None."""
        self.text = text
        """A scalar as it is written, without quotes."""
        self.children: Mapping[str, Node] | Sequence[Node] = ()
        """By key, or in order."""
        self.keys: Mapping[str, Node] = _NO_KEYS
        """The keys of a mapping, as nodes."""


class Document(NamedTuple):
    """A text that was read: its data and the place of everything in it."""

    file: str
    """The name it goes by in findings."""
    text: str
    """Read as UTF-8, without a byte order mark."""
    root: Node | None
    """None where the text could not be read to its end."""
    findings: tuple[Finding, ...] = ()
    """What is wrong with the text itself."""

    @property
    def data(self) -> Any:
        """The whole document as plain data; None where it could not be read."""
        return self.root.value if self.root else None

    def node(self, path: KeyPath) -> Node | None:
        """The value at the path, or None where nothing stands there."""
        node = self.root
        for step in path:
            children: Any = node.children if node else ()
            known = step in children if isinstance(children, dict) else isinstance(step, int) and step < len(children)
            node = children[step] if known else None
        return node

    def value(self, path: KeyPath) -> Location:
        """Where the value at the path stands; where it is missing, the key it would stand under."""
        node = self.node(path)
        if node is None or (isinstance(node.children, dict) and node.start.line != node.end.line):
            return self.key(path) if path else self._place(None)
        return self._place(node)

    def key(self, path: KeyPath) -> Location:
        """Where the last key of the path stands; where it is missing, or an index, the nearest place above it."""
        while path:
            above = self.node(path[:-1])
            if above is not None and path[-1] in above.keys:
                return self._place(above.keys[path[-1]])  # type: ignore[index] # a str: it is among the keys
            if isinstance(path[-1], int) and (node := self.node(path)) is not None:
                return self._place(node)
            path = path[:-1]
        return self._place(None)

    def within(self, path: KeyPath, part: str) -> Location:
        """Where a part of a text stands; the whole value where escapes or folded lines hide it."""
        node = self.node(path)
        if node is None or node.start.line != node.end.line:
            return self.value(path)
        row = node.start.line
        at = lines(self.text)[row].find(part, node.start.column, node.end.column)
        return self.value(path) if at < 0 else Location(self.file, row + 1, at + 1, row + 1, at + len(part) + 1)

    def written(self, path: KeyPath) -> str:
        """A scalar as the text has it: `1e-3` stays `1e-3`."""
        node = self.node(path)
        return node.text if node else ""

    def _place(self, node: Node | None) -> Location:
        if node is None:
            return Location(self.file)
        start, end = node.start, node.end
        return Location(self.file, start.line + 1, start.column + 1, end.line + 1, end.column + 1)


def count_values_and_depth(node: Node) -> tuple[int, int]:
    """The values in a node, itself included, and how many levels of lists and mappings they form."""
    below = [count_values_and_depth(child) for child in _below(node)]
    is_leaf = not isinstance(node.value, dict | list)
    return 1 + sum(values for values, _ in below), 0 if is_leaf else 1 + max((depth for _, depth in below), default=0)


def _below(node: Node) -> Iterable[Node]:
    return node.children.values() if isinstance(node.children, Mapping) else node.children
