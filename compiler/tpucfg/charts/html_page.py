"""Stories to one self-contained HTML page: no script, no font, no request."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from xml.etree.ElementTree import Element, tostring

from tpucfg import __version__
from tpucfg.charts.chart import Chart, Narrative
from tpucfg.charts.draw import draw
from tpucfg.charts.svg_elements import add_element, attributes_of
from tpucfg.charts.theme import page_stylesheet, stylesheet
from tpucfg.findings import Finding
from tpucfg.templating import environment
from tpucfg.text_format import printable

if TYPE_CHECKING:
    from markupsafe import Markup

WIDE = 880
NARROW = 344
"""Pixels that a chart is laid out for: on a screen, and on a telephone held upright."""


class ChartSection(NamedTuple):
    """One climb with its table."""

    story: Narrative
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


class Cell(NamedTuple):
    """A cell of a table."""

    text: str
    is_prose: bool
    """Words, which may be broken into lines, and no number."""


def page(project: str, sections: Sequence[ChartSection], findings: Sequence[Finding]) -> str:
    """The page of a project's ladders; everything that a spec wrote is escaped, once by the template, once in SVG."""
    from markupsafe import Markup

    engine = environment(printable=printable, breakable=_breakable, unbroken=_unbroken)
    engine.autoescape = True
    return engine.get_template("charts/page.html.j2").render(  # ends without a line break, as what is printed does
        project=project,
        version=__version__,
        style=Markup(stylesheet() + page_stylesheet()),  # noqa: S704 - made of the theme's own constants
        sections=[
            {
                "story": section.story,
                "figures": [_figure(chart, f"c{at}-{number}") for number, chart in enumerate(section.story.charts)],
                "header": section.header,
                "rows": [[Cell(text, _is_prose(text)) for text in row] for row in section.rows],
            }
            for at, section in enumerate(sections)
        ],
        findings=findings,
    )


def _breakable(name: str) -> "Markup":
    """A name that may be broken after an underscore."""
    from markupsafe import Markup, escape

    return Markup("_<wbr>").join(escape(part) for part in name.split("_"))


def _unbroken(text: str) -> "Markup":
    """A text that is broken at its spaces alone: a size such as `v5litepod-16` stays on one line."""
    from markupsafe import Markup, escape

    return Markup(" ").join(Markup("<span>{}</span>").format(escape(word)) for word in text.split(" "))


def _is_prose(text: str) -> bool:
    return " " in text and any(char.isalpha() for char in text)


def _figure(chart: Chart, id_: str) -> dict[str, "str | Markup"]:
    """The chart twice, of which the style shows the one that fits."""
    return {
        "title": chart.title,
        "wide": _inline(chart, f"{id_}-w", WIDE, stacked=False),
        "narrow": _inline(chart, f"{id_}-n", NARROW, stacked=True),
    }


def _inline(chart: Chart, id_: str, width: float, *, stacked: bool) -> "Markup":
    from markupsafe import Markup

    made = Element("svg", attributes_of({"role": "img", "aria_labelledby": f"{id_}-t {id_}-d"}))
    add_element(made, "title", chart.title, id=f"{id_}-t")
    add_element(made, "desc", chart.description, id=f"{id_}-d")
    drawn = draw(add_element(made, "g"), chart, width, stacked=stacked)
    made.set("viewBox", f"0 0 {drawn.width:.0f} {drawn.height:.0f}")
    made.set("class", "narrow" if stacked else "wide")
    return Markup(tostring(made, encoding="unicode"))  # noqa: S704 - the serializer has escaped every text
