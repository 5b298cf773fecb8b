"""Measured examples per second to the chart of scaling: what was measured, and what linear scaling would give."""

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from tpucfg.charts.chart import Cell, Chart, Column
from tpucfg.charts.ladder_chart import rows
from tpucfg.charts.numbers import rounded
from tpucfg.plan import Rung
from tpucfg.results.evaluation import percent

_WILD: Final = 1000


class MeasuredThroughput(NamedTuple):
    """What was measured in one environment."""

    speeds: Mapping[str, Fraction]
    """Examples per second, above nought, by size."""
    outdated: Collection[str] = ()
    """The sizes that were measured with another config than the spec makes now."""


def scaling_chart(environment: str, rungs: Sequence[Rung], measured: MeasuredThroughput) -> Chart | None:
    """The chart of scaling of one environment; None where no rung was measured.

    Linear scaling starts from the smallest rung that was measured: as many examples per second and core on every other.
    """
    base = next((rung for rung in rungs if rung.size in measured.speeds), None)
    if base is None:
        return None
    per_core = measured.speeds[base.size] / base.slice.cores
    linear = tuple(per_core * rung.slice.cores for rung in rungs)
    speeds = tuple(_speed(measured.speeds.get(rung.size)) for rung in rungs)
    shares = tuple(_share(cell.value, expected) for cell, expected in zip(speeds, linear, strict=True))
    column = Column("speed", "examples per second", "dashed: linear scaling" if len(rungs) > 1 else "", speeds, linear)
    share = Column("speed", "share of linear", f"from {base.size}", shares, bars=True)
    compared = sum(cell.value is not None for cell in speeds) > 1
    columns = (column, share) if compared else (column,)
    missing = ("–: not measured yet.",) if any(cell.value is None for cell in speeds) else ()
    outdated = ", ".join(rung.size for rung in rungs if rung.size in measured.speeds and rung.size in measured.outdated)
    changed = (f"{outdated}: measured with another config than the spec makes now.",) if outdated else ()
    title = f"{environment}: measured against linear scaling"
    return Chart(title, rows(rungs), columns, missing + changed)


def _speed(value: Fraction | None) -> Cell:
    return Cell(None, "–") if value is None else Cell(value, rounded(value))


def _share(value: Fraction | None, linear: Fraction) -> Cell:
    return Cell(None, "–") if value is None else Cell(value / linear, _percent(value / linear))


def _percent(ratio: Fraction) -> str:
    """As `tpucfg status` has it, but for what no floating-point number could hold."""
    return percent(ratio) if ratio < _WILD else f"{rounded(100 * ratio)}%"
