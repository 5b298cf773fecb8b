"""Charts of the ladder: rungs to charts, charts to one SVG. Nothing here reads or writes a file."""

from tpucfg.charts.narrative import MeasuredThroughput, build_narrative
from tpucfg.charts.svg import render_svg

__all__ = ["MeasuredThroughput", "build_narrative", "render_svg"]
