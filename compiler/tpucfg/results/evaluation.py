"""Evaluation of each rung: the records of its program, its throughput, how it scales, and if it passes the gate."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final, NamedTuple

from tpucfg.catalog import Slice
from tpucfg.number_format import floor_percent, format_metric
from tpucfg.plan.job import SpeedSettings
from tpucfg.results.records import (
    THROUGHPUT,
    Record,
    Results,
    exact_decimal,
    recorded_program,
    without_point,
)
from tpucfg.spec import Gate
from tpucfg.text_format import format_value, listed, quote_key
from tpucfg.yamldoc import KeyPath

_MAX_DIFFERENCES: Final = 3


# The records of a rung, and of a run.


class RungRecords(NamedTuple):
    """The records of one rung that count, and the last one that does not."""

    whole: Record | None = None
    """The last one of a whole run."""
    probe: Record | None = None
    """The last one of a probe, or of a part of a run, whose metric is not final either."""
    other: Record | None = None
    """The last one of all, if it is of another program; None if it counts."""
    differences: tuple[str, ...] = ()
    """The differences."""
    other_length: Fraction = Fraction(1)
    """The sequence length of the other program, relative to that of the rung."""

    @property
    def measured(self) -> Record | None:
        """The record whose throughput is shown: that of a probe if there is one, else of a whole run."""
        known = [record for record in (self.probe, self.whole, self.other) if record]
        return next(
            (record for record in known if record.metric(THROUGHPUT)), known[0] if known else None
        )

    @property
    def throughput(self) -> Fraction | None:
        """The examples per second of `measured`, as examples of the rung's length: a longer one takes its time more."""
        rate = self.measured.metric(THROUGHPUT) if self.measured else None
        return rate and rate * (self.other_length if self.measured is self.other else 1)


def records_of_programs(
    results: Results, name: str, programs: Mapping[str, SpeedSettings], *, same_image: bool = False
) -> Mapping[str, RungRecords]:
    """Return the records of each size of a project: the last of each kind that the rung's program made.

    Args:
        results: The records of an environment.
        name: The project's name.
        programs: The program of each rung's job, by size; the records of a size without one all count.
        same_image: True to count only records of the job's image.
    """
    chosen: dict[str, RungRecords] = {}
    for record in results.records:
        if record.name != name or not record.metrics:
            continue
        known, program = chosen.get(record.size, RungRecords()), programs.get(record.size)
        different = program_differences(record, program, same_image=same_image) if program else ()
        differences = tuple(dict.fromkeys(different))  # a figure may be a flag of its own name
        if differences and program:
            length, own_length = record.sequence_length, program.figures.get("sequence_length")
            relative = length / own_length if length and own_length else Fraction(1)
            known = known._replace(other=record, differences=differences, other_length=relative)
        elif record.is_whole:
            known = known._replace(whole=record, other=None, differences=())
        else:
            known = known._replace(probe=record, other=None, differences=())
        chosen[record.size] = known
    return chosen


def program_differences(
    record: Record, program: SpeedSettings, *, same_image: bool = False
) -> Iterator[str]:
    """Yield what a record's program and that of the job differ in: `batch_size was 256, now 512`.

    Args:
        record: The record; a field that it does not state does not differ.
        program: The program of the rung's job.
        same_image: True to compare the image too.
    """
    if not record.program:
        return
    now = {"command": [], "xla_flags": [], **recorded_program(program)}
    for field in ("figures", "flags"):
        old, new = record.program.get(field, now.get(field, {})), now.get(field, {})
        for name in (*old, *(name for name in new if name not in old)):
            if old.get(name, _ABSENT) != new.get(name, _ABSENT):
                yield f"{quote_key(name)} was {_shown(old, name)}, now {_shown(new, name)}"
    for field, title in (("command", "the command"), ("xla_flags", "the XLA flags")):
        # A record without flags states no program, and one with flags has a command or none.
        if record.program.get(field, [] if "flags" in record.program else now[field]) != now[field]:
            yield f"{title} changed"
    if same_image and record.image != program.image:
        yield f"the image was {record.image or 'not recorded'}, now {program.image}"


def other_values(results: Results, record: Record, program: SpeedSettings) -> list[str]:
    """Return what the last record of the same run has differently; empty for a run without a name or a record.

    Its `--set` values are those of every size, and its program is compared with that of the same size.
    """
    same = _of_run(results, record.name, record.run, is_probe=record.is_probe) if record.run else []
    if not same:
        return []
    of_size = [each for each in same if each.size == record.size]
    differences = [*dict.fromkeys(program_differences(of_size[-1], program))] if of_size else []
    before, now = same[-1].changes, record.changes
    if {*before} != {*now}:
        texts = [
            ", ".join(f"--set {change}" for change in changes) or "no --set"
            for changes in (before, now)
        ]
        differences.append(f"it had {texts[0]}, and now has {texts[1]}")
    return differences


def recorded_changes(results: Results, name: str, run: str) -> tuple[str, ...]:
    """Return the `--set` values of the last record of a run, but a probe's."""
    return next(
        (each.changes for each in reversed(_of_run(results, name, run, is_probe=False))), ()
    )


def recorded_folder(results: Results, name: str, run: str) -> str | None:
    """Return the folder in which the last record of a run with one has its checkpoints."""
    return next(
        (
            each.folder
            for each in reversed(_of_run(results, name, run, is_probe=False))
            if each.folder
        ),
        None,
    )


def _of_run(results: Results, name: str, run: str, *, is_probe: bool) -> list[Record]:
    return [
        each
        for each in results.records
        if (each.name, each.run, each.is_probe) == (name, run, is_probe)
    ]


_ABSENT: Final = object()


def _shown(values: Mapping[str, Any], name: str) -> str:
    value = values.get(name, "not set")
    if isinstance(value, float):
        value = without_point(value)
    return "a bare flag" if value is None else format_value(value, quoted=False)


# The measurements of a rung, and the gate.


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
        return (
            self.records.whole.metric(self.gate.metric)
            if self.records.whole and self.gate
            else None
        )

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
        return (
            f"recorded with another program ({listed(self.records.differences, _MAX_DIFFERENCES)})"
        )

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
        evaluations.append(
            RungEvaluation(slice_, below, records.get(slice_.size, RungRecords()), gate)
        )
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
    elif (
        rung.metric is not None
        and below
        and below.metric is not None
        and drop is not None
        and drop > allowed
    ):
        values = f"{format_metric(rung.metric)} on {rung.size} and {format_metric(below.metric)} on {below.size}"
        worse = f"{format_metric(drop)} worse, and the gate allows {format_metric(allowed)}"
        yield Shortfall(f"{name} is {values}: {worse}", ("gate", "max_drop"))


def _unrecorded(
    rung: RungEvaluation,
    name: str,
    value: Callable[[RungEvaluation], Fraction | None],
    path: KeyPath,
    how: str = "",
) -> Shortfall | None:
    """Return the shortfall of a value that a rung, or the one that it is compared with, does not have."""
    if value(rung) is None:
        return Shortfall(f"{name} is not recorded for {rung.size}{how}", path, rung.size)
    if rung.below and value(rung.below) is None:
        reason = f"{name} is not recorded for {rung.below.size}, which {rung.size} is compared with"
        return Shortfall(reason, path, rung.below.size)
    return None
