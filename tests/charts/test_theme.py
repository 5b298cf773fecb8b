"""The colours can be read, in the light and in the dark."""

import re

import pytest

from chart_helpers import drawn, parsed, told
from spec_factory import planned, spec
from tpucfg.charts.theme import DARK, HUES, LIGHT, Palette

TEXT = ("ink", "muted", "warning", "error", *HUES)
LEAST = 4.5
"""For text of any size: https://www.w3.org/TR/WCAG22/#contrast-minimum."""


def luminance(colour: str) -> float:
    """https://www.w3.org/TR/WCAG22/#dfn-relative-luminance."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (it / 12.92 if it <= 0.04045 else ((it + 0.055) / 1.055) ** 2.4 for it in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", TEXT)
@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_every_colour_of_a_text_or_a_mark_can_be_read(palette: Palette, name: str) -> None:
    """Each stands off the paper by 4.5 to 1 or more."""
    assert contrast(palette[name], palette["paper"]) >= LEAST


def test_no_other_colour_is_used() -> None:
    """What is drawn has the colours of the palettes and no other, so the test above is about all of them."""
    plan = planned(spec())
    written = drawn(plan) + told(plan)

    assert set(re.findall(r"#[0-9a-fA-F]{3,8}\b", written)) <= {*LIGHT.values(), *DARK.values()}
    assert not re.search(r"\b(rgb|hsl)a?\(", written)


def test_each_kind_of_text_and_mark_has_a_colour_in_both_schemes() -> None:
    """The two palettes name the same colours, and every class of the drawing has a rule."""
    assert LIGHT.keys() == DARK.keys()
    image = drawn(planned(spec(training__learning_rate=0.1)))
    classes = {name for it in parsed(image).iter() for name in it.get("class", "").split()}
    assert [name for name in classes if not re.search(rf"\.{name}\b", image)] == []
