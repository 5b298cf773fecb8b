"""Evaluation of each rung of a ladder: its throughput, how it scales, and whether it passes the spec's gate."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from tpucfg.catalog import Slice
from tpucfg.number_format import floor_percent, format_metric
from tpucfg.results.records import THROUGHPUT, Record, RungRecords, exact_decimal
from tpucfg.spec import Gate
from tpucfg.yamldoc import KeyPath

_MAX_DIFFERENCES: Final = 3


class Shortfall(NamedTuple):
    """One reason why a rung has not passed."""

    reason: str
    """A clause with the rung, its measurements and the gate's thresholds."""
    path: KeyPath
    """The threshold in the spec."""
    unrecorded_size: str | None = None
    """The rung that lacks a record or a metric; None if the measurement is there, but not good enough."""

    @property
    def is_of_metric(self) -> bool:
        """True if a metric is missing or too bad, which only a whole run can change."""
        return self.path[1:] in (("metric",), ("max_drop",))


class RungEvaluation(NamedTuple):
    """One rung of an environment's ladder."""

    slice: Slice
    below: Slice | None
    """The rung below; None for the first."""
    records: RungRecords
    record: Record | None
    """The record of the throughput."""
    throughput: Fraction | None
    """Examples per second of the whole slice, as recorded; of another program, by its tokens per second."""
    efficiency: Fraction | None
    """Throughput per core relative to the rung below: 1 is linear scaling. None if either is missing."""
    metric: Fraction | None
    """The gate's metric, as recorded by a whole run."""
    metric_drop: Fraction | None
    """By how much the metric is worse than on the rung below; negative if it is better. None if either is missing."""
    shortfalls: tuple[Shortfall, ...]
    """The reasons why the rung has not passed; empty if it has passed, and always empty without a gate."""

    @property
    def size(self) -> str:
        """The accelerator type: `v3-32`."""
        return self.slice.size

    @property
    def is_other(self) -> bool:
        """True if the throughput is that of another program, which does not count for the gate."""
        return self.record is not None and self.record is self.records.other

    @property
    def other_text(self) -> str:
        """The clause about what differs in the record of another program."""
        shown, more = self.records.differences[:_MAX_DIFFERENCES], len(self.records.differences) - _MAX_DIFFERENCES
        differences = "; ".join((*shown, *([f"{more} more"] if more > 0 else ())))
        return f"recorded with another program ({differences})"

    @property
    def per_core(self) -> Fraction | None:
        """Examples per second and core."""
        return None if self.throughput is None else self.throughput / self.slice.cores

    @property
    def passed(self) -> bool:
        """True if the next rung may be started."""
        return not self.shortfalls


def evaluate_rungs(
    slices: Sequence[Slice], records: Mapping[str, RungRecords], gate: Gate | None
) -> tuple[RungEvaluation, ...]:
    """Evaluate one ladder, from small to large; `records` by size, as `records_of_programs` returns them."""
    evaluations: list[RungEvaluation] = []
    for slice_ in slices:
        below = evaluations[-1] if evaluations else None
        evaluations.append(_evaluate(slice_, records.get(slice_.size, RungRecords()), below, gate))
    return tuple(evaluations)


def _evaluate(slice_: Slice, records: RungRecords, below: RungEvaluation | None, gate: Gate | None) -> RungEvaluation:
    throughput = records.throughput
    metric = records.whole.metric(gate.metric) if records.whole and gate else None
    per_core = below.per_core if below else None
    # Measurements are evaluated without a gate too: `status` shows them, and only the shortfalls need thresholds.
    evaluation = RungEvaluation(
        slice=slice_,
        below=below.slice if below else None,
        records=records,
        record=records.measured,
        throughput=throughput,
        efficiency=throughput / slice_.cores / per_core if throughput and per_core else None,
        metric=metric,
        metric_drop=metric_drop(metric, below.metric, gate) if below else None,
        shortfalls=(),
    )
    return evaluation._replace(shortfalls=tuple(_shortfalls(evaluation, below, gate))) if gate else evaluation


def metric_drop(metric: Fraction | None, other: Fraction | None, gate: Gate | None) -> Fraction | None:
    """Return by how much a metric is worse than another one, negative if it is better; None if one is missing."""
    if metric is None or other is None or gate is None:
        return None
    return other - metric if gate.goal == "max" else metric - other


def _shortfalls(rung: RungEvaluation, below: RungEvaluation | None, gate: Gate) -> Iterator[Shortfall]:
    """Yield the shortfalls of a rung, also of the first one, with whose record the second rung is compared."""
    if not gate.measures:
        return
    if rung.record is None:
        yield Shortfall(f"nothing is recorded for {rung.size}", ("gate",), rung.size)
        return
    if rung.is_other:
        yield Shortfall(f"{rung.size} was {rung.other_text}", ("gate",), rung.size)
        return
    if gate.min_scaling_efficiency is not None:
        yield from _scaling_shortfalls(rung, below, exact_decimal(gate.min_scaling_efficiency))
    if gate.metric:
        yield from _metric_shortfalls(rung, below, gate, gate.metric)


def _scaling_shortfalls(rung: RungEvaluation, below: RungEvaluation | None, required: Fraction) -> Iterator[Shortfall]:
    path = ("gate", "min_scaling_efficiency")
    if rung.throughput is None:
        yield Shortfall(f"{THROUGHPUT} is not recorded for {rung.size}", path, rung.size)
    elif below and below.throughput is None:
        reason = f"{THROUGHPUT} is not recorded for {below.size}, which {rung.size} is compared with"
        yield Shortfall(reason, path, below.size)
    elif below and below.is_other:
        reason = f"{below.size}, which {rung.size} is compared with, was {below.other_text}"
        yield Shortfall(reason, path, below.size)
    elif below and rung.efficiency is not None and rung.efficiency < required:
        measured = f"{rung.size} scales to {floor_percent(rung.efficiency)} of {below.size}"
        yield Shortfall(f"{measured}, and the gate requires {floor_percent(required)}", path)


def _metric_shortfalls(
    rung: RungEvaluation, below: RungEvaluation | None, gate: Gate, name: str
) -> Iterator[Shortfall]:
    # Exact decimals: in floats, 0.97 - 0.96 is more than 0.01, and a rung at its threshold would fail.
    allowed = exact_decimal(gate.max_drop or 0)
    if rung.metric is None:
        run = "" if rung.records.probe is None else " by a whole run"
        yield Shortfall(f"{name} is not recorded for {rung.size}{run}", ("gate", "metric"), rung.size)
    elif below and below.metric is None:
        reason = f"{name} is not recorded for {below.size}, which {rung.size} is compared with"
        yield Shortfall(reason, ("gate", "metric"), below.size)
    elif below and below.metric is not None and rung.metric_drop is not None and rung.metric_drop > allowed:
        values = f"{format_metric(rung.metric)} on {rung.size} and {format_metric(below.metric)} on {below.size}"
        drop = f"{format_metric(rung.metric_drop)} worse, and the gate allows {format_metric(allowed)}"
        yield Shortfall(f"{name} is {values}: {drop}", ("gate", "max_drop"))
