"""Colours for light and dark schemes, and the style sheets built from them."""

from collections.abc import Callable, Mapping
from typing import Final

HUES: Final = ("batch", "steps", "rate", "speed")
"""The kinds of columns, each with its own colour."""
Palette = Mapping[str, str]
LIGHT: Final[Palette] = {
    "paper": "#fdfcf9",
    "ink": "#1c1f24",
    "muted": "#5b626d",
    "grid": "#dfddd5",
    "batch": "#1a5bb8",
    "steps": "#b0440f",
    "rate": "#0b7461",
    "speed": "#7440ad",
    "memory": "#47661a",
    "warning": "#8f5400",
    "error": "#b3261e",
}
DARK: Final[Palette] = {
    "paper": "#15181d",
    "ink": "#eceae4",
    "muted": "#a5acb8",
    "grid": "#343a44",
    "batch": "#7db1fb",
    "steps": "#fb9f6b",
    "rate": "#58cdb4",
    "speed": "#c3a0f4",
    "memory": "#a9cc6a",
    "warning": "#e8b45a",
    "error": "#ff9a90",
}
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
_GAUGE_SHAPES: Final = """\
svg .track, svg .glyph { fill: none; stroke-width: 2; stroke-linecap: round; stroke-linejoin: round }
svg .track { stroke-width: 1.5 }
svg .open { fill: none; stroke-width: 1.5; stroke-dasharray: 3 3 }
"""


_PAGE: Final = f"""\
:root {{ color-scheme: light dark }}
body {{ margin: 0; font: 16px/1.5 {FONT}; font-variant-numeric: tabular-nums; overflow-wrap: anywhere }}
main {{ max-width: 1040px; margin: 0 auto; padding: 40px 24px }}
h1 {{ font-size: 32px; line-height: 1.2; margin: 0 }}
h2 {{ font-size: 24px; line-height: 1.25; margin: 0 0 8px; text-wrap: balance }}
h2 span, .prose span {{ display: inline-block }}
p {{ margin: 0 }}
section {{ margin-top: 40px; padding-top: 24px; border-top: 3px solid }}
figure {{ margin: 28px 0 0 }}
figcaption, caption {{ font-size: 18px; font-weight: 700; text-align: left; margin-bottom: 8px }}
caption {{ position: sticky; left: 0 }}
svg {{ display: block; width: 100%; height: auto }}
svg.wide {{ display: none }}
svg.narrow {{ max-width: 400px }}
.table {{ margin-top: 28px; overflow-x: auto }}
.table:focus-visible {{ outline: 2px solid; outline-offset: 4px }}
table {{ border-collapse: collapse; font-size: 14px; white-space: nowrap }}
th, td {{ padding: 6px 0 6px 16px; text-align: right; border-bottom: 1px solid }}
th:first-child {{ padding-left: 0; text-align: left }}
thead th {{ font-weight: 400; white-space: normal; overflow-wrap: normal; vertical-align: bottom; line-height: 1.25 }}
tbody th {{ position: sticky; left: 0; background-clip: padding-box }}
.prose {{ white-space: normal; overflow-wrap: normal }}
.findings {{ padding: 0; margin: 16px 0 0; list-style: none }}
.findings li {{ margin-top: 12px }}
footer {{ margin-top: 40px; font-size: 13px }}
@media (min-width: 880px), print {{
  svg.wide {{ display: block }}
  svg.narrow {{ display: none }}
}}
@media (max-width: 480px) {{ main {{ padding: 24px 16px }} h1 {{ font-size: 28px }} h2 {{ font-size: 21px }} }}
@media print {{
  main {{ padding: 0 }}
  section, figure, table {{ break-inside: avoid }}
  .table {{ overflow: visible }}
  table {{ font-size: 10px }}
  th, td {{ padding: 3px 0 3px 9px }}
}}
"""


def stylesheet(*, has_gauges: bool = False) -> str:
    """Return the style of a chart, in a stand-alone file or in a page."""
    gauges = _GAUGE_SHAPES + _with_dark_scheme(_gauge_colours) if has_gauges else ""
    return _SHAPES + _with_dark_scheme(_chart_colours) + gauges


def page_stylesheet() -> str:
    """Return the style of the page around the charts."""
    return _PAGE + _with_dark_scheme(_page_colours)


def _with_dark_scheme(colours: Callable[[Palette], str]) -> str:
    # Only on screens: paper is white, whatever the reader's scheme is.
    return colours(LIGHT) + f"@media screen and (prefers-color-scheme: dark) {{\n{colours(DARK)}}}\n"


def _chart_colours(palette: Palette) -> str:
    rules = [
        f"svg .paper {{ fill: {palette['paper']} }}",
        f"svg text {{ fill: {palette['ink']} }}",
        f"svg .muted {{ fill: {palette['muted']} }}",
        f"svg .warning {{ fill: {palette['warning']} }}",
        f"svg .grid {{ stroke: {palette['grid']} }}",
        *(
            rule
            for hue in HUES
            for rule in (
                f"svg .{hue} .head, svg .{hue} .mark, svg .{hue} .bar {{ fill: {palette[hue]} }}",
                f"svg .{hue} .path {{ stroke: {palette[hue]} }}",
                f"svg .{hue} .mark {{ stroke: {palette['paper']} }}",
                f"svg .{hue} .ring {{ fill: {palette['paper']}; stroke: {palette[hue]} }}",
            )
        ),
    ]
    return "\n".join(rules) + "\n"


def _gauge_colours(palette: Palette) -> str:
    rules = [
        f"svg .memory .head, svg .memory .fits {{ fill: {palette['memory']} }}",
        f"svg .memory .little {{ fill: {palette['warning']} }}",
        f"svg .memory .exceeds {{ fill: {palette['error']} }}",
        f"svg .track, svg .open, svg .unknown .glyph {{ stroke: {palette['muted']} }}",
        f"svg .sign .glyph {{ stroke: {palette['paper']} }}",
        f"svg .unknown.sign .glyph {{ stroke: {palette['muted']} }}",
    ]
    return "\n".join(rules) + "\n"


def _page_colours(palette: Palette) -> str:
    return "\n".join(
        [
            f"body {{ background: {palette['paper']}; color: {palette['ink']} }}",
            f".muted, thead th {{ color: {palette['muted']} }}",
            f"tbody th {{ background-color: {palette['paper']} }}",
            f"th, td {{ border-color: {palette['grid']} }}",
            *(f".{level} {{ color: {palette[level]} }}" for level in ("warning", "error")),
            "",
        ]
    )
