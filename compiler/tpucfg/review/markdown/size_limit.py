"""Keep a comment below the size limit of GitHub: whole sections are omitted, the largest first."""

from collections.abc import Sequence
from typing import Final, NamedTuple

MAX_COMMENT_BYTES: Final = 65_535
"""GitHub's limit is 65,536 characters. Bytes are counted, as a character has at least one."""
_MAX_OMISSION_BYTES: Final = 8_000
"""Limit for the lines that name omitted sections; further sections are only counted."""


class Section(NamedTuple):
    """A part of a comment that can be omitted as a whole."""

    title: str
    """One line of Markdown that identifies it."""
    text: str
    """Markdown, without a final line break."""


def fit_sections(
    head: str,
    sections: Sequence[Section],
    footer: str = "",
    *,
    max_bytes: int = MAX_COMMENT_BYTES,
    omission_hint: str = "",
) -> str:
    """Return the comment with every section that fits.

    Args:
        head: the part that is always included.
        sections: the parts that can be omitted, in the order of the comment.
        footer: the last lines, which are always included.
        max_bytes: the limit.
        omission_hint: one line of Markdown about where to find omitted sections, included if any is omitted.
    """
    kept = set(range(len(sections)))
    # Of equal sections the later one is omitted first, so that equal input has equal output.
    by_size = sorted(kept, key=lambda index: (_size(sections[index].text), index))
    # Two bytes per section for the empty line between blocks.
    total = _size(head) + _size(footer) + _size(omission_hint) + sum(_size(section.text) + 2 for section in sections)
    while by_size and total > max_bytes:
        index = by_size.pop()
        kept.remove(index)
        total += _size(_omission_line(sections[index])) - _size(sections[index].text)
    # The total is an estimate: of many omission lines, the last are replaced by a count.
    while _size(text := _join(head, sections, kept, [omission_hint, footer])) > max_bytes and by_size:
        kept.remove(by_size.pop())
    return text if _size(text) <= max_bytes else _cut(text, max_bytes)


def _join(head: str, sections: Sequence[Section], kept: set[int], last: Sequence[str]) -> str:
    parts, omission_bytes, unnamed = [head], 0, 0
    for index, section in enumerate(sections):
        if index in kept:
            parts.append(section.text)
            continue
        line = _omission_line(section)
        omission_bytes += _size(line)
        if omission_bytes <= _MAX_OMISSION_BYTES:
            parts.append(line)
        else:
            unnamed += 1
    if unnamed:
        parts.append(f"_Omitted for length: {unnamed:,} more sections._")
    parts += last if len(kept) < len(sections) else last[1:]
    return "\n\n".join(part for part in parts if part) + "\n"


def _omission_line(section: Section) -> str:
    lines = section.text.count("\n") + 1
    return f"_Omitted for length: {section.title} ({lines:,} lines, {len(section.text):,} characters)._"


def _cut(text: str, max_bytes: int) -> str:
    """Return the first lines of a comment whose head alone exceeds the limit."""
    note = "\n\n_The rest is omitted for length._\n"
    # A cut may split a character, whose bytes are dropped by `ignore`.
    beginning = text.encode(errors="replace")[: max_bytes - _size(note)].decode(errors="ignore")
    return beginning[: beginning.rfind("\n")] + note


def _size(text: str) -> int:
    # `replace`, as text from a user may contain lone surrogates, which have no encoding.
    return len(text.encode(errors="replace"))
