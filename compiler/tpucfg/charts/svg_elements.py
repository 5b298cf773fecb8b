"""SVG elements, and how wide a text is without a browser to measure it."""

import textwrap
from typing import Final
from xml.etree.ElementTree import Element, SubElement

from tpucfg.text_format import printable

DIGIT: Final = 0.64
LETTER: Final = 0.66
THIN: Final = 0.36
PROSE: Final = 0.62
"""A letter of a sentence, with its spaces."""
BOLD: Final = 1.1
"""Widths in ems of the widest common sans-serif, DejaVu Sans: what is laid out for it fits every other."""


def add_element(parent: Element, tag: str, text: str = "", **attributes: str | float) -> Element:
    """An element inside another; `class_` and `stroke_width` are written as SVG has them, numbers to a tenth."""
    made = SubElement(parent, tag, attributes_of(attributes))
    made.text = printable(text) or None
    return made


def attributes_of(attributes: dict[str, str | float]) -> dict[str, str]:
    """Attributes as SVG writes them."""
    return {key.rstrip("_").replace("_", "-"): _written(value) for key, value in attributes.items() if value != ""}


def _written(value: str | float) -> str:
    return printable(value) if isinstance(value, str) else f"{round(value, 1) + 0.0:g}"


def width_of(text: str, size: float, *, bold: bool = False) -> float:
    """At most so many pixels at a font size."""
    return sum(map(_ems, text)) * size * (BOLD if bold else 1)


def _ems(char: str) -> float:
    if char in ",.:- ()":
        return THIN
    if char.isdigit():
        return DIGIT
    return LETTER if char.isascii() else 1.0


def wrapped(text: str, width: float, size: float, *, bold: bool = False) -> list[str]:
    """The text in lines of at most so many pixels."""
    most = int(width / (PROSE * size * (BOLD if bold else 1)))
    return textwrap.wrap(printable(text), max(8, most), break_on_hyphens=False) or [""]
