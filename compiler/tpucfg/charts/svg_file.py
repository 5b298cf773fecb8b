"""Stories to one stand-alone SVG."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element, tostring

from tpucfg.charts.chart import Narrative
from tpucfg.charts.draw import draw
from tpucfg.charts.svg_elements import add_element, attributes_of, wrapped
from tpucfg.charts.theme import stylesheet
from tpucfg.findings import Finding

WIDTH = 880
MARGIN = 28
"""Pixels of the drawing, and of the paper around it."""


def picture(stories: Sequence[Narrative], findings: Sequence[Finding]) -> str:
    """All stories below one another, then what is to be thought of: a file of its own, for any page or viewer."""
    body = Element("g")
    width, y = float(WIDTH), 0.0
    for story in stories:
        width, y = _told(body, story, width, y)
    y = _warnings(body, findings, width, y)
    return _document(body, stories, width + 2 * MARGIN, y + 2 * MARGIN)


def _told(body: Element, story: Narrative, width: float, y: float) -> tuple[float, float]:
    """The width and height after one more story."""
    y += 20 if y else -10
    for line in wrapped(story.headline, WIDTH, 24, bold=True):
        y += 30
        add_element(body, "text", line, class_="headline", x=0, y=y)
    for sentence, class_ in zip(story.lead, ("", "muted"), strict=True):
        for line in wrapped(sentence, WIDTH, 14):
            y += 22
            add_element(body, "text", line, class_=class_, x=0, y=y)
    for number, chart in enumerate(story.charts):
        if number:
            y += 36
            add_element(body, "text", chart.title, class_="part", x=0, y=y)
        y += 24
        drawn = draw(add_element(body, "g", transform=f"translate(0 {y:g})"), chart, WIDTH, stacked=False)
        width, y = max(width, drawn.width), y + drawn.height
    return width, y


def _warnings(body: Element, findings: Sequence[Finding], width: float, y: float) -> float:
    for finding in findings:
        if finding.level == "warning":
            y += 4
            for line in wrapped(f"{finding.level}[{finding.id}]: {finding.message}", width, 13):
                y += 19
                add_element(body, "text", line, class_="small warning", x=0, y=y)
    return y


def _document(body: Element, stories: Sequence[Narrative], width: float, height: float) -> str:
    made = Element(
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
    add_element(made, "title", "; ".join(dict.fromkeys(story.headline for story in stories)), id="title")
    add_element(made, "desc", " ".join(described(stories)), id="description")
    add_element(made, "style").text = stylesheet()
    add_element(made, "rect", class_="paper", width="100%", height="100%", rx=12)
    body.set("transform", f"translate({MARGIN} {MARGIN})")
    made.append(body)
    return tostring(made, encoding="unicode")


def described(stories: Sequence[Narrative]) -> list[str]:
    """What the stories show, in words."""
    return [part for story in stories for part in (*story.lead, *(chart.description for chart in story.charts))]
