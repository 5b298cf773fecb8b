"""Narratives as one stand-alone SVG file, in colours for light and dark schemes."""

from collections.abc import Mapping, Sequence
from string import Template
from typing import Final
from xml.etree.ElementTree import Element, tostring

from tpucfg.charts.drawing import HEADLINE_SIZE, SMALL_SIZE, TEXT_SIZE, add_element, add_lines, draw
from tpucfg.charts.narrative import Narrative
from tpucfg.findings import Finding

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


def _descriptions(narratives: Sequence[Narrative]) -> list[str]:
    """Return the content of the narratives as text, for screen readers."""
    return [
        part
        for narrative in narratives
        for part in (*narrative.lead, *(chart.description for chart in narrative.charts))
    ]


def _draw_narrative(body: Element, narrative: Narrative, width: float, y: float) -> tuple[float, float]:
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
        drawn_width, height = draw(add_element(body, "g", transform=f"translate(0 {y:g})"), chart, WIDTH)
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
    add_element(root, "desc", " ".join(_descriptions(narratives)), id="description")
    # Set directly: add_element would escape the line breaks.
    add_element(root, "style").text = _STYLE
    add_element(root, "rect", class_="paper", width="100%", height="100%", rx=12)
    body.set("transform", f"translate({MARGIN} {MARGIN})")
    root.append(body)
    return tostring(root, encoding="unicode")
