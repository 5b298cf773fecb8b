"""Keep a comment below the size limit of GitHub: folds are cut inside, the largest first, and all to an equal share."""

from collections.abc import Sequence
from typing import Final

from tpucfg.review.markdown.section import Section, size

MAX_COMMENT_BYTES: Final = 65_535
"""GitHub's limit is 65,536 characters. Bytes are counted, as a character has at least one."""
_MAX_TITLES_BYTES: Final = 2_000
"""Limit for the line that names omitted folds; further ones are only counted."""
_OMISSION_BYTES: Final = _MAX_TITLES_BYTES + 100


def join_within_limit(
    head: str,
    sections: Sequence[Section],
    footer: str = "",
    *,
    max_bytes: int = MAX_COMMENT_BYTES,
    omission_hint: str = "",
) -> str:
    """Return the comment with as much of every fold as fits.

    Args:
        head: the part that is always included.
        sections: the folds, in the order of the comment.
        footer: the last lines, which are always included.
        max_bytes: the limit.
        omission_hint: one line of Markdown about where to find omitted lines, included if any is omitted.
    """
    texts = [section.text for section in sections]
    text = _join([head, *texts, footer])
    if size(text) > max_bytes:
        available = max_bytes - size(_join([head, omission_hint, footer]))
        text = _join([head, *_cut_folds(sections, texts, available), omission_hint, footer])
    return text if size(text) <= max_bytes else _cut(text, max_bytes)


def _join(parts: Sequence[str]) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"


def _cut_folds(sections: Sequence[Section], texts: Sequence[str], available: int) -> list[str]:
    """Return the folds cut to fit, and a line about those of which not even the first line does."""
    # Two bytes for the empty line between parts.
    sizes = [size(text) + 2 for text in texts]
    minima = [min(full, section.min_size + 2) for full, section in zip(sizes, sections, strict=True)]
    kept = len(sections)
    if sum(minima) > available:
        # The first folds are about resources, and about the changes that most configs share.
        kept, used = 0, _OMISSION_BYTES
        while kept < len(minima) and used + minima[kept] <= available:
            used += minima[kept]
            kept += 1
        available -= _OMISSION_BYTES
    share = _equal_share(sizes[:kept], minima[:kept], available)
    folds = [
        text if full <= max(share, least) else section.cut(max(share, least) - 2)
        for section, text, full, least in zip(sections[:kept], texts, sizes, minima, strict=False)
    ]
    return [*folds, *([_omission_line(sections[kept:])] if kept < len(sections) else [])]


def _equal_share(sizes: Sequence[int], minima: Sequence[int], available: int) -> int:
    """Return the largest size to which all larger folds can be cut, so that all of them together fit."""
    low, high = 0, max(sizes, default=0)
    while low < high:
        middle = (low + high + 1) // 2
        used = sum(min(full, max(least, middle)) for full, least in zip(sizes, minima, strict=True))
        low, high = (middle, high) if used <= available else (low, middle - 1)
    return low


def _omission_line(omitted: Sequence[Section]) -> str:
    titles: list[str] = []
    remaining = _MAX_TITLES_BYTES
    for section in omitted:
        remaining -= size(section.title) + 2
        if remaining < 0:
            break
        titles.append(section.title)
    more = [f"{len(omitted) - len(titles):,} more sections"] if len(titles) < len(omitted) else []
    return f"_Omitted for length: {', '.join([*titles, *more])}._"


def _cut(text: str, max_bytes: int) -> str:
    """Return the first lines of a comment whose head alone exceeds the limit."""
    note = "\n\n_The rest is omitted for length._\n"
    # A cut may split a character, whose bytes are dropped by `ignore`.
    beginning = text.encode(errors="replace")[: max_bytes - size(note)].decode(errors="ignore")
    return beginning[: beginning.rfind("\n")] + note
