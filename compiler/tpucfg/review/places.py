"""What becomes of the environments: where they are, what protects them, and where their jobs find the data."""

from collections.abc import Iterator
from typing import Final

from tpucfg.diff.sides import Made
from tpucfg.plan.whole import bucket_of
from tpucfg.review.remarks import Fact, Remark, environments, grouped
from tpucfg.spec.model import Environment, Project
from tpucfg.wording import listed

_MOST_NAMES: Final = 16
LIFTED: Final = "protection lifted"
"""In the headline, where no resource tells it."""


def environment_remarks(before: Made, after: Made) -> Iterator[Remark]:
    """What is said of each environment, and of several together where it is the same."""
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
        yield _left(pairs[0][1])
    elif before.project is not None:
        _, environment = pairs[0]
        place = (environment.target, environment.region, listed(environment.sizes, _MOST_NAMES))
        yield Fact("a new environment, on {} in {}: {}", place)


def _left(environment: Environment) -> Fact:
    """An environment that is no longer in the spec: no program speaks for its stack from now on."""
    name = environment.name
    if not environment.protect:
        said = "leaves the spec; its stack keeps every resource until somebody ends it with {}"
        return Fact(said, (f"pulumi destroy --stack {name}",))
    said = (
        "leaves the spec while it is protected: its stack keeps every resource, and Pulumi refuses to destroy it; "
        "to end it, bring it back with {}, run {}, then {}, and take it out of the spec after that"
    )
    steps = ("protect: false", f"pulumi up --stack {name}", f"pulumi destroy --run-program --stack {name}")
    return Fact(said, steps, grave=True, brief="protected resources left behind")


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
