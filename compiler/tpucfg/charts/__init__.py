"""Pictures of the ladder: rungs to charts, charts to one SVG or one HTML page. Pure: nothing here touches a file."""

from tpucfg.charts.html_page import ChartSection, page
from tpucfg.charts.narrative import narrative
from tpucfg.charts.scaling_chart import MeasuredThroughput
from tpucfg.charts.svg_file import picture

__all__ = ["ChartSection", "MeasuredThroughput", "narrative", "page", "picture"]
