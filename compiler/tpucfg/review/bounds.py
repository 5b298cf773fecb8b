"""Bounds of a comment: the length of its lines, the number of its cautions, its folds, and its size."""

import re
from collections.abc import Sequence
from itertools import accumulate, takewhile
from typing import Final, NamedTuple

from tpucfg.markdown import code
from tpucfg.text_format import listed

MAX_COMMENT_BYTES: Final = 65_535
"""GitHub's limit is 65,536 characters. Bytes are counted, as a character has at least one."""
_MAX_FOLDS: Final = 60
"""With more, the share of each would be a line or two."""
_MAX_TITLES: Final = 16
_TITLES_BYTES: Final = 4_000
"""Reserved for the line that names omitted folds."""
_MAX_WORD: Final = 250
"""Characters of a word or a value in a line that is cut: the longest member of a grant is shorter."""
_CODE: Final = re.compile(r"(?P<fence>`+)(?!`) ?(?P<value>.+?) ?(?<!`)(?P=fence)(?!`)")
_WORD: Final = re.compile(rf"{_CODE.pattern}\s*|(?:\\.|[^\s`\\])+\s*|.\s*")


class Fold(NamedTuple):
    """A part of a comment that can be cut to its first lines: a folded section, or the part of one spec."""

    title: str
    """One line of Markdown that identifies it where it is omitted."""
    opening: str
    """Markdown that is always shown, with the line breaks that follow it."""
    lines: tuple[str, ...]
    """Lines, or whole blocks, that can be omitted from the end."""
    closing: str = ""

    @property
    def text(self) -> str:
        """The whole part as Markdown, without a final line break."""
        return self._join(self.lines)

    def cut(self, max_bytes: int) -> str:
        """Return as many of the first lines as fit, and the number of the others; empty if not even one fits."""
        if size(self.text) <= max_bytes:
            return self.text
        shown = self.lines[: count_fitting(self.lines, max_bytes - size(self._join(())))]
        return self._join(shown) if shown else ""

    def _join(self, shown: Sequence[str]) -> str:
        total, omitted = (sum(line.count("\n") + 1 for line in self.lines[start:]) for start in (0, len(shown)))
        note = f"\n\n_{omitted:,} of {total:,} lines are omitted for length._" if omitted else ""
        return "".join((self.opening, "\n".join(shown).rstrip("\n"), self.closing, note))


def fold(title: str, summary: str, lines: Sequence[str], frame: str = "", fence: str = "") -> Fold:
    """Return a part that is folded below its summary.

    Args:
        title: one line of Markdown.
        summary: one line of HTML.
        lines: the lines, or blocks.
        frame: what makes the lines valid Markdown: the opening fence, or the header of a table.
        fence: the closing fence.
    """
    opening, closing = (f"{frame}\n" if frame else "", f"\n{fence}" if fence else "")
    return Fold(title, f"<details><summary>{summary}</summary>\n\n{opening}", (*lines,), f"{closing}\n\n</details>")


def join_within_limit(
    head: Sequence[str],
    folds: Sequence[Fold],
    foot: Sequence[str] = (),
    *,
    hint: str = "",
    max_bytes: int = MAX_COMMENT_BYTES,
) -> str:
    """Return the comment within the limit. The folds share the room equally; large ones also get what small ones leave.

    Args:
        head: the blocks that are always included.
        folds: the parts that can be cut, in the order of the comment.
        foot: the last lines, which are always included.
        hint: a line of Markdown about where to find omitted lines, included if any is omitted.
        max_bytes: the limit.
    """
    text = _join([*head, *(part.text for part in folds), *foot])
    if size(text) > max_bytes:
        room = max_bytes - size(_join([*head, hint, *foot])) - _TITLES_BYTES
        texts = _cut_folds(folds, room)
        omitted = [part.title for part, shown in zip(folds, texts, strict=True) if not shown]
        titles = f"_Omitted for length: {listed(omitted, _MAX_TITLES)}._" if omitted else ""
        text = _join([*head, *texts, titles[:_TITLES_BYTES], hint, *foot])
    return text if size(text) <= max_bytes else _cut(text, max_bytes)


def _join(parts: Sequence[str]) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"


def _cut_folds(folds: Sequence[Fold], room: int) -> list[str]:
    """Return the text of each fold that fits; empty for one that is omitted."""
    texts = [""] * len(folds)
    # The smallest first: what it does not need is shared by the others.
    indices = sorted(range(min(len(folds), _MAX_FOLDS)), key=lambda index: size(folds[index].text))
    for done, index in enumerate(indices):
        # Two bytes for the empty line between parts.
        texts[index] = folds[index].cut(room // (len(indices) - done) - 2)
        room -= size(texts[index]) + 2
    return texts


def _cut(text: str, max_bytes: int) -> str:
    """Return the first lines of a comment whose head alone exceeds the limit."""
    note = "\n\n_The rest is omitted for length._\n"
    # A cut may split a character, whose bytes are dropped by `ignore`.
    beginning = text.encode(errors="replace")[: max_bytes - size(note)].decode(errors="ignore")
    return beginning[: beginning.rfind("\n")] + note


def cut_middle(line: str, max_length: int) -> str:
    """Return a line of Markdown of about the given length: first long values are cut in their middle, then the line.

    The number of characters that are cut replaces them. Beginning and end stay, as either can decide what is allowed.
    """
    if len(line) <= max_length:
        return line
    words = [_cut_word(match[0]) for match in _WORD.finditer(line)]
    if sum(map(len, words)) <= max_length:
        return "".join(words)
    first = _count_within(words, max_length // 2)
    last = len(words) - _count_within(words[first:][::-1], max_length // 2)
    return f"{''.join(words[:first])}{_gap(sum(map(len, words[first:last])))}{''.join(words[last:])}"


def _cut_word(word: str) -> str:
    if len(word) <= _MAX_WORD:
        return word
    half = _MAX_WORD // 2
    if value := _CODE.match(word):
        text = value["value"]
        return f"{code(text[:half])}{_gap(len(text) - 2 * half)}{code(text[-half:])}{word[value.end() :][:half]}"
    # Without the half of an escape sequence, which could make markup of the other half.
    start, end = re.sub(r"[^A-Za-z0-9]+$", "", word[:half]), re.sub(r"^[^A-Za-z0-9]+", "", word[-half:])
    return f"{start}{_gap(len(word) - len(start) - len(end))}{end}"


def _gap(characters: int) -> str:
    return f" … {characters:,} characters cut … "


def _count_within(words: Sequence[str], max_length: int) -> int:
    return len([*takewhile(lambda end: end <= max_length, accumulate(map(len, words)))])


def count_fitting(lines: Sequence[str], max_bytes: int) -> int:
    """Return how many of the first lines fit."""
    return len([*takewhile(lambda end: end <= max_bytes, accumulate(size(line) + 1 for line in lines))])


def bound_lines(lines: Sequence[str], max_lines: int, max_bytes: int) -> list[str]:
    """Return the first lines as list items, and a count of the others."""
    shown = count_fitting(lines[:max_lines], max_bytes)
    more = [f"- … and {len(lines) - shown:,} more"] if shown < len(lines) else []
    return [*(f"- {line}" for line in lines[:shown]), *more]


def size(text: str) -> int:
    """Return the number of bytes."""
    # `replace`, as text from a user may contain lone surrogates, which have no encoding.
    return len(text.encode(errors="replace"))
