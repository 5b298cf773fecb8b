"""Text to Document: libyaml's events, made into nodes under bounds."""

import re
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Any, Final

import yaml

from tpucfg.findings import Finding, Place
from tpucfg.spec.document import Document, Node
from tpucfg.spec.scalars import NumberRefusedError, resolve

LARGEST_FILE: Final = 1 << 20
"""Bytes: a thousand times a long spec."""
DEEPEST: Final = 40
"""Levels of nesting: a Kubernetes pod has under 20."""
MOST_VALUES: Final = 50_000
"""Values with every alias counted in full, so that a chain of aliases cannot grow without end."""


def _parser() -> Any:
    """The parser of libyaml, or PyYAML's own where it was built without libyaml: the same events, thirty times as slow."""
    if yaml.__with_libyaml__:
        return yaml.cyaml.CParser  # type: ignore[attr-defined]  # the stubs leave it out
    return type("Parser", (yaml.reader.Reader, yaml.scanner.Scanner, yaml.parser.Parser), {"__init__": _start_pure})


def _start_pure(self: Any, text: str) -> None:
    yaml.reader.Reader.__init__(self, text)
    yaml.scanner.Scanner.__init__(self)
    yaml.parser.Parser.__init__(self)


_Parser: Final = _parser()
_UNFIT: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufeff]")
"""Characters that a quoted string can smuggle in by an escape, and that no shell, URL or API field takes."""
_SURROGATES: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")


class _StopError(Exception):
    """The text cannot be read any further; carries the finding that says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


def read_file(path: FilePath, shown: str | None = None) -> Document:
    """The document in a file; a file that cannot be read is a finding, not an exception."""
    name = shown or str(path)
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        message = f"{name} cannot be read: {error.strerror or error}"
        place, hint = Place(name), "give the spec's path with --spec FILE, or make a new project with: tpucfg init"
        return Document(name, "", None, (Finding.of("TPU001", message, place, help=hint),))
    return read_bytes(content, name)


def read_bytes(content: bytes, name: str) -> Document:
    """The document in a file's content: UTF-8, with or without a byte order mark."""
    if len(content) > LARGEST_FILE:
        message = f"{name} is larger than {LARGEST_FILE:,} bytes"
        return Document(name, "", None, (Finding.of("TPU010", message, Place(name)),))
    try:
        return read_text(content.decode("utf-8-sig"), name)
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8", "replace")
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        message = f"the byte 0x{content[error.start]:02x} is not UTF-8"
        place = Place(name, line, column, line, column + 1)
        return Document(name, "", None, (Finding.of("TPU001", message, place, help="save the file as UTF-8"),))


def read_text(text: str, name: str) -> Document:
    """The document in a text, with every finding about the text itself."""
    source = _json_as_yaml(text) if text.lstrip().startswith("{") else text
    builder = _Builder(name)
    try:
        root = builder.document(_events(source, name))
    except _StopError as stop:
        return Document(name, text, None, (*builder.findings, stop.finding))
    return Document(name, text, root, tuple(builder.findings))


def _json_as_yaml(text: str) -> str:
    """JSON's two habits that YAML does not share: tabs as white space (no JSON string holds one), surrogate pairs."""
    return _SURROGATES.sub(_joined, text.replace("\t", " "))


def _joined(pair: re.Match[str]) -> str:
    code = 0x10000 + ((int(pair[2], 16) - 0xD800) << 10) + (int(pair[3], 16) - 0xDC00)
    return f"{pair[1]}\\U{code:08x}"


def _events(text: str, name: str) -> Iterator[Any]:
    """The parser's events; its complaints become one finding."""
    try:
        parser = _Parser(text)
        while (event := parser.get_event()) is not None:
            yield event
    except yaml.MarkedYAMLError as error:
        raise _StopError(_syntax(error, name)) from None
    except yaml.reader.ReaderError as error:
        raise _StopError(_unreadable(error, text, name)) from None


def _syntax(error: yaml.MarkedYAMLError, name: str) -> Finding:
    mark = error.problem_mark or error.context_mark
    problem = str(error.problem or error.context)
    tab = "'\\t'" in problem or "tab character" in problem
    related = ((_at(error.context_mark, name), str(error.context)),) if error.context and error.context_mark else ()
    hint = "indent with spaces: YAML takes no tabs there" if tab else ""
    return Finding.of("TPU002", f"this is not YAML: {problem}", _at(mark, name), help=hint, related=related)


def _at(mark: Any, name: str) -> Place:
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    return Place(name, line, column, line, column + 1)


def _unreadable(error: yaml.reader.ReaderError, text: str, name: str) -> Finding:
    """One parser counts bytes here and the other characters, so the character is looked up in the text."""
    code = ord(error.character) if isinstance(error.character, str) else int(error.character)
    at = max(text.find(chr(code)), 0)
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    message = f"the control character U+{code:04X} cannot stand in YAML"
    return Finding.of("TPU002", message, Place(name, line, column, line, column + 1), help="delete it")


class _Builder:
    """Nodes from events. The depth is bounded before Python's own stack or libyaml's could be exhausted."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.findings: list[Finding] = []
        self.anchors: dict[str, tuple[Node, int]] = {}
        self.values = 0

    def document(self, events: Iterator[Any]) -> Node:
        """The single document of the stream."""
        root: Node | None = None
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                if root is not None:
                    raise self._stop("TPU011", "a second document starts here; one file holds one", event)
                root = self._value(next(events), events, 0)
        if root is None or (root.value is None and not root.text):
            raise _StopError(Finding.of("TPU002", f"{self.name} is empty", Place(self.name)))
        return root

    def _value(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        self.values += 1
        if self.values > MOST_VALUES:
            raise self._stop("TPU010", f"more than {MOST_VALUES:,} values, aliases counted in full", event)
        if isinstance(event, yaml.ScalarEvent):
            node = self._scalar(event)
        elif isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        elif depth >= DEEPEST:
            raise self._stop("TPU010", f"nested deeper than {DEEPEST} levels", event)
        elif isinstance(event, yaml.MappingStartEvent):
            node = self._mapping(event, events, depth)
        else:
            node = self._sequence(event, events, depth)
        return node

    def _scalar(self, event: Any) -> Node:
        self._refuse_tag(event)
        value: Any = event.value
        if event.implicit[0]:
            try:
                value = resolve(value)
            except NumberRefusedError as error:
                self._say("TPU006", str(error), event)
                value = 0
        elif event.style == '"' and (found := _UNFIT.search(value)):
            self._say("TPU011", f"the character U+{ord(found[0]):04X} is in no name, path or flag", event)
        node = Node(event.start_mark, event.end_mark, value, event.value)
        self._anchor(event, node, 0)
        return node

    def _mapping(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        self._refuse_tag(event)
        before = self.values
        data: dict[str, Any] = {}
        children: dict[str, Node] = {}
        keys: dict[str, Node] = {}
        for key in events:
            if isinstance(key, yaml.MappingEndEvent):
                break
            if not isinstance(key, yaml.ScalarEvent):
                raise self._stop("TPU011", "a key must be a word, not a list, a mapping or an alias", key)
            name = key.value
            child = self._value(next(events), events, depth + 1)
            if name in keys:
                self._duplicate(name, key, keys[name])
                continue
            keys[name] = Node(key.start_mark, key.end_mark, name, name)
            children[name], data[name] = child, child.value
        node = Node(event.start_mark, key.end_mark, data)
        node.children, node.keys = children, keys
        self._anchor(event, node, self.values - before)
        return node

    def _sequence(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        self._refuse_tag(event)
        before, children = self.values, []
        for item in events:
            if isinstance(item, yaml.SequenceEndEvent):
                break
            children.append(self._value(item, events, depth + 1))
        node = Node(event.start_mark, item.end_mark, [child.value for child in children])
        node.children = children
        self._anchor(event, node, self.values - before)
        return node

    def _anchor(self, event: Any, node: Node, size: int) -> None:
        if event.anchor:
            self.anchors[event.anchor] = (node, size)

    def _alias(self, event: Any) -> Node:
        """The anchored value again. An anchor is known only once its value has ended, so no value can hold itself."""
        if event.anchor not in self.anchors:
            raise self._stop("TPU011", f"*{event.anchor} stands for nothing that ended before it", event)
        anchored, size = self.anchors[event.anchor]
        self.values += size
        if self.values > MOST_VALUES:
            raise self._stop("TPU010", f"more than {MOST_VALUES:,} values, aliases counted in full", event)
        node = Node(event.start_mark, event.end_mark, anchored.value, anchored.text)
        node.children, node.keys = anchored.children, anchored.keys
        return node

    def _refuse_tag(self, event: Any) -> None:
        if event.tag is not None and event.tag != "!":
            self._say("TPU011", f"the tag {event.tag} is not read", event, help="leave the tag out")

    def _duplicate(self, name: str, event: Any, first: Node) -> None:
        place = Place(self.name, first.start.line + 1, first.start.column + 1, first.end.line + 1, first.end.column + 1)
        self._say(
            "TPU003",
            f"{name} is written twice in one mapping: the other is in line {place.line}",
            event,
            help="keep one of the two",
            related=((place, "the first one"),),
        )

    def _say(self, id: str, message: str, event: Any, **more: Any) -> None:
        self.findings.append(self._finding(id, message, event, **more))

    def _stop(self, id: str, message: str, event: Any) -> _StopError:
        return _StopError(self._finding(id, message, event))

    def _finding(self, id: str, message: str, event: Any, **more: Any) -> Finding:
        start, end = event.start_mark, event.end_mark
        place = Place(self.name, start.line + 1, start.column + 1, end.line + 1, end.column + 1)
        return Finding.of(id, message, place, **more)
