"""The chart of the ladder: the figures that change with the number of cores."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final

from tpucfg.charts.chart import Cell, Chart, Column, Row
from tpucfg.charts.gauges import gauge_note
from tpucfg.charts.numbers import change_text, count_text, rate_text
from tpucfg.number_format import UNKNOWN
from tpucfg.plan import Rung
from tpucfg.spec.project import Number

KINDS: Final[Mapping[str, str]] = {
    "batch_size": "batch",
    "grad_accum": "batch",
    "train_steps": "steps",
    "epochs": "steps",
    "learning_rate": "rate",
}
"""The figures in the chart, in this order, and the colour of each."""

RING_NOTE: Final = "A ring: the spec sets this figure for this rung."


def ladder_chart(rungs: Sequence[Rung], memory: Column | None = None) -> Chart:
    """Return the chart of batch size, accumulation, steps or epochs, learning rate and memory of each rung."""
    columns = (*_columns(rungs), *([memory] if memory else ()))
    has_rings = any(cell.is_ring for column in columns for cell in column.cells)
    notes = (*([RING_NOTE] if has_rings else ()), *([gauge_note(memory)] if memory else ()))
    return Chart("What changes with the cores", chart_rows(rungs), columns, notes)


def chart_rows(rungs: Sequence[Rung]) -> tuple[Row, ...]:
    """Return the labels of the rungs."""
    return tuple(Row(rung.size, rung.slice.cores) for rung in rungs)


def _columns(rungs: Sequence[Rung]) -> Iterator[Column]:
    for figure, kind in KINDS.items():
        if figure == "grad_accum" and all(rung.grad_accum is None for rung in rungs):
            continue  # one micro-batch on every rung
        cells = tuple(_cell(rung, figure) for rung in rungs)
        values = [cell.value for cell in cells if cell.value is not None]
        if values:
            change = change_text(values[0], values[-1]) if len(values) > 1 else ""
            yield Column(kind, figure, change, cells)


def _cell(rung: Rung, figure: str) -> Cell:
    text, value = _READERS[figure](rung)
    return Cell(value, text, figure in rung.overridden)


def _count(count: int | None) -> tuple[str, Fraction | None]:
    return (UNKNOWN, None) if count is None else (count_text(count), Fraction(count))


def _number(text: str | None) -> tuple[str, Fraction | None]:
    """Return the label and value of a number, which the trainer gets as the spec writes it."""
    # Number, as float() would reject 0x1F and 0o12, which YAML allows.
    return (UNKNOWN, None) if text is None else (rate_text(text), Number.read(text).value)


_READERS: Final[Mapping[str, Callable[[Rung], tuple[str, Fraction | None]]]] = {
    "batch_size": lambda rung: _count(rung.batch_size),
    "grad_accum": lambda rung: _count(rung.grad_accum or 1),
    "train_steps": lambda rung: _count(rung.train_steps),
    "epochs": lambda rung: _number(rung.epochs),
    "learning_rate": lambda rung: _number(rung.learning_rate),
}
