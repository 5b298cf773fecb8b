"""How a message writes values, paths and lists, and what somebody who wrote something else most likely meant."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from io import StringIO
from typing import Any, Final

_PLAIN_WORD: Final = r'"([A-Za-z][A-Za-z0-9_./-]*(?::[A-Za-z0-9_./-]+)*)"'
_READ_OTHERWISE: Final = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
_LONGEST_PATH: Final = 80
_ALIKE: Final = 0.6
"""Of difflib's ratio: from there on two words share most of their letters."""
_SEPARATORS: Final = r"[\s_.-]+"
_WORDS: Final = r"[A-Za-z0-9][\sA-Za-z0-9_.-]*"


def dotted(path: Sequence[str | int], root: str = "the file") -> str:
    """A path as people write it: `environments.dev.sizes[1]`; a long one begins with `…`; an empty one is the root."""
    steps = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in path]
    if not steps:
        return root
    # The end names the field, and the finding's place says where that is, so the beginning is what can go.
    start, room = len(steps) - 1, _LONGEST_PATH - len(steps[-1])
    while start and (room := room - len(steps[start - 1])) > 0:
        start -= 1
    text = "".join(steps[start:]).removeprefix(".")
    return format_value(f"…{text}" if start else text, quoted=False, longest=_LONGEST_PATH)


def format_value(value: Any, *, quoted: bool = True, longest: int = 60) -> str:
    """A value as a message can hold it: one line, at most `longest` characters."""
    text = json.dumps(value, ensure_ascii=False, default=str) if quoted or not isinstance(value, str) else value
    text = printable(text)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def quote_key(key: str) -> str:
    """A key as a message can hold it: in quotes where it is no word."""
    return format_value(key, quoted=not re.fullmatch(r"[\w.-]+", key))


def json_text(value: Any) -> str:
    """The value as JSON for programs and people: letters of every language, and escapes for what no terminal shows."""
    file = StringIO()  # takes the pieces one by one: there may be millions
    json.dump(value, file, indent=2, ensure_ascii=False)
    text = file.getvalue()
    if not text.replace("\n", "").isprintable():
        text = "\n".join(row if row.isprintable() else _json_printable(row) for row in text.split("\n"))
    return f"{text}\n"


def _json_printable(row: str) -> str:
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in row)


def printable(text: str) -> str:
    """The text with every character that a terminal would act on, or not show, as its escape."""
    return text if text.isprintable() else "".join(char if char.isprintable() else _escape(char) for char in text)


def printable_lines(text: str) -> str:
    """The same for a text of several lines."""
    return "\n".join(map(printable, text.split("\n")))


def _escape(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"  # noqa: PLR2004 - the most that \u takes


def listed(names: Sequence[str], most: int = 8, last: str = ", ") -> str:
    """A list of names for a message, cut where it grows long; `last` stands before the last of a whole list."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return last.join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def lines(text: str) -> list[str]:
    """The lines as YAML counts them: `str.splitlines` knows further separators, which a spec may not hold."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def position(text: str, at: int) -> tuple[int, int]:
    """Line and column of a character, both from 1."""
    before = lines(text[:at])
    return len(before), len(before[-1]) + 1


def yaml_example(value: Any) -> str:
    """A value as somebody would write it into a spec, on one line."""
    if isinstance(value, str) and not value[:1].isdigit():
        return value
    return re.sub(_PLAIN_WORD, _unquoted, json.dumps(value, ensure_ascii=False))


def _unquoted(match: re.Match[str]) -> str:
    return match[0] if match[1].lower() in _READ_OTHERWISE else match[1]


def nearest(text: str, names: Sequence[str]) -> str | None:
    """The name that was most likely meant: the same word otherwise written, or one that differs by a letter or two."""
    plain = {_letters(name): name for name in reversed(names)}
    if same := plain.get(_letters(text)):
        return same
    from difflib import get_close_matches

    return next(iter(get_close_matches(text[:100], names, n=1, cutoff=0.7)), None)


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def sorted_by_similarity(text: str, names: Sequence[str], most: int = 8) -> Sequence[str]:
    """Names of which only the first are shown: those that are like the text come first."""
    if len(names) <= most:
        return names
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(b=text[:100].lower())

    def ratio(name: str) -> float:
        matcher.set_seq1(name.lower())
        return matcher.ratio() if matcher.quick_ratio() > _ALIKE else 0

    return sorted(names, key=ratio, reverse=True)


def corrected(text: str, fits: Callable[[str], bool], *, key: bool = False) -> str | None:
    """The same words in a form that fits; None where what was written is no such word at all."""
    return next((tried for tried in _repairs(text, key) if tried and tried != text and fits(tried)), None)


def _repairs(text: str, key: bool) -> Iterator[str]:
    if key:
        yield text.lstrip("-")
    text = text.strip()
    yield text
    if re.fullmatch(_WORDS, text):
        lower = text.lower()
        yield from (lower, text.upper(), lower.removeprefix("tpu-"), re.sub(r"-[a-z]$", "", lower))
        for separator in "-_":
            joined = re.sub(_SEPARATORS, separator, text).strip(separator)
            yield from (joined, joined.lower())
