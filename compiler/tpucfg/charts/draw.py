"""A chart as SVG elements: rungs as rows, figures as columns, the largest rung on top."""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple
from xml.etree.ElementTree import Element

from tpucfg.charts import layout as measures
from tpucfg.charts.chart import Chart, Column
from tpucfg.charts.layout import GAP, HEAD, MARK, SMALL, Layout, Scale, common_scale, grid_lines, x_position
from tpucfg.charts.numbers import count_text
from tpucfg.charts.svg_elements import add_element, wrapped

LINE = 19
"""Pixels from line to line of a note."""


class Drawn(NamedTuple):
    """How much room a drawing took."""

    width: float
    height: float


def draw(parent: Element, chart: Chart, width: float, *, stacked: bool) -> Drawn:
    """The chart, in one band or with a band for each column, and below it how to read it."""
    layout = measures.narrow(chart, width) if stacked else measures.wide(chart, width)
    scale = common_scale(chart.columns, layout.plot)
    every = range(len(chart.columns))
    y = 0.0
    for band in [[at] for at in every] if stacked else [list(every)]:
        _band(add_element(parent, "g", transform=f"translate(0 {y:g})"), chart, layout, scale, band)
        y += layout.height + (BAND if stacked else 0)
    for note in notes(chart, scale, by_cores=layout.by_cores):
        for line in wrapped(note, layout.width, SMALL):
            y += LINE
            add_element(parent, "text", line, class_="small muted", x=0, y=y)
    return Drawn(layout.width, y + LINE / 2)


BAND = 14
"""Pixels between two bands."""


def notes(chart: Chart, scale: Scale, *, by_cores: bool) -> tuple[str, ...]:
    """How to read the marks, and the scale that they stand on."""
    ruled = [column.title for column in chart.columns if not column.bars]
    if not scale.doubling or not ruled:
        return chart.notes
    apart = () if by_cores else ("The rungs stand equally far apart, whatever their cores.",)
    grid = f"from one grid line to the next is {count_text(scale.step)}×"
    alike = f"Logarithmic scales: {grid}, in every column alike."
    return (alike if len(ruled) > 1 else f"Logarithmic scale of {ruled[0]}: {grid}.", *apart, *chart.notes)


def _band(band: Element, chart: Chart, layout: Layout, scale: Scale, columns: Sequence[int]) -> None:
    add_element(band, "text", "cores", class_="small muted end", x=layout.names, y=HEAD - 12)
    for row, y in zip(chart.rows, layout.ys, strict=True):
        add_element(band, "text", row.size, class_="size", x=0, y=y + 5)
        add_element(band, "text", f"{row.cores:,}", class_="small muted end", x=layout.names, y=y + 5)
    for at, left in zip(columns, measures.lefts(layout, chart, columns), strict=True):
        column = chart.columns[at]
        group = add_element(band, "g", class_=column.kind, transform=f"translate({left:.1f} 0)")
        add_element(group, "text", column.title, class_="head", x=0, y=HEAD - 31)
        add_element(group, "text", column.change, class_="small muted", x=0, y=HEAD - 12)
        (_bars if column.bars else _marks)(group, column, scale, layout.ys)
        for cell, y in zip(column.cells, layout.ys, strict=True):
            add_element(group, "text", cell.text, class_="end", x=scale.width + GAP + layout.values[at], y=y + 5)


def _marks(group: Element, column: Column, scale: Scale, ys: Sequence[float]) -> None:
    if all(cell.value is None for cell in column.cells):
        return
    for x in grid_lines(column, scale):
        add_element(group, "line", class_="grid", x1=x, x2=x, y1=ys[-1] - MARK, y2=ys[0] + MARK)
    for y in ys:
        add_element(group, "line", class_="grid", x1=0, x2=scale.width, y1=y, y2=y)
    if column.expected:
        _line(group, "path linear", column, scale, list(zip(column.expected, ys, strict=True)))
    points = [(cell.value, y) for cell, y in zip(column.cells, ys, strict=True) if cell.value is not None]
    _line(group, "path", column, scale, points)
    for cell, y in zip(column.cells, ys, strict=True):
        if cell.value is not None:
            mark = "mark ring" if cell.ring else "mark"
            add_element(group, "circle", class_=mark, cx=x_position(column, scale, cell.value), cy=y, r=6)


def _line(group: Element, class_: str, column: Column, scale: Scale, points: Sequence[tuple[Fraction, float]]) -> None:
    if len(points) > 1:
        path = " ".join(f"{x_position(column, scale, value):.1f},{y:.1f}" for value, y in points)
        add_element(group, "polyline", class_=class_, points=path)


def _bars(group: Element, column: Column, scale: Scale, ys: Sequence[float]) -> None:
    """Bars from nought; the dashed line is the whole, 100%."""
    most = max(Fraction(1), *(cell.value for cell in column.cells if cell.value is not None))
    for cell, y in zip(column.cells, ys, strict=True):
        if cell.value is not None:
            add_element(
                group, "rect", class_="bar", x=0, y=y - 7, width=float(cell.value / most) * scale.width, height=14
            )
    whole = float(1 / most) * scale.width
    add_element(group, "line", class_="path linear", x1=whole, x2=whole, y1=ys[-1] - 2 * MARK, y2=ys[0] + 2 * MARK)
