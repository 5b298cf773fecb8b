"""What a change means for the training and for where it runs: pure functions over the plans of both sides."""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from tpucfg.diff.sides import Made
from tpucfg.diff.wording import where
from tpucfg.findings import Finding
from tpucfg.plan import Job
from tpucfg.review.ladders import ladder_remarks
from tpucfg.review.places import environment_remarks
from tpucfg.review.remarks import Fact, Remark, grouped
from tpucfg.review.rungs import Row, rows
from tpucfg.review.terms import allowed_facts, allowed_findings, climbing_facts
from tpucfg.review.training import learning_rate_facts, training_facts, tuned_figures


class Meaning(NamedTuple):
    """What a change means."""

    remarks: tuple[Remark, ...]
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


def meaning(before: Made, after: Made) -> Meaning:
    """What becomes of the training, its place and its data; both sides are sound, or there is none."""
    changed = rows(before.jobs, after.jobs)
    remarks = [
        *_of_terms(before, after),
        *_of_project(before, after),
        *environment_remarks(before, after),
        *_of_jobs(before, after),
        *ladder_remarks(before.jobs, after.jobs, changed),
    ]
    old, new = _warnings(before), _warnings(after)
    came = {key: finding for key, finding in new.items() if key not in old}
    ids = {finding.id for finding in came.values()}
    allow = after.project.allow if after.project else {}
    return Meaning(
        remarks=tuple(sorted(remarks, key=lambda remark: not remark.fact.grave)),
        rows=changed,
        new=tuple(came.values()),
        gone=tuple(it for key, it in old.items() if key not in new and it.id not in ids and it.id not in allow),
        allowed=tuple(allowed_findings(before, after)),
    )


def terms(before: Made, after: Made) -> Meaning:
    """What can be said where a side does not hold: what was an error and is allowed, and the warnings of head."""
    warned = () if after.is_broken else tuple(_warnings(after).values())
    return Meaning(tuple(_of_terms(before, after)), (), warned, (), tuple(allowed_findings(before, after)))


def _warnings(made: Made) -> dict[tuple[str, str], Finding]:
    """By what they say: the line of the spec may have moved."""
    return {(finding.id, finding.message): finding for finding in made.findings if finding.level == "warning"}


def _of_terms(before: Made, after: Made) -> Iterator[Remark]:
    yield from (Remark("", fact) for fact in allowed_facts(before, after))
    if before.project and after.project:
        yield from (Remark("", fact) for fact in climbing_facts(before.project, after.project))


def _of_project(before: Made, after: Made) -> Iterator[Remark]:
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
    yield from (Remark("", Fact(said, (one, other))) for said, one, other in pairs if one != other)
    yield from (Remark("", fact) for fact in learning_rate_facts(old.training, new.training))


def _of_jobs(before: Made, after: Made) -> Iterator[Remark]:
    old, new = before.jobs, after.jobs
    both = [key for key in new if key in old]
    tuned = tuned_figures(before.project), tuned_figures(after.project)
    facts = [
        (key, fact)
        for key in both
        for fact in (*_job(old[key], new[key]), *training_facts(old[key].rung, new[key].rung, tuned))
    ]
    yield from grouped(facts, lambda keys: where(keys, both))


def _job(before: Job, after: Job) -> Iterator[Fact]:
    for setting in _SETTINGS:
        old, new = setting.of(before), setting.of(after)
        if old != new:
            yield Fact(setting.said, (old or "none", new or "none"))
    if before.zone != after.zone and before.environment.region == after.environment.region:
        yield Fact("the slice is in {1} instead of {0}", (before.zone or "none", after.zone or "none"))
