"""Records of two revisions: the throughput that costs are computed from, and the rungs that a changed record opens.

A record is a line of a committed file, which anyone can write. A change is therefore judged by the records of the base
where it has any, so that a line that the change adds cannot hide what it costs; the line itself is reported.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Final, Literal, NamedTuple

from tpucfg.catalog import Catalog, Slice
from tpucfg.changes.describe import group_by_config
from tpucfg.changes.facts import Scope
from tpucfg.changes.revisions import CompiledRevision
from tpucfg.changes.statements import LocatedStatement, Risk, Statement
from tpucfg.number_format import format_factor, format_metric, format_rate
from tpucfg.results import latest_throughputs
from tpucfg.results.cost import forecast_throughputs
from tpucfg.results.evaluation import metric_drop
from tpucfg.results.gate import IMPLAUSIBLE_SCALING, has_passed_below, may_run
from tpucfg.results.ladder_status import LadderStatus, ladder_statuses
from tpucfg.results.records import (
    FOLDER,
    RungRecords,
    exact_decimal,
    latest_rates,
    read_every_record,
    record_line,
)
from tpucfg.text_format import format_count, listed

_MAX_METRICS: Final = 4
_MAX_RUNGS: Final = 8
_Cause = Literal["gate", "record"]
"""The changed part of a revision that opens a gate."""


class RevisionRecords(NamedTuple):
    """The records of a revision."""

    rates: Mapping[str, Mapping[str, tuple[Fraction, Fraction | None]]]
    """Examples per second, above zero, and the recorded sequence length, by environment and size.

    Without environments that have no record.
    """
    sequence_length: int | None = None
    """That of the spec, which counts for a record that states none."""
    statuses: Mapping[str, LadderStatus] = {}
    """The ladders with their records, by environment."""
    project: str = ""
    """The name that counted records have."""
    folder: Path | None = None
    """The spec's folder; None for a revision without a spec."""

    @property
    def throughputs(self) -> dict[str, dict[str, Fraction]]:
        """Examples per second by environment and size."""
        return {name: {size: rate for size, (rate, _) in rates.items()} for name, rates in self.rates.items()}

    @property
    def tokens(self) -> dict[str, dict[str, Fraction]]:
        """Tokens per second by environment and size; examples per second where no sequence length is known."""
        default = self.sequence_length or 1
        return {
            name: {size: rate * (length or default) for size, (rate, length) in rates.items()}
            for name, rates in self.rates.items()
        }

    @property
    def problems(self) -> dict[str, str]:
        """By environment, the reason why its file may have more records, as the end of a sentence."""
        statuses = self.statuses.items()
        return {name: status.results.problem for name, status in statuses if status.results.findings}


NO_RECORDS: Final = RevisionRecords({})


def read_revision_records(revision: CompiledRevision) -> RevisionRecords:
    """Read the records of every environment."""
    project = revision.project
    if project is None:
        return NO_RECORDS
    folder = revision.snapshot.spec.parent
    statuses = ladder_statuses(project, Catalog(), project.environments.values(), folder)
    known = {name: latest_rates(status.results, project.name) for name, status in statuses.items()}
    rates = {name: of_environment for name, of_environment in known.items() if of_environment}
    return RevisionRecords(rates, project.training.sequence_length, statuses, project.name, folder)


def judged_throughputs(
    ladders: Mapping[str, Sequence[Slice]], before: RevisionRecords, after: RevisionRecords
) -> Mapping[Scope, Fraction]:
    """Return the throughputs that both revisions are judged by; a record of the base takes precedence over the head's.

    They are in tokens per second for a spec with a sequence length, else in examples per second.

    Args:
        ladders: by environment, the sizes of both revisions, from small to large.
        before: the records of the base.
        after: the records of the head.
    """
    return {
        Scope(name, size): forecast.throughput
        for name, slices in ladders.items()
        for records in (after, before)
        for size, forecast in forecast_throughputs(slices, records.tokens.get(name, {})).items()
    }


def record_statements(
    ladders: Mapping[str, Sequence[Slice]], before: RevisionRecords, after: RevisionRecords
) -> Iterator[LocatedStatement]:
    """Yield the records that differ; those of one size and figure share a statement."""
    uncounted = _uncounted(before, after)
    scoped = (
        (Scope(name, size), statement)
        for name, slices in ladders.items()
        for size, statement in _changed_records(
            slices, before.throughputs.get(name, {}), after.throughputs.get(name, {}), uncounted.get(name, {})
        )
    )
    return group_by_config(scoped)


_Reasons = Mapping[tuple[str, Fraction | None], str]
"""The reasons why records do not count, by size and rate."""


def _uncounted(before: RevisionRecords, after: RevisionRecords) -> dict[str, _Reasons]:
    """Return, by environment, the records that stay in the head's files under a name that the spec no longer has."""
    reasons = {
        name: "the spec has no environment of that name" if name not in after.statuses else "the project is renamed"
        for name in before.throughputs
        if name not in after.statuses or before.project != after.project
    }
    if not reasons or after.folder is None:
        return {}
    # All files are read, because a file may have been renamed with its environment.
    files = read_every_record(after.folder).values()
    kept = {pair for results in files for pair in latest_throughputs(results, before.project).items()}
    return {name: dict.fromkeys(kept, reason) for name, reason in reasons.items()}


def _changed_records(
    slices: Sequence[Slice], before: Mapping[str, Fraction], after: Mapping[str, Fraction], uncounted: _Reasons
) -> Iterator[tuple[str, Statement]]:
    expected = forecast_throughputs(slices, before)
    for size in (slice_.size for slice_ in slices):
        old, new = before.get(size), after.get(size)
        if old == new:
            continue
        if new is None:
            record = f"the record of {format_rate(old)} examples/s"
            if reason := uncounted.get((size, old)):
                yield size, Statement(f"{record} stays in {{}}, and no longer counts: {reason}", (FOLDER,))
            else:
                yield size, Statement(f"{record} removed from {{}}", (FOLDER,), Risk.CAUTION)
            continue
        rate = f"{format_rate(new)} examples/s"
        previous = expected[size].throughput if size in expected else None
        if previous is None:
            yield size, Statement(f"{rate} recorded in {{}}", (FOLDER,))
            continue
        basis = "recorded before" if old else "forecast"
        factor = new / previous
        # A faster run looks cheaper and passes the gate, and nothing but this line of a file shows that it is.
        risk = Risk.CAUTION if factor > IMPLAUSIBLE_SCALING else Risk.NONE
        text = f"{rate} recorded in {{}}, {format_factor(factor)} the {format_rate(previous)} {basis}"
        yield size, Statement(text, (FOLDER,), risk)


# The gate


def result_statements(before: RevisionRecords, after: RevisionRecords) -> Iterator[LocatedStatement]:
    """Yield the rungs that a changed record, program or gate opens or closes, and the records that are changed."""
    for name, status in after.statuses.items():
        statements = _statements(before.statuses.get(name), status)
        yield from (LocatedStatement(name, statement) for statement in statements)


def _statements(old: LadderStatus | None, new: LadderStatus) -> Iterator[Statement]:
    opened = [(rung.size, cause) for rung in new.rungs if (cause := _opened_by(rung.size, old, new))]
    for size, cause in opened[:_MAX_RUNGS]:
        yield _opened(size, new, cause)
    if len(opened) > _MAX_RUNGS:
        yield Statement(f"records pass the gate for {len(opened) - _MAX_RUNGS:,} more rungs", (), Risk.CAUTION)
    if new.results.findings and not (old and old.results.findings):
        consequence = ": the gate stays closed until it can be read" if new.is_measured else ""
        yield Statement(f"results: {{}} {new.results.problem}{consequence}", (_file(new),), Risk.CAUTION)
    yield from _losses(old, new)
    lines = Counter(map(record_line, new.results.records))
    old_lines = Counter(map(record_line, old.results.records)) if old else Counter[str]()
    # A file that cannot be read in one revision has no records to compare.
    removed = 0 if new.results.findings else (old_lines - lines).total()
    if removed:
        text = (
            f"results: {format_count(removed, 'record')} of {{}} removed or rewritten: records are only ever appended"
        )
        yield Statement(text, (_file(new),), Risk.CAUTION)
    yield from _weaker_metrics(old, new)
    if added := (lines - old_lines).total():
        yield Statement(f"results: {format_count(added, 'record')} added to {{}}", (_file(new),))


def _losses(old: LadderStatus | None, new: LadderStatus) -> Iterator[Statement]:
    """Yield the rungs whose program is no longer the recorded one, and those that may no longer run."""
    if old is None or new.results.findings:
        return
    before = {rung.size: rung for rung in old.evaluations}
    kept = [(rung, before[rung.size]) for rung in new.evaluations if rung.size in before]
    others = [rung.size for rung, known in kept if rung.is_other and known.record and not known.is_other]
    if others:
        text = "results: the program of {} is another one than was recorded: hours and costs by records are an estimate"
        yield Statement(text, (listed(others, _MAX_RUNGS),))
    closed = [size for rung, _ in kept if has_passed_below(old, size := rung.size) and not has_passed_below(new, size)]
    if closed and old.is_measured:
        text = "results: {} may no longer run, as the rung below does not pass the gate"
        yield Statement(text, (listed(closed, _MAX_RUNGS),))


def _weaker_metrics(old: LadderStatus | None, new: LadderStatus) -> Iterator[Statement]:
    """Yield the rungs whose last record has a worse metric: the gate compares the rung above with it."""
    gate = new.gate
    if old is None or old.gate is None or gate is None or gate.metric is None or gate.metric != old.gate.metric:
        return
    before = {rung.size: rung.metric for rung in old.evaluations}
    for rung in new.evaluations:
        value, previous = rung.metric, before.get(rung.size)
        if value is not None and previous is not None and (metric_drop(value, previous, gate) or 0) > 0:
            values = (gate.metric, rung.size, format_metric(value), format_metric(previous))
            text = "results: {} of {} recorded as {}, previously {}: the rung above passes the gate with a worse one"
            yield Statement(text, values, Risk.CAUTION, "gate weakened by a record")


def _file(status: LadderStatus) -> str:
    return f"{FOLDER}/{status.environment.name}.jsonl"


def _opened_by(size: str, old: LadderStatus | None, new: LadderStatus) -> _Cause | None:
    """Return the change that opens the gate below a rung; None if the gate is closed, or was open before."""
    # Records open the gate below a rung, whatever is known of its own fit.
    below = new.below(size)
    if not new.is_measured or below is None or not has_passed_below(new, size):
        return None
    known = {rung.size for rung in old.rungs} if old else set()
    if old and size in known and old.is_measured and has_passed_below(old, size):
        return None
    records = [rung.records for rung in old.evaluations if rung.size == below.size] if old else []
    is_same_record = bool(records) and _content(records[0]) == _content(below.records)
    if old is None or not is_same_record or old.results.findings:
        return "record"
    return "gate" if size in known and old.is_measured else None


def _content(records: RungRecords) -> list[str]:
    return [record_line(record) if record else "" for record in (records.whole, records.probe)]


def _opened(size: str, status: LadderStatus, cause: _Cause) -> Statement:
    below = status.below(size)
    assert below is not None  # noqa: S101 - only a rung with another below it is opened
    counted = [record.metrics for record in (below.records.probe, below.records.whole) if record]
    metrics = listed(
        [f"{name} {format_metric(exact_decimal(value))}" for metrics in counted for name, value in metrics.items()],
        _MAX_METRICS,
    )
    gate, headline = ("changed gate", "gate opened") if cause == "gate" else ("gate", "gate opened by a record")
    start = "may now run" if may_run(status, size) else "may run once its step is known to fit"
    template = f"results: {{}} {start}, as a committed record of {{}} passes the {gate} ({{}})"
    return Statement(template, (size, below.size, metrics), Risk.CAUTION, headline)
