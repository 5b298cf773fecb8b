"""Build nodes from the events of a YAML parser, within limits on size and depth.

Plain scalars are resolved by the core schema of YAML 1.2 (https://yaml.org/spec/1.2.2/#103-core-schema). PyYAML's own
loaders follow YAML 1.1, which reads `no` as false, `12:30` as 750 and `1e-3` as text. In a spec, all three would be
wrong.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
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

from tpucfg.findings import MAX_FINDINGS, Finding, Location
from tpucfg.text_format import format_value, quote_key
from tpucfg.yamldoc.document import Node, count_values_and_depth, range_of_marks

MAX_DEPTH: Final = 40
"""Levels of nesting: a Kubernetes pod has fewer than 20."""
MAX_VALUES: Final = 50_000
"""Values with every alias expanded, so that a chain of aliases cannot grow exponentially."""
NEVER_ALLOWED: Final = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff"
"""Control characters, surrogates and noncharacters, which no YAML text may contain, as the inside of a regex class."""
# Only an escape can produce these in a value, and no API accepts them in a field.
_ESCAPED_ONLY: Final = f"[{NEVER_ALLOWED}\r]"
_MERGE_KEY: Final = "<<"
_YAML_TAG_PREFIX: Final = "tag:yaml.org,2002:"


_Parser: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's parser, or PyYAML's own if there is no libyaml: the same events, thirty times as slow."""


def parse_events(text: str) -> Iterator[Any]:
    """Yield the parser's events. The text must contain no character that YAML does not allow.

    Raises:
        yaml.MarkedYAMLError: During the iteration, when the text is not YAML from there on.
    """
    return iter(_Parser(text).get_event, None)


class ParseAborted(Exception):  # noqa: N818 - it stops the parser, and its content is a finding
    """The text cannot be read any further."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


class NodeBuilder:
    """Builds the nodes of a text, and collects the findings about it.

    The depth is checked at the start of each collection, before Python's stack or libyaml's could be exhausted.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.findings: list[Finding] = []
        self.anchors: dict[str, Node] = {}
        self.value_count = 0

    def documents(self, events: Iterator[Any], *, several: bool) -> tuple[Node, ...]:
        """Return the roots of the stream's documents: exactly one or, if it may have several, all without empty ones.

        Raises:
            ParseAborted: The text is empty, exceeds a limit, or contains a construct after which it cannot be parsed.
        """
        roots: list[Node] = []
        for event in events:
            if type(event) is DocumentStartEvent:
                if roots and not several:
                    message = "a second YAML document starts here; a file has only one"
                    raise self._abort(
                        "TPU011", message, event, "delete it, or move it to its own file"
                    )
                self.anchors.clear()  # https://yaml.org/spec/1.2.2/#91-documents: no alias refers to another document
                roots.append(self._value(next(events), events, 0))
        # An empty document is null without a text: `null` itself is a value.
        if not (filled := tuple(root for root in roots if root.value is not None or root.text)):
            hint = "write it again, or make a new project with: tpucfg init"
            raise ParseAborted(
                Finding.of("TPU002", f"{self.name} is empty", Location(self.name), help=hint)
            )
        return filled

    def _value(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        event_type = type(event)
        if event_type is AliasEvent:
            return self._alias(event, depth)
        self._count_values(event, 1)
        if event_type is ScalarEvent:
            return self._scalar(event)
        self._check_depth(event, depth + 1)
        return (self._mapping if event_type is MappingStartEvent else self._sequence)(
            event, events, depth + 1
        )

    def _count_values(self, event: Any, values: int) -> None:
        self.value_count += values
        if self.value_count > MAX_VALUES:
            message = f"the file has more than {MAX_VALUES:,} values, with aliases expanded"
            raise self._abort("TPU010", message, event, "use fewer aliases, or shorten the file")

    def _check_depth(self, event: Any, depth: int) -> None:
        if depth > MAX_DEPTH:
            message = f"this is nested deeper than {MAX_DEPTH} levels, with aliases expanded"
            hint = "check for an extra bracket: request bodies have fewer than 20 levels"
            raise self._abort("TPU010", message, event, hint)

    def _scalar(self, event: Any) -> Node:
        self._check_scalar(event)
        text = value = event.value
        # implicit[0] is True for a plain scalar: anything in quotes, or in a block, is text.
        if event.implicit[0]:
            try:
                value = resolve_scalar(text)
            except NumberRefusedError as error:
                self._report(
                    "TPU006",
                    str(error),
                    event,
                    help="write another number; if it is text, put it in quotes",
                )
                # Any number serves: the finding is an error, so the value is never used.
                value = 0
        node = Node(event.start_mark, event.end_mark, value, text)
        return self._anchored(event, node) if event.anchor else node

    def _mapping(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        self._refuse_tag(event)
        data: dict[str, Any] = {}
        children: dict[str, Node] = {}
        keys: dict[str, Node] = {}
        last = Node(event.start_mark, event.start_mark, None)
        for key in events:
            if type(key) is MappingEndEvent:
                break
            name = self._key(key)
            # Read before the key is checked, because the events of the value must be consumed in any case.
            child = self._value(next(events), events, depth)
            # In braces, the end of a number with a comma is an empty key.
            is_rest = event.flow_style and type(last.value) is int and not child.text
            if is_rest and child.value is None and re.fullmatch("[0-9]{3}", name):
                last.text, last.end = f"{last.text},{name}", key.end_mark
                continue
            last = child
            if name in keys:
                self._report_duplicate(name, key, keys[name])
                continue
            if name == _MERGE_KEY and key.implicit[0]:
                message = "merge keys (<<) are not supported: YAML 1.2 has none"
                self._report("TPU011", message, key, help="write the keys out")
                continue
            keys[name] = Node(key.start_mark, key.end_mark, name, name)
            children[name], data[name] = child, child.value
        for child in children.values() if event.flow_style else ():
            if "," in child.text and type(child.value) is int:
                message = f"in braces, a comma ends a value: {child.text} is not one number"
                hint = f"write {child.text.replace(',', '')}, without separators; if it is text, put it in quotes"
                location = range_of_marks(self.name, child.start, child.end)
                self._keep(Finding.of("TPU006", message, location, help=hint), event)
        node = Node(event.start_mark, key.end_mark, data)
        node.children, node.keys = children, keys
        return self._anchored(event, node) if event.anchor else node

    def _key(self, event: Any) -> str:
        if type(event) is ScalarEvent:
            self._check_scalar(event)
            return str(event.value)
        message = (
            "a key must be text, not a list, an alias, or a mapping as in the template {{ x }}"
        )
        raise self._abort(
            "TPU011", message, event, "write the text itself; one in braces needs quotes"
        )

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
        """Return a copy of the anchored node, at the alias's own location."""
        # An anchor is registered at the end of its value, so no value can contain itself.
        if event.anchor not in self.anchors:
            name = format_value(event.anchor, quoted=False)
            message = (
                f"the alias *{name} is undefined: no value with the anchor &{name} ends before it"
            )
            raise self._abort("TPU011", message, event, "write the value itself")
        anchored = self.anchors[event.anchor]
        values, levels = count_values_and_depth(anchored)
        self._count_values(event, values)
        self._check_depth(event, depth + levels)
        node = Node(event.start_mark, event.end_mark, anchored.value, anchored.text)
        node.children, node.keys = anchored.children, anchored.keys
        return node

    def _check_scalar(self, event: Any) -> None:
        """Report a tag, or a character that only an escape can produce."""
        if event.tag is not None:
            self._refuse_tag(event)
        if (
            event.style == '"'
            and not event.value.isprintable()
            and (match := re.search(_ESCAPED_ONLY, event.value))
        ):
            message = f"an escape produces the character U+{ord(match[0]):04X}, which no name, path or flag may contain"
            self._report(
                "TPU011", message, event, help="delete the escape, or put the text in single quotes"
            )

    def _refuse_tag(self, event: Any) -> None:
        if event.tag is None:
            return
        tag = (
            f"!!{event.tag.removeprefix(_YAML_TAG_PREFIX)}"
            if event.tag.startswith(_YAML_TAG_PREFIX)
            else event.tag
        )
        message = f"the tag {format_value(tag, quoted=False)} is not supported: a spec has only plain values"
        finding = self._finding("TPU011", message, event, help="leave the tag out")
        # The event's range includes the value after the tag; the finding is about the tag alone.
        line, column = finding.location.start
        self._keep(
            finding._replace(location=Location(self.name, line, column, line, column + len(tag))),
            event,
        )

    def _report_duplicate(self, name: str, event: Any, first: Node) -> None:
        location = range_of_marks(self.name, first.start, first.end)
        message = (
            f"the key {quote_key(name)} is written twice; the first is on line {location.line}"
        )
        self._report(
            "TPU003",
            message,
            event,
            help="delete one of the two",
            related=((location, "the first one"),),
        )

    def _report(self, id: str, message: str, event: Any, **options: Any) -> None:
        self._keep(self._finding(id, message, event, **options), event)

    def _keep(self, finding: Finding, event: Any) -> None:
        if len(self.findings) == MAX_FINDINGS:
            message = f"reading stopped after {MAX_FINDINGS} mistakes"
            raise self._abort("TPU010", message, event, "fix those first, and check again")
        self.findings.append(finding)

    def _abort(self, id: str, message: str, event: Any, help: str) -> ParseAborted:
        return ParseAborted(self._finding(id, message, event, help=help))

    def _finding(self, id: str, message: str, event: Any, **options: Any) -> Finding:
        return Finding.of(
            id, message, range_of_marks(self.name, event.start_mark, event.end_mark), **options
        )


# Plain scalars.

Scalar = str | int | float | bool | None

_WORDS: Final[dict[str, Scalar]] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NUMBER_STARTS: Final = frozenset("-+.0123456789")
_OCTAL_OR_HEXADECIMAL: Final = r"0o[0-7]+|0x[0-9a-fA-F]+"
_DECIMAL: Final = re.compile(r"[-+]?(?:\d+(\.\d*)?|(\.\d+))([eE][-+]?\d+)?", re.ASCII)
"""An integer, or with one of the groups a number with a point or an exponent."""
_NOT_FINITE: Final = r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"

MAX_NUMBER_LENGTH: Final = 40
"""Maximum characters of a number: more than any count, rate or 64-bit identifier needs."""


class NumberRefusedError(ValueError):
    """A number that no spec can use: infinite, not a number, out of range, or longer than MAX_NUMBER_LENGTH."""

    def __init__(self, text: str) -> None:
        limits = f"a number has up to {MAX_NUMBER_LENGTH} characters, is finite, and lies between 1e-308 and 1e308"
        super().__init__(f"{format_value(text, quoted=False)} is out of range: {limits}")


def resolve_scalar(text: str) -> Scalar:
    """Return the value of a plain scalar.

    Raises:
        NumberRefusedError: The text is a number that a JSON document cannot contain.
    """
    if text in _WORDS:
        return _WORDS[text]
    return _number(text) if text[0] in _NUMBER_STARTS else text


# Cached because a ladder of configs repeats its numbers: each is read once per spec and once per rendered text.
@lru_cache(maxsize=1024)
def _number(text: str) -> Scalar:
    decimal = _DECIMAL.fullmatch(text)
    is_other = (
        not decimal and text.startswith(("0o", "0x")) and re.fullmatch(_OCTAL_OR_HEXADECIMAL, text)
    )
    is_infinite = (
        not decimal and text.lower().endswith(("inf", "nan")) and re.fullmatch(_NOT_FINITE, text)
    )
    # Checked before the conversion, whose time is quadratic in the number of digits.
    if is_infinite or ((decimal or is_other) and len(text) > MAX_NUMBER_LENGTH):
        raise NumberRefusedError(text)
    if not decimal:
        return int(text, 0) if is_other else text
    value = float(text) if any(decimal.groups()) else int(text)
    # A mantissa with a digit other than 0 that becomes 0 has underflowed.
    has_underflowed = value == 0 and re.search("[1-9]", text.lower().partition("e")[0])
    if has_underflowed or value in (float("inf"), float("-inf")):
        raise NumberRefusedError(text)
    return value
