"""Text to Document: libyaml's events, made into nodes under bounds."""

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Any, Final

import yaml

from tpucfg import wording
from tpucfg.findings import Finding, Place
from tpucfg.spec.document import Document, Node, extent
from tpucfg.spec.events import StopError, events_of
from tpucfg.spec.scalars import NumberRefusedError, resolve

LARGEST_FILE: Final = 1 << 20
"""Bytes: a thousand times a long spec."""
DEEPEST: Final = 40
"""Levels of nesting: a Kubernetes pod has under 20."""
MOST_VALUES: Final = 50_000
"""Values with every alias counted in full, so that a chain of aliases cannot grow without end."""
_CONTROLS: Final = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff"
_AMBIGUOUS: Final = {
    "\x85": "line separator",
    "\u2028": "line separator",
    "\u2029": "line separator",
    "\ufeff": "byte order mark",
}
"""Some versions of YAML end a line there, or drop the character, and others do not."""
_UNFIT: Final = re.compile(f"[{_CONTROLS}{''.join(_AMBIGUOUS)}]")
"""What no spec may hold; a carriage return may."""
_SMUGGLED: Final = re.compile(f"[{_CONTROLS}\r]")
"""What only an escape can bring in: YAML has it nowhere else, and no API field takes it."""
_MERGE: Final = "<<"
_YAML_TAGS: Final = "tag:yaml.org,2002:"
_SAVE: Final = "save the file as UTF-8"
_MANY: Final = "write out what the aliases stand for, or shorten the file"
_DEEP: Final = "a message of the APIs has under 20 levels: is there a bracket too many?"


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
        hint = "a spec has a few thousand bytes: is this the right file?"
        return Document(name, "", None, (Finding.of("TPU010", message, Place(name), help=hint),))
    try:
        return read_text(content.decode("utf-8-sig"), name)
    except UnicodeDecodeError as error:
        return _undecodable(content, error, name)


def _undecodable(content: bytes, error: UnicodeDecodeError, name: str) -> Document:
    """The text is kept with a replacement character for what cannot be read, to show the place in."""
    if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        message = "the file is UTF-16, and a spec is UTF-8"
        return Document(name, "", None, (Finding.of("TPU001", message, Place(name), help=_SAVE),))
    before = error.object[: error.start].decode("utf-8", "replace")
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    message = f"the byte 0x{error.object[error.start]:02x} is not UTF-8"
    found = Finding.of("TPU001", message, Place(name, line, column, line, column + 1), help=_SAVE)
    return Document(name, content.decode("utf-8-sig", "replace"), None, (found,))


def read_text(text: str, name: str) -> Document:
    """The document in a text, with every finding about the text itself."""
    if unfit := _UNFIT.search(text):
        return Document(name, text, None, (_unfit(unfit, name),))
    source = _json_as_yaml(text) if text.lstrip().startswith("{") else text
    builder = _Builder(name)
    try:
        root = builder.document(events_of(source, name))
    except StopError as stop:
        return Document(name, text, None, (*builder.findings, stop.finding))
    return Document(name, text, root, tuple(builder.findings))


def _unfit(found: re.Match[str], name: str) -> Finding:
    text, at, code = found.string, found.start(), f"U+{ord(found[0]):04X}"
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    place = Place(name, line, column, line, column + 1)
    if what := _AMBIGUOUS.get(found[0]):
        message = f"the {what} {code} stands here, and readers of YAML differ on what it means"
        return Finding.of("TPU011", message, place, help="delete it")
    return Finding.of("TPU002", f"this is not YAML: the control character {code} stands here", place, help="delete it")


def _json_as_yaml(text: str) -> str:
    from tpucfg.spec.json_text import as_yaml

    return as_yaml(text)


class _Builder:
    """Nodes from events. The depth is bounded before Python's own stack or libyaml's could be exhausted."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.findings: list[Finding] = []
        self.anchors: dict[str, Node] = {}
        self.values = 0

    def document(self, events: Iterator[Any]) -> Node:
        """The single document of the stream."""
        root: Node | None = None
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                if root is not None:
                    hint = "delete it, or put it into a file of its own"
                    raise self._stop("TPU011", "a second document starts here; one file holds one", event, hint)
                root = self._value(next(events), events, 0)
        if root is None or (root.value is None and not root.text):
            raise StopError(
                Finding.of(
                    "TPU002", f"{self.name} is empty", Place(self.name), help="make a new project with: tpucfg init"
                )
            )
        return root

    def _value(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, depth)
        if isinstance(event, yaml.ScalarEvent):
            self._bounded(event, 1, depth)
            return self._scalar(event)
        self._bounded(event, 1, depth + 1)
        read = self._mapping if isinstance(event, yaml.MappingStartEvent) else self._sequence
        return read(event, events, depth)

    def _bounded(self, event: Any, values: int, depth: int) -> None:
        self.values += values
        if self.values > MOST_VALUES:
            raise self._stop("TPU010", f"more than {MOST_VALUES:,} values, aliases counted in full", event, _MANY)
        if depth > DEEPEST:
            raise self._stop(
                "TPU010", f"this is nested deeper than {DEEPEST} levels, aliases counted in full", event, _DEEP
            )

    def _scalar(self, event: Any) -> Node:
        self._refuse_unfit(event)
        value: Any = event.value
        if event.implicit[0]:
            try:
                value = resolve(value)
            except NumberRefusedError as error:
                self._say("TPU006", str(error), event, help=error.help)
                value = 0
        return self._anchored(event, Node(event.start_mark, event.end_mark, value, event.value))

    def _mapping(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        self._refuse_tag(event)
        data: dict[str, Any] = {}
        children: dict[str, Node] = {}
        keys: dict[str, Node] = {}
        for key in events:
            if isinstance(key, yaml.MappingEndEvent):
                break
            name = self._key(key)
            child = self._value(next(events), events, depth + 1)
            if name in keys:
                self._duplicate(name, key, keys[name])
                continue
            if name == _MERGE and key.implicit[0]:
                self._say("TPU011", "merge keys are not read: YAML 1.2 has none", key, help="write the keys out")
                continue
            keys[name] = Node(key.start_mark, key.end_mark, name, name)
            children[name], data[name] = child, child.value
        node = Node(event.start_mark, key.end_mark, data)
        node.children, node.keys = children, keys
        return self._anchored(event, node)

    def _key(self, event: Any) -> str:
        if isinstance(event, yaml.ScalarEvent):
            self._refuse_unfit(event)
            return str(event.value)
        braces = isinstance(event, yaml.MappingStartEvent) and event.flow_style
        hint = "put a text that starts with { in quotes; a spec is no template" if braces else "write the key itself"
        raise self._stop("TPU011", "a key is a word, and not a list, a mapping or an alias", event, hint)

    def _sequence(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        self._refuse_tag(event)
        children = []
        for item in events:
            if isinstance(item, yaml.SequenceEndEvent):
                break
            children.append(self._value(item, events, depth + 1))
        node = Node(event.start_mark, item.end_mark, [child.value for child in children])
        node.children = children
        return self._anchored(event, node)

    def _anchored(self, event: Any, node: Node) -> Node:
        if event.anchor:
            self.anchors[event.anchor] = node
        return node

    def _alias(self, event: Any, depth: int) -> Node:
        """The anchored value again. An anchor is known only once its value has ended, so no value can hold itself."""
        if event.anchor not in self.anchors:
            name = wording.shown(event.anchor, quoted=False)
            message = f"the alias *{name} stands for nothing: no value named &{name} ends before it"
            raise self._stop("TPU011", message, event, "write the value itself")
        anchored = self.anchors[event.anchor]
        values, levels = extent(anchored)
        self._bounded(event, values, depth + levels)
        node = Node(event.start_mark, event.end_mark, anchored.value, anchored.text)
        node.children, node.keys = anchored.children, anchored.keys
        return node

    def _refuse_tag(self, event: Any) -> None:
        if event.tag is None:
            return
        tag = f"!!{event.tag.removeprefix(_YAML_TAGS)}" if event.tag.startswith(_YAML_TAGS) else event.tag
        hint = "put the value in quotes instead" if tag == "!!str" else "leave the tag out"
        message = f"the tag {wording.shown(tag, quoted=False)} is not read: a spec holds plain values"
        found = self._finding("TPU011", message, event, help=hint)
        line, column = found.place[1:3]
        self.findings.append(found._replace(place=Place(self.name, line, column, line, column + len(tag))))

    def _refuse_unfit(self, event: Any) -> None:
        """What makes a value or a key unreadable: a tag, or a character that only an escape can bring in."""
        self._refuse_tag(event)
        if event.style == '"' and (found := _SMUGGLED.search(event.value)):
            message = f"an escape stands for the character U+{ord(found[0]):04X}, which no name, path or flag takes"
            self._say("TPU011", message, event, help="delete the escape, or put the text in single quotes")

    def _duplicate(self, name: str, event: Any, first: Node) -> None:
        place = Place(self.name, first.start.line + 1, first.start.column + 1, first.end.line + 1, first.end.column + 1)
        self._say(
            "TPU003",
            f"{wording.named(name)} is written twice in one mapping: first in line {place.line}",
            event,
            help="delete one of the two",
            related=((place, "the first one"),),
        )

    def _say(self, id: str, message: str, event: Any, **more: Any) -> None:
        self.findings.append(self._finding(id, message, event, **more))

    def _stop(self, id: str, message: str, event: Any, help: str) -> StopError:
        return StopError(self._finding(id, message, event, help=help))

    def _finding(self, id: str, message: str, event: Any, **more: Any) -> Finding:
        start, end = event.start_mark, event.end_mark
        place = Place(self.name, start.line + 1, start.column + 1, end.line + 1, end.column + 1)
        return Finding.of(id, message, place, **more)
