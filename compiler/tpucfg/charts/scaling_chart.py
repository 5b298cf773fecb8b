"""The chart of measured examples per second, compared with linear scaling."""

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from tpucfg.charts.chart import Cell, Chart, Column
from tpucfg.charts.ladder_chart import chart_rows
from tpucfg.number_format import UNKNOWN, floor_percent, format_rate
from tpucfg.plan import Rung


class MeasuredThroughput(NamedTuple):
    """The measurements in one environment."""

    speeds: Mapping[str, Fraction]
    """Examples per second, above zero, by size."""
    outdated: Collection[str] = ()
    """The sizes measured with a different config than the spec now produces."""


def scaling_chart(environment: str, rungs: Sequence[Rung], measured: MeasuredThroughput) -> Chart | None:
    """Return the chart of one environment; None if no rung was measured.

    Linear scaling is relative to the smallest measured rung: every rung has its examples per second and core.
    """
    base = next((rung for rung in rungs if rung.size in measured.speeds), None)
    if base is None:
        return None
    per_core = measured.speeds[base.size] / base.slice.cores
    linear = tuple(per_core * rung.slice.cores for rung in rungs)
    speeds = tuple(_speed_cell(measured.speeds.get(rung.size)) for rung in rungs)
    shares = tuple(_share_cell(cell.value, expected) for cell, expected in zip(speeds, linear, strict=True))
    legend = "dashed: linear scaling" if len(rungs) > 1 else ""
    column = Column("speed", "examples per second", legend, speeds, linear)
    share = Column("speed", "share of linear", f"from {base.size}", shares, is_bars=True)
    # A single measurement is its own base: a column of shares would only show 100%.
    columns = (column, share) if sum(cell.value is not None for cell in speeds) > 1 else (column,)
    title = f"{environment}: measured against linear scaling"
    return Chart(title, chart_rows(rungs), columns, _notes(rungs, measured))


def _notes(rungs: Sequence[Rung], measured: MeasuredThroughput) -> tuple[str, ...]:
    sizes = [rung.size for rung in rungs]
    missing = (f"{UNKNOWN}: not measured yet.",) if any(size not in measured.speeds for size in sizes) else ()
    outdated = ", ".join(size for size in sizes if size in measured.speeds and size in measured.outdated)
    note = f"{outdated}: measured with a different config than the spec now produces."
    return (*missing, note) if outdated else missing


def _speed_cell(value: Fraction | None) -> Cell:
    return Cell(value, format_rate(value))


def _share_cell(value: Fraction | None, linear: Fraction) -> Cell:
    return Cell(None, UNKNOWN) if value is None else Cell(value / linear, floor_percent(value / linear))
