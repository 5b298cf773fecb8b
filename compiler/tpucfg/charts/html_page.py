"""Narratives as one self-contained HTML page: no script, no font, no request."""

from collections.abc import Sequence
from string import digits
from typing import TYPE_CHECKING, Final, NamedTuple
from xml.etree.ElementTree import Element, tostring

from tpucfg import __version__
from tpucfg.charts.chart import Chart, Narrative
from tpucfg.charts.draw import draw
from tpucfg.charts.svg_elements import add_element, attributes_of
from tpucfg.charts.theme import page_stylesheet, stylesheet
from tpucfg.findings import Finding
from tpucfg.templating import template_engine
from tpucfg.text_format import printable

# markupsafe is part of jinja2, which only this format needs: an SVG does not pay for the import.
if TYPE_CHECKING:
    from markupsafe import Markup

WIDE: Final = 880
"""Pixels of a chart on a screen, and on paper."""
NARROW: Final = 344
"""Pixels of a chart on a phone."""


class ChartSection(NamedTuple):
    """One ladder with its table."""

    narrative: Narrative
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


class Cell(NamedTuple):
    """A cell of a table."""

    text: str
    is_prose: bool
    """True for words, which may wrap, unlike a number."""


def render_html(project: str, sections: Sequence[ChartSection], findings: Sequence[Finding]) -> str:
    """Return the page of a project's ladders, with every text of the spec escaped."""
    from markupsafe import Markup

    engine = template_engine(printable=printable, breakable=_breakable, unbroken=_unbroken)
    has_gauges = any(section.narrative.has_gauges for section in sections)
    # Off by default, as the other templates are YAML and shell.
    engine.autoescape = True
    # Without a final line break: print adds it.
    return engine.get_template("charts/page.html.j2").render(
        project=project,
        version=__version__,
        style=Markup(stylesheet(has_gauges=has_gauges) + page_stylesheet()),  # noqa: S704 - the theme's own constants
        sections=[
            {
                "narrative": section.narrative,
                "figures": [
                    _figure(chart, f"c{section_number}-{number}")
                    for number, chart in enumerate(section.narrative.charts)
                ],
                "header": section.header,
                "rows": [[Cell(text, _is_prose(text)) for text in row] for row in section.rows],
            }
            for section_number, section in enumerate(sections)
        ],
        findings=findings,
    )


def _breakable(name: str) -> "Markup":
    """Allow line breaks in a name after each underscore."""
    from markupsafe import Markup, escape

    return Markup("_<wbr>").join(escape(part) for part in name.split("_"))


def _unbroken(text: str) -> "Markup":
    """Allow line breaks at spaces only, so that a size such as `v5litepod-16` stays on one line."""
    from markupsafe import Markup, escape

    return Markup(" ").join(Markup("<span>{}</span>").format(escape(word)) for word in text.split(" "))


def _is_prose(text: str) -> bool:
    # An amount with its unit stays on one line.
    return " " in text and any(char.isalpha() for char in text) and text[0] not in digits


# CSS cannot move the labels of an SVG, so a narrow screen needs a separate drawing.
def _figure(chart: Chart, id_: str) -> dict[str, "str | Markup"]:
    """Draw the chart wide and narrow; the style sheet shows the one that fits."""
    return {
        "title": chart.title,
        "wide": _inline_svg(chart, f"{id_}-w", WIDE, stacked=False),
        "narrow": _inline_svg(chart, f"{id_}-n", NARROW, stacked=True),
    }


def _inline_svg(chart: Chart, id_: str, width: float, *, stacked: bool) -> "Markup":
    from markupsafe import Markup

    root = Element("svg", attributes_of({"role": "img", "aria_labelledby": f"{id_}-t {id_}-d"}))
    add_element(root, "title", chart.title, id=f"{id_}-t")
    add_element(root, "desc", chart.description, id=f"{id_}-d")
    drawing = draw(add_element(root, "g"), chart, width, stacked=stacked)
    root.set("viewBox", f"0 0 {drawing.width:.0f} {drawing.height:.0f}")
    root.set("class", "narrow" if stacked else "wide")
    return Markup(tostring(root, encoding="unicode"))  # noqa: S704 - the serializer has escaped every text
