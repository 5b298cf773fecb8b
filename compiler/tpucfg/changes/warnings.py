"""Warnings that a change adds or resolves; those that speak of several sizes, only with the sizes that are new."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from tpucfg.catalog import Catalog
from tpucfg.changes.revisions import CompiledRevision
from tpucfg.findings import Finding
from tpucfg.plan import Job, Rung
from tpucfg.plan.rules.location_rules import location_findings
from tpucfg.plan.rules.scaling_warnings import scaling_warnings
from tpucfg.spec.project import Environment, Project

_LOCATION_RULES: Final = frozenset({"TPU021", "TPU022"})
"""The rules of `location_findings` that warn of sizes."""
_Key = tuple[str, str]
"""The id and message of a finding, and not its location: an edit elsewhere moves lines of the spec."""


class WarningChanges(NamedTuple):
    """The warnings that only one revision has."""

    new: tuple[Finding, ...]
    ended: tuple[Finding, ...]
    """Without those that only change their text or become allowed."""


def warning_changes(before: CompiledRevision, after: CompiledRevision) -> WarningChanges:
    """Return the warnings that differ between two revisions without errors."""
    old, new = warnings_by_key(before), warnings_by_key(after)
    added = {key: finding for key, finding in new.items() if key not in old}
    grown = {id_ for id_, _ in added} & {id_ for id_, _ in old}
    # A warning whose text changed is added under its new text; to report the old text as resolved would mislead.
    not_resolved = {id_ for id_, _ in added} | {*(after.project.allow if after.project else ())}
    ended = tuple(finding for key, finding in old.items() if key not in new and finding.id not in not_resolved)
    return WarningChanges(tuple(_with_new_sizes_only(before, after, added, grown)), ended)


def warnings_by_key(revision: CompiledRevision) -> dict[_Key, Finding]:
    """Return the warnings of a revision by id and message."""
    return {(finding.id, finding.message): finding for finding in revision.findings if finding.level == "warning"}


def _with_new_sizes_only(
    before: CompiledRevision, after: CompiledRevision, added: Mapping[_Key, Finding], grown: AbstractSet[str]
) -> Iterator[Finding]:
    """Yield the added warnings; one that base had for other sizes, without these.

    Args:
        before: the base.
        after: the head.
        added: the warnings that base does not have in these words.
        grown: the ids of those that it has in other words.
    """
    old, new = before.project, after.project
    if not grown or old is None or new is None:
        yield from added.values()
        return
    by_size = {finding.id for finding in scaling_warnings(new, tuple(_rungs(after).values()))} | _LOCATION_RULES
    narrowed = (*_scaling_warnings(before, after, old, new), *_location_warnings(before, after, new))
    known = warnings_by_key(before)
    yield from (finding for finding in added.values() if finding.id not in grown & by_size)
    yield from (
        finding
        for finding in dict.fromkeys(narrowed)
        if finding.id in grown and (finding.id, finding.message) not in known
    )


def _scaling_warnings(
    before: CompiledRevision, after: CompiledRevision, old: Project, new: Project
) -> Iterator[Finding]:
    """Yield the warnings of head about the rungs that base did not warn of in the same words."""
    old_rungs, new_rungs = _rungs(before), _rungs(after)
    # Of one rung at a time, so that two messages differ only if the figures of that rung do.
    known = {
        size: {(finding.id, finding.message) for finding in scaling_warnings(old, [rung])}
        for size, rung in old_rungs.items()
    }
    rungs_by_id: dict[str, list[Rung]] = {}
    for size, rung in new_rungs.items():
        for finding in scaling_warnings(new, [rung]):
            if (finding.id, finding.message) not in known.get(size, ()):
                rungs_by_id.setdefault(finding.id, []).append(rung)
    for id_, rungs in rungs_by_id.items():
        yield from (finding for finding in scaling_warnings(new, rungs) if finding.id == id_)


def _location_warnings(before: CompiledRevision, after: CompiledRevision, project: Project) -> Iterator[Finding]:
    """Yield the warnings of head about the locations of jobs that base does not have."""
    old, catalog = before.jobs, Catalog()
    added: dict[str, tuple[Environment, list[str]]] = {}
    for key, job in after.jobs.items():
        if key not in old or _location(old[key]) != _location(job):
            added.setdefault(key.environment, (job.environment, []))[1].append(job.size)
    for environment, sizes in added.values():
        yield from location_findings(project, catalog, environment, sizes)


def _location(job: Job) -> tuple[str, str | None, str]:
    return job.environment.region, job.zone, job.target


def _rungs(revision: CompiledRevision) -> dict[str, Rung]:
    return {job.size: job.rung for job, _ in revision.request_bodies}
