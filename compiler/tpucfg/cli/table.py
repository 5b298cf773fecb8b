"""Tables as aligned text and as Markdown."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

_NUMERIC: Final = frozenset("0123456789+-.,<×% ()–")
"""The characters of a numeric cell."""
_LETTERS: Final = re.compile(r"(?<=[0-9])(e-?[0-9]+| (s|ms|µs)$)")
"""The exponent of a very large or very small number, as in 2.5e7, or a unit of time."""


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield aligned lines, with numeric columns to the right and all others to the left."""
    columns = list(zip(header, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    numeric = [_is_numeric(column[1:]) for column in columns]
    for row in (header, *rows):
        cells = [
            cell.rjust(width) if is_numeric else cell.ljust(width)
            for cell, width, is_numeric in zip(row, widths, numeric, strict=True)
        ]
        yield "  ".join(cells).rstrip()


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table; its cells are plain text, and are escaped."""
    columns = list(zip(header, *rows, strict=True))
    yield _markdown_row(header)
    yield "|" + "|".join("---:" if _is_numeric(column[1:]) else "---" for column in columns) + "|"
    for row in rows:
        yield _markdown_row(row)


def _markdown_row(cells: Sequence[str]) -> str:
    escaped = [cell.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;") for cell in cells]
    return f"| {' | '.join(escaped)} |"


def _is_numeric(cells: Sequence[str]) -> bool:
    return all(set(_LETTERS.sub("", cell)) <= _NUMERIC for cell in cells)
