"""Sections of a comment, which can be cut inside: the first lines stay, and the others are named."""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

from tpucfg.markdown import details, fence, prose
from tpucfg.text_format import format_value

_NAMES_SHARE: Final = 4
"""One of this many parts of a cut fold may name what is omitted."""
_MIN_NAMES_BYTES: Final = 200
_MAX_NAMES_BYTES: Final = 4_000
_MAX_NAME_LENGTH: Final = 60
_FENCE: Final = re.compile("`{3,}")
_RULE: Final = re.compile(r"\| -{2,3}:? \|")
"""The second line of a table."""


class Item(NamedTuple):
    """One or more lines that are shown or omitted together, such as a value before and after."""

    text: str
    label: str = ""
    """A name for the lines, as plain text; empty for lines that are only counted."""


class Block(NamedTuple):
    """A paragraph, a list, a table or a code block."""

    items: tuple[Item, ...]
    opening: tuple[str, ...] = ()
    """Lines without which the items are not valid Markdown: a fence, or the header of a table."""
    closing: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The whole block."""
        return "\n".join((*self.opening, *(item.text for item in self.items), *self.closing))


class Section(NamedTuple):
    """A part of a comment that can be cut, such as a fold."""

    title: str
    """One line of Markdown that identifies it."""
    opening: str
    """Markdown that is always shown."""
    blocks: tuple[Block, ...]
    closing: str = ""

    @property
    def text(self) -> str:
        """The whole section as Markdown, without a final line break."""
        return self._join([block.text for block in self.blocks])

    @property
    def min_size(self) -> int:
        """The bytes in which `cut` always fits."""
        return size(self._join([])) + 2 * _MIN_NAMES_BYTES

    def cut(self, max_bytes: int) -> str:
        """Return the first items of a section that has more than `max_bytes`, and a line that names the others."""
        inner_bytes = max_bytes - size(self._join([]))
        names_bytes = max(_MIN_NAMES_BYTES, min(inner_bytes // _NAMES_SHARE, _MAX_NAMES_BYTES))
        # The line about what is omitted has other words beside the names.
        remaining = inner_bytes - names_bytes - _MIN_NAMES_BYTES
        kept: list[Block] = []
        omitted: list[Item] = []
        for block in self.blocks:
            shown = 0 if omitted else _count_fitting(block, remaining)
            if shown:
                kept.append(block._replace(items=block.items[:shown]))
                remaining -= size(kept[-1].text) + 2
            omitted += block.items[shown:]
        return self._join([*(block.text for block in kept), _omission_line(self, omitted, names_bytes)])

    def _join(self, texts: Sequence[str]) -> str:
        return "\n\n".join(text for text in (self.opening, *texts, self.closing) if text)


def fold(title: str, summary: str, blocks: Sequence[Block]) -> Section:
    """Return a section that is folded below its summary, which is one line of HTML."""
    opening, closing = details(summary, "").split("\n\n\n\n")
    return Section(title, opening, tuple(blocks), closing)


def code_block(items: Sequence[Item], language: str = "") -> Block:
    """Return a code block, whose fence is longer than any run of backticks in its items."""
    opening, *lines, closing = fence("\n".join(item.text for item in items), language).split("\n")
    # The fence escapes lines, but never adds or removes any.
    remaining = iter(lines)
    escaped = (Item("\n".join(next(remaining) for _ in range(item.text.count("\n") + 1)), item.label) for item in items)
    return Block(tuple(escaped), (opening,), (closing,))


def table_block(table: str, labels: Sequence[str]) -> Block:
    """Return a table, as `tpucfg.markdown.table` formats it, with a label for each row."""
    header, rule, *rows = table.split("\n")
    return Block(tuple(map(Item, rows, labels)), (header, rule))


def markdown_blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of Markdown that this package has written: code, tables, alerts, lists and paragraphs."""
    lines = iter(text.split("\n"))
    for line in lines:
        if fenced := _FENCE.match(line):
            items = tuple(map(Item, takewhile(fenced[0].__ne__, lines)))
            yield Block(items, (line,), (fenced[0],))
        elif line:
            paragraph = [line, *takewhile(bool, lines)]
            count = 2 if _RULE.match("\n".join(paragraph[1:2])) else int(line.startswith("> [!"))
            yield Block(tuple(map(Item, paragraph[count:])), tuple(paragraph[:count]))


def size(text: str) -> int:
    """Return the number of bytes."""
    # `replace`, as text from a user may contain lone surrogates, which have no encoding.
    return len(text.encode(errors="replace"))


def _count_fitting(block: Block, max_bytes: int) -> int:
    """Return how many of the first items fit."""
    used = size("\n".join((*block.opening, *block.closing))) + 2
    for count, item in enumerate(block.items):
        used += size(item.text) + 1
        if used > max_bytes:
            return count
    return len(block.items)


def _omission_line(section: Section, omitted: Sequence[Item], max_bytes: int) -> str:
    total = sum(item.text.count("\n") + 1 for block in section.blocks for item in block.items)
    count = sum(item.text.count("\n") + 1 for item in omitted)
    names = [*dict.fromkeys(item.label for item in omitted if item.label)]
    text = f"{count:,} of {total:,} lines are omitted for length"
    return f"_{': '.join([text, *_fitting_names(names, max_bytes)])}._"


def _fitting_names(names: Sequence[str], max_bytes: int) -> Iterator[str]:
    """Yield a list of names, of which the last are counted if they do not fit; nothing if there are no names."""
    shown: list[str] = []
    for name in names:
        shown.append(prose(format_value(name, quoted=False, max_length=_MAX_NAME_LENGTH)))
        max_bytes -= size(shown[-1]) + 2
        if max_bytes < 0:
            shown.pop()
            break
    more = f" and {len(names) - len(shown):,} more" if len(shown) < len(names) else ""
    if names:
        yield f"{', '.join(shown)}{more}" if shown else f"{len(names):,} values"
