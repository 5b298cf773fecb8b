"""A chart as SVG elements: rungs as rows, figures as columns, the largest rung at the top."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final, NamedTuple
from xml.etree.ElementTree import Element

from tpucfg.charts import layout as layouts
from tpucfg.charts.chart import Chart, Column
from tpucfg.charts.gauges import draw_gauges
from tpucfg.charts.layout import HEAD_HEIGHT, MARK_RADIUS, SMALL_SIZE, VALUE_GAP, Layout
from tpucfg.charts.numbers import count_text
from tpucfg.charts.scale import Scale, common_scale, grid_lines, x_position
from tpucfg.charts.svg_elements import add_element, wrapped

NOTE_LINE_HEIGHT: Final = 19
BAND_GAP: Final = 14
BAR_HEIGHT: Final = 14
DOT_RADIUS: Final = 6
_TITLE_ABOVE_ROWS: Final = 31
_CHANGE_ABOVE_ROWS: Final = 12
_BASELINE: Final = 5
"""Pixels from the centre of a row down to the baseline of its text."""


class Drawing(NamedTuple):
    """The size of a drawn chart."""

    width: float
    height: float


def draw(parent: Element, chart: Chart, width: float, *, stacked: bool) -> Drawing:
    """Draw the chart in one band, or stacked with a band for each column, and its notes below."""
    layout = layouts.narrow(chart, width) if stacked else layouts.wide(chart, width)
    scale = common_scale(chart.columns, layout.plot)
    # Each band repeats the sizes, so that a phone shows them next to every column.
    columns = range(len(chart.columns))
    y = 0.0
    for band in [[index] for index in columns] if stacked else [list(columns)]:
        _draw_band(add_element(parent, "g", transform=f"translate(0 {y:g})"), chart, layout, scale, band)
        y += layout.height + (BAND_GAP if stacked else 0)
    for note in chart_notes(chart, scale, is_by_cores=layout.is_by_cores):
        for line in wrapped(note, layout.width, SMALL_SIZE):
            y += NOTE_LINE_HEIGHT
            add_element(parent, "text", line, class_="small muted", x=0, y=y)
    return Drawing(layout.width, y + NOTE_LINE_HEIGHT / 2)


def chart_notes(chart: Chart, scale: Scale, *, is_by_cores: bool) -> tuple[str, ...]:
    """Return the notes about the scales and the marks."""
    logarithmic = [column.title for column in chart.columns if column.is_logarithmic]
    if not scale.doubling or not logarithmic:
        return chart.notes
    grid = f"from one grid line to the next is {count_text(scale.grid_factor)}×"
    scales = (
        f"Logarithmic scales: {grid}, in every column alike."
        if len(logarithmic) > 1
        else f"Logarithmic scale of {logarithmic[0]}: {grid}."
    )
    spacing = () if is_by_cores else ("The rungs are equally far apart, whatever their cores.",)
    return (scales, *spacing, *chart.notes)


def _draw_band(band: Element, chart: Chart, layout: Layout, scale: Scale, columns: Sequence[int]) -> None:
    labels = layout.labels
    add_element(band, "text", "cores", class_="small muted end", x=labels, y=HEAD_HEIGHT - _CHANGE_ABOVE_ROWS)
    for row, y in zip(chart.rows, layout.ys, strict=True):
        add_element(band, "text", row.size, class_="size", x=0, y=y + _BASELINE)
        add_element(band, "text", f"{row.cores:,}", class_="small muted end", x=labels, y=y + _BASELINE)
    for index, left in zip(columns, layouts.plot_lefts(layout, chart, columns), strict=True):
        column = chart.columns[index]
        group = add_element(band, "g", class_=column.kind, transform=f"translate({left:.1f} 0)")
        add_element(group, "text", column.title, class_="head", x=0, y=HEAD_HEIGHT - _TITLE_ABOVE_ROWS)
        add_element(group, "text", column.change, class_="small muted", x=0, y=HEAD_HEIGHT - _CHANGE_ABOVE_ROWS)
        _painter(column)(group, column, scale, layout.ys)
        right = scale.width + VALUE_GAP + layout.values[index]
        for cell, y in zip(column.cells, layout.ys, strict=True):
            add_element(group, "text", cell.text, class_="end", x=right, y=y + _BASELINE)


def _painter(column: Column) -> Callable[[Element, Column, Scale, Sequence[float]], None]:
    """Return the function that draws the plot of a column."""
    if column.is_gauge:
        return draw_gauges
    return _draw_bars if column.is_bars else _draw_marks


def _draw_marks(group: Element, column: Column, scale: Scale, ys: Sequence[float]) -> None:
    if all(cell.value is None for cell in column.cells):
        return
    # SVG paints in document order: the grid below the lines, the lines below the marks.
    for x in grid_lines(column, scale):
        add_element(group, "line", class_="grid", x1=x, x2=x, y1=ys[-1] - MARK_RADIUS, y2=ys[0] + MARK_RADIUS)
    for y in ys:
        add_element(group, "line", class_="grid", x1=0, x2=scale.width, y1=y, y2=y)
    if column.expected:
        _draw_line(group, "path linear", column, scale, list(zip(column.expected, ys, strict=True)))
    points = [(cell.value, y) for cell, y in zip(column.cells, ys, strict=True) if cell.value is not None]
    _draw_line(group, "path", column, scale, points)
    for cell, y in zip(column.cells, ys, strict=True):
        if cell.value is not None:
            class_ = "mark ring" if cell.is_ring else "mark"
            add_element(group, "circle", class_=class_, cx=x_position(column, scale, cell.value), cy=y, r=DOT_RADIUS)


def _draw_line(
    group: Element, class_: str, column: Column, scale: Scale, points: Sequence[tuple[Fraction, float]]
) -> None:
    if len(points) > 1:
        path = " ".join(f"{x_position(column, scale, value):.1f},{y:.1f}" for value, y in points)
        add_element(group, "polyline", class_=class_, points=path)


def _draw_bars(group: Element, column: Column, scale: Scale, ys: Sequence[float]) -> None:
    """Draw bars from zero, and a dashed line at 100%."""
    maximum = max(Fraction(1), *(cell.value for cell in column.cells if cell.value is not None))
    for cell, y in zip(column.cells, ys, strict=True):
        if cell.value is not None:
            width = float(cell.value / maximum) * scale.width
            add_element(group, "rect", class_="bar", x=0, y=y - BAR_HEIGHT / 2, width=width, height=BAR_HEIGHT)
    x = float(1 / maximum) * scale.width
    top, bottom = ys[-1] - 2 * MARK_RADIUS, ys[0] + 2 * MARK_RADIUS
    add_element(group, "line", class_="path linear", x1=x, x2=x, y1=top, y2=bottom)
