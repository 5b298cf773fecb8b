"""Tables under titles, as aligned text and as Markdown."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from tpucfg.text_format import printable

_NUMERIC: Final = frozenset("0123456789+-.,<×% ()–")
"""The characters of a numeric cell."""
_LETTERS: Final = re.compile(r"(?<=[0-9])(e-?[0-9]+| (s|ms|µs)$)")
"""The exponent of a very large or very small number, as in 2.5e7, or a unit of time."""


class Column(NamedTuple):
    """A column of formatted cells."""

    title: str
    cells: Sequence[str]

    @property
    def is_numeric(self) -> bool:
        """True for a column that is aligned right."""
        return all(set(_LETTERS.sub("", cell)) <= _NUMERIC for cell in self.cells)


class Section(NamedTuple):
    """A table with its title, and the lines below it."""

    title: str
    columns: Sequence[Column]
    lines: Sequence[str] = ()


def text_sections(sections: Iterable[Section]) -> Iterator[str]:
    """Yield the lines of sections, with an empty line between two of them."""
    for number, section in enumerate(sections):
        yield from [""] if number else []
        yield printable(section.title)
        yield from text_table(section.columns)
        yield from section.lines


def markdown_sections(sections: Iterable[Section]) -> Iterator[str]:
    """Yield the lines of sections in Markdown; those below a table are Markdown already."""
    from tpucfg.markdown import prose, table

    for number, section in enumerate(sections):
        yield from [""] if number else []
        yield f"**{prose(section.title)}**"
        yield ""
        titles = [column.title for column in section.columns]
        rows = zip(*(map(_escaped, column.cells) for column in section.columns), strict=True)
        yield table(titles, rows, [index for index, column in enumerate(section.columns) if column.is_numeric])
        yield from section.lines


def text_table(columns: Sequence[Column]) -> Iterator[str]:
    """Yield aligned lines, with numeric columns to the right and all others to the left."""
    aligned = []
    for column in columns:
        cells = (column.title, *column.cells)
        width = max(map(len, cells))
        align = str.rjust if column.is_numeric else str.ljust
        aligned.append([align(cell, width) for cell in cells])
    for row in zip(*aligned, strict=True):
        yield "  ".join(row).rstrip()


def _escaped(cell: str) -> str:
    """Return a cell of plain text as Markdown."""
    return cell.replace("\\", "\\\\").replace("<", "&lt;")
