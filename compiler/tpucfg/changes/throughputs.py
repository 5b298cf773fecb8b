"""Records of two revisions: the throughput that costs are computed from, and the changes to it.

A record is a line of a committed file, which anyone can write. A change is therefore judged by the records of the base
where it has any, so that a line that the change adds cannot hide what it costs; the line itself is reported.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from tpucfg.catalog import Slice
from tpucfg.changes.describe import format_keys
from tpucfg.changes.facts import Scope
from tpucfg.changes.revisions import CompiledRevision
from tpucfg.changes.statements import LocatedStatement, Risk, Statement, group_statements
from tpucfg.number_format import format_factor, format_rate
from tpucfg.results import THROUGHPUT, ExampleRecord, latest_records, read_records
from tpucfg.results.cost import forecast_throughputs
from tpucfg.results.next_steps import IMPLAUSIBLE_SCALING
from tpucfg.results.record_file import FOLDER, record_path

MAX_REVIEWED_BYTES: Final = 4 << 20
"""Limit for all results of a revision together: about one second of parsing."""
_TOO_LARGE: Final = "is too large to be read in a review"


class RevisionRecords(NamedTuple):
    """The throughput that a revision has recorded."""

    throughputs: Mapping[str, Mapping[str, Fraction]]
    """Examples per second, above zero, by environment and size; without environments that have no record."""
    problems: Mapping[str, str]
    """By environment, the reason why its file may have more records, as the end of a sentence."""


NO_RECORDS: Final = RevisionRecords({}, {})


def read_revision_records(revision: CompiledRevision) -> RevisionRecords:
    """Read the records of every environment, within a limit for all of them together."""
    if revision.project is None:
        return NO_RECORDS
    folder, name, remaining_bytes = revision.snapshot.spec.parent, revision.project.name, MAX_REVIEWED_BYTES
    throughputs: dict[str, Mapping[str, Fraction]] = {}
    problems: dict[str, str] = {}
    for environment in revision.project.environments.values():
        path = record_path(folder, environment.name)
        # lstat, and a size of 0 for what is no file: `read_records` reports a link, and does not follow it.
        size = path.lstat().st_size if path.is_file() and not path.is_symlink() else 0
        if size > remaining_bytes:
            problems[environment.name] = _TOO_LARGE
            continue
        remaining_bytes -= size
        results = read_records(folder, environment.name, ExampleRecord(name, environment.sizes[0]))
        if results.findings:
            problems[environment.name] = results.problem
        records = latest_records(results, name).values()
        measured = {record.size: rate for record in records if (rate := record.metric(THROUGHPUT))}
        if measured:
            throughputs[environment.name] = measured
    return RevisionRecords(throughputs, problems)


def judged_throughputs(
    ladders: Mapping[str, Sequence[Slice]], before: RevisionRecords, after: RevisionRecords
) -> Mapping[Scope, Fraction]:
    """Return the throughput by which both revisions are judged: by the records of the base, else by those of the head.

    Args:
        ladders: by environment, the sizes of both revisions, from small to large.
        before: the records of the base.
        after: the records of the head.
    """
    return {
        Scope(name, size): forecast.throughput
        for name, slices in ladders.items()
        for records in (after, before)
        for size, forecast in forecast_throughputs(slices, records.throughputs.get(name, {})).items()
    }


def record_statements(
    ladders: Mapping[str, Sequence[Slice]], before: RevisionRecords, after: RevisionRecords
) -> Iterator[LocatedStatement]:
    """Yield the records that differ; those of one size and figure share a statement."""
    for name, problem in after.problems.items():
        # Invalid lines are reported with the other changes to the results.
        if problem == _TOO_LARGE and before.problems.get(name) != problem:
            yield LocatedStatement(name, Statement(f"{{}} {problem}", (f"{FOLDER}/{name}.jsonl",), Risk.CAUTION))
    owned = (
        (Scope(name, size), statement)
        for name, slices in ladders.items()
        for size, statement in _changed_records(
            slices, before.throughputs.get(name, {}), after.throughputs.get(name, {})
        )
    )
    yield from group_statements(owned, format_keys)


def _changed_records(
    slices: Sequence[Slice], before: Mapping[str, Fraction], after: Mapping[str, Fraction]
) -> Iterator[tuple[str, Statement]]:
    expected = forecast_throughputs(slices, before)
    for size in (slice_.size for slice_ in slices):
        old, new = before.get(size), after.get(size)
        if old == new:
            continue
        if new is None:
            yield (
                size,
                Statement(
                    f"the record of {format_rate(old)} examples/s removed from {{}}", (FOLDER,), risk=Risk.CAUTION
                ),
            )
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
