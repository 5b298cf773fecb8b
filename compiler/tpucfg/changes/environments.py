"""Environments that only one revision has."""

from collections.abc import Iterator
from typing import Final

from tpucfg.changes.revisions import CompiledRevision
from tpucfg.changes.statements import LocatedStatement, Risk, Statement, group_by_environment
from tpucfg.plan.naming import bucket_of
from tpucfg.spec.project import Environment, Project
from tpucfg.text_format import listed

_MAX_SIZES: Final = 16


def environment_statements(before: CompiledRevision, after: CompiledRevision) -> Iterator[LocatedStatement]:
    """Yield the environments that are new or removed; equal statements of several are grouped."""
    owned = [
        (name, _removed(environment))
        for name, environment in before.environments.items()
        if name not in after.environments
    ]
    if after.project:
        owned += [
            (name, _added(after.project, environment, is_first_spec=before.project is None))
            for name, environment in after.environments.items()
            if name not in before.environments
        ]
    return group_by_environment(sorted(owned, key=lambda pair: pair[0]))


def _added(project: Project, environment: Environment, *, is_first_spec: bool) -> Statement:
    settings = [project.settings[environment.name, size] for size in environment.sizes]
    kinds = [*dict.fromkeys(item.capacity.kind for item in settings)]
    capacity, last = ("", ()) if kinds == ["on-demand"] else (" and capacity {}", (listed(kinds),))
    if not is_first_spec:
        values = (environment.target, environment.region, listed(environment.sizes, _MAX_SIZES), *last)
        return Statement(f"new environment on {{}} in {{}} with sizes {{}}{capacity}", values)
    # Every environment is new. What is not: the cloud's projects, and maybe a bucket that another spec uses too.
    trainers = [item.trainer for item in settings]
    programs = dict.fromkeys(each.image or each.package or each.module or "none" for each in trainers)
    names = listed(tuple(programs), _MAX_SIZES, last=" and ")
    values = (names, environment.project, bucket_of(project, environment), *last)
    return Statement(f"new: jobs run {{}} in the project {{}} with the bucket {{}}{capacity}", values)


def _removed(environment: Environment) -> Statement:
    """Return a statement with the commands that delete the stack: no later `pulumi up` includes the environment."""
    name = environment.name
    if not environment.protect:
        template = "removed from the spec: its stack keeps all resources until you run {}"
        return Statement(template, (f"pulumi destroy --stack {name}",))
    template = (
        "removed from the spec while protected: its stack keeps all resources, and Pulumi refuses to delete them. "
        "To delete them, restore the environment with {}, run {} and {}, and then remove it from the spec"
    )
    # With --run-program, Pulumi runs the stack program, which explains errors of Google's APIs.
    commands = (f"pulumi up --stack {name}", f"pulumi destroy --run-program --stack {name}")
    return Statement(
        template, ("protect: false", *commands), risk=Risk.DESTRUCTIVE, headline="protected resources left behind"
    )
