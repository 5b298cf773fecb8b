"""Tables under titles, with lines below them, printed as aligned text or as Markdown."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from tpucfg.findings import Finding
from tpucfg.number_format import UNKNOWN
from tpucfg.text_format import printable

_Value = TypeVar("_Value")
_Form = TypeVar("_Form")
_NUMERIC: Final = frozenset("0123456789+-.,<×% ()–")
"""The characters of a numeric cell."""
_LETTERS: Final = re.compile(r"(?<=[0-9])(e-?[0-9]+| (s|ms|µs)$)")
"""The exponent of a very large or very small number, as in 2.5e7, or a unit of time."""

Cell = tuple[str, str | None]
"""The title of a column, and the text of a row in it; None for a value that is not known."""
Line = str | tuple[str, str]
"""A line below a table: a sentence, or the purpose of a command and the command."""


class Section(NamedTuple):
    """A table with its title, and the lines below it."""

    title: str
    rows: Sequence[Sequence[Cell]]
    """The cells of each row; all rows have the same columns."""
    lines: Sequence[Line] = ()


class _Column(NamedTuple):
    title: str
    cells: Sequence[str]

    @property
    def is_numeric(self) -> bool:
        """True for a column that is aligned right."""
        return all(set(_LETTERS.sub("", cell)) <= _NUMERIC for cell in self.cells)


def known(value: _Value | None, form: Callable[[_Value], _Form]) -> _Form | None:
    """Return a value in a form; None if it is not known."""
    return None if value is None else form(value)


def print_sections(
    sections: Iterable[Section], format: str, lines: Sequence[Line] = (), findings: Sequence[Finding] = ()
) -> None:
    """Print sections, and below all of them further lines and findings, as `text` or `markdown`."""
    printed = (_markdown if format == "markdown" else _text)([*sections], lines, findings)
    for line in printed:
        print(line)


def _text(sections: Sequence[Section], lines: Sequence[Line], findings: Sequence[Finding]) -> Iterator[str]:
    for number, section in enumerate(sections):
        yield from [""] if number else []
        yield printable(section.title)
        yield from text_table(section.rows)
        yield from (printable(str(line)) for line in section.lines)
    below = [*map(str, lines), *(f"{each.level}[{each.id}]: {each.message}" for each in findings)]
    yield from [""] if sections and below else []
    yield from map(printable, below)


def _markdown(sections: Sequence[Section], lines: Sequence[Line], findings: Sequence[Finding]) -> Iterator[str]:
    from tpucfg.markdown import prose, table

    for number, section in enumerate(sections):
        columns = _columns(section.rows)
        yield from [""] if number else []
        yield f"**{prose(section.title)}**"
        yield ""
        rows = zip(*(map(_escaped, column.cells) for column in columns), strict=True)
        numbers = [index for index, column in enumerate(columns) if column.is_numeric]
        yield table([column.title for column in columns], rows, numbers)
        yield from _items(section.lines)
    yield from _items(lines)
    yield from [""] if findings and not lines else []
    for finding in findings:
        yield f"- {finding.level}[{finding.id}]: {prose(finding.message)}"
        if finding.help:
            yield f"  help: {prose(finding.help)}"


def _items(lines: Sequence[Line]) -> Iterator[str]:
    """Yield a list in Markdown, after an empty line."""
    from tpucfg.markdown import code, prose

    shown = [(line, "") if isinstance(line, str) else line for line in lines if line]
    yield from [""] if shown else []
    for text, command in shown:
        yield f"- {prose(text)}" + (f": {code(command)}" if command else "")


def text_table(rows: Sequence[Sequence[Cell]]) -> Iterator[str]:
    """Yield aligned lines, with numeric columns to the right and all others to the left."""
    aligned = []
    for column in _columns(rows):
        cells = (column.title, *column.cells)
        width = max(map(len, cells))
        align = str.rjust if column.is_numeric else str.ljust
        aligned.append([align(cell, width) for cell in cells])
    for row in zip(*aligned, strict=True):
        yield "  ".join(row).rstrip()


def _columns(rows: Sequence[Sequence[Cell]]) -> list[_Column]:
    """Return the columns, without those of which no row has a value."""
    columns = [(cells[0][0], [text for _, text in cells]) for cells in zip(*rows, strict=True)]
    return [
        _Column(title, [UNKNOWN if text is None else text for text in texts])
        for title, texts in columns
        if any(text is not None for text in texts)
    ]


def _escaped(cell: str) -> str:
    """Return a cell of plain text as Markdown."""
    return cell.replace("\\", "\\\\").replace("<", "&lt;")
