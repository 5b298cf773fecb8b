"""Write values as YAML that every parser reads as the same data, and verify such a text.

YAML 1.1 (PyYAML, which most trainers use) and YAML 1.2 disagree about `no`, `12:30`, `1e-3`, `0o17` and more, so a
string is written plain only if no version could read it as anything else. Numbers have a form that both know.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from yaml import (
    MappingEndEvent,
    MappingStartEvent,
    MarkedYAMLError,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from tpucfg.text_format import escape_character, is_visible, replace_invisible
from tpucfg.yamldoc.parser import NumberRefusedError, parse_events, resolve_scalar

_PLAIN: Final = re.compile(r"[A-Za-z/][A-Za-z0-9_./@=+-]*(?::[A-Za-z0-9_./@=+-]+)*")
"""A leading letter or slash, so it is no number in any version; `:` only before more text."""
_WORDS: Final = frozenset(
    ("y", "n", "yes", "no", "on", "off", "true", "false", "null", "none", "nan", "inf")
)
"""Words that are quoted in any case: at least one version reads each as something other than text."""
_ASCII_BLOCK: Final = re.compile(r"[!-~][ -~]*\n(?:[ -~]*\n)*")
"""Lines of printable ASCII, the first without indentation: a literal block preserves them exactly."""
_BLOCK: Final = re.compile(r"[^\s](?:.*\n)+")
"""Lines of any characters, the first without indentation."""
_LINES_AND_TABS: Final = {ord("\n"): None, ord("\t"): None}
_ESCAPES: Final = {
    code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA1), 0x2028, 0x2029, 0xFEFF, 0xFFFE, 0xFFFF)
}
"""Characters that JSON does not escape and that some parser rejects, folds or reads as white space."""
_MAX_DIGITS: Final = 24
"""A longer number is written with an exponent."""
_JSON_ENCODER: Final = json.JSONEncoder(ensure_ascii=False)


def to_yaml(value: Any, indent: int = 0) -> str:
    """Return the text that follows a key at an indent: a scalar on the key's line, anything else below it."""
    if isinstance(value, dict) and value:
        line_start = "\n" + " " * indent
        return "".join([line_start + yaml_entry(key, item, indent) for key, item in value.items()])
    if isinstance(value, list) and value:
        line_start = "\n" + " " * indent + "-"
        return "".join([line_start + _item(item, indent) for item in value])
    return f" {_scalar(value, indent)}"


def yaml_entry(key: str, value: Any, indent: int = 0) -> str:
    """Return a key with its value. A list has its key's own indent, a mapping two spaces more."""
    value_indent = indent if isinstance(value, list) else indent + 2
    return f"{_text(key)}:{to_yaml(value, value_indent)}"


def _item(value: Any, indent: int) -> str:
    """Return an entry of a list, which starts on the dash's own line."""
    if isinstance(value, dict | list) and value:
        # The dash replaces the line break and the indent of the first line.
        return " " + to_yaml(value, indent + 2)[indent + 3 :]
    return f" {_scalar(value, indent + 2)}"


def _scalar(value: Any, indent: int) -> str:
    if not isinstance(value, str):
        return yaml_scalar(value)
    if "\n" in value and _is_literal(value) and not value.endswith("\n\n"):
        # A literal block ends with one line break; a text with no or several final line breaks is quoted.
        pad = " " * max(indent, 2)
        return "|\n" + "\n".join(f"{pad}{line}" if line else "" for line in value[:-1].split("\n"))
    return _text(value)


def _is_literal(text: str) -> bool:
    """Return True if a literal block preserves a text exactly, and shows it as it is: it cannot escape a character."""
    if _ASCII_BLOCK.fullmatch(text):
        return True
    return _BLOCK.fullmatch(text) is not None and is_visible(text.translate(_LINES_AND_TABS))


def yaml_scalar(value: Any) -> str:
    """Return a scalar on one line."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float):
        return _float(value)
    # Most numbers are integers, and str() is cheaper than the encoder. By type: to isinstance, True is an int.
    return str(value) if type(value) is int else _JSON_ENCODER.encode(value)


# Cached, because configs share their keys and most of their values.
@lru_cache(maxsize=4096)
def _text(value: str) -> str:
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    quoted = _JSON_ENCODER.encode(value)
    return quoted if is_visible(quoted) else _escaped(quoted)


def _escaped(quoted: str) -> str:
    """Escape characters that parsers disagree on, and invisible ones, which may reorder the displayed text."""
    return replace_invisible(quoted.translate(_ESCAPES), escape_character)


def _float(value: float) -> str:
    """Return digits and a point or, for a long number, a point and a signed exponent."""
    text = repr(value)
    mantissa, _, exponent = text.partition("e")
    if not exponent:
        return text
    decimals = max(len(mantissa.partition(".")[2]) - int(exponent), 1)
    digits = format(value, f".{decimals}f")
    # YAML 1.1 requires the point: it reads `1e-05` as text.
    return (
        digits
        if len(digits) <= _MAX_DIGITS
        else f"{mantissa}{'' if '.' in mantissa else '.0'}e{exponent}"
    )


def round_trips(text: str, *values: Any) -> bool:
    """Return True if the text's documents, parsed again, are exactly the values, with types and the order of keys.

    The parser's events are compared as they arrive, which is a fifth of the work of making a Document.
    """
    events = parse_events(text)
    try:
        next(events)  # the start of the stream
        for value in values:
            next(events)  # the start of the document
            if not _matches(next(events), events, value):
                return False
            next(events)  # the end of the document
        return len(list(events)) == 1  # the end of the stream, and no further document
    except (MarkedYAMLError, NumberRefusedError, StopIteration):
        return False


def _matches(event: Any, events: Iterator[Any], value: Any) -> bool:
    event_type = type(event)
    if event_type is ScalarEvent:
        if event.anchor or event.tag:
            return False
        # A plain scalar is resolved by YAML 1.2, any other is text.
        resolved = resolve_scalar(event.value) if event.implicit[0] else event.value
        # The types are compared as well, because 1, 1.0 and True are equal in Python.
        return type(resolved) is type(value) and resolved == value
    if getattr(event, "anchor", None) or getattr(event, "tag", None):
        return False
    if event_type is MappingStartEvent:
        return type(value) is dict and _matches_mapping(events, value)
    return (
        event_type is SequenceStartEvent
        and type(value) is list
        and _matches_sequence(events, value)
    )


def _matches_mapping(events: Iterator[Any], value: dict[str, Any]) -> bool:
    for key, item in value.items():
        event = next(events)
        if type(event) is not ScalarEvent or event.value != key or event.anchor or event.tag:
            return False
        if not _matches(next(events), events, item):
            return False
    return type(next(events)) is MappingEndEvent


def _matches_sequence(events: Iterator[Any], value: list[Any]) -> bool:
    for item in value:
        if not _matches(next(events), events, item):
            return False
    return type(next(events)) is SequenceEndEvent


class FieldWriter:
    """One mapping of a request body, written field by field and in the mapping's own order.

    A template lists the fields that a target writes, in the target's order, and ends with `others`. It thus shows the
    structure of its file, while fields that only the spec's `extra` adds are still written.
    """

    def __init__(self, mapping: dict[str, Any], indent: int = 0) -> None:
        self._mapping = mapping
        self._indent = indent
        self._unwritten = list(mapping)
        self._margin = ""
        """The indent of the next field. Empty for the first field, which the template itself indents."""

    def value(self, key: str) -> str:
        """Return the value of a key that the template writes itself."""
        value = self._take(key)
        return to_yaml(value, self._indent if isinstance(value, list) else self._indent + 2)

    def nested(self, key: str) -> "FieldWriter":
        """Return a writer for the mapping of a key that the template writes itself."""
        return FieldWriter(self._take(key), self._indent + 2)

    def entries(self, key: str) -> Iterator["FieldWriter"]:
        """Yield a writer for each mapping in the list of a key that the template writes itself."""
        return (FieldWriter(item, self._indent + 2) for item in self._take(key))

    def documents(self) -> "Iterator[tuple[str, FieldWriter]]":
        """Yield each key with a writer for its mapping, which the template writes as a document of its own."""
        return ((key, FieldWriter(self._take(key))) for key in self._unwritten.copy())

    def field(self, key: str) -> str:
        """Return the lines of the field if it is the next one, and nothing otherwise.

        `extra` adds fields at a mapping's end, and replaces a list by mappings whose keys have another order. A field
        that is not next is left to `others`, so that the order is kept.
        """
        return self._lines(key) if self._unwritten and self._unwritten[0] == key else ""

    def others(self) -> str:
        """Return the lines of all fields that are not written yet."""
        return (
            "".join([self._lines(key) for key in self._unwritten.copy()]) if self._unwritten else ""
        )

    def _lines(self, key: str) -> str:
        margin = self._margin
        return f"{margin}{yaml_entry(key, self._take(key), self._indent)}\n"

    def _take(self, key: str) -> Any:
        self._unwritten.remove(key)
        self._margin = " " * self._indent
        return self._mapping[key]


# Filters, because jinja2 calls a filter directly, but a method only after checks that take longer than the method.
FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "value": FieldWriter.value,
    "nested": FieldWriter.nested,
    "entries": FieldWriter.entries,
    "documents": FieldWriter.documents,
    "field": FieldWriter.field,
    "others": FieldWriter.others,
}
