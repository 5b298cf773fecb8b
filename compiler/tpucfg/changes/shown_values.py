"""Show two values that differ, so that the difference can be seen."""

import json
import re
import unicodedata
from itertools import zip_longest
from typing import Any, Final, NamedTuple

from tpucfg.changes.facts import ABSENT, Change
from tpucfg.text_format import format_value, printable

_CONTEXT: Final = 20
"""Characters of a long text that are shown before the first difference."""
_MAX_DATA_LENGTH: Final = 300
"""Limit for a list or mapping that was added or removed as a whole; its beginning identifies it."""
_AMBIGUOUS_TEXT: Final = re.compile(r"|\s.*|.*\s|true|false|null|[-+.0-9][-+.0-9eE]*|[\[{\"].*", re.DOTALL)
"""Texts that are quoted because they look like another type, or like no value at all."""
_ONLY_SPACES: Final = "only spaces differ"
_LOOKALIKES: Final = "characters that look alike differ"


class ShownPair(NamedTuple):
    """Two values as they are shown, and a note on their difference."""

    before: str
    after: str
    note: str = ""
    """A clause such as `they differ from character 1,043 on`; empty if the difference can be seen."""


def show_values(before: Any, after: Any, *, max_length: int, flag: bool = False) -> ShownPair:
    """Show two values that differ.

    Args:
        before: plain data.
        after: plain data.
        max_length: the limit for the length of each text.
        flag: True for the value of a flag or a line of a script, which is written as on the command line.
    """
    if isinstance(before, str) and isinstance(after, str) and before.split() == after.split():
        return show_texts(before, after, max_length)
    old, new = (_text(value, flag=flag) for value in (before, after))
    if old == new:
        # A bare flag and one with the value `given`, or a line of a script without its backslash.
        old, new = ("given" if flag and value is None else _json(value) for value in (before, after))
    is_data = not (isinstance(before, str) and isinstance(after, str))
    return show_texts(old, new, min(max_length, _MAX_DATA_LENGTH) if is_data else max_length)


def show_value(value: Any, *, max_length: int, flag: bool = False) -> str:
    """Show one value on one line; the value of a flag as on the command line."""
    limit = max_length if isinstance(value, str) else min(max_length, _MAX_DATA_LENGTH)
    return format_value(_text(value, flag=flag), quoted=False, max_length=limit)


def show_texts(before: str, after: str, max_length: int) -> ShownPair:
    """Show two texts: escaped or quoted where they look alike, and long ones from their first difference on."""
    note = ""
    if before != after and before.split() == after.split():
        before, after, note = _json(before), _json(after), _ONLY_SPACES
    elif _look_alike(before, after):
        before, after, note = _ascii(before), _ascii(after), _LOOKALIKES
    before, after = printable(before), printable(after)
    if max(len(before), len(after)) <= max_length:
        return ShownPair(before, after, note)
    position = _first_difference(before, after)
    if position + 1 < max_length:
        before, after = (format_value(text, quoted=False, max_length=max_length) for text in (before, after))
        return ShownPair(before, after, note)
    note = f"they differ from character {position + 1:,} on"
    return ShownPair(_from(before, position, max_length), _from(after, position, max_length), note)


def show_change(change: Change, *, max_length: int, flag: bool = False) -> ShownPair:
    """Show the values of a change; a value that is absent is empty."""
    if change.before is ABSENT or change.after is ABSENT:
        shown = (
            "" if value is ABSENT else show_value(value, max_length=max_length, flag=flag)
            for value in (change.before, change.after)
        )
        return ShownPair(*shown)
    return show_values(change.before, change.after, max_length=max_length, flag=flag)


def _text(value: Any, *, flag: bool) -> str:
    """Return a value as text of any length."""
    if flag and value is None:
        return "given"
    if flag and isinstance(value, str):
        value = value.strip().removesuffix(" \\")  # the layout of a script's line
    if isinstance(value, str) and value and (flag or not _AMBIGUOUS_TEXT.fullmatch(value)):
        return value
    return _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _ascii(text: str) -> str:
    return json.dumps(text)[1:-1].replace('\\"', '"')


def _look_alike(before: str, after: str) -> bool:
    """Return True if texts that differ can look equal: other forms of the same letters, or other letters for ASCII."""
    if before == after or (before.isascii() and after.isascii()):
        return False
    if unicodedata.normalize("NFKC", before) == unicodedata.normalize("NFKC", after):
        return True
    pairs = [(old, new) for old, new in zip_longest(before, after, fillvalue="") if old != new]
    return len(before) == len(after) and all(old.isascii() != new.isascii() for old, new in pairs)


def _first_difference(before: str, after: str) -> int:
    pairs = enumerate(zip_longest(before, after))
    return next((index for index, (old, new) in pairs if old != new), len(before))


def _from(text: str, position: int, max_length: int) -> str:
    start = position - _CONTEXT
    part = text[start : start + max_length - 2]
    return f"…{part}" + ("…" if start + len(part) < len(text) else "")
