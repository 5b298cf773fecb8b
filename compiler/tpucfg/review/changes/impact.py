"""Consequences of a change for training, location and data: pure functions over the plans of two revisions."""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from tpucfg.diff.compiled_revisions import CompiledRevision
from tpucfg.diff.describe import format_keys
from tpucfg.findings import Finding
from tpucfg.plan import Job
from tpucfg.review.changes.environment_changes import environment_statements
from tpucfg.review.changes.gate_changes import allowance_statements, allowed_findings, gate_statements
from tpucfg.review.changes.ladder_changes import ladder_statements
from tpucfg.review.changes.scaling_table import ScalingRow, scaling_rows
from tpucfg.review.changes.statements import LocatedStatement, Statement, group_statements
from tpucfg.review.changes.training_changes import learning_rate_statements, training_statements, tuned_figures


class Impact(NamedTuple):
    """Consequences of a change."""

    statements: tuple[LocatedStatement, ...]
    """Destructive ones first."""
    rows: tuple[ScalingRow, ...]
    """The rungs that are new or have other figures."""
    new_warnings: tuple[Finding, ...]
    """Warnings that the change adds; if the base has errors, all warnings of the head."""
    ended_warnings: tuple[Finding, ...]
    """Warnings that the change resolves, without those that only change their text or become allowed."""
    allowed: tuple[Finding, ...] = ()
    """Findings that the change turns into notes, as the spec now allows them."""


class _JobSetting(NamedTuple):
    """A value of a job whose changes are reported."""

    name: str
    get: Callable[[Job], str | None]


_JOB_SETTINGS: Final = (
    _JobSetting("image", lambda job: job.image),
    _JobSetting("worker image", lambda job: job.worker_image),
    _JobSetting("package", lambda job: job.package),
    _JobSetting("module", lambda job: job.module),
    _JobSetting("runtime version", lambda job: job.runtime),
    _JobSetting("Python version", lambda job: job.python),
    _JobSetting("machine type", lambda job: job.slice.machine and job.slice.machine.name),
)
_UNSET: Final = "none"


def compute_impact(before: CompiledRevision, after: CompiledRevision) -> Impact:
    """Return the consequences of a change between two revisions without errors."""
    rows = scaling_rows(before.jobs, after.jobs)
    statements = [
        *_allow_and_gate_statements(before, after),
        *_project_statements(before, after),
        *environment_statements(before, after),
        *_job_statements(before, after),
        *ladder_statements(before.jobs, after.jobs, rows),
    ]
    old, new = _warnings(before), _warnings(after)
    added = {key: finding for key, finding in new.items() if key not in old}
    # A warning whose text changed is added under its new text; to report the old text as resolved would mislead.
    not_resolved = {finding.id for finding in added.values()} | {*(after.project.allow if after.project else ())}
    return Impact(
        statements=tuple(sorted(statements, key=lambda located: not located.statement.destructive)),
        rows=rows,
        new_warnings=tuple(added.values()),
        ended_warnings=tuple(
            finding for key, finding in old.items() if key not in new and finding.id not in not_resolved
        ),
        allowed=tuple(allowed_findings(before, after)),
    )


def impact_of_broken_spec(before: CompiledRevision, after: CompiledRevision) -> Impact:
    """Return what is known if a revision has errors: changes to `allow`, and the warnings of a head without errors."""
    return Impact(
        statements=tuple(_allow_and_gate_statements(before, after)),
        rows=(),
        new_warnings=() if after.is_broken else tuple(_warnings(after).values()),
        ended_warnings=(),
        allowed=tuple(allowed_findings(before, after)),
    )


def _warnings(revision: CompiledRevision) -> dict[tuple[str, str], Finding]:
    """Return the warnings by id and message, and not by location: an edit elsewhere moves lines of the spec."""
    return {(finding.id, finding.message): finding for finding in revision.findings if finding.level == "warning"}


def _allow_and_gate_statements(before: CompiledRevision, after: CompiledRevision) -> Iterator[LocatedStatement]:
    yield from (LocatedStatement("", statement) for statement in allowance_statements(before, after))
    if before.project and after.project:
        yield from (LocatedStatement("", statement) for statement in gate_statements(before.project, after.project))


def _project_statements(before: CompiledRevision, after: CompiledRevision) -> Iterator[LocatedStatement]:
    old, new = before.project, after.project
    if old is None or new is None:
        return
    if old.name != new.name:
        template = "project renamed from {} to {}: its buckets, service accounts and jobs get new names"
        yield LocatedStatement("", Statement(template, (old.name, new.name)))
    if old.training.tuned_on != new.training.tuned_on:
        template = "{} changed from {} to {}: all rungs are rescaled"
        yield LocatedStatement("", Statement(template, ("tuned_on", old.training.tuned_on, new.training.tuned_on)))
    for statement in learning_rate_statements(old.training, new.training):
        yield LocatedStatement("", statement)


def _job_statements(before: CompiledRevision, after: CompiledRevision) -> Iterator[LocatedStatement]:
    old, new = before.jobs, after.jobs
    kept = [key for key in new if key in old]
    tuned = tuned_figures(before.project), tuned_figures(after.project)
    owned = [
        (key, statement)
        for key in kept
        for statement in (
            *_setting_statements(old[key], new[key]),
            *training_statements(old[key].rung, new[key].rung, tuned),
        )
    ]
    yield from group_statements(owned, lambda keys: format_keys(keys, kept))


def _setting_statements(before: Job, after: Job) -> Iterator[Statement]:
    for setting in _JOB_SETTINGS:
        old, new = setting.get(before), setting.get(after)
        if old != new:
            yield Statement(f"{setting.name} changed from {{}} to {{}}", (old or _UNSET, new or _UNSET))
    # A new region always means a new zone, and has a statement of its own.
    if before.zone != after.zone and before.environment.region == after.environment.region:
        yield Statement("zone changed from {} to {}", (before.zone or _UNSET, after.zone or _UNSET))
