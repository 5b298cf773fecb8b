"""What a change means for the training and for where it runs: pure functions over the plans of both sides."""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from tpucfg.diff.compiled_revisions import CompiledRevision
from tpucfg.diff.describe import format_keys
from tpucfg.findings import Finding
from tpucfg.plan import Job
from tpucfg.review.changes.environment_changes import environment_statements, ladder_statements
from tpucfg.review.changes.gate_changes import allowance_statements, allowed_findings, gate_statements
from tpucfg.review.changes.scaling_table import Row, scaling_rows
from tpucfg.review.changes.statements import LocatedStatement, Statement, group_statements
from tpucfg.review.changes.training_changes import learning_rate_statements, training_statements, tuned_figures


class Impact(NamedTuple):
    """What a change means."""

    remarks: tuple[LocatedStatement, ...]
    """The grave ones first."""
    rows: tuple[Row, ...]
    """The rungs that are new or have other figures."""
    new: tuple[Finding, ...]
    """Warnings that the change brings; all that head has, where the base does not hold."""
    gone: tuple[Finding, ...]
    """Warnings that it ends, but for those that it only words anew or allows."""
    allowed: tuple[Finding, ...] = ()
    """What is there, and only a note from now on."""


class _Setting(NamedTuple):
    """A value of a job that is told in words."""

    of: Callable[[Job], str | None]
    said: str


_SETTINGS: Final = (
    _Setting(lambda job: job.image, "the image goes from {} to {}"),
    _Setting(lambda job: job.worker_image, "the workers' image goes from {} to {}"),
    _Setting(lambda job: job.package, "the package goes from {} to {}"),
    _Setting(lambda job: job.module, "the module goes from {} to {}"),
    _Setting(lambda job: job.runtime, "the runtime goes from {} to {}"),
    _Setting(lambda job: job.python, "Python goes from {} to {}"),
    _Setting(lambda job: job.slice.machine and job.slice.machine.name, "the machine goes from {} to {}"),
)


def compute_impact(before: CompiledRevision, after: CompiledRevision) -> Impact:
    """What becomes of the training, its place and its data; both sides are sound, or there is none."""
    changed = scaling_rows(before.jobs, after.jobs)
    remarks = [
        *_of_terms(before, after),
        *_of_project(before, after),
        *environment_statements(before, after),
        *_of_jobs(before, after),
        *ladder_statements(before.jobs, after.jobs, changed),
    ]
    old, new = _warnings(before), _warnings(after)
    came = {key: finding for key, finding in new.items() if key not in old}
    ids = {finding.id for finding in came.values()}
    allow = after.project.allow if after.project else {}
    return Impact(
        remarks=tuple(sorted(remarks, key=lambda remark: not remark.statement.destructive)),
        rows=changed,
        new=tuple(came.values()),
        gone=tuple(it for key, it in old.items() if key not in new and it.id not in ids and it.id not in allow),
        allowed=tuple(allowed_findings(before, after)),
    )


def impact_of_broken_spec(before: CompiledRevision, after: CompiledRevision) -> Impact:
    """What can be said where a side does not hold: what was an error and is allowed, and the warnings of head."""
    warned = () if after.is_broken else tuple(_warnings(after).values())
    return Impact(tuple(_of_terms(before, after)), (), warned, (), tuple(allowed_findings(before, after)))


def _warnings(made: CompiledRevision) -> dict[tuple[str, str], Finding]:
    """By what they say: the line of the spec may have moved."""
    return {(finding.id, finding.message): finding for finding in made.findings if finding.level == "warning"}


def _of_terms(before: CompiledRevision, after: CompiledRevision) -> Iterator[LocatedStatement]:
    yield from (LocatedStatement("", fact) for fact in allowance_statements(before, after))
    if before.project and after.project:
        yield from (LocatedStatement("", fact) for fact in gate_statements(before.project, after.project))


def _of_project(before: CompiledRevision, after: CompiledRevision) -> Iterator[LocatedStatement]:
    old, new = before.project, after.project
    if old is None or new is None:
        return
    pairs = (
        (
            "the project is called {1} instead of {0}: its bucket, its account and its jobs take other names",
            old.name,
            new.name,
        ),
        ("the figures count as tuned on {1}, and no longer on {0}", old.training.tuned_on, new.training.tuned_on),
    )
    yield from (LocatedStatement("", Statement(said, (one, other))) for said, one, other in pairs if one != other)
    yield from (LocatedStatement("", fact) for fact in learning_rate_statements(old.training, new.training))


def _of_jobs(before: CompiledRevision, after: CompiledRevision) -> Iterator[LocatedStatement]:
    old, new = before.jobs, after.jobs
    both = [key for key in new if key in old]
    tuned = tuned_figures(before.project), tuned_figures(after.project)
    facts = [
        (key, fact)
        for key in both
        for fact in (*_job(old[key], new[key]), *training_statements(old[key].rung, new[key].rung, tuned))
    ]
    yield from group_statements(facts, lambda keys: format_keys(keys, both))


def _job(before: Job, after: Job) -> Iterator[Statement]:
    for setting in _SETTINGS:
        old, new = setting.of(before), setting.of(after)
        if old != new:
            yield Statement(setting.said, (old or "none", new or "none"))
    if before.zone != after.zone and before.environment.region == after.environment.region:
        yield Statement("the slice is in {1} instead of {0}", (before.zone or "none", after.zone or "none"))
