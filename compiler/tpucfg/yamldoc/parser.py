"""Text to the events of a YAML parser."""

import re
from collections.abc import Iterator
from typing import Any, Final

import yaml
from yaml import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
)

from tpucfg import text_format as wording
from tpucfg.findings import MAX_FINDINGS, Finding, Location
from tpucfg.yamldoc.document import Node, count_values_and_depth
from tpucfg.yamldoc.yaml12 import NumberRefusedError, resolve_scalar


def _parser() -> Any:
    """The parser of libyaml, or PyYAML's own where there is no libyaml: the same events, thirty times as slow."""
    if yaml.__with_libyaml__:
        return yaml.cyaml.CParser  # type: ignore[attr-defined] # where libyaml is, it is there
    return type("Parser", (yaml.reader.Reader, yaml.scanner.Scanner, yaml.parser.Parser), {"__init__": _start_pure})


def _start_pure(self: Any, text: str) -> None:
    yaml.reader.Reader.__init__(self, text)
    yaml.scanner.Scanner.__init__(self)
    yaml.parser.Parser.__init__(self)


_Parser: Final = _parser()


def parse_events(text: str) -> Iterator[Any]:
    """The parser's events, one by one. The text holds no character that YAML does not allow.

    Raises:
        yaml.MarkedYAMLError: While they are read: the text is not YAML from there on.
    """
    return iter(_Parser(text).get_event, None)


# The events of a YAML parser to nodes, under bounds.


MAX_DEPTH: Final = 40
"""Levels of nesting: a Kubernetes pod has under 20."""
MAX_VALUES: Final = 50_000
"""Values with every alias counted in full, so that a chain of aliases cannot grow without end."""
CONTROL_CHARACTERS: Final = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff"
"""Control characters, surrogates and what is no character: YAML allows none of them, for a class of an expression."""
_SMUGGLED: Final = f"[{CONTROL_CHARACTERS}\r]"
"""What only an escape can bring in: YAML has it nowhere else, and no API field takes it."""
_MERGE: Final = "<<"
_YAML_TAGS: Final = "tag:yaml.org,2002:"
_MANY: Final = "write out what the aliases stand for, or shorten the file"
_DEEP: Final = "a message of the APIs has under 20 levels: is there a bracket too many?"

_FIX: Final = "fix those first, and check again"


class ParseAborted(Exception):
    """The text cannot be read any further; carries the finding that says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


class NodeBuilder:
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
            if type(event) is DocumentStartEvent:
                if root is not None:
                    hint = "delete it, or put it into a file of its own"
                    raise self._stop("TPU011", "a second document starts here; one file holds one", event, hint)
                root = self._value(next(events), events, 0)
        if root is None or (root.value is None and not root.text):
            raise ParseAborted(
                Finding.of(
                    "TPU002", f"{self.name} is empty", Location(self.name), help="make a new project with: tpucfg init"
                )
            )
        return root

    def _value(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        kind = type(event)
        if kind is AliasEvent:
            return self._alias(event, depth)
        self._count(event, 1)
        if kind is ScalarEvent:
            return self._scalar(event)
        self._nest(event, depth + 1)
        return (self._mapping if kind is MappingStartEvent else self._sequence)(event, events, depth + 1)

    def _count(self, event: Any, values: int) -> None:
        self.values += values
        if self.values > MAX_VALUES:
            raise self._stop(
                "TPU010", f"the file has more than {MAX_VALUES:,} values, aliases counted in full", event, _MANY
            )

    def _nest(self, event: Any, depth: int) -> None:
        if depth > MAX_DEPTH:
            message = f"this is nested deeper than {MAX_DEPTH} levels, aliases counted in full"
            raise self._stop("TPU010", message, event, _DEEP)

    def _scalar(self, event: Any) -> Node:
        self._refuse_unfit(event)
        text = value = event.value
        if event.implicit[0]:
            try:
                value = resolve_scalar(text)
            except NumberRefusedError as error:
                self._say("TPU006", str(error), event, help=error.help)
                value = 0
        node = Node(event.start_mark, event.end_mark, value, text)
        return self._anchored(event, node) if event.anchor else node

    def _mapping(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        self._refuse_tag(event)
        data: dict[str, Any] = {}
        children: dict[str, Node] = {}
        keys: dict[str, Node] = {}
        for key in events:
            if type(key) is MappingEndEvent:
                break
            name = self._key(key)
            child = self._value(next(events), events, depth)
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
        return self._anchored(event, node) if event.anchor else node

    def _key(self, event: Any) -> str:
        if type(event) is ScalarEvent:
            self._refuse_unfit(event)
            return str(event.value)
        if type(event) is MappingStartEvent and event.flow_style:
            message = "a mapping stands here as a key, as in {{ x }}: a spec is no template"
            raise self._stop("TPU011", message, event, "put the text in quotes, or write what a template would make")
        message = "a key is a word, and not a list, a mapping or an alias"
        raise self._stop("TPU011", message, event, "write the key itself")

    def _sequence(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        self._refuse_tag(event)
        children = []
        for item in events:
            if type(item) is SequenceEndEvent:
                break
            children.append(self._value(item, events, depth))
        node = Node(event.start_mark, item.end_mark, [child.value for child in children])
        node.children = children
        return self._anchored(event, node) if event.anchor else node

    def _anchored(self, event: Any, node: Node) -> Node:
        self.anchors[event.anchor] = node
        return node

    def _alias(self, event: Any, depth: int) -> Node:
        """The anchored value again. An anchor is known only once its value has ended, so no value can hold itself."""
        if event.anchor not in self.anchors:
            name = wording.format_value(event.anchor, quoted=False)
            message = f"the alias *{name} stands for nothing: no value named &{name} ends before it"
            raise self._stop("TPU011", message, event, "write the value itself")
        anchored = self.anchors[event.anchor]
        values, levels = count_values_and_depth(anchored)
        self._count(event, values)
        self._nest(event, depth + levels)
        node = Node(event.start_mark, event.end_mark, anchored.value, anchored.text)
        node.children, node.keys = anchored.children, anchored.keys
        return node

    def _refuse_tag(self, event: Any) -> None:
        if event.tag is None:
            return
        tag = f"!!{event.tag.removeprefix(_YAML_TAGS)}" if event.tag.startswith(_YAML_TAGS) else event.tag
        hint = "put the value in quotes instead" if tag == "!!str" else "leave the tag out"
        message = f"the tag {wording.format_value(tag, quoted=False)} is not read: a spec holds plain values"
        found = self._finding("TPU011", message, event, help=hint)
        line, column = found.location[1:3]
        self._keep(found._replace(location=Location(self.name, line, column, line, column + len(tag))), event)

    def _refuse_unfit(self, event: Any) -> None:
        """What makes a value or a key unreadable: a tag, or a character that only an escape can bring in."""
        if event.tag is not None:
            self._refuse_tag(event)
        if event.style == '"' and not event.value.isprintable() and (found := re.search(_SMUGGLED, event.value)):
            message = f"an escape stands for the character U+{ord(found[0]):04X}, which no name, path or flag takes"
            self._say("TPU011", message, event, help="delete the escape, or put the text in single quotes")

    def _duplicate(self, name: str, event: Any, first: Node) -> None:
        location = Location(
            self.name, first.start.line + 1, first.start.column + 1, first.end.line + 1, first.end.column + 1
        )
        self._say(
            "TPU003",
            f"{wording.quote_key(name)} is written twice in one mapping: first in line {location.line}",
            event,
            help="delete one of the two",
            related=((location, "the first one"),),
        )

    def _say(self, id: str, message: str, event: Any, **more: Any) -> None:
        self._keep(self._finding(id, message, event, **more), event)

    def _keep(self, finding: Finding, event: Any) -> None:
        if len(self.findings) == MAX_FINDINGS:
            raise self._stop("TPU010", f"there are {MAX_FINDINGS} mistakes above, and no more is read", event, _FIX)
        self.findings.append(finding)

    def _stop(self, id: str, message: str, event: Any, help: str) -> ParseAborted:
        return ParseAborted(self._finding(id, message, event, help=help))

    def _finding(self, id: str, message: str, event: Any, **more: Any) -> Finding:
        start, end = event.start_mark, event.end_mark
        location = Location(self.name, start.line + 1, start.column + 1, end.line + 1, end.column + 1)
        return Finding.of(id, message, location, **more)
