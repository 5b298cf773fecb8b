"""Where each rung of a ladder stands: what it measured, how it scales, and whether it has passed the spec's gate."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import floor
from typing import NamedTuple

from tpucfg.catalog import Slice
from tpucfg.results.record import THROUGHPUT, Record, exact_decimal
from tpucfg.spec.project import Gate
from tpucfg.yamldoc.document import KeyPath


class Shortfall(NamedTuple):
    """One reason why a rung has not passed."""

    why: str
    """A clause that names the rung, its numbers and those of the gate."""
    path: KeyPath
    """The threshold in the spec."""
    missing: str | None = None
    """The rung for which something is not recorded; None where what was measured is not good enough."""


class RungEvaluation(NamedTuple):
    """One rung of an environment's ladder."""

    slice: Slice
    below: Slice | None
    """The rung below; None for the first."""
    record: Record | None
    """The last one."""
    throughput: Fraction | None
    """Examples per second of the whole slice, as recorded."""
    efficiency: Fraction | None
    """Examples per second and core, over those of the rung below: 1 is linear scaling. None where one is missing."""
    metric: Fraction | None
    """The gate's metric, as recorded."""
    worse: Fraction | None
    """By how much the metric is worse than on the rung below; below 0 where it is better. None where one is missing."""
    shortfalls: tuple[Shortfall, ...]
    """Why it has not passed: empty where it has, and always without a gate."""

    @property
    def size(self) -> str:
        """The accelerator type: `v3-32`."""
        return self.slice.size

    @property
    def per_core(self) -> Fraction | None:
        """Examples per second and core."""
        return None if self.throughput is None else self.throughput / self.slice.cores

    @property
    def passed(self) -> bool:
        """Whether the next rung may be climbed."""
        return not self.shortfalls


def evaluate_rungs(
    slices: Sequence[Slice], records: Mapping[str, Record], gate: Gate | None
) -> tuple[RungEvaluation, ...]:
    """Each rung of one ladder, from small to large. `records`: the one that counts, by size; see `latest`."""
    made: list[RungEvaluation] = []
    for slice_ in slices:
        made.append(_standing(slice_, records.get(slice_.size), made[-1] if made else None, gate))
    return tuple(made)


def _standing(slice_: Slice, record: Record | None, below: RungEvaluation | None, gate: Gate | None) -> RungEvaluation:
    throughput = record.metric(THROUGHPUT) if record else None
    metric = record.metric(gate.metric) if record and gate else None
    per_core = below.per_core if below else None
    standing = RungEvaluation(
        slice=slice_,
        below=below.slice if below else None,
        record=record,
        throughput=throughput,
        efficiency=throughput / slice_.cores / per_core if throughput and per_core else None,
        metric=metric,
        worse=_worse(metric, below.metric, gate) if below else None,
        shortfalls=(),
    )
    return standing._replace(shortfalls=tuple(_shortfalls(standing, below, gate))) if gate else standing


def _worse(metric: Fraction | None, below: Fraction | None, gate: Gate | None) -> Fraction | None:
    if metric is None or below is None or gate is None:
        return None
    return below - metric if gate.goal == "max" else metric - below


def _shortfalls(it: RungEvaluation, below: RungEvaluation | None, gate: Gate) -> Iterator[Shortfall]:
    """What the gate compares has to be recorded, also on the first rung: the second is compared with it."""
    if it.record is None:
        yield Shortfall(f"nothing is recorded for {it.size}", ("gate",), it.size)
        return
    yield from _slow(it, below, gate)
    if gate.metric:
        yield from _bad(it, below, gate, gate.metric)


def _slow(it: RungEvaluation, below: RungEvaluation | None, gate: Gate) -> Iterator[Shortfall]:
    path = ("gate", "min_scaling_efficiency")
    least = exact_decimal(gate.min_scaling_efficiency)
    if it.throughput is None:
        yield Shortfall(f"{THROUGHPUT} is not recorded for {it.size}", path, it.size)
    elif below and below.throughput is None:
        yield Shortfall(f"{it.size} has no {THROUGHPUT} of {below.size} to be compared with", path, below.size)
    elif below and it.efficiency is not None and it.efficiency < least:
        asked = f"the gate asks for {percent(least)}"
        yield Shortfall(f"{it.size} scales to {percent(it.efficiency)} of {below.size}, and {asked}", path)


def _bad(it: RungEvaluation, below: RungEvaluation | None, gate: Gate, name: str) -> Iterator[Shortfall]:
    path = ("gate", "max_drop")
    most = exact_decimal(gate.max_drop or 0)
    if it.metric is None:
        yield Shortfall(f"{name} is not recorded for {it.size}", ("gate", "metric"), it.size)
    elif below and below.metric is None:
        yield Shortfall(f"{it.size} has no {name} of {below.size} to be compared with", ("gate", "metric"), below.size)
    elif below and below.metric is not None and it.worse is not None and it.worse > most:
        said = f"{name} is {decimal(it.metric)} on {it.size} and {decimal(below.metric)} on {below.size}"
        allowed = f"the gate allows {decimal(most)}"
        yield Shortfall(f"{said}: {decimal(it.worse)} worse, and {allowed}", path)


def percent(ratio: Fraction) -> str:
    """A ratio as people read it, rounded down, so that what is below a threshold does not look as if it were met."""
    return f"{floor(ratio * 1000) / 10:g}%"


def decimal(value: Fraction) -> str:
    """A metric as people read it."""
    return f"{float(value):.12g}"
