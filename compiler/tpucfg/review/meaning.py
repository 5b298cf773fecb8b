"""What a change means for the training and for where it runs: pure functions over the plans of both sides."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from tpucfg.diff.model import Key
from tpucfg.diff.sides import Made
from tpucfg.diff.wording import where
from tpucfg.findings import Finding
from tpucfg.plan import Job
from tpucfg.plan.whole import bucket_of
from tpucfg.review.remarks import Fact, Remark, environments, grouped
from tpucfg.review.rungs import Row, rows, times
from tpucfg.review.terms import allowed_facts, allowed_findings, climbing_facts
from tpucfg.review.training import learning_rate_facts, training_facts, tuned_figures
from tpucfg.spec.model import Environment, Project
from tpucfg.wording import listed

_MOST_NAMES: Final = 16
LIFTED: Final = "protection lifted"
"""In the headline, where no resource tells it."""


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
        *_of_environments(before, after),
        *_of_jobs(before, after),
        *_of_ladders(before.jobs, after.jobs, changed),
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


def _of_environments(before: Made, after: Made) -> Iterator[Remark]:
    old = before.project.environments if before.project else {}
    new = after.project.environments if after.project else {}
    facts = [(name, fact) for name in sorted({*old, *new}) for fact in _environment(name, before, after)]
    yield from grouped(facts, environments, lambda name, fact: fact.of_any(name))


def _environment(name: str, before: Made, after: Made) -> Iterator[Fact]:
    sides = [(made.project, made.project.environments.get(name)) for made in (before, after) if made.project]
    pairs = [(project, environment) for project, environment in sides if environment is not None]
    if len(pairs) == 2:  # noqa: PLR2004 - both sides
        yield from _same_environment(*pairs)
    elif after.project is None or name not in after.project.environments:
        said = "leaves the spec; its stack keeps every resource until somebody ends it with {}"
        yield Fact(said, (f"pulumi destroy --stack {name}",))
    elif before.project is not None:
        _, environment = pairs[0]
        place = (environment.target, environment.region, listed(environment.sizes, _MOST_NAMES))
        yield Fact("a new environment, on {} in {}: {}", place)


def _same_environment(old: tuple[Project, Environment], new: tuple[Project, Environment]) -> Iterator[Fact]:
    (_, before), (_, after) = old, new
    if before.project != after.project:
        yield Fact("goes from the Google project {} to {}", (before.project, after.project))
    if before.region != after.region:
        yield Fact("moves from {} to {}", (before.region, after.region))
    if before.target != after.target:
        yield Fact("its jobs go to {1} instead of {0}", (before.target, after.target))
    if (left := bucket_of(*old)) != (found := bucket_of(*new)):
        yield _other_bucket(left, found, before)
    if before.protect and not after.protect:
        yield Fact("is protected no longer: what holds data can be replaced and deleted", grave=True, brief=LIFTED)
    if after.protect and not before.protect:
        yield Fact("is protected from now on: Pulumi refuses to delete or replace what holds data")
    if before.keep_data and not after.keep_data:
        yield Fact(
            "a bucket that it no longer wants goes with its objects from now on",
            grave=True,
            brief="data no longer kept",
        )
    if after.keep_data and not before.keep_data:
        yield Fact("a bucket that it no longer wants stays behind with its objects from now on")


def _other_bucket(left: str, found: str, before: Environment) -> Fact:
    if before.protect:
        said = "its jobs are told to use the bucket {1}, and Pulumi refuses to give up {0} while it is protected"
        return Fact(said, (left, found))
    if before.keep_data:
        said = "its jobs find the new bucket {1} empty; {0} stays behind with its objects, and is paid for"
        return Fact(said, (left, found))
    return Fact(
        "its jobs find the new bucket {1} empty; {0} is deleted with its objects",
        (left, found),
        grave=True,
        brief="data deleted",
    )


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


def _of_ladders(before: Mapping[Key, Job], after: Mapping[Key, Job], changed: Sequence[Row]) -> Iterator[Remark]:
    replaced = {(name, row.against) for row in changed for name in row.environments if not row.below}
    gone = [key for key in before if key not in after and _climbs(key, after) and key not in replaced]
    yield from grouped([(key, Fact("leaves the ladder")) for key in gone], where)
    exchanged: dict[tuple[tuple[str, ...], str], list[Row]] = {}
    for row in changed:
        if row.environments and row.against:
            if row.below:
                said = f"{{}} joins the ladder, with {_cores(row)} the cores of {{}}, the rung below"
                yield Remark(listed(row.environments, _MOST_NAMES), Fact(said, (row.size, row.against)))
            else:
                exchanged.setdefault((row.environments, _cores(row)), []).append(row)
    for (names, cores), of in exchanged.items():
        yield Remark(listed(names, _MOST_NAMES), _exchange(of, cores))


def _exchange(of: Sequence[Row], cores: str) -> Fact:
    """Rungs that came in the places of others, each of which has the same factor of their cores."""
    many = "each with as many" if cores == "1×" else f"each with {cores} the"
    one = "with as many" if cores == "1×" else f"with {cores} its"
    first, *others = of[:_MOST_NAMES]
    more = [f"{len(of) - _MOST_NAMES} more likewise"] if len(of) > _MOST_NAMES else []
    said = ["{} takes the place of {}", *("{} of {}" for _ in others), *more]
    values = [size for row in (first, *others) for size in (row.size, row.against)]
    return Fact(f"{listed(said, len(said), ' and ')}, {many if len(of) > 1 else one} cores", tuple(values))


def _cores(row: Row) -> str:
    old, new = row.before.get("cores"), row.after.get("cores")
    return times(new / old) if old and new else "–"


def _climbs(key: Key, jobs: Mapping[Key, Job]) -> bool:
    return any(other.environment == key.environment for other in jobs)


def _job(before: Job, after: Job) -> Iterator[Fact]:
    for setting in _SETTINGS:
        old, new = setting.of(before), setting.of(after)
        if old != new:
            yield Fact(setting.said, (old or "none", new or "none"))
    if before.zone != after.zone and before.environment.region == after.environment.region:
        yield Fact("the slice is in {1} instead of {0}", (before.zone or "none", after.zone or "none"))
