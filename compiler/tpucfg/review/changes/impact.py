"""Consequences of a change for training, location and data: pure functions over the plans of two revisions."""

from collections.abc import Iterator
from typing import NamedTuple

from tpucfg.catalog import Catalog
from tpucfg.changes.config_diff import Difference
from tpucfg.changes.describe import format_keys
from tpucfg.changes.revisions import CompiledRevision
from tpucfg.changes.statements import LocatedStatement, Statement, group_statements
from tpucfg.findings import Finding
from tpucfg.review.changes.costs.result_changes import result_statements
from tpucfg.review.changes.environment_changes import environment_statements
from tpucfg.review.changes.gate_changes import (
    allowance_statements,
    allowed_findings,
    gate_statements,
    known_drift_statements,
)
from tpucfg.review.changes.jobs.job_changes import job_statements
from tpucfg.review.changes.jobs.ladder_changes import ladder_statements
from tpucfg.review.changes.jobs.new_jobs import new_rung_statements
from tpucfg.review.changes.jobs.scaling_table import ScalingRow, scaling_rows
from tpucfg.review.changes.jobs.training_changes import (
    flag_statements,
    learning_rate_statements,
    parallelism_statements,
    training_statements,
    tuned_figures,
)
from tpucfg.review.changes.jobs.warning_changes import warning_changes, warnings_by_key


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


def compute_impact(before: CompiledRevision, after: CompiledRevision, difference: Difference) -> Impact:
    """Return the consequences of a change between two revisions without errors, whose configs differ as given."""
    rows = scaling_rows(before.jobs, after.jobs)
    statements = [
        *_allow_and_gate_statements(before, after),
        *_project_statements(before, after),
        *environment_statements(before, after),
        *job_statements(before, after, difference),
        *_training_statements(before, after),
        *ladder_statements(before.jobs, after.jobs, rows),
        *new_rung_statements(before.jobs, after.jobs),
        *result_statements(before, after, Catalog()),
    ]
    warnings = warning_changes(before, after)
    return Impact(
        statements=tuple(sorted(statements, key=lambda located: -located.statement.risk)),
        rows=rows,
        new_warnings=warnings.new,
        ended_warnings=warnings.ended,
        allowed=tuple(allowed_findings(before, after)),
    )


def impact_of_broken_spec(before: CompiledRevision, after: CompiledRevision) -> Impact:
    """Return what is known if a revision has errors: changes to `allow`, and the warnings of a head without errors."""
    return Impact(
        statements=tuple(_allow_and_gate_statements(before, after)),
        rows=(),
        new_warnings=() if after.is_broken else tuple(warnings_by_key(after).values()),
        ended_warnings=(),
        allowed=tuple(allowed_findings(before, after)),
    )


def _allow_and_gate_statements(before: CompiledRevision, after: CompiledRevision) -> Iterator[LocatedStatement]:
    yield from (LocatedStatement("", statement) for statement in allowance_statements(before, after))
    if after.project:
        yield from (LocatedStatement("", item) for item in known_drift_statements(before.project, after.project))
    if before.project and after.project:
        yield from (LocatedStatement("", statement) for statement in gate_statements(before.project, after.project))


def _project_statements(before: CompiledRevision, after: CompiledRevision) -> Iterator[LocatedStatement]:
    old, new = before.project, after.project
    if old is None or new is None:
        return
    if moved := before.snapshot.renamed_from:
        paths = (moved, before.snapshot.repository_path)
        yield LocatedStatement(
            "", Statement("spec moved from {} to {}: results and stacks are those of its new folder", paths)
        )
    if old.name != new.name:
        template = "project renamed from {} to {}: its buckets, service accounts and jobs get new names"
        yield LocatedStatement("", Statement(template, (old.name, new.name)))
    if old.training.tuned_on != new.training.tuned_on:
        template = "{} changed from {} to {}: all rungs are rescaled"
        yield LocatedStatement("", Statement(template, ("tuned_on", old.training.tuned_on, new.training.tuned_on)))
    for statement in (
        *parallelism_statements(old.training, new.training),
        *learning_rate_statements(old.training, new.training),
        *flag_statements(old.training, new.training),
    ):
        yield LocatedStatement("", statement)


def _training_statements(before: CompiledRevision, after: CompiledRevision) -> Iterator[LocatedStatement]:
    old, new = before.jobs, after.jobs
    kept = [key for key in new if key in old]
    tuned = tuned_figures(before.project), tuned_figures(after.project)
    owned = [(key, statement) for key in kept for statement in training_statements(old[key].rung, new[key].rung, tuned)]
    yield from group_statements(owned, lambda keys: format_keys(keys, kept))
