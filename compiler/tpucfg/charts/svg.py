"""Narratives as one stand-alone SVG file, in colours for light and dark schemes.

In a chart, rungs are rows and figures are columns, with the largest rung at the top. Labels are as wide as their texts,
and plots have the remaining width. Scales are logarithmic, and one doubling has the same length in every column of a
chart, so slopes can be compared.
"""

import math
import textwrap
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import chain, pairwise
from string import Template
from typing import Final, NamedTuple
from xml.etree.ElementTree import Element, SubElement, tostring

from tpucfg.charts.narrative import Chart, FigureColumn, Narrative, RungLabel
from tpucfg.findings import Finding
from tpucfg.text_format import printable

# Font sizes.
HEADLINE_SIZE: Final = 24
TITLE_SIZE: Final = 15
TEXT_SIZE: Final = 14
SMALL_SIZE: Final = 13

# Pixels.
HEAD_HEIGHT: Final = 52
"""Above the rows, for a column's title and change."""
VALUE_GAP: Final = 16
"""Between a plot and its values, and between the two columns of labels."""
COLUMN_GAP: Final = 32
MIN_PLOT_WIDTH: Final = 84
MAX_PLOT_WIDTH: Final = 300
MARK_RADIUS: Final = 8
"""The part of a mark that may extend beyond its plot, including its stroke."""
DOT_RADIUS: Final = 6
BAR_HEIGHT: Final = 14
_LINE_HEIGHTS: Final = {HEADLINE_SIZE: 30, TEXT_SIZE: 22, SMALL_SIZE: 19}
"""From one line of a text to the next, by the size of its font."""
MAX_LADDER_HEIGHT: Final = 420
"""From the first rung to the last. A ladder that would be higher has equal row heights."""
_ROW_HEIGHTS: Final = ((4, 42), (7, 34))
"""Pairs of a maximum number of rungs and their row height; longer ladders have the minimum height."""
_MIN_ROW_HEIGHT: Final = 27
_BOTTOM_MARGIN: Final = 4
_TITLE_ABOVE_ROWS: Final = 31
_CHANGE_ABOVE_ROWS: Final = 12
_BASELINE: Final = 5
"""From the centre of a row down to the baseline of its text."""

# Widths in ems of DejaVu Sans, the widest common sans-serif: a layout for it has room for every other font. No font is
# measured, as the reader's is not known.
DIGIT_EMS: Final = 0.64
LETTER_EMS: Final = 0.66
THIN_EMS: Final = 0.36
WIDE_EMS: Final = 1.0
"""Any character outside ASCII: CJK characters are this wide."""
PROSE_EMS: Final = 0.62
"""The average character of a sentence, including its spaces."""
BOLD_FACTOR: Final = 1.1
_MIN_LINE_LENGTH: Final = 8


class _Layout(NamedTuple):
    """The measures of a chart."""

    width: float
    labels: float
    """The right edge of the cores, the second column of labels."""
    plot: float
    """The width of each plot."""
    values: tuple[float, ...]
    """The width of each column's values."""
    lefts: tuple[float, ...]
    """The left edge of each plot."""
    ys: tuple[float, ...]
    """The vertical position of each rung; the smallest rung is at the bottom."""
    is_by_cores: bool
    """True if rungs are placed by the logarithm of their cores, False if they are equally far apart."""


class _Scale(NamedTuple):
    """The scale of all columns of a chart."""

    width: float
    """Pixels of the plot."""
    doubling: float
    """Pixels from a value to its double; 0 if no value changes."""

    def x(self, column: FigureColumn, value: Fraction) -> float:
        """Return the pixels from the plot's left edge; a column that needs less width is centred."""
        low, high = _range(column)
        return (self.width - (high - low) * self.doubling) / 2 + (
            _log2(value) - low
        ) * self.doubling


def draw(parent: Element, chart: Chart, width: float) -> tuple[float, float]:
    """Draw the chart, and its notes below; return the width and the height of the drawing."""
    layout = _layout(chart, width)
    scale = _scale(chart.columns, layout.plot)
    group = add_element(parent, "g", transform="translate(0 0)")
    _draw_labels(group, chart, layout)
    for index, column in enumerate(chart.columns):
        _draw_column(group, column, scale, layout, index)
    y = layout.ys[0] + _MIN_ROW_HEIGHT / 2 + _BOTTOM_MARGIN
    for note in _notes(chart, scale, is_by_cores=layout.is_by_cores):
        y = add_lines(parent, note, layout.width, SMALL_SIZE, y, class_="small muted")
    return layout.width, y + _LINE_HEIGHTS[SMALL_SIZE] / 2


def _notes(chart: Chart, scale: _Scale, *, is_by_cores: bool) -> tuple[str, ...]:
    """Return the notes about the scales and the marks."""
    if not scale.doubling:
        return chart.notes
    spacing = () if is_by_cores else ("The rungs are equally far apart, whatever their cores.",)
    return (
        "Logarithmic scales, on which a doubling is equally long everywhere.",
        *spacing,
        *chart.notes,
    )


# Layout.


def _layout(chart: Chart, width: float) -> _Layout:
    columns = chart.columns
    labels = _labels_width(chart.rows)
    values = tuple(
        max(text_width(cell.text, TEXT_SIZE) for cell in column.cells) for column in columns
    )
    plots = sum(column.plot != "none" for column in columns)
    remaining = (
        width - labels - len(columns) * COLUMN_GAP - plots * VALUE_GAP - sum(values) - MARK_RADIUS
    )
    plot = min(MAX_PLOT_WIDTH, max(MIN_PLOT_WIDTH, remaining / plots))
    lefts, right = [], labels
    for column, value_width in zip(columns, values, strict=True):
        lefts.append(right + COLUMN_GAP)
        right = lefts[-1] + _column_width(column, plot, value_width)
    positions = _vertical_positions([row.cores for row in chart.rows])
    return _Layout(max(width, right + MARK_RADIUS), labels, plot, values, tuple(lefts), *positions)


def _vertical_positions(cores: Sequence[int]) -> tuple[tuple[float, ...], bool]:
    """Return the positions of the rungs, and True if they are placed by cores.

    Placed by the logarithm of the cores, a figure that grows as a power of them is a straight line. With sizes that
    hardly differ, the smallest possible gap would make the chart too high: the rungs are then equally far apart.
    """
    row_height = next(
        (height for max_rungs, height in _ROW_HEIGHTS if len(cores) <= max_rungs), _MIN_ROW_HEIGHT
    )
    doublings = [math.log2(count / cores[0]) for count in cores]
    min_gap = min((high - low for low, high in pairwise(doublings)), default=1.0)
    scale = max(_MIN_ROW_HEIGHT / min_gap, row_height * (len(cores) - 1) / (doublings[-1] or 1))
    is_by_cores = scale * doublings[-1] <= MAX_LADDER_HEIGHT
    heights = (
        [doubling * scale for doubling in doublings]
        if is_by_cores
        else [index * float(row_height) for index in range(len(cores))]
    )
    return tuple(
        HEAD_HEIGHT + _MIN_ROW_HEIGHT / 2 + heights[-1] - height for height in heights
    ), is_by_cores


def _labels_width(rows: Sequence[RungLabel]) -> float:
    sizes = max(text_width(row.size, TEXT_SIZE, bold=True) for row in rows)
    cores = max(
        text_width("cores", SMALL_SIZE), *(text_width(f"{row.cores:,}", SMALL_SIZE) for row in rows)
    )
    return sizes + VALUE_GAP + cores


def _column_width(column: FigureColumn, plot: float, values: float) -> float:
    """Return the width of a column: of its plot and values, or of its title if that is wider."""
    title = text_width(column.title, TITLE_SIZE, bold=True)
    return max(_values_left(column, plot) + values, title, text_width(column.change, SMALL_SIZE))


def _values_left(column: FigureColumn, plot: float) -> float:
    """Return the left edge of a column's values, beside its plot if it has one."""
    return 0.0 if column.plot == "none" else plot + VALUE_GAP


# Scales.


def _scale(columns: Sequence[FigureColumn], width: float) -> _Scale:
    """Return the scale on which the column that changes most fills the width."""
    ranges = [_range(column) for column in columns if column.plot == "marks"]
    max_range = max((high - low for low, high in ranges), default=0.0)
    return _Scale(width, width / max_range if max_range else 0.0)


def _log2(value: Fraction) -> float:
    """Return the logarithm of a number that may be too large or too small for a float."""
    return math.log2(value.numerator) - math.log2(value.denominator)


def _range(column: FigureColumn) -> tuple[float, float]:
    """Return the logarithms of the smallest and of the largest value."""
    values = [*(cell.value for cell in column.cells if cell.value is not None), *column.expected]
    return _log2(min(values)), _log2(max(values))


# Columns.


def _draw_labels(group: Element, chart: Chart, layout: _Layout) -> None:
    right = layout.labels
    add_element(
        group,
        "text",
        "cores",
        class_="small muted end",
        x=right,
        y=HEAD_HEIGHT - _CHANGE_ABOVE_ROWS,
    )
    for row, y in zip(chart.rows, layout.ys, strict=True):
        add_element(group, "text", row.size, class_="size", x=0, y=y + _BASELINE)
        add_element(
            group, "text", f"{row.cores:,}", class_="small muted end", x=right, y=y + _BASELINE
        )


def _draw_column(
    parent: Element, column: FigureColumn, scale: _Scale, layout: _Layout, index: int
) -> None:
    group = add_element(
        parent, "g", class_=column.kind, transform=f"translate({layout.lefts[index]:.1f} 0)"
    )
    add_element(group, "text", column.title, class_="head", x=0, y=HEAD_HEIGHT - _TITLE_ABOVE_ROWS)
    add_element(
        group, "text", column.change, class_="small muted", x=0, y=HEAD_HEIGHT - _CHANGE_ABOVE_ROWS
    )
    if column.plot == "marks":
        _draw_marks(group, column, scale, layout.ys)
    elif column.plot == "bars":
        _draw_bars(group, column, scale, layout.ys)
    right = _values_left(column, scale.width) + layout.values[index]
    for cell, y in zip(column.cells, layout.ys, strict=True):
        add_element(group, "text", cell.text, class_="end", x=right, y=y + _BASELINE)


def _draw_marks(group: Element, column: FigureColumn, scale: _Scale, ys: Sequence[float]) -> None:
    marks = [
        (cell, cell.value, y)
        for cell, y in zip(column.cells, ys, strict=True)
        if cell.value is not None
    ]
    if not marks:
        return
    # SVG paints in document order: the rows below the lines, the lines below the marks.
    for y in ys:
        add_element(group, "line", class_="grid", x1=0, x2=scale.width, y1=y, y2=y)
    if column.expected:
        _draw_line(group, "path linear", column, scale, list(zip(column.expected, ys, strict=True)))
    _draw_line(group, "path", column, scale, [(value, y) for _, value, y in marks])
    for cell, value, y in marks:
        class_ = "mark ring" if cell.is_ring else "mark"
        add_element(group, "circle", class_=class_, cx=scale.x(column, value), cy=y, r=DOT_RADIUS)


def _draw_line(
    group: Element,
    class_: str,
    column: FigureColumn,
    scale: _Scale,
    points: Sequence[tuple[Fraction, float]],
) -> None:
    if len(points) > 1:
        path = " ".join(f"{scale.x(column, value):.1f},{y:.1f}" for value, y in points)
        add_element(group, "polyline", class_=class_, points=path)


def _draw_bars(group: Element, column: FigureColumn, scale: _Scale, ys: Sequence[float]) -> None:
    """Draw bars from zero, and a dashed line at 100%."""
    maximum = max(Fraction(1), *(cell.value for cell in column.cells if cell.value is not None))
    for cell, y in zip(column.cells, ys, strict=True):
        if cell.value is not None:
            width = float(cell.value / maximum) * scale.width
            add_element(
                group,
                "rect",
                class_="bar",
                x=0,
                y=y - BAR_HEIGHT / 2,
                width=width,
                height=BAR_HEIGHT,
            )
    x = float(1 / maximum) * scale.width
    top, bottom = ys[-1] - 2 * MARK_RADIUS, ys[0] + 2 * MARK_RADIUS
    add_element(group, "line", class_="path linear", x1=x, x2=x, y1=top, y2=bottom)


# Elements and texts.


def add_element(parent: Element, tag: str, text: str = "", **attributes: str | float) -> Element:
    """Append an element to another; see `_attributes` for the names and values of attributes."""
    element = SubElement(parent, tag, _attributes(attributes))
    element.text = printable(text) or None
    return element


def add_lines(
    parent: Element, text: str, width: float, size: int, y: float, *, class_: str
) -> float:
    """Append a text below a position, in lines of at most a width, and return the position of the last line."""
    for line in _wrapped(text, width, size, bold=class_ == "headline"):
        y += _LINE_HEIGHTS[size]
        add_element(parent, "text", line, class_=class_, x=0, y=y)
    return y


def _attributes(attributes: dict[str, str | float]) -> dict[str, str]:
    """Return attributes as SVG writes them: `class_` as class, `stroke_width` as stroke-width, numbers to a tenth."""
    return {
        key.rstrip("_").replace("_", "-"): _attribute(value)
        for key, value in attributes.items()
        if value != ""
    }


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Return the maximum width of a text in pixels, at that font size."""
    return sum(map(_ems, text)) * size * (BOLD_FACTOR if bold else 1)


def _wrapped(text: str, width: float, size: float, *, bold: bool = False) -> list[str]:
    """Return the text in lines of at most that many pixels."""
    max_length = int(width / (PROSE_EMS * size * (BOLD_FACTOR if bold else 1)))
    # Not at hyphens, which would break a size such as v5litepod-16.
    return textwrap.wrap(
        printable(text), max(_MIN_LINE_LENGTH, max_length), break_on_hyphens=False
    ) or [""]


def _attribute(value: str | float) -> str:
    # Adding 0.0 turns -0.0 into 0.0: the sign would make equal charts differ.
    return printable(value) if isinstance(value, str) else f"{round(value, 1) + 0.0:g}"


def _ems(char: str) -> float:
    if char in ",.:- ()":
        return THIN_EMS
    if char.isascii() and char.isdigit():
        return DIGIT_EMS
    return LETTER_EMS if char.isascii() else WIDE_EMS


# The file: narratives below one another, in colours for light and dark schemes.

WIDTH: Final = 880
"""Pixels of the charts; a chart that needs more makes the file wider."""
MARGIN: Final = 28
"""Pixels around them."""

HUES: Final = ("batch", "steps", "rate", "speed", "memory")
"""The kinds of columns, each with its own colour."""
_COLOURS: Final[Mapping[str, tuple[str, str]]] = {
    "paper": ("#fdfcf9", "#15181d"),
    "ink": ("#1c1f24", "#eceae4"),
    "muted": ("#5b626d", "#a5acb8"),
    "grid": ("#dfddd5", "#343a44"),
    "batch": ("#1a5bb8", "#7db1fb"),
    "steps": ("#b0440f", "#fb9f6b"),
    "rate": ("#0b7461", "#58cdb4"),
    "speed": ("#7440ad", "#c3a0f4"),
    "memory": ("#47661a", "#a9cc6a"),
    "warning": ("#8f5400", "#e8b45a"),
}
LIGHT: Final = {name: light for name, (light, _) in _COLOURS.items()}
DARK: Final = {name: dark for name, (_, dark) in _COLOURS.items()}
FONT: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

_SHAPES: Final = f"""\
svg text {{ font: 14px {FONT}; font-variant-numeric: tabular-nums }}
svg .headline {{ font-size: 24px; font-weight: 700 }}
svg .part {{ font-size: 16px; font-weight: 700 }}
svg .head {{ font-size: 15px; font-weight: 700 }}
svg .size {{ font-weight: 700 }}
svg .small {{ font-size: 13px }}
svg .end {{ text-anchor: end }}
svg .path {{ fill: none; stroke-width: 3; stroke-linejoin: round }}
svg .linear {{ stroke-width: 1.5; stroke-dasharray: 5 4 }}
svg .mark {{ stroke-width: 2 }}
svg .ring {{ stroke-width: 3 }}
"""
_HUE_COLOURS: Final = """\
svg .HUE .head, svg .HUE .mark, svg .HUE .bar { fill: $HUE }
svg .HUE .path { stroke: $HUE }
svg .HUE .mark { stroke: $paper }
svg .HUE .ring { fill: $paper; stroke: $HUE }
"""
_CHART_COLOURS: Final = Template(f"""\
svg .paper {{ fill: $paper }}
svg text {{ fill: $ink }}
svg .muted {{ fill: $muted }}
svg .warning {{ fill: $warning }}
svg .grid {{ stroke: $grid }}
{"".join(_HUE_COLOURS.replace("HUE", hue) for hue in HUES)}\
""")
# Dark only on screens: paper is white, whatever the reader's scheme is.
_STYLE: Final = f"""\
{_SHAPES}{_CHART_COLOURS.substitute(LIGHT)}\
@media screen and (prefers-color-scheme: dark) {{
{_CHART_COLOURS.substitute(DARK)}}}
"""


def render_svg(narratives: Sequence[Narrative], findings: Sequence[Finding]) -> str:
    """Return an SVG with the narratives below one another, then the warnings; it needs no other file."""
    body = Element("g")
    width, y = float(WIDTH), 0.0
    for narrative in narratives:
        width, y = _draw_narrative(body, narrative, width, y)
    y = _draw_warnings(body, findings, width, y)
    return _document(body, narratives, width + 2 * MARGIN, y + 2 * MARGIN)


def _draw_narrative(
    body: Element, narrative: Narrative, width: float, y: float
) -> tuple[float, float]:
    """Draw one narrative at that height, and return the width and height so far."""
    y += 20 if y else -10
    y = add_lines(body, narrative.headline, WIDTH, HEADLINE_SIZE, y, class_="headline")
    for sentence, class_ in zip(narrative.lead, ("", "muted"), strict=True):
        y = add_lines(body, sentence, WIDTH, TEXT_SIZE, y, class_=class_)
    for number, chart in enumerate(narrative.charts):
        # The headline is the title of the first chart.
        if number:
            y += 36
            add_element(body, "text", chart.title, class_="part", x=0, y=y)
        y += 24
        drawn_width, height = draw(
            add_element(body, "g", transform=f"translate(0 {y:g})"), chart, WIDTH
        )
        width, y = max(width, drawn_width), y + height
    return width, y


def _draw_warnings(body: Element, findings: Sequence[Finding], width: float, y: float) -> float:
    for finding in findings:
        if finding.level == "warning":
            text = f"{finding.level}[{finding.id}]: {finding.message}"
            y = add_lines(body, text, width, SMALL_SIZE, y + 4, class_="small warning")
    return y


def _document(body: Element, narratives: Sequence[Narrative], width: float, height: float) -> str:
    root = Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {width:.0f} {height:.0f}",
            "width": f"{width:.0f}",
            "height": f"{height:.0f}",
            "role": "img",
            "aria-labelledby": "title description",
        },
    )
    # Narratives of different environments may have one headline.
    title = "; ".join(dict.fromkeys(narrative.headline for narrative in narratives))
    add_element(root, "title", title, id="title")
    # The content as text, for screen readers.
    parts = ((*each.lead, *(chart.description for chart in each.charts)) for each in narratives)
    add_element(root, "desc", " ".join(chain.from_iterable(parts)), id="description")
    # Set directly: add_element would escape the line breaks.
    add_element(root, "style").text = _STYLE
    add_element(root, "rect", class_="paper", width="100%", height="100%", rx=12)
    body.set("transform", f"translate({MARGIN} {MARGIN})")
    root.append(body)
    return tostring(root, encoding="unicode")
