"""Records of two revisions: the throughput that costs are computed from, and the rungs that a changed record opens.

A record is a line of a committed file, which anyone can write. A change is therefore judged by the records of the base
where it has any, so that a line that the change adds cannot hide what it costs; the line itself is reported.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from tpucfg.catalog import Catalog, Slice
from tpucfg.changes.facts import Risk, Scope, canonical_json
from tpucfg.changes.revisions import CompiledRevision
from tpucfg.changes.statements import LocatedStatement, Statement
from tpucfg.number_format import format_metric
from tpucfg.results.cost import forecast_throughputs
from tpucfg.results.fit_notes import records_beyond_bound
from tpucfg.results.gate import has_passed_below, passed_sizes
from tpucfg.results.ladder_status import LadderStatus, ladder_statuses
from tpucfg.results.records import FOLDER, Results, exact_decimal, latest_rates, record_line
from tpucfg.text_format import format_count, listed

_MAX_METRICS: Final = 4
_MAX_RUNGS: Final = 8


class RevisionRecords(NamedTuple):
    """The records of a revision."""

    tokens: Mapping[str, Mapping[str, Fraction]]
    """Tokens per second by environment and size; examples per second where no sequence length is known.

    Without environments that have no record.
    """
    statuses: Mapping[str, LadderStatus] = {}
    """The ladders with their records, by environment."""

    @property
    def problems(self) -> dict[str, str]:
        """By environment, the reason why its file may have more records, as the end of a sentence."""
        statuses = self.statuses.items()
        return {
            name: status.results.problem for name, status in statuses if status.results.findings
        }


NO_RECORDS: Final = RevisionRecords({})


def read_revision_records(revision: CompiledRevision) -> RevisionRecords:
    """Read the records of every environment."""
    project = revision.project
    if project is None:
        return NO_RECORDS
    folder = revision.snapshot.spec.parent
    statuses = ladder_statuses(project, Catalog(), project.environments.values(), folder)
    # The length of the spec counts for a record that states none.
    default = project.training.sequence_length or 1
    tokens = {
        name: {size: rate * (length or default) for size, (rate, length) in rates.items()}
        for name, status in statuses.items()
        if (rates := latest_rates(status.results, project.name))
    }
    return RevisionRecords(tokens, statuses)


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


def result_statements(
    before: RevisionRecords, after: RevisionRecords
) -> Iterator[LocatedStatement]:
    """Yield the records that are changed, and the rungs that a changed record, program or gate opens or closes."""
    for name, status in after.statuses.items():
        statements = _statements(before.statuses.get(name), status)
        yield from (LocatedStatement(name, statement) for statement in statements)


def _statements(old: LadderStatus | None, new: LadderStatus) -> Iterator[Statement]:
    if opened := [rung.size for rung in new.rungs if _is_opened(rung.size, old, new)]:
        text = "results: the gate lets {} start, and did not before: the records below pass it, as committed"
        yield Statement(text, (listed(opened, _MAX_RUNGS),), Risk.CAUTION, "gate opened")
    if new.results.findings and not (old and old.results.findings):
        consequence = ": the gate stays closed until it can be read" if new.is_measured else ""
        yield Statement(
            f"results: {{}} {new.results.problem}{consequence}", (_file(new),), Risk.CAUTION
        )
    yield from _impossible(old, new)
    yield from _losses(old, new)
    lines = Counter(map(record_line, new.results.records))
    old_lines = Counter(map(record_line, old.results.records)) if old else Counter[str]()
    # A file that cannot be read in one revision has no records to compare.
    removed = 0 if new.results.findings else (old_lines - lines).total()
    if removed:
        text = (
            f"results: {format_count(removed, 'record')} of {{}} "
            "removed or rewritten: records are only ever appended"
        )
        yield Statement(text, (_file(new),), Risk.CAUTION)
    before, after = (
        {} if status is None else _last_metrics(status.results) for status in (old, new)
    )
    # The last record counts, so that one of the same program that is appended is enough for other costs or the gate.
    replaced = [key for key, metrics in after.items() if key in before and before[key] != metrics]
    for key in replaced[:_MAX_RUNGS]:
        text = "results: {} recorded with {}, previously {}"
        yield Statement(text, (key[1], after[key], before[key]), Risk.CAUTION, "another record")
    if (more := len(replaced) - _MAX_RUNGS) > 0:
        yield Statement(
            f"results: {more:,} more rungs recorded with other figures", (), Risk.CAUTION
        )
    if added := (lines - old_lines).total():
        first = listed(
            [f"{key[1]}: {metrics}" for key, metrics in after.items() if key not in before],
            _MAX_RUNGS,
        )
        text = f"results: {format_count(added, 'record')} added to {{}}{' ({})' if first else ''}"
        yield Statement(text, (_file(new), first) if first else (_file(new),))


def _last_metrics(results: Results) -> dict[tuple[str, str, bool, str], str]:
    """Return the metrics of the last record of each program, by project, size, kind and program."""
    return {
        (record.name, record.size, record.is_probe, canonical_json({**record.program})): listed(
            [
                f"{name} {format_metric(exact_decimal(value))}"
                for name, value in record.metrics.items()
            ],
            _MAX_METRICS,
        )
        for record in results.records
        if record.metrics
    }


def _impossible(old: LadderStatus | None, new: LadderStatus) -> Iterator[Statement]:
    """Yield the records that are faster than the TPU can be, and were not in the base."""
    known = {finding.message for finding in records_beyond_bound(old)} if old else set[str]()
    for finding in records_beyond_bound(new):
        if finding.level != "note" and finding.message not in known:
            yield Statement(
                "results: {}: {}", (finding.id, finding.message), Risk.CAUTION, "impossible record"
            )


def _losses(old: LadderStatus | None, new: LadderStatus) -> Iterator[Statement]:
    """Yield the rungs whose program is no longer the recorded one, and those that may no longer run."""
    if old is None or new.results.findings:
        return
    before = {rung.size: rung for rung in old.evaluations}
    kept = [(rung, before[rung.size]) for rung in new.evaluations if rung.size in before]
    others = [
        rung.size for rung, known in kept if rung.is_other and known.record and not known.is_other
    ]
    if others:
        text = "results: the program of {} is another one than was recorded: hours and costs by records are an estimate"
        yield Statement(text, (listed(others, _MAX_RUNGS),))
    closed = [
        size
        for rung, _ in kept
        if has_passed_below(old, size := rung.size) and not has_passed_below(new, size)
    ]
    if closed and old.is_measured:
        text = "results: {} may no longer run, as the rung below does not pass the gate"
        yield Statement(text, (listed(closed, _MAX_RUNGS),))


def _file(status: LadderStatus) -> str:
    return f"{FOLDER}/{status.environment.name}.jsonl"


def _is_opened(size: str, old: LadderStatus | None, new: LadderStatus) -> bool:
    """Return True if the gate below a rung is open, and was not; a fit has a sentence of its own."""
    below = new.rung(size).evaluation.below
    if not new.is_measured or below is None or not has_passed_below(new, size):
        return False
    if old is None:
        return True
    if size in {rung.size for rung in old.rungs}:
        return old.is_measured and not has_passed_below(old, size)
    # A new rung is opened by its record below, unless the base has that, too.
    return below.size not in passed_sizes(old)
