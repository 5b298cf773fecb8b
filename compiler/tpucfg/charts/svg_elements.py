"""SVG elements, and an upper bound for the width of a text."""

import textwrap
from typing import Final
from xml.etree.ElementTree import Element, SubElement

from tpucfg.text_format import printable

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


def add_element(parent: Element, tag: str, text: str = "", **attributes: str | float) -> Element:
    """Append an element to another; see `attributes_of` for the names and values of attributes."""
    element = SubElement(parent, tag, attributes_of(attributes))
    element.text = printable(text) or None
    return element


def attributes_of(attributes: dict[str, str | float]) -> dict[str, str]:
    """Return attributes as SVG writes them: `class_` as class, `stroke_width` as stroke-width, numbers to a tenth."""
    return {key.rstrip("_").replace("_", "-"): _attribute(value) for key, value in attributes.items() if value != ""}


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Return the maximum width of a text in pixels, at that font size."""
    return sum(map(_ems, text)) * size * (BOLD_FACTOR if bold else 1)


def wrapped(text: str, width: float, size: float, *, bold: bool = False) -> list[str]:
    """Return the text in lines of at most that many pixels."""
    max_length = int(width / (PROSE_EMS * size * (BOLD_FACTOR if bold else 1)))
    # Not at hyphens, which would break a size such as v5litepod-16.
    return textwrap.wrap(printable(text), max(_MIN_LINE_LENGTH, max_length), break_on_hyphens=False) or [""]


def _attribute(value: str | float) -> str:
    # Adding 0.0 turns -0.0 into 0.0: the sign would make equal charts differ.
    return printable(value) if isinstance(value, str) else f"{round(value, 1) + 0.0:g}"


def _ems(char: str) -> float:
    if char in ",.:- ()":
        return THIN_EMS
    if char.isascii() and char.isdigit():
        return DIGIT_EMS
    return LETTER_EMS if char.isascii() else WIDE_EMS
