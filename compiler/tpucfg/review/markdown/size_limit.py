"""Keeps a comment below what a service takes: whole sections go, the largest first, and each leaves a line behind."""

from collections.abc import Sequence
from typing import Final, NamedTuple

MAX_COMMENT_BYTES: Final = 65_535
"""Bytes of a comment. GitHub's limit is 65,536 characters, and a character is one byte or more."""
_ROOM_FOR_NAMES: Final = 8_000
"""Bytes for the lines that dropped sections leave behind, before they are only counted."""


class Section(NamedTuple):
    """A part of a comment that can go as a whole."""

    title: str
    """Markdown of one line that names it."""
    text: str
    """Markdown, without a line break at its end."""


def fit_sections(
    head: str, sections: Sequence[Section], foot: str = "", *, most: int = MAX_COMMENT_BYTES, elsewhere: str = ""
) -> str:
    """The comment, with every section that fits; the head always stays.

    Args:
        head: what has to be read.
        sections: what can go, in the order of the page.
        foot: the last lines, which stay as well.
        most: bytes.
        elsewhere: Markdown of one line that says where the sections are that are left out.
    """
    kept = set(range(len(sections)))
    by_size = sorted(kept, key=lambda at: (_size(sections[at].text), at))
    left = _size(head) + _size(foot) + _size(elsewhere) + sum(_size(section.text) + 2 for section in sections)
    while by_size and left > most:
        gone = by_size.pop()
        kept.remove(gone)
        left += _size(_left_out(sections[gone])) - _size(sections[gone].text)
    # The sum is a guess where many lines are left behind, which are then only counted.
    while _size(text := _joined(head, sections, kept, [elsewhere, foot])) > most and by_size:
        kept.remove(by_size.pop())
    return text if _size(text) <= most else _cut(text, most)


def _joined(head: str, sections: Sequence[Section], kept: set[int], last: Sequence[str]) -> str:
    parts, named, unnamed = [head], 0, 0
    for at, section in enumerate(sections):
        if at in kept:
            parts.append(section.text)
            continue
        line = _left_out(section)
        named += _size(line)
        if named <= _ROOM_FOR_NAMES:
            parts.append(line)
        else:
            unnamed += 1
    if unnamed:
        parts.append(f"_Left out for length: {unnamed:,} more sections._")
    parts += last if len(kept) < len(sections) else last[1:]
    return "\n\n".join(part for part in parts if part) + "\n"


def _left_out(section: Section) -> str:
    lines = section.text.count("\n") + 1
    return f"_Left out for length: {section.title} ({lines:,} lines, {len(section.text):,} characters)._"


def _cut(text: str, most: int) -> str:
    """The last resort, for a head that is too long by itself: whole lines from its beginning."""
    note = "\n\n_The rest is left out for length._\n"
    short = text.encode(errors="replace")[: most - _size(note)].decode(errors="ignore")
    return short[: short.rfind("\n")] + note


def _size(text: str) -> int:
    return len(text.encode(errors="replace"))
