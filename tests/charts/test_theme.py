"""Contrast and completeness of the colours."""

import re

import pytest

from chart_helpers import parsed, svg_of
from spec_factory import planned, spec
from tpucfg.charts.svg import DARK, HUES, LIGHT

TEXT = ("ink", "muted", "warning", *HUES)
MIN_CONTRAST = 4.5
"""For text of any size: https://www.w3.org/TR/WCAG22/#contrast-minimum."""


def luminance(colour: str) -> float:
    """Return the relative luminance: https://www.w3.org/TR/WCAG22/#dfn-relative-luminance."""
    parts = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio: https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio."""
    dark, light = sorted((luminance(first), luminance(second)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", TEXT)
@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_every_colour_has_enough_contrast(palette: dict[str, str], name: str) -> None:
    """Each colour of a text or mark has a contrast of at least 4.5 to 1 against the background."""
    assert contrast(palette[name], palette["paper"]) >= MIN_CONTRAST


def test_all_colours_are_those_of_the_palettes() -> None:
    """A chart uses no colour outside the palettes, so the contrast test covers all."""
    output = svg_of(planned(spec()))

    assert set(re.findall(r"#[0-9a-fA-F]{3,8}\b", output)) <= {*LIGHT.values(), *DARK.values()}
    assert not re.search(r"\b(rgb|hsl)a?\(", output)


def test_every_class_has_a_rule() -> None:
    """The style sheet has a rule for every class in the chart."""
    svg = svg_of(planned(spec(training__learning_rate=0.1)))
    classes = {name for element in parsed(svg).iter() for name in element.get("class", "").split()}
    assert [name for name in classes if not re.search(rf"\.{name}\b", svg)] == []
