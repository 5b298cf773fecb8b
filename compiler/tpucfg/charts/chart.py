"""The content of charts, before any layout."""

from fractions import Fraction
from typing import Literal, NamedTuple

from tpucfg.number_format import UNKNOWN

Sign = Literal["fits", "little", "exceeds", "unknown"]
"""The memory of a rung: the step fits, little is left, it does not fit, or that is not known."""


class Cell(NamedTuple):
    """The value of one rung in one column."""

    # Exact, as a spec may contain numbers beyond the range of floats.
    value: Fraction | None
    """The value of the mark; None for no mark."""
    text: str
    """The label next to the mark."""
    is_ring: bool = False
    """True for a ring instead of a dot."""
    sign: Sign | None = None
    """The sign in front of a gauge; None in other columns."""
    meaning: str = ""
    """The sign in words, for tooltips and screen readers."""

    @property
    def description(self) -> str:
        """The cell as text, which includes the sign in words."""
        if not self.meaning:
            return self.text
        return self.meaning if self.text == UNKNOWN else f"{self.text}, {self.meaning}"


class Column(NamedTuple):
    """One figure of all rungs, with its own scale."""

    kind: str
    """The colour: a name in `theme.HUES`."""
    title: str
    change: str
    """The second line of the title: `grows 16×`."""
    cells: tuple[Cell, ...]
    """In the order of the rungs."""
    expected: tuple[Fraction, ...] = ()
    """The values of a dashed line to compare with, such as linear scaling; empty for no line."""
    is_bars: bool = False
    """True for bars from zero on a linear scale, instead of marks on a logarithmic one."""
    is_gauge: bool = False
    """True for gauges: a sign, and the part of a whole that is used."""

    @property
    def is_logarithmic(self) -> bool:
        """True for marks on the scale that all such columns of a chart share."""
        return not (self.is_bars or self.is_gauge)


class Row(NamedTuple):
    """The label of a rung, left of its marks."""

    size: str
    cores: int


class Chart(NamedTuple):
    """Columns that share their rows."""

    title: str
    rows: tuple[Row, ...]
    """From small to large; drawn from the bottom up."""
    columns: tuple[Column, ...]
    notes: tuple[str, ...]
    """Explanations of the marks."""

    @property
    def description(self) -> str:
        """All figures of the chart as text, for screen readers."""
        return " ".join(
            f"{row.size}, {row.cores:,} cores: "
            + ", ".join(f"{column.title} {column.cells[index].description}" for column in self.columns)
            + "."
            for index, row in enumerate(self.rows)
        )


class Narrative(NamedTuple):
    """One ladder in words and charts."""

    headline: str
    """The title of a stand-alone chart."""
    heading: str
    """The title below the project's name."""
    lead: tuple[str, str]
    """The figures that change and that stay, then the environments, target and region."""
    charts: tuple[Chart, ...]

    @property
    def has_gauges(self) -> bool:
        """True if a chart has a column of gauges, which need a style of their own."""
        return any(column.is_gauge for chart in self.charts for column in chart.columns)
