"""Tables as aligned text and as Markdown."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

_RIGHT: Final = frozenset("0123456789+-.,×% ()–")
_EXPONENT: Final = re.compile(r"(?<=\d)e[-+]\d+")
"""Of a number that is very large or very small, as 2.5e+07."""


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Aligned lines: columns of numbers to the right, all others to the left."""
    columns = list(zip(header, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    right = [_is_numeric(column[1:]) for column in columns]
    for row in (header, *rows):
        cells = [
            cell.rjust(width) if numeric else cell.ljust(width)
            for cell, width, numeric in zip(row, widths, right, strict=True)
        ]
        yield "  ".join(cells).rstrip()


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The same as a Markdown table; cells are escaped."""
    columns = list(zip(header, *rows, strict=True))
    yield _markdown_row(header)
    yield "|" + "|".join("---:" if _is_numeric(column[1:]) else "---" for column in columns) + "|"
    for row in rows:
        yield _markdown_row(row)


def _markdown_row(cells: Sequence[str]) -> str:
    return (
        "| " + " | ".join(cell.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;") for cell in cells) + " |"
    )


def _is_numeric(cells: Sequence[str]) -> bool:
    return all(set(_EXPONENT.sub("", cell)) <= _RIGHT for cell in cells)
