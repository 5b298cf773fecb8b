"""The measures of a chart in pixels: labels as wide as their texts, plots in the remaining width."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from tpucfg.charts.chart import Chart, Column, Row
from tpucfg.charts.svg_elements import text_width

# Font sizes.
TITLE_SIZE: Final = 15
TEXT_SIZE: Final = 14
SMALL_SIZE: Final = 13

HEAD_HEIGHT: Final = 52
"""Above the rows, for a column's title and change."""
VALUE_GAP: Final = 16
"""Between a plot and its values, and between the two columns of labels."""
COLUMN_GAP: Final = 32
MIN_PLOT_WIDTH: Final = 84
MAX_PLOT_WIDTH: Final = 300
MARK_RADIUS: Final = 8
"""The part of a mark that may extend beyond its plot, including its stroke."""
MAX_LADDER_HEIGHT: Final = 420
"""From the first rung to the last. A ladder that would be higher has equal row heights."""
_ROW_HEIGHTS: Final = ((4, 42), (7, 34))
"""Pairs of a maximum number of rungs and their row height; longer ladders have the minimum height."""
_MIN_ROW_HEIGHT: Final = 27
_BOTTOM_MARGIN: Final = 4


class Layout(NamedTuple):
    """The measures of a chart, which all its bands share."""

    width: float
    labels: float
    """The right edge of the cores, the second column of labels."""
    plot: float
    """The width of each plot."""
    values: tuple[float, ...]
    """The width of each column's values."""
    ys: tuple[float, ...]
    """The vertical position of each rung within a band; the smallest rung is at the bottom."""
    is_by_cores: bool
    """True if rungs are placed by the logarithm of their cores, False if they are equally far apart."""

    @property
    def height(self) -> float:
        """The height of one band."""
        return self.ys[0] + _MIN_ROW_HEIGHT / 2 + _BOTTOM_MARGIN


def wide(chart: Chart, width: float) -> Layout:
    """Return the layout with all columns in one band."""
    return _layout(chart, chart.columns, width)


def narrow(chart: Chart, width: float) -> Layout:
    """Return the layout with one band per column."""
    layouts = [_layout(chart, [column], width) for column in chart.columns]
    # One width for all bands: their plots share a scale, and their left edges line up.
    return layouts[0]._replace(
        width=max(layout.width for layout in layouts),
        plot=min(layout.plot for layout in layouts),
        values=tuple(layout.values[0] for layout in layouts),
    )


def plot_lefts(layout: Layout, chart: Chart, columns: Sequence[int]) -> list[float]:
    """Return the left edge of each plot in a band of these columns."""
    lefts, x = [], layout.labels + COLUMN_GAP
    for index in columns:
        lefts.append(x)
        x += _column_width(chart.columns[index], layout.plot, layout.values[index]) + COLUMN_GAP
    return lefts


def _layout(chart: Chart, columns: Sequence[Column], width: float) -> Layout:
    labels = _labels_width(chart.rows)
    values = tuple(max(text_width(cell.text, TEXT_SIZE) for cell in column.cells) for column in columns)
    remaining = width - labels - len(columns) * (COLUMN_GAP + VALUE_GAP) - sum(values) - MARK_RADIUS
    plot = min(MAX_PLOT_WIDTH, max(MIN_PLOT_WIDTH, remaining / len(columns)))
    column_widths = [_column_width(column, plot, value) for column, value in zip(columns, values, strict=True)]
    needed = labels + sum(column_width + COLUMN_GAP for column_width in column_widths) + MARK_RADIUS
    return Layout(max(width, needed), labels, plot, values, *_vertical_positions([row.cores for row in chart.rows]))


def _vertical_positions(cores: Sequence[int]) -> tuple[tuple[float, ...], bool]:
    """Return the positions of the rungs, and True if they are placed by cores.

    Placed by the logarithm of the cores, a figure that grows as a power of them is a straight line. With sizes that
    hardly differ, the smallest possible gap would make the chart too high: the rungs are then equally far apart.
    """
    row_height = next((height for max_rungs, height in _ROW_HEIGHTS if len(cores) <= max_rungs), _MIN_ROW_HEIGHT)
    doublings = [math.log2(count / cores[0]) for count in cores]
    min_gap = min((high - low for low, high in pairwise(doublings)), default=1.0)
    scale = max(_MIN_ROW_HEIGHT / min_gap, row_height * (len(cores) - 1) / (doublings[-1] or 1))
    is_by_cores = scale * doublings[-1] <= MAX_LADDER_HEIGHT
    heights = (
        [doubling * scale for doubling in doublings]
        if is_by_cores
        else [index * float(row_height) for index in range(len(cores))]
    )
    return tuple(HEAD_HEIGHT + _MIN_ROW_HEIGHT / 2 + heights[-1] - height for height in heights), is_by_cores


def _labels_width(rows: Sequence[Row]) -> float:
    sizes = max(text_width(row.size, TEXT_SIZE, bold=True) for row in rows)
    cores = max(text_width("cores", SMALL_SIZE), *(text_width(f"{row.cores:,}", SMALL_SIZE) for row in rows))
    return sizes + VALUE_GAP + cores


def _column_width(column: Column, plot: float, values: float) -> float:
    """Return the width of a column: that of its plot and values, or of its title if that is wider."""
    title = text_width(column.title, TITLE_SIZE, bold=True)
    return max(plot + VALUE_GAP + values, title, text_width(column.change, SMALL_SIZE))
