"""Logarithmic scales: values to pixels, the same number of pixels to a doubling in every column of a chart."""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Final, NamedTuple

from tpucfg.charts.chart import Chart, Column, Row
from tpucfg.charts.svg_elements import width_of

STEPS: Final = (2, 4, *(10**zeros for zeros in (1, 2, 3, 6, 9, 12, 24, 48, 96, 192, 384)))
"""What one grid line to the next may multiply by."""
MIN_GRID_GAP: Final = 22
"""Pixels between two grid lines."""


class Scale(NamedTuple):
    """How far apart values are drawn."""

    width: float
    """Pixels of the plot."""
    doubling: float
    """Pixels from a value to its double; 0 where nothing changes."""
    step: int
    """What one grid line to the next multiplies by."""


def common_scale(columns: Sequence[Column], width: float) -> Scale:
    """The scale on which the column that changes most fills the width, so that slopes can be compared."""
    most = max((_high(column) - _low(column) for column in columns if not column.bars), default=0.0)
    doubling = width / most if most else 0.0
    step = next((step for step in STEPS if doubling * math.log2(step) >= MIN_GRID_GAP), STEPS[-1])
    return Scale(width, doubling, step)


def x_position(column: Column, scale: Scale, value: Fraction) -> float:
    """Pixels from the plot's left edge; what the column leaves free is left on both sides alike."""
    left = (scale.width - (_high(column) - _low(column)) * scale.doubling) / 2
    return left + (log2(value) - _low(column)) * scale.doubling


def grid_lines(column: Column, scale: Scale) -> Iterator[float]:
    """Where the grid lines stand: through the first mark, and from there a step apart."""
    if scale.doubling:
        apart = scale.doubling * math.log2(scale.step)
        through = x_position(column, scale, _values(column)[0])
        first = through % apart
        for number in range(int((scale.width - first + 0.5) // apart) + 1):
            yield first + number * apart


def log2(value: Fraction) -> float:
    """The logarithm also of what is too large or too small for a float."""
    return math.log2(value.numerator) - math.log2(value.denominator)


def _values(column: Column) -> list[Fraction]:
    return [cell.value for cell in column.cells if cell.value is not None] + list(column.expected)


def _low(column: Column) -> float:
    return log2(min(_values(column)))


def _high(column: Column) -> float:
    return log2(max(_values(column)))


# Where the parts of a chart stand: as wide as their texts, with what is left for the plots.


TITLE: Final = 15
TEXT: Final = 14
SMALL: Final = 13
"""Font sizes in pixels."""
HEAD: Final = 52
"""Pixels above the rows, for a column's title and its change."""
GAP: Final = 16
BETWEEN: Final = 32
"""Pixels between a plot and its values, and between two columns."""
MIN_PLOT_WIDTH: Final = 84
MAX_PLOT_WIDTH: Final = 300
MARK: Final = 8
"""Pixels that a mark may reach beyond its plot."""
_ROW_HEIGHTS: Final = ((4, 42), (7, 34))
_LOW_ROW: Final = 27
"""Pixels from rung to rung: of few rungs, of some, of many."""
MAX_LADDER_HEIGHT: Final = 420
"""Pixels from the first rung to the last, up to which rungs may stand by their cores."""


class Layout(NamedTuple):
    """The measures of a chart; every band of it stands on the same ones."""

    width: float
    names: float
    """Right edge of the column of cores, where the labels end."""
    plot: float
    """Width of each plot."""
    values: tuple[float, ...]
    """Width of each column's values."""
    ys: tuple[float, ...]
    """The height of each rung, from the head of a band; the smallest is at the foot."""
    by_cores: bool
    """The rungs stand by the logarithm of their cores, and not equally far apart."""

    @property
    def height(self) -> float:
        """Pixels of one band."""
        return self.ys[0] + _LOW_ROW / 2 + 4


def wide(chart: Chart, width: float) -> Layout:
    """All columns in one band."""
    return _layout(chart, chart.columns, width)


def narrow(chart: Chart, width: float) -> Layout:
    """Each column in a band of its own."""
    each = [_layout(chart, [column], width) for column in chart.columns]
    return each[0]._replace(
        width=max(one.width for one in each),
        plot=min(one.plot for one in each),
        values=tuple(one.values[0] for one in each),
    )


def lefts(layout: Layout, chart: Chart, columns: Sequence[int]) -> list[float]:
    """The left edge of each plot of a band."""
    edges, x = [], layout.names + BETWEEN
    for at in columns:
        edges.append(x)
        x += _span(chart.columns[at], layout.plot, layout.values[at]) + BETWEEN
    return edges


def _layout(chart: Chart, columns: Sequence[Column], width: float) -> Layout:
    names = _names(chart.rows)
    values = tuple(max(width_of(cell.text, TEXT) for cell in column.cells) for column in columns)
    spare = width - names - len(columns) * (BETWEEN + GAP) - sum(values) - MARK
    plot = min(MAX_PLOT_WIDTH, max(MIN_PLOT_WIDTH, spare / len(columns)))
    spans = [_span(column, plot, value) for column, value in zip(columns, values, strict=True)]
    needed = names + sum(span + BETWEEN for span in spans) + MARK
    return Layout(max(width, needed), names, plot, values, *_heights([row.cores for row in chart.rows]))


def _heights(cores: Sequence[int]) -> tuple[tuple[float, ...], bool]:
    """By the cores, so that what grows as a power of them is a straight line; not where that takes too much room."""
    apart = next((height for most, height in _ROW_HEIGHTS if len(cores) <= most), _LOW_ROW)
    above = [math.log2(it / cores[0]) for it in cores]
    closest = min((high - low for low, high in pairwise(above)), default=1.0)
    doubling = max(_LOW_ROW / closest, apart * (len(cores) - 1) / (above[-1] or 1))
    by_cores = doubling * above[-1] <= MAX_LADDER_HEIGHT
    ups = [up * doubling for up in above] if by_cores else [at * float(apart) for at in range(len(cores))]
    return tuple(HEAD + _LOW_ROW / 2 + ups[-1] - up for up in ups), by_cores


def _names(rows: Sequence[Row]) -> float:
    sizes = max(width_of(row.size, TEXT, bold=True) for row in rows)
    return sizes + GAP + max(width_of("cores", SMALL), *(width_of(f"{row.cores:,}", SMALL) for row in rows))


def _span(column: Column, plot: float, value: float) -> float:
    """Pixels of a column: of its plot and values, or of its head."""
    return max(plot + GAP + value, width_of(column.title, TITLE, bold=True), width_of(column.change, SMALL))
