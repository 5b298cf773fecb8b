"""Charts of the ladder: rungs to charts, charts to one SVG or one HTML page. Nothing here reads or writes a file."""

from tpucfg.charts.html_page import ChartSection, render_html
from tpucfg.charts.narrative import build_narrative
from tpucfg.charts.scaling_chart import MeasuredThroughput
from tpucfg.charts.svg_file import render_svg

__all__ = ["ChartSection", "MeasuredThroughput", "build_narrative", "render_html", "render_svg"]
