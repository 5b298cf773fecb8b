"""Evaluation of each rung of a ladder: its throughput, how it scales, and whether it passes the spec's gate."""

from collections.abc import Callable, Iterator, Mapping, Sequence
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
    """One rung of an environment's ladder. Measurements are evaluated without a gate too, as `status` shows them."""

    slice: Slice
    below: "RungEvaluation | None"
    """The rung below; None for the first."""
    records: RungRecords
    gate: Gate | None

    @property
    def size(self) -> str:
        """The accelerator type: `v3-32`."""
        return self.slice.size

    @property
    def record(self) -> Record | None:
        """The record of the throughput."""
        return self.records.measured

    @property
    def throughput(self) -> Fraction | None:
        """Examples per second of the whole slice, as recorded; of another program, by its tokens per second."""
        return self.records.throughput

    @property
    def per_core(self) -> Fraction | None:
        """Examples per second and core."""
        return None if self.throughput is None else self.throughput / self.slice.cores

    @property
    def efficiency(self) -> Fraction | None:
        """Throughput per core relative to the rung below: 1 is linear scaling. None if either is missing."""
        other = self.below.per_core if self.below else None
        return self.per_core / other if self.per_core and other else None

    @property
    def metric(self) -> Fraction | None:
        """The gate's metric, as recorded by a whole run."""
        return self.records.whole.metric(self.gate.metric) if self.records.whole and self.gate else None

    @property
    def metric_drop(self) -> Fraction | None:
        """By how much the metric is worse than on the rung below; negative if it is better. None if one is missing."""
        other = self.below.metric if self.below else None
        if self.gate is None or self.metric is None or other is None:
            return None
        return other - self.metric if self.gate.goal == "max" else self.metric - other

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
    def shortfalls(self) -> tuple[Shortfall, ...]:
        """The reasons why the rung has not passed; always empty without a gate."""
        return tuple(_shortfalls(self, self.gate)) if self.gate else ()

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
        evaluations.append(RungEvaluation(slice_, below, records.get(slice_.size, RungRecords()), gate))
    return tuple(evaluations)


def _shortfalls(rung: RungEvaluation, gate: Gate) -> Iterator[Shortfall]:
    """Yield the shortfalls of a rung, also of the first one, with whose record the second rung is compared."""
    if not gate.measures:
        return
    if rung.record is None:
        yield Shortfall(f"nothing is recorded for {rung.size}", ("gate",), rung.size)
    elif rung.is_other:
        yield Shortfall(f"{rung.size} was {rung.other_text}", ("gate",), rung.size)
    else:
        if gate.min_scaling_efficiency is not None:
            yield from _scaling_shortfalls(rung, exact_decimal(gate.min_scaling_efficiency))
        if gate.metric:
            # Exact decimals: in floats, 0.97 - 0.96 is more than 0.01, and a rung at its threshold would fail.
            yield from _metric_shortfalls(rung, gate.metric, exact_decimal(gate.max_drop or 0))


def _scaling_shortfalls(rung: RungEvaluation, required: Fraction) -> Iterator[Shortfall]:
    path, below = ("gate", "min_scaling_efficiency"), rung.below
    if missing := _unrecorded(rung, THROUGHPUT, lambda each: each.throughput, path):
        yield missing
    elif below and below.is_other:
        reason = f"{below.size}, which {rung.size} is compared with, was {below.other_text}"
        yield Shortfall(reason, path, below.size)
    elif below and rung.efficiency is not None and rung.efficiency < required:
        measured = f"{rung.size} scales to {floor_percent(rung.efficiency)} of {below.size}"
        yield Shortfall(f"{measured}, and the gate requires {floor_percent(required)}", path)


def _metric_shortfalls(rung: RungEvaluation, name: str, allowed: Fraction) -> Iterator[Shortfall]:
    below, drop = rung.below, rung.metric_drop
    how = "" if rung.records.probe is None else " by a whole run"
    if missing := _unrecorded(rung, name, lambda each: each.metric, ("gate", "metric"), how):
        yield missing
    elif rung.metric is not None and below and below.metric is not None and drop is not None and drop > allowed:
        values = f"{format_metric(rung.metric)} on {rung.size} and {format_metric(below.metric)} on {below.size}"
        worse = f"{format_metric(drop)} worse, and the gate allows {format_metric(allowed)}"
        yield Shortfall(f"{name} is {values}: {worse}", ("gate", "max_drop"))


def _unrecorded(
    rung: RungEvaluation, name: str, value: Callable[[RungEvaluation], Fraction | None], path: KeyPath, how: str = ""
) -> Shortfall | None:
    """Return the shortfall of a value that a rung, or the one that it is compared with, does not have."""
    if value(rung) is None:
        return Shortfall(f"{name} is not recorded for {rung.size}{how}", path, rung.size)
    if rung.below and value(rung.below) is None:
        reason = f"{name} is not recorded for {rung.below.size}, which {rung.size} is compared with"
        return Shortfall(reason, path, rung.below.size)
    return None
