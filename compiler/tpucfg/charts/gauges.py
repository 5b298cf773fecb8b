"""Gauges of memory: a sign whose shape shows if a rung fits, in any colour, and the part that is used."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final
from xml.etree.ElementTree import Element

from tpucfg.charts.chart import Cell, Column, Sign
from tpucfg.charts.scale import Scale
from tpucfg.charts.svg_elements import add_element

KIND: Final = "memory"
"""The colour of the column, and the class of its group."""
SIGN_WIDTH: Final = 18
"""Pixels of a sign, drawn around its centre."""
TRACK_LEFT: Final = 26
TRACK_HEIGHT: Final = 12

_OUTLINES: Final[Mapping[Sign, str]] = {
    "fits": "M-8,0 A8,8 0 1 1 8,0 A8,8 0 1 1 -8,0 Z",
    "little": "M0,-9 L9,7.5 L-9,7.5 Z",
    "exceeds": "M-8,-8 H8 V8 H-8 Z",
    "unknown": "M-8,0 A8,8 0 1 1 8,0 A8,8 0 1 1 -8,0 Z",
}
"""A disc, a triangle, a square, and a circle."""
_GLYPHS: Final[Mapping[Sign, str]] = {
    "fits": "M-4,0 L-1,3.5 L4,-3",
    "little": "M0,-3.5 V1.5 M0,4.6 V4.7",
    "exceeds": "M-3.5,-3.5 L3.5,3.5 M3.5,-3.5 L-3.5,3.5",
    "unknown": "M-2.5,-2 A2.5,2.5 0 1 1 0,0.5 V1.5 M0,4.6 V4.7",
}
"""A check mark, an exclamation mark, a cross, and a question mark."""
_EXPLANATIONS: Final[Mapping[Sign, str]] = {
    "fits": "a check mark: the training step fits",
    "little": "an exclamation mark: less than a tenth of the memory is left",
    "exceeds": "a cross: it does not fit",
    "unknown": "a question mark: not known until tpucfg fit compiles it",
}


def gauge_note(column: Column) -> str:
    """Return the explanation of the signs that a column has."""
    signs = {cell.sign for cell in column.cells}
    return f"Memory: {'; '.join(text for sign, text in _EXPLANATIONS.items() if sign in signs)}."


def draw_gauges(group: Element, column: Column, scale: Scale, ys: Sequence[float]) -> None:
    """Draw the sign and the gauge of each rung; a gauge ends at the memory that is available."""
    for cell, y in zip(column.cells, ys, strict=True):
        sign: Sign = cell.sign or "unknown"
        row = add_element(group, "g", transform=f"translate(0 {y:g})")
        # Browsers show the title of a group as its tooltip.
        add_element(row, "title", cell.description)
        mark = add_element(row, "g", class_=f"sign {sign}", transform=f"translate({SIGN_WIDTH / 2:g} 0)")
        add_element(mark, "path", class_="track" if sign == "unknown" else "", d=_OUTLINES[sign])
        add_element(mark, "path", class_="glyph", d=_GLYPHS[sign])
        _draw_track(row, cell, sign, scale.width - TRACK_LEFT)


def _draw_track(row: Element, cell: Cell, sign: Sign, width: float) -> None:
    top, class_ = -TRACK_HEIGHT / 2, "open" if cell.value is None else "track"
    if cell.value is not None:
        used = float(min(cell.value, Fraction(1))) * width
        add_element(row, "rect", class_=sign, x=TRACK_LEFT, y=top, width=used, height=TRACK_HEIGHT)
    add_element(row, "rect", class_=class_, x=TRACK_LEFT, y=top, width=width, height=TRACK_HEIGHT)
