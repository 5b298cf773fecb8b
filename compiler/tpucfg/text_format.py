"""Formats of values, paths and lists in messages, and corrections of misspelled words."""

import json
import re
from collections.abc import Callable, Sequence
from io import StringIO
from typing import Any, Final

MAX_LISTED: Final = 8
"""The names that a list in a message shows."""
_INVISIBLE: Final = {
    0x34F,
    0x115F,
    0x1160,
    0x17B4,
    0x17B5,
    0x2800,
    0x3164,
    0xFFA0,
    0x16FE4,
    0x1D159,
}.union(
    range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0x13441, 0x13447), range(0xE0000, 0xE1000)
)
"""Fillers, variation selectors and blank symbols: Python calls them printable, but nothing is shown."""
# A JSON string that YAML reads as the same string without its quotes.
_PLAIN_WORD: Final = r'"([A-Za-z][A-Za-z0-9_./-]*(?::[A-Za-z0-9_./-]+)*)"'
_YAML_KEYWORDS: Final = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
_MAX_PATH_LENGTH: Final = 80


def dotted(path: Sequence[str | int], root: str = "the file") -> str:
    """Return a path as `environments.dev.sizes[1]`; a long one starts with `…`, and an empty one is the root."""
    steps = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in path]
    if not steps:
        return root
    # The end of a long path names the field, and the finding has its location, so the start can be left out.
    start, remaining = len(steps) - 1, _MAX_PATH_LENGTH - len(steps[-1])
    while start and (remaining := remaining - len(steps[start - 1])) > 0:
        start -= 1
    text = "".join(steps[start:]).removeprefix(".")
    return format_value(f"…{text}" if start else text, quoted=False, max_length=_MAX_PATH_LENGTH)


def format_value(value: Any, *, quoted: bool = True, max_length: int = 60) -> str:
    """Return a value for a message: one line, at most `max_length` characters."""
    text = (
        json.dumps(value, ensure_ascii=False, default=str)
        if quoted or not isinstance(value, str)
        else value
    )
    text = printable(text)
    return text if len(text) <= max_length else f"{text[: max_length - 1]}…"


def quote_key(key: str) -> str:
    """Return a key for a message, in quotes unless it is a plain word."""
    return format_value(key, quoted=not re.fullmatch(r"[\w.-]+", key))


def json_text(value: Any) -> str:
    """Return a value as indented JSON, with escapes only for characters that a terminal does not show.

    A fraction becomes a number.
    """
    # json.dumps would collect millions of pieces of a large value in a list before joining them.
    file = StringIO()
    json.dump(value, file, indent=2, ensure_ascii=False, default=_json_number)
    text = file.getvalue()
    if not is_visible(text.replace("\n", "")):
        text = "\n".join(
            replace_invisible(row, lambda char: json.dumps(char)[1:-1]) for row in text.split("\n")
        )
    return f"{text}\n"


def _json_number(value: Any) -> float | None:
    from tpucfg.number_format import to_json_number

    return to_json_number(value)


def printable(text: str) -> str:
    """Return the text with escapes for the characters that a terminal would interpret or not show."""
    return replace_invisible(text, escape_character)


def is_visible(text: str) -> bool:
    """Return True if a terminal and a browser show each character, and no other text looks the same by definition.

    A letter with an accent can be written as one character or as two, which look the same: only the first is visible
    in this sense. Letters of two scripts that look alike are not recognized here.
    """
    # Nearly every text is ASCII, where a single test suffices.
    is_plain = text.isascii() or not (
        _INVISIBLE.intersection(map(ord, text)) or _looks_like_another(text)
    )
    return text.isprintable() and is_plain


def replace_invisible(text: str, replacement: Callable[[str], str]) -> str:
    """Return the text with a replacement for each character that is not visible."""
    if is_visible(text):
        return text
    # Accents are replaced only in a text that another one looks like: many languages are written with them.
    without_accents = not text.isascii() and _looks_like_another(text)
    hidden = {
        char
        for char in {*text}
        if not is_visible(char) or (without_accents and _is_combining(char))
    }
    return text.translate({ord(char): replacement(char) for char in hidden})


def _looks_like_another(text: str) -> bool:
    """Return True if Unicode defines another text as equal: a precomposed letter, the Kelvin sign, and the like."""
    from unicodedata import is_normalized

    return not is_normalized("NFC", text)


def _is_combining(char: str) -> bool:
    """Return True for an accent and for a part of a Korean syllable, which combine with the character before them."""
    from unicodedata import category

    return category(char).startswith("M") or "\u1161" <= char <= "\u11ff"


def printable_lines(text: str) -> str:
    """Return a text of several lines with each line made printable."""
    return "\n".join(map(printable, text.split("\n")))


def escape_character(char: str) -> str:
    """Return an escape sequence that JSON and YAML 1.2 read as the character; beyond U+FFFF, only YAML does."""
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"  # noqa: PLR2004 - the limit of \u


def listed(names: Sequence[str], limit: int = MAX_LISTED, last: str = ", ") -> str:
    """Return a list of names for a message, cut after `limit`; `last` precedes the last name of a complete list."""
    if len(names) > limit:
        return f"{', '.join(names[:limit])} and {len(names) - limit} more"
    return last.join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def format_count(number: int, noun: str) -> str:
    """Return `1 host` or `1,024 hosts`."""
    return f"{number} {noun}" if number == 1 else f"{number:,} {noun}s"


def split_lines(text: str) -> list[str]:
    """Return the lines by YAML's line breaks; `str.splitlines` also splits at characters that a line may contain."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Return the line and the column of the character at an offset, both counted from 1."""
    lines = split_lines(text[:offset])
    return len(lines), len(lines[-1]) + 1


def yaml_example(value: Any) -> str:
    """Return a value as it would be written in a spec, on one line and with as few quotes as possible."""
    if (
        isinstance(value, str)
        and not re.match("[0-9]", value)
        and value.lower() not in _YAML_KEYWORDS
    ):
        return value
    return re.sub(_PLAIN_WORD, _unquoted, json.dumps(value, ensure_ascii=False))


def _unquoted(match: re.Match[str]) -> str:
    return match[0] if match[1].lower() in _YAML_KEYWORDS else match[1]


def nearest(text: str, names: Sequence[str]) -> str | None:
    """Return the name that was most likely meant: one that differs in case, separators, or a letter or two."""
    by_letters = {letters(name): name for name in reversed(names)}
    if name := by_letters.get(letters(text)):
        return name
    # difflib is imported only for a misspelled word. The text is bounded because the comparison takes quadratic time.
    from difflib import get_close_matches

    return next(iter(get_close_matches(text[:100], names, n=1, cutoff=0.7)), None)


def suggestion(text: str, names: Sequence[str], otherwise: str) -> str:
    """Return a help line with the name that was most likely meant, or another one if no name is near."""
    near = nearest(text, names)
    return f"did you mean {near}?" if near else otherwise


def letters(text: str) -> str:
    """Return the letters and digits of a name, in lower case."""
    return re.sub(r"[^a-z0-9]", "", text.lower())
