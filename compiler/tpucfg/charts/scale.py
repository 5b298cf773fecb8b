"""Logarithmic scales: one doubling has the same length in every column of a chart, so slopes can be compared."""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from tpucfg.charts.chart import Column

GRID_FACTORS: Final = (2, 4, *(10**zeros for zeros in (1, 2, 3, 6, 9, 12, 24, 48, 96, 192, 384)))
"""The possible factors from one grid line to the next; the largest ones cover the whole range of floats."""
MIN_GRID_GAP: Final = 22
"""Pixels between two grid lines."""


class Scale(NamedTuple):
    """The scale of all columns of a chart."""

    width: float
    """Pixels of the plot."""
    doubling: float
    """Pixels from a value to its double; 0 if no value changes."""
    grid_factor: int
    """The factor from one grid line to the next."""


def common_scale(columns: Sequence[Column], width: float) -> Scale:
    """Return the scale on which the column that changes most fills the width."""
    max_range = max((_high(column) - _low(column) for column in columns if column.is_logarithmic), default=0.0)
    doubling = width / max_range if max_range else 0.0
    fitting = (factor for factor in GRID_FACTORS if doubling * math.log2(factor) >= MIN_GRID_GAP)
    return Scale(width, doubling, next(fitting, GRID_FACTORS[-1]))


def x_position(column: Column, scale: Scale, value: Fraction) -> float:
    """Return the pixels from the plot's left edge; a column that needs less width is centred."""
    left = (scale.width - (_high(column) - _low(column)) * scale.doubling) / 2
    return left + (log2(value) - _low(column)) * scale.doubling


def grid_lines(column: Column, scale: Scale) -> Iterator[float]:
    """Yield the positions of the grid lines, one of which passes through the first mark."""
    if scale.doubling:
        gap = scale.doubling * math.log2(scale.grid_factor)
        first = x_position(column, scale, _values(column)[0]) % gap
        # Half a pixel more, so that rounding does not drop the line at the right edge.
        for number in range(int((scale.width - first + 0.5) // gap) + 1):
            yield first + number * gap


def log2(value: Fraction) -> float:
    """Return the logarithm of a number that may be too large or too small for a float."""
    return math.log2(value.numerator) - math.log2(value.denominator)


def _values(column: Column) -> list[Fraction]:
    return [cell.value for cell in column.cells if cell.value is not None] + list(column.expected)


def _low(column: Column) -> float:
    return log2(min(_values(column)))


def _high(column: Column) -> float:
    return log2(max(_values(column)))
