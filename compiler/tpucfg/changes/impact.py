"""Consequences of a change for training, location and data: pure functions over the plans of two revisions."""

from collections.abc import Iterator
from typing import NamedTuple

from tpucfg.changes.config_diff import Difference
from tpucfg.changes.describe import group_by_config
from tpucfg.changes.environments import environment_statements
from tpucfg.changes.figures import ScalingRow, ladder_statements, ratio_statements, scaling_rows
from tpucfg.changes.jobs import fact_statements
from tpucfg.changes.project_facts import allowed
from tpucfg.changes.records import NO_RECORDS, RevisionRecords, result_statements
from tpucfg.changes.revisions import CompiledRevision
from tpucfg.changes.statements import LocatedStatement
from tpucfg.changes.warnings import warning_changes, warnings_by_key
from tpucfg.findings import Finding
from tpucfg.findings.finding import ALLOWED_PREFIX


class Impact(NamedTuple):
    """Consequences of a change."""

    statements: tuple[LocatedStatement, ...]
    """Those with the highest risk first."""
    rows: tuple[ScalingRow, ...]
    """The rungs that are new or have other figures."""
    new_warnings: tuple[Finding, ...]
    """Warnings that the change adds; if the base has errors, all warnings of the head."""
    ended_warnings: tuple[Finding, ...]
    """Warnings that the change resolves, without those that only change their text or become allowed."""
    allowed: tuple[Finding, ...] = ()
    """Findings that the change turns into notes, as the spec now allows them."""


def compute_impact(
    before: CompiledRevision,
    after: CompiledRevision,
    difference: Difference,
    records: tuple[RevisionRecords, RevisionRecords] = (NO_RECORDS, NO_RECORDS),
) -> Impact:
    """Return the consequences of a change between two revisions without errors, whose configs differ as given."""
    rows = scaling_rows(before.jobs, after.jobs)
    statements = [
        *fact_statements(before, after, difference.changed),
        *environment_statements(before, after),
        *_ratio_statements(before, after),
        *ladder_statements(before.jobs, after.jobs, rows),
        *result_statements(*records),
    ]
    warnings = warning_changes(before, after)
    return Impact(
        statements=tuple(sorted(statements, key=lambda located: -located.statement.risk)),
        rows=rows,
        new_warnings=warnings.new,
        ended_warnings=warnings.ended,
        allowed=tuple(newly_allowed(before, after)),
    )


def impact_of_broken_spec(before: CompiledRevision, after: CompiledRevision) -> Impact:
    """Return what is known if a revision has errors: changes to `allow`, and the warnings of a head without errors."""
    # A base with errors has no jobs to compare with, which does not make those of the head new.
    without_jobs = after._replace(request_bodies=())
    return Impact(
        statements=tuple(fact_statements(before, without_jobs, ())) if after.project else (),
        rows=(),
        new_warnings=() if after.is_broken else tuple(warnings_by_key(after).values()),
        ended_warnings=(),
        allowed=tuple(newly_allowed(before, after)),
    )


def _ratio_statements(before: CompiledRevision, after: CompiledRevision) -> Iterator[LocatedStatement]:
    old, new = before.jobs, after.jobs
    if before.project is None or after.project is None:
        return
    kept = [key for key in new if key in old]
    trainings = before.project.training, after.project.training
    owned = [
        (key, statement) for key in kept for statement in ratio_statements(old[key].rung, new[key].rung, trainings)
    ]
    yield from group_by_config(owned, kept)


def newly_allowed(before: CompiledRevision, after: CompiledRevision) -> Iterator[Finding]:
    """Yield the findings that the change turns into notes, without the reason for allowing them."""
    rules = allowed(after, before).keys() - allowed(before, after).keys()
    for finding in after.findings:
        if finding.id in rules and finding.details and finding.details[-1].startswith(ALLOWED_PREFIX):
            yield finding._replace(details=finding.details[:-1])
