"""The content of charts, before any layout: a ladder in words, its figures, its memory and its measured throughput."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from tpucfg.number_format import (
    UNKNOWN,
    floor_percent,
    format_figure,
    format_number,
    format_rate,
    format_rounded,
)
from tpucfg.plan import LadderGroup, Rung
from tpucfg.spec import Number, Project

# Imported by the function that shows them: a ladder without a training step does not need the fits.
if TYPE_CHECKING:
    from tpucfg.fit.rung_fit import RungFit

MAX_COUNT_LENGTH: Final = 11
"""Characters: `999,999,999`. A longer count is rounded; the table of the ladder shows it in full."""
MAX_RATE_LENGTH: Final = 12
"""Characters: `0.0000565685`, six digits."""
RING_NOTE: Final = "A ring: the spec sets this figure for this rung."

UNKNOWN_MEMORY_NOTE: Final = f"{UNKNOWN}: not known until tpucfg fit compiles it."


class Cell(NamedTuple):
    """The value of one rung in one column."""

    # Exact, as a spec may contain numbers beyond the range of floats.
    value: Fraction | None
    """The value of the mark; None for no mark."""
    text: str
    """The label next to the mark."""
    is_ring: bool = False
    """True for a ring instead of a dot."""


class FigureColumn(NamedTuple):
    """One figure of all rungs, with its own scale."""

    kind: str
    """The colour: a name in `svg.HUES`."""
    title: str
    change: str
    """The second line of the title: `grows 16×`."""
    cells: tuple[Cell, ...]
    """In the order of the rungs."""
    expected: tuple[Fraction, ...] = ()
    """The values of a dashed line to compare with, such as linear scaling; empty for no line."""
    plot: Literal["marks", "bars", "none"] = "marks"
    """Marks on the logarithmic scale that all such columns of a chart share, bars from zero on a linear scale, or
    nothing beside the texts."""


class RungLabel(NamedTuple):
    """The label of a rung, left of its marks."""

    size: str
    cores: int


class Chart(NamedTuple):
    """Columns that share their rows."""

    title: str
    rows: tuple[RungLabel, ...]
    """From small to large; drawn from the bottom up."""
    columns: tuple[FigureColumn, ...]
    notes: tuple[str, ...]
    """Explanations of the marks."""

    @property
    def description(self) -> str:
        """All figures of the chart as text, for screen readers."""
        return " ".join(
            f"{row.size}, {row.cores:,} cores: "
            + ", ".join(f"{column.title} {column.cells[index].text}" for column in self.columns)
            + "."
            for index, row in enumerate(self.rows)
        )


class Narrative(NamedTuple):
    """One ladder in words and charts."""

    headline: str
    lead: tuple[str, str]
    """The figures that change and that stay, then the environments, target and region."""
    charts: tuple[Chart, ...]


class MeasuredThroughput(NamedTuple):
    """The measurements in one environment."""

    speeds: Mapping[str, Fraction]
    """Examples per second, above zero, by size."""
    outdated: Collection[str] = ()
    """The sizes measured with another program than that of the spec."""


def build_narrative(
    project: Project,
    group: LadderGroup,
    measured: Mapping[str, MeasuredThroughput],
    fits: "Mapping[str, RungFit] | None" = None,
) -> Narrative:
    """Return the narrative of one ladder of a project.

    Args:
        project: The project.
        group: The ladder.
        measured: The throughput by environment, where there are results.
        fits: The fits of the rungs by size; None if the spec names no training step.
    """
    rungs = group.rungs
    first, last = rungs[0].size, rungs[-1].size
    scaling = (
        scaling_chart(name, rungs, measured[name])
        for name in group.environments
        if name in measured
    )
    return Narrative(
        headline=f"{project.name} scales from {first} to {last}"
        if len(rungs) > 1
        else f"{project.name} on {first}",
        lead=(_summary(rungs, project.training.tuned_on), f"{group.title}."),
        charts=(ladder_chart(rungs, fits), *(each for each in scaling if each)),
    )


def _summary(rungs: Sequence[Rung], tuned_on: str) -> str:
    first, last = rungs[0], rungs[-1]
    more = (
        ""
        if first is last
        else f"{format_rounded(last.cores_scale / first.cores_scale)}× the cores, "
    )
    return f"{more}{_examples_text(rungs)}. Tuned on {tuned_on}."


def _examples_text(rungs: Sequence[Rung]) -> str:
    """Return the examples, tokens or epochs of a run, which scaling keeps constant."""
    if rungs[0].epochs:
        epochs = "1 epoch" if rungs[0].epochs == "1" else f"{rungs[0].epochs} epochs"
        return f"{epochs} on every rung" if len(rungs) > 1 else epochs
    unit = "tokens" if all(rung.tokens for rung in rungs) else "examples"
    counts = [(rung.tokens if unit == "tokens" else rung.examples) or 0 for rung in rungs]
    lowest, highest = min(counts), max(counts)
    if len(rungs) == 1:
        return f"{lowest:,} {unit}"
    # Rounding up the steps may add examples.
    amount = f"the same {lowest:,}" if lowest == highest else f"{lowest:,} to {highest:,}"
    return f"{amount} {unit} on every rung"


# The figures that change with the number of cores.


def ladder_chart(rungs: Sequence[Rung], fits: "Mapping[str, RungFit] | None" = None) -> Chart:
    """Return the chart of batch size, accumulation, steps or epochs, learning rate and memory of each rung."""
    cells = tuple(_memory_cell(fits.get(rung.size)) for rung in rungs) if fits else ()
    memory = (FigureColumn("memory", "GiB of HBM", "a device", cells, plot="none"),) if fits else ()
    columns = (*_figure_columns(rungs), *memory)
    has_rings = any(cell.is_ring for column in columns for cell in column.cells)
    is_unknown = any(cell.text == UNKNOWN for cell in cells)
    notes = (*([RING_NOTE] if has_rings else ()), *([UNKNOWN_MEMORY_NOTE] if is_unknown else ()))
    return Chart("What changes with the cores", _rows(rungs), columns, notes)


def _rows(rungs: Sequence[Rung]) -> tuple[RungLabel, ...]:
    return tuple(RungLabel(rung.size, rung.slice.cores) for rung in rungs)


def _figure_columns(rungs: Sequence[Rung]) -> Iterator[FigureColumn]:
    for figure, (kind, read) in _FIGURES.items():
        if figure == "grad_accum" and all(rung.grad_accum is None for rung in rungs):
            continue  # one micro-batch on every rung
        cells = tuple(read(rung)._replace(is_ring=figure in rung.overridden) for rung in rungs)
        values = [cell.value for cell in cells if cell.value is not None]
        if values:
            change = change_text(values[0], values[-1]) if len(values) > 1 else ""
            yield FigureColumn(kind, figure, change, cells)


def _count_cell(count: int | None) -> Cell:
    return Cell(None, UNKNOWN) if count is None else Cell(Fraction(count), count_text(count))


def _number_cell(text: str | None) -> Cell:
    # Number, as float() would reject 0x1F and 0o12, which YAML allows.
    return Cell(None, UNKNOWN) if text is None else Cell(Number.read(text).value, rate_text(text))


_FIGURES: Final[Mapping[str, tuple[str, Callable[[Rung], Cell]]]] = {
    "batch_size": ("batch", lambda rung: _count_cell(rung.batch_size)),
    "grad_accum": ("batch", lambda rung: _count_cell(rung.grad_accum or 1)),
    "train_steps": ("steps", lambda rung: _count_cell(rung.train_steps)),
    "epochs": ("steps", lambda rung: _number_cell(rung.epochs)),
    "learning_rate": ("rate", lambda rung: _number_cell(rung.learning_rate)),
}
"""The figures in the chart, in this order: the colour of each, and its value and label on a rung."""


def count_text(count: int) -> str:
    """Return a count as `16,384`, or as `1.05e15` if that would be too long."""
    text = f"{count:,}"
    return text if len(text) <= MAX_COUNT_LENGTH else format_rounded(Fraction(count))


def rate_text(text: str) -> str:
    """Return a number as the trainer receives it, or to six digits if that would be too long."""
    label = format_figure(text)
    return label if len(label) <= MAX_RATE_LENGTH else format_number(Number.read(text).value)


def change_text(first: Fraction, last: Fraction) -> str:
    """Return the change of a figure from the first rung to the last, with the factor by which it grows or falls."""
    if first == last:
        return "stays"
    ratio = last / first if last > first else first / last
    about = "" if ratio.denominator == 1 else "about "
    return (
        f"grows {about}{format_rounded(ratio)}×"
        if last > first
        else f"falls to {about}1/{format_rounded(ratio)}"
    )


# The memory of each rung.


def _memory_cell(fit: "RungFit | None") -> Cell:
    from tpucfg.fit.fit_findings import has_little_headroom
    from tpucfg.fit.rung_fit import gib

    result = fit.current if fit else None
    if fit is None or result is None:
        return Cell(None, "outdated" if fit and fit.result else UNKNOWN)
    verdict = (
        ": does not fit"
        if not result.fits
        else ": little left"
        if has_little_headroom(result.memory)
        else ""
    )
    # Short, because the column is as wide as its longest text.
    used = f"{'' if result.memory.exact else '≥ '}{gib(result.memory.used)}"
    return Cell(None, f"{used} of {gib(result.memory.available)}{verdict}")


# The measured throughput.


def scaling_chart(
    environment: str, rungs: Sequence[Rung], measured: MeasuredThroughput
) -> Chart | None:
    """Return the chart of one environment; None if no rung was measured.

    Linear scaling is relative to the smallest measured rung: every rung has its examples per second and core.
    """
    base = next((rung for rung in rungs if rung.size in measured.speeds), None)
    if base is None:
        return None
    per_core = measured.speeds[base.size] / base.slice.cores
    linear = tuple(per_core * rung.slice.cores for rung in rungs)
    speeds = tuple(measured.speeds.get(rung.size) for rung in rungs)
    shares = tuple(
        _share_cell(speed, expected) for speed, expected in zip(speeds, linear, strict=True)
    )
    legend = "dashed: linear scaling" if len(rungs) > 1 else ""
    cells = tuple(Cell(speed, format_rate(speed)) for speed in speeds)
    column = FigureColumn("speed", "examples per second", legend, cells, linear)
    share = FigureColumn("speed", "share of linear", f"from {base.size}", shares, plot="bars")
    # A single measurement is its own base: a column of shares would only show 100%.
    columns = (column, share) if sum(speed is not None for speed in speeds) > 1 else (column,)
    return Chart(
        f"{environment}: measured against linear scaling",
        _rows(rungs),
        columns,
        _notes(rungs, measured),
    )


def _share_cell(value: Fraction | None, linear: Fraction) -> Cell:
    return (
        Cell(None, UNKNOWN)
        if value is None
        else Cell(value / linear, floor_percent(value / linear))
    )


def _notes(rungs: Sequence[Rung], measured: MeasuredThroughput) -> tuple[str, ...]:
    sizes = [rung.size for rung in rungs]
    missing = (
        (f"{UNKNOWN}: not measured yet.",)
        if any(size not in measured.speeds for size in sizes)
        else ()
    )
    outdated = ", ".join(
        size for size in sizes if size in measured.speeds and size in measured.outdated
    )
    note = f"{outdated}: measured with another program."
    return (*missing, note) if outdated else missing
