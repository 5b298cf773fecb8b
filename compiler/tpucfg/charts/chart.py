"""What a chart shows, before anybody says where on the paper it stands."""

from fractions import Fraction
from typing import NamedTuple


class Cell(NamedTuple):
    """The value of one rung in one column."""

    value: Fraction | None
    """Where its mark stands; None leaves the mark out."""
    text: str
    """What is written beside the mark."""
    ring: bool = False
    """The mark is a ring and not a dot."""


class Column(NamedTuple):
    """One figure of all rungs, with a scale of its own."""

    kind: str
    """The colour, by the names of `theme.HUES`."""
    title: str
    change: str
    """What the title's second line says: `grows 16×`."""
    cells: tuple[Cell, ...]
    """In the order of the rungs."""
    expected: tuple[Fraction, ...] = ()
    """Where the marks would stand by a rule; a dashed line. Empty: no such line."""
    bars: bool = False
    """Bars from nought, on a linear scale, and not marks on a logarithmic one."""


class Row(NamedTuple):
    """What stands left of a rung's marks."""

    size: str
    cores: int


class Chart(NamedTuple):
    """Columns that share their rows."""

    title: str
    rows: tuple[Row, ...]
    """From small to large; drawn upwards, as one climbs."""
    columns: tuple[Column, ...]
    notes: tuple[str, ...]
    """How to read the marks."""

    @property
    def description(self) -> str:
        """Everything that the chart shows, in words."""
        return " ".join(
            f"{row.size}, {row.cores:,} cores: "
            + ", ".join(f"{column.title} {column.cells[at].text}" for column in self.columns)
            + "."
            for at, row in enumerate(self.rows)
        )


class Narrative(NamedTuple):
    """One climb, told: its headline, what to know before the charts, and the charts."""

    headline: str
    """For a picture of its own."""
    heading: str
    """Below the project's name."""
    lead: tuple[str, str]
    """What is climbed, and where."""
    charts: tuple[Chart, ...]
