"""Values as YAML text that every reader takes the same way.

YAML 1.1 (PyYAML, which most trainers use) and YAML 1.2 disagree about `no`, `12:30`, `1e-3`, `0o17` and more, so a
string is written plain only where no version could read it as anything else. Numbers have a form that both know.
"""

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from yaml import MappingEndEvent, MappingStartEvent, MarkedYAMLError, ScalarEvent, SequenceEndEvent, SequenceStartEvent

from tpucfg.yamldoc.parser import parse_events
from tpucfg.yamldoc.yaml12 import NumberRefusedError, resolve_scalar

_PLAIN: Final = re.compile(r"[A-Za-z/][A-Za-z0-9_./@=+-]*(?::[A-Za-z0-9_./@=+-]+)*")
"""Starts with a letter or a slash, so it is no number in any version; `:` only before more text."""
_WORDS: Final = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null", "none", "nan", "inf"))
"""In any case; quoted even where only one version minds."""
_FITS_BLOCK: Final = r"[!-~][ -~]*\n(?:[ -~]*\n)*"
"""Lines of printable ASCII, the first without an indent of its own: a literal block keeps them to the letter."""
_ESCAPES: Final = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA1), 0x2028, 0x2029, 0xFEFF, 0xFFFE, 0xFFFF)}
"""Characters beyond JSON's own escapes that some reader refuses, folds, or takes for white space."""
_MOST_DIGITS: Final = 24
"""A longer number gets an exponent."""
_JSON: Final = json.JSONEncoder(ensure_ascii=False)


def to_yaml(value: Any, indent: int = 0) -> str:
    """The value behind a key at that indent: a scalar on the key's line, anything else below it."""
    if isinstance(value, dict) and value:
        begin = "\n" + " " * indent
        return "".join([begin + yaml_entry(key, item, indent) for key, item in value.items()])
    if isinstance(value, list) and value:
        begin = "\n" + " " * indent + "-"
        return "".join([begin + _item(item, indent) for item in value])
    return f" {_scalar(value, indent)}"


def yaml_entry(key: str, value: Any, indent: int = 0) -> str:
    """A key with its value. A list stands at its key's own indent, a mapping two deeper."""
    deeper = indent if isinstance(value, list) else indent + 2
    return f"{_text(key)}:{to_yaml(value, deeper)}"


def _item(value: Any, indent: int) -> str:
    """An entry of a list: a mapping begins on the dash's own line."""
    if isinstance(value, dict | list) and value:
        return " " + to_yaml(value, indent + 2)[indent + 3 :]
    return f" {_scalar(value, indent + 2)}"


def _scalar(value: Any, indent: int) -> str:
    if isinstance(value, str) and "\n" in value and re.fullmatch(_FITS_BLOCK, value) and not value.endswith("\n\n"):
        pad = " " * max(indent, 2)
        return "|\n" + "\n".join(f"{pad}{line}" if line else "" for line in value[:-1].split("\n"))
    return yaml_scalar(value)


def yaml_scalar(value: Any) -> str:
    """A value without parts, on one line."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float):
        return _float(value)
    return str(value) if type(value) is int else _JSON.encode(value)  # an integer's own digits, without an encoder


@lru_cache(maxsize=4096)
def _text(value: str) -> str:
    """Remembered, because configs share their keys and most of their values."""
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    quoted = _JSON.encode(value)
    return quoted if quoted.isprintable() else _escaped(quoted)


def _escaped(quoted: str) -> str:
    """Within quotes: without what some reader takes otherwise, and what nobody sees, as it may turn the text around."""
    text = quoted.translate(_ESCAPES)
    return "".join(char if char.isprintable() else _escape(ord(char)) for char in text)


def _escape(code: int) -> str:
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - the most that \u takes


def _float(value: float) -> str:
    """Digits and a point; where that grows long, a point and a signed exponent: `1e-05` is text under YAML 1.1."""
    text = repr(value)
    mantissa, _, exponent = text.partition("e")
    if not exponent:
        return text
    decimals = max(len(mantissa.partition(".")[2]) - int(exponent), 1)
    digits = format(value, f".{decimals}f")
    return digits if len(digits) <= _MOST_DIGITS else f"{mantissa}{'' if '.' in mantissa else '.0'}e{exponent}"


# Does a text say what a message says? The parser's events are held against the message as they come.


def round_trips(text: str, value: Any) -> bool:
    """Whether the text, read again, is the value to the letter: types, and the order of keys, count.

    It is a fifth of the work that a Document of the text would be, and no more is wanted of a text made here.
    """
    events = parse_events(text)
    try:
        next(events), next(events)  # the stream and its document begin
        if not _is(next(events), events, value):
            return False
        next(events)  # the document ends
        return len(list(events)) == 1  # and the stream with it
    except (MarkedYAMLError, NumberRefusedError, StopIteration):
        return False


def _is(event: Any, events: Iterator[Any], value: Any) -> bool:
    kind = type(event)
    if kind is ScalarEvent:
        return _is_scalar(event, value)
    if getattr(event, "anchor", None) or getattr(event, "tag", None):
        return False
    if kind is MappingStartEvent:
        return type(value) is dict and _is_mapping(events, value)
    return kind is SequenceStartEvent and type(value) is list and _is_sequence(events, value)


def _is_scalar(event: Any, value: Any) -> bool:
    """A plain scalar is what YAML 1.2 makes of it, anything in quotes or in a block is text."""
    if event.anchor or event.tag:
        return False
    found = resolve_scalar(event.value) if event.implicit[0] else event.value
    return type(found) is type(value) and found == value  # by type, because Python holds 1, 1.0 and True for equal


def _is_mapping(events: Iterator[Any], value: dict[str, Any]) -> bool:
    for key, item in value.items():
        event = next(events)
        if type(event) is not ScalarEvent or event.value != key or event.anchor or event.tag:
            return False
        if not _is(next(events), events, item):
            return False
    return type(next(events)) is MappingEndEvent


def _is_sequence(events: Iterator[Any], value: list[Any]) -> bool:
    for item in value:
        if not _is(next(events), events, item):
            return False
    return type(next(events)) is SequenceEndEvent
