"""Narratives as one stand-alone SVG file."""

from collections.abc import Sequence
from typing import Final
from xml.etree.ElementTree import Element, tostring

from tpucfg.charts.chart import Narrative
from tpucfg.charts.draw import draw
from tpucfg.charts.svg_elements import add_element, attributes_of, wrapped
from tpucfg.charts.theme import stylesheet
from tpucfg.findings import Finding

WIDTH: Final = 880
"""Pixels of the charts; a chart that needs more makes the file wider."""
MARGIN: Final = 28
"""Pixels around them."""


def render_svg(narratives: Sequence[Narrative], findings: Sequence[Finding]) -> str:
    """Return an SVG with the narratives below one another, then the warnings; it needs no other file."""
    body = Element("g")
    width, y = float(WIDTH), 0.0
    for narrative in narratives:
        width, y = _draw_narrative(body, narrative, width, y)
    y = _draw_warnings(body, findings, width, y)
    return _document(body, narratives, width + 2 * MARGIN, y + 2 * MARGIN)


def descriptions(narratives: Sequence[Narrative]) -> list[str]:
    """Return the content of the narratives as text, for screen readers."""
    return [
        part
        for narrative in narratives
        for part in (*narrative.lead, *(chart.description for chart in narrative.charts))
    ]


def _draw_narrative(body: Element, narrative: Narrative, width: float, y: float) -> tuple[float, float]:
    """Draw one narrative at that height, and return the width and height so far."""
    y += 20 if y else -10
    for line in wrapped(narrative.headline, WIDTH, 24, bold=True):
        y += 30
        add_element(body, "text", line, class_="headline", x=0, y=y)
    for sentence, class_ in zip(narrative.lead, ("", "muted"), strict=True):
        for line in wrapped(sentence, WIDTH, 14):
            y += 22
            add_element(body, "text", line, class_=class_, x=0, y=y)
    for number, chart in enumerate(narrative.charts):
        # The headline is the title of the first chart.
        if number:
            y += 36
            add_element(body, "text", chart.title, class_="part", x=0, y=y)
        y += 24
        drawing = draw(add_element(body, "g", transform=f"translate(0 {y:g})"), chart, WIDTH, stacked=False)
        width, y = max(width, drawing.width), y + drawing.height
    return width, y


def _draw_warnings(body: Element, findings: Sequence[Finding], width: float, y: float) -> float:
    for finding in findings:
        if finding.level == "warning":
            y += 4
            for line in wrapped(f"{finding.level}[{finding.id}]: {finding.message}", width, 13):
                y += 19
                add_element(body, "text", line, class_="small warning", x=0, y=y)
    return y


def _document(body: Element, narratives: Sequence[Narrative], width: float, height: float) -> str:
    root = Element(
        "svg",
        attributes_of(
            {
                "xmlns": "http://www.w3.org/2000/svg",
                "viewBox": f"0 0 {width:.0f} {height:.0f}",
                "width": f"{width:.0f}",
                "height": f"{height:.0f}",
                "role": "img",
                "aria_labelledby": "title description",
            }
        ),
    )
    # Narratives of different environments may have one headline.
    title = "; ".join(dict.fromkeys(narrative.headline for narrative in narratives))
    add_element(root, "title", title, id="title")
    add_element(root, "desc", " ".join(descriptions(narratives)), id="description")
    # Set directly: add_element would escape the line breaks.
    add_element(root, "style").text = stylesheet(has_gauges=any(narrative.has_gauges for narrative in narratives))
    add_element(root, "rect", class_="paper", width="100%", height="100%", rx=12)
    body.set("transform", f"translate({MARGIN} {MARGIN})")
    root.append(body)
    return tostring(root, encoding="unicode")
