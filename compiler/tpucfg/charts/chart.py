"""The content of charts, before any layout."""

from fractions import Fraction
from typing import Final, NamedTuple

from tpucfg.number_format import UNKNOWN

_CIRCLE: Final = "M-8,0 A8,8 0 1 1 8,0 A8,8 0 1 1 -8,0 Z"


class Sign(NamedTuple):
    """A sign of the memory of a rung, whose shape differs from that of other signs in any colour."""

    name: str
    """The class of its element."""
    meaning: str
    """In words, for tooltips and screen readers."""
    explanation: str
    """For the note below the chart."""
    outline: str
    """The path of its outline."""
    glyph: str
    """The path inside the outline."""


FITS: Final = Sign("fits", "fits", "a check mark: the training step fits", _CIRCLE, "M-4,0 L-1,3.5 L4,-3")
LITTLE: Final = Sign(
    "little",
    "fits with little memory left",
    "an exclamation mark: less than a tenth of the memory is left",
    "M0,-9 L9,7.5 L-9,7.5 Z",
    "M0,-3.5 V1.5 M0,4.6 V4.7",
)
EXCEEDS: Final = Sign(
    "exceeds",
    "does not fit",
    "a cross: it does not fit",
    "M-8,-8 H8 V8 H-8 Z",
    "M-3.5,-3.5 L3.5,3.5 M3.5,-3.5 L-3.5,3.5",
)
UNKNOWN_FIT: Final = Sign(
    "unknown",
    "not known",
    "a question mark: not known until tpucfg fit compiles it",
    _CIRCLE,
    "M-2.5,-2 A2.5,2.5 0 1 1 0,0.5 V1.5 M0,4.6 V4.7",
)


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

    @property
    def description(self) -> str:
        """The cell as text, which includes the sign in words."""
        if not self.sign:
            return self.text
        return self.sign.meaning if self.text == UNKNOWN else f"{self.text}, {self.sign.meaning}"


class Column(NamedTuple):
    """One figure of all rungs, with its own scale."""

    kind: str
    """The colour: a name in `svg.HUES`, or `memory`."""
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
    lead: tuple[str, str]
    """The figures that change and that stay, then the environments, target and region."""
    charts: tuple[Chart, ...]

    @property
    def has_gauges(self) -> bool:
        """True if a chart has a column of gauges, which need a style of their own."""
        return any(column.is_gauge for chart in self.charts for column in chart.columns)
