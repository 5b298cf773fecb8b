"""Rungs that a changed record or gate opens, and records that are removed or rewritten."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from tpucfg.catalog import Catalog
from tpucfg.changes.revisions import CompiledRevision
from tpucfg.changes.statements import LocatedStatement, Risk, Statement
from tpucfg.number_format import format_metric
from tpucfg.results.gate import has_passed_below, may_run
from tpucfg.results.ladder_status import LadderStatus, ladder_statuses
from tpucfg.results.record import Record, exact_decimal, record_line
from tpucfg.text_format import format_count, listed

_MAX_METRICS: Final = 4
_MAX_RUNGS: Final = 8


def result_statements(
    before: CompiledRevision, after: CompiledRevision, catalog: Catalog
) -> Iterator[LocatedStatement]:
    """Yield the changes to the records of each environment of head."""
    old, new = _statuses(before, catalog), _statuses(after, catalog)
    for name, status in new.items():
        yield from (LocatedStatement(name, statement) for statement in _statements(old.get(name), status))


def _statuses(revision: CompiledRevision, catalog: Catalog) -> Mapping[str, LadderStatus]:
    project = revision.project
    if project is None:
        return {}
    return ladder_statuses(project, catalog, project.environments.values(), revision.snapshot.spec.parent)


def _statements(old: LadderStatus | None, new: LadderStatus) -> Iterator[Statement]:
    by_records = [rung.size for rung in new.rungs if _is_opened_by_records(rung.size, old, new)]
    by_gate = [rung.size for rung in new.rungs if _is_opened_by_gate(rung.size, old, new)]
    opened = [*by_records, *by_gate]
    for size in opened[:_MAX_RUNGS]:
        yield _opened(size, new, is_by_gate=size in by_gate)
    if len(opened) > _MAX_RUNGS:
        yield Statement(f"records pass the gate for {len(opened) - _MAX_RUNGS:,} more rungs", (), Risk.CAUTION)
    if new.results.findings and not (old and old.results.findings):
        consequence = ": the gate stays closed until it can be read" if new.is_measured else ""
        yield Statement(f"results: {{}} {new.results.problem}{consequence}", (_file(new),), Risk.CAUTION)
    lines = Counter(map(record_line, new.results.records))
    old_lines = Counter(map(record_line, old.results.records)) if old else Counter[str]()
    # A file that cannot be read in one revision has no records to compare.
    removed = 0 if new.results.findings else (old_lines - lines).total()
    if removed:
        text = (
            f"results: {format_count(removed, 'record')} of {{}} removed or rewritten: records are only ever appended"
        )
        yield Statement(text, (_file(new),), Risk.CAUTION)
    if added := (lines - old_lines).total():
        yield Statement(f"results: {format_count(added, 'record')} added to {{}}", (_file(new),))


def _file(status: LadderStatus) -> str:
    return f"results/{status.environment.name}.jsonl"


def _is_opened_by_records(size: str, old: LadderStatus | None, new: LadderStatus) -> bool:
    """Return True if records keep a rung from running no longer, and the rung below has another one than before."""
    # Records open the gate below a rung, whatever is known of its own fit.
    if not new.is_measured or not (below := new.below(size)) or not has_passed_below(new, size):
        return False
    if old is None or not (same := [rung for rung in old.evaluations if rung.size == below.size]):
        return True
    is_open = any(rung.size == size for rung in old.rungs) and old.is_measured and has_passed_below(old, size)
    return not is_open and (_content(same[0].record) != _content(below.record) or bool(old.results.findings))


def _is_opened_by_gate(size: str, old: LadderStatus | None, new: LadderStatus) -> bool:
    """Return True if a rung may run that was not allowed to, although the records of the rung below are the same."""
    if old is None or size not in {rung.size for rung in old.rungs} or not (old.is_measured and new.is_measured):
        return False
    below, old_below = new.below(size), old.below(size)
    if below is None or old_below is None:
        return False
    is_same = (old_below.size, _content(old_below.record)) == (below.size, _content(below.record))
    return is_same and not old.results.findings and has_passed_below(new, size) and not has_passed_below(old, size)


def _content(record: Record | None) -> str:
    return record_line(record) if record else ""


def _opened(size: str, status: LadderStatus, *, is_by_gate: bool) -> Statement:
    below = status.below(size)
    record = below.record if below else None
    assert below is not None  # noqa: S101 - only a rung with another below it is opened
    metrics = listed(
        [f"{name} {format_metric(exact_decimal(value))}" for name, value in (record.metrics if record else {}).items()],
        _MAX_METRICS,
    )
    stale = ", measured with another config" if below.size in status.outdated else ""
    gate, headline = ("changed gate", "gate opened") if is_by_gate else ("gate", "gate opened by a record")
    start = "may now run" if may_run(status, size) else "may run once its step is known to fit"
    template = f"results: {{}} {start}, as a committed record of {{}} passes the {gate} ({{}}{stale})"
    return Statement(template, (size, below.size, metrics), Risk.CAUTION, headline)
