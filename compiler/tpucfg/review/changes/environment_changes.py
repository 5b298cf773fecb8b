"""What becomes of the environments: where they are, what protects them, and where their jobs find the data."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tpucfg.diff.change import ConfigKey
from tpucfg.diff.compiled_revisions import CompiledRevision
from tpucfg.diff.describe import format_keys
from tpucfg.number_format import format_factor
from tpucfg.plan import Job
from tpucfg.plan.naming import bucket_of
from tpucfg.review.changes.scaling_table import Row
from tpucfg.review.changes.statements import LocatedStatement, Statement, format_environments, group_statements
from tpucfg.spec.project import Environment, Project
from tpucfg.text_format import listed

_MOST_NAMES: Final = 16
LIFTED: Final = "protection lifted"
"""In the headline, where no resource tells it."""


def environment_statements(before: CompiledRevision, after: CompiledRevision) -> Iterator[LocatedStatement]:
    """What is said of each environment, and of several together where it is the same."""
    old = before.project.environments if before.project else {}
    new = after.project.environments if after.project else {}
    facts = [(name, fact) for name in sorted({*old, *new}) for fact in _environment(name, before, after)]
    yield from group_statements(facts, format_environments, lambda name, fact: fact.of_any(name))


def _environment(name: str, before: CompiledRevision, after: CompiledRevision) -> Iterator[Statement]:
    sides = [(made.project, made.project.environments.get(name)) for made in (before, after) if made.project]
    pairs = [(project, environment) for project, environment in sides if environment is not None]
    if len(pairs) == 2:  # noqa: PLR2004 - both sides
        yield from _same_environment(*pairs)
    elif after.project is None or name not in after.project.environments:
        yield _left(pairs[0][1])
    elif before.project is not None:
        _, environment = pairs[0]
        location = (environment.target, environment.region, listed(environment.sizes, _MOST_NAMES))
        yield Statement("a new environment, on {} in {}: {}", location)


def _left(environment: Environment) -> Statement:
    """An environment that is no longer in the spec: no program speaks for its stack from now on."""
    name = environment.name
    if not environment.protect:
        said = "leaves the spec; its stack keeps every resource until somebody ends it with {}"
        return Statement(said, (f"pulumi destroy --stack {name}",))
    said = (
        "leaves the spec while it is protected: its stack keeps every resource, and Pulumi refuses to destroy it; "
        "to end it, bring it back with {}, run {}, then {}, and take it out of the spec after that"
    )
    steps = ("protect: false", f"pulumi up --stack {name}", f"pulumi destroy --run-program --stack {name}")
    return Statement(said, steps, destructive=True, headline="protected resources left behind")


def _same_environment(old: tuple[Project, Environment], new: tuple[Project, Environment]) -> Iterator[Statement]:
    (_, before), (_, after) = old, new
    if before.project != after.project:
        yield Statement("goes from the Google project {} to {}", (before.project, after.project))
    if before.region != after.region:
        yield Statement("moves from {} to {}", (before.region, after.region))
    if before.target != after.target:
        yield Statement("its jobs go to {1} instead of {0}", (before.target, after.target))
    if (left := bucket_of(*old)) != (found := bucket_of(*new)):
        yield _other_bucket(left, found, before)
    if before.protect and not after.protect:
        yield Statement(
            "is protected no longer: what holds data can be replaced and deleted", destructive=True, headline=LIFTED
        )
    if after.protect and not before.protect:
        yield Statement("is protected from now on: Pulumi refuses to delete or replace what holds data")
    if before.keep_data and not after.keep_data:
        yield Statement(
            "a bucket that it no longer wants goes with its objects from now on",
            destructive=True,
            headline="data no longer kept",
        )
    if after.keep_data and not before.keep_data:
        yield Statement("a bucket that it no longer wants stays behind with its objects from now on")


def _other_bucket(left: str, found: str, before: Environment) -> Statement:
    if before.protect:
        said = "its jobs are told to use the bucket {1}, and Pulumi refuses to give up {0} while it is protected"
        return Statement(said, (left, found))
    if before.keep_data:
        said = "its jobs find the new bucket {1} empty; {0} stays behind with its objects, and is paid for"
        return Statement(said, (left, found))
    return Statement(
        "its jobs find the new bucket {1} empty; {0} is deleted with its objects",
        (left, found),
        destructive=True,
        headline="data deleted",
    )


# What becomes of the ladders: the rungs that leave, join, or take the place of others.


def ladder_statements(
    before: Mapping[ConfigKey, Job], after: Mapping[ConfigKey, Job], changed: Sequence[Row]
) -> Iterator[LocatedStatement]:
    """What is said of the rungs that one side has and the other has not; `changed` are those with other figures."""
    replaced = {(name, row.against) for row in changed for name in row.environments if not row.below}
    gone = [key for key in before if key not in after and _climbs(key, after) and key not in replaced]
    yield from group_statements([(key, Statement("leaves the ladder")) for key in gone], format_keys)
    exchanged: dict[tuple[tuple[str, ...], str], list[Row]] = {}
    for row in changed:
        if row.environments and row.against:
            if row.below:
                said = f"{{}} joins the ladder, with {_cores(row)} the cores of {{}}, the rung below"
                yield LocatedStatement(listed(row.environments, _MOST_NAMES), Statement(said, (row.size, row.against)))
            else:
                exchanged.setdefault((row.environments, _cores(row)), []).append(row)
    for (names, cores), of in exchanged.items():
        yield LocatedStatement(listed(names, _MOST_NAMES), _exchange(of, cores))


def _exchange(of: Sequence[Row], cores: str) -> Statement:
    """Rungs that came in the places of others, each of which has the same factor of their cores."""
    many = "each with as many" if cores == "1×" else f"each with {cores} the"
    one = "with as many" if cores == "1×" else f"with {cores} its"
    first, *others = of[:_MOST_NAMES]
    more = [f"{len(of) - _MOST_NAMES} more likewise"] if len(of) > _MOST_NAMES else []
    said = ["{} takes the place of {}", *("{} of {}" for _ in others), *more]
    values = [size for row in (first, *others) for size in (row.size, row.against)]
    return Statement(f"{listed(said, len(said), ' and ')}, {many if len(of) > 1 else one} cores", tuple(values))


def _cores(row: Row) -> str:
    old, new = row.before.get("cores"), row.after.get("cores")
    return format_factor(new / old) if old and new else "–"


def _climbs(key: ConfigKey, jobs: Mapping[ConfigKey, Job]) -> bool:
    return any(other.environment == key.environment for other in jobs)
