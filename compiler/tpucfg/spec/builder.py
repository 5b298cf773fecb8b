"""Nodes from libyaml's events, under bounds: nothing is constructed or evaluated, and nothing grows without end."""

import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from tpucfg.findings import Finding, Place
from tpucfg.spec.document import Node
from tpucfg.spec.scalars import NumberRefusedError, resolve
from tpucfg.wording import printable, shown

DEEPEST: Final = 40
"""Levels of nesting: a Kubernetes pod has under 20."""
MOST_VALUES: Final = 50_000
"""Values with every alias counted in full, so that a chain of aliases cannot grow without end."""

_UNFIT: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufeff]")
"""Characters that a quoted string can smuggle in by an escape, and that no shell, URL or API field takes."""
_SECOND: Final = "delete it, or put it into a file of its own"
_EMPTY: Final = "make a new project with: tpucfg init"
_MANY: Final = "write out what the aliases stand for, or shorten the file"
_DEEP: Final = "a message of the APIs has under 20 levels: is a bracket too much here?"
_MERGE: Final = "<<"
_YAML_TAGS: Final = "tag:yaml.org,2002:"


class StopError(Exception):
    """The text cannot be read any further; carries the finding that says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


class Builder:
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
                    raise self._stop("TPU011", "a second document starts here; one file holds one", event, _SECOND)
                root = self._value(next(events), events, 0)
        if root is None or (root.value is None and not root.text):
            raise StopError(Finding.of("TPU002", f"{self.name} is empty", Place(self.name), help=_EMPTY))
        return root

    def _value(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        self.values += 1
        if self.values > MOST_VALUES:
            raise self._stop("TPU010", f"more than {MOST_VALUES:,} values, aliases counted in full", event, _MANY)
        if isinstance(event, yaml.ScalarEvent):
            node = self._scalar(event)
        elif isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        elif depth >= DEEPEST:
            raise self._stop("TPU010", f"this is nested deeper than {DEEPEST} levels", event, _DEEP)
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
                self._say("TPU006", str(error), event, help=error.help)
                value = 0
        self._refuse_escapes(event)
        node = Node(event.start_mark, event.end_mark, value, event.value)
        self._anchor(event, node, 0)
        return node

    def _mapping(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        self._refuse_tag(event)
        before, data, children, keys = self.values, {}, {}, {}
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
        self._anchor(event, node, self.values - before)
        return node

    def _key(self, event: Any) -> str:
        if isinstance(event, yaml.ScalarEvent):
            self._refuse_tag(event)
            self._refuse_escapes(event)
            return str(event.value)
        braces = isinstance(event, yaml.MappingStartEvent) and event.flow_style
        hint = "put a text that starts with { in quotes; a spec is no template" if braces else "write the key itself"
        raise self._stop("TPU011", "a key is a word, and not a list, a mapping or an alias", event, hint)

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
            name = shown(event.anchor, quoted=False)
            message = f"the alias *{name} stands for nothing: no value named &{name} ends before it"
            raise self._stop("TPU011", message, event, "write the value itself")
        anchored, size = self.anchors[event.anchor]
        self.values += size
        if self.values > MOST_VALUES:
            raise self._stop("TPU010", f"more than {MOST_VALUES:,} values, aliases counted in full", event, _MANY)
        node = Node(event.start_mark, event.end_mark, anchored.value, anchored.text)
        node.children, node.keys = anchored.children, anchored.keys
        return node

    def _refuse_tag(self, event: Any) -> None:
        if event.tag is None or event.tag == "!":
            return
        tag = f"!!{event.tag.removeprefix(_YAML_TAGS)}" if event.tag.startswith(_YAML_TAGS) else event.tag
        hint = "put the value in quotes instead" if tag == "!!str" else "leave the tag out"
        finding = self._finding("TPU011", f"the tag {printable(tag)} is not read: a spec holds plain values", event, help=hint)
        place = finding.place
        self.findings.append(finding._replace(place=place._replace(end_line=place.line, end_column=place.column + len(tag))))

    def _refuse_escapes(self, event: Any) -> None:
        if event.style == '"' and (found := _UNFIT.search(event.value)):
            message = f"an escape stands for the control character U+{ord(found[0]):04X}, which no name, path or flag takes"
            self._say("TPU011", message, event, help="delete the escape, or put the text in single quotes")

    def _duplicate(self, name: str, event: Any, first: Node) -> None:
        place = Place(self.name, first.start.line + 1, first.start.column + 1, first.end.line + 1, first.end.column + 1)
        self._say(
            "TPU003",
            f"{shown(name, quoted=False)} is written twice in one mapping: the first stands in line {place.line}",
            event,
            help="delete one of the two",
            related=((place, "the first one"),),
        )

    def _say(self, id: str, message: str, event: Any, **more: Any) -> None:  # noqa: A002 - the word that users see
        self.findings.append(self._finding(id, message, event, **more))

    def _stop(self, id: str, message: str, event: Any, help: str) -> StopError:  # noqa: A002 - likewise
        return StopError(self._finding(id, message, event, help=help))

    def _finding(self, id: str, message: str, event: Any, **more: Any) -> Finding:  # noqa: A002 - likewise
        start, end = event.start_mark, event.end_mark
        place = Place(self.name, start.line + 1, start.column + 1, end.line + 1, end.column + 1)
        return Finding.of(id, message, place, **more)
