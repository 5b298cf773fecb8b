"""Changes to environments: location, target, protection, and the bucket that their jobs use."""

from collections.abc import Iterator, Mapping
from typing import Final

from tpucfg.catalog.target_facts import TARGET_FACTS
from tpucfg.changes.revisions import CompiledRevision
from tpucfg.changes.statements import LocatedStatement, Risk, Statement, group_by_environment
from tpucfg.plan.naming import bucket_of
from tpucfg.spec.project import Environment, Project
from tpucfg.text_format import listed

_MAX_SIZES: Final = 16
_MAX_LABELS: Final = 8
_UNSET: Final = "none"
LIFTED: Final = "protection lifted"
"""The headline of lifted protection, which the summary omits if a resource already shows it."""

_EnvironmentOf = tuple[Project, Environment]


def environment_statements(before: CompiledRevision, after: CompiledRevision) -> Iterator[LocatedStatement]:
    """Yield the changes to each environment; equal changes of several environments are grouped."""
    names = sorted({*before.environments, *after.environments})
    return group_by_environment(
        (name, statement) for name in names for statement in _statements_about(name, before, after)
    )


def _statements_about(name: str, before: CompiledRevision, after: CompiledRevision) -> Iterator[Statement]:
    old, new = _find(name, before), _find(name, after)
    if old and new:
        yield from _changed(old, new)
    elif old:
        yield _removed(old[1])
    elif new:
        yield _added(*new, is_first_spec=before.project is None)


def _find(name: str, revision: CompiledRevision) -> _EnvironmentOf | None:
    environment = revision.environments.get(name)
    return (revision.project, environment) if revision.project and environment else None


def _added(project: Project, environment: Environment, *, is_first_spec: bool) -> Statement:
    kinds = _special_capacities(project, environment)
    capacity, last = (" and capacity {}", (kinds,)) if kinds else ("", ())
    if not is_first_spec:
        values = (environment.target, environment.region, listed(environment.sizes, _MAX_SIZES), *last)
        return Statement(f"new environment on {{}} in {{}} with sizes {{}}{capacity}", values)
    # Every environment is new. What is not: the cloud's projects, and maybe a bucket that another spec uses too.
    trainers = [project.settings[environment.name, size].trainer for size in environment.sizes]
    programs = dict.fromkeys(each.image or each.package or each.module or _UNSET for each in trainers)
    names = listed(tuple(programs), _MAX_SIZES, last=" and ")
    values = (names, environment.project, bucket_of(project, environment), *last)
    return Statement(f"new: jobs run {{}} in the project {{}} with the bucket {{}}{capacity}", values)


def _special_capacities(project: Project, environment: Environment) -> str:
    """Return the capacities of the rungs; nothing if all of them are on demand."""
    settings = [project.settings[environment.name, size] for size in environment.sizes]
    kinds = dict.fromkeys(item.capacity.kind for item in settings)
    return "" if [*kinds] == ["on-demand"] else listed([*kinds])


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


def _changed(old: _EnvironmentOf, new: _EnvironmentOf) -> Iterator[Statement]:
    (_, before), (_, after) = old, new
    for setting, was, now in (
        ("Google Cloud project", before.project, after.project),
        ("region", before.region, after.region),
        ("target", before.target, after.target),
    ):
        if was != now:
            yield Statement(f"{setting} changed from {{}} to {{}}", (was, now))
    old_bucket, new_bucket = bucket_of(*old), bucket_of(*new)
    if old_bucket != new_bucket:
        yield _bucket_changed(old_bucket, new_bucket, before)
    yield from _protection_changed(before, after)
    yield from _labels_changed(before.labels, after.labels)
    if before.kube_context != after.kube_context:
        template = "kubectl context changed from {} to {}"
        contexts = (before.kube_context or _UNSET, after.kube_context or _UNSET)
        if "kube_context" in TARGET_FACTS[after.target].environment_keys:
            yield Statement(f"{template}: jobs are submitted to another cluster", contexts, Risk.CAUTION)
        else:
            yield Statement(template, contexts)


def _labels_changed(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Statement]:
    """Yield one sentence for the labels of the bucket and the jobs."""
    if changes := [*_mapping_changes(before, after)]:
        shown = changes[:_MAX_LABELS]
        more = f" and {len(changes) - len(shown):,} more" if len(changes) > len(shown) else ""
        template = ", ".join(text for text, _ in shown)
        yield Statement(f"labels: {template}{more}", tuple(value for _, values in shown for value in values))


def _mapping_changes(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for key in {**before, **after}:
        old, new = before.get(key), after.get(key)
        if old is None and new is not None:
            yield "{} added ({})", (key, new)
        elif new is None and old is not None:
            yield "{} removed (was {})", (key, old)
        elif old is not None and new is not None and old != new:
            yield "{} changed from {} to {}", (key, old, new)


def _protection_changed(before: Environment, after: Environment) -> Iterator[Statement]:
    if before.protect and not after.protect:
        template = "protection lifted: resources that hold data can be replaced and deleted"
        yield Statement(template, risk=Risk.DESTRUCTIVE, headline=LIFTED)
    if after.protect and not before.protect:
        yield Statement("protection added: Pulumi refuses to delete or replace resources that hold data")
    if before.keep_data and not after.keep_data:
        template = "{} disabled: a bucket removed from the stack is deleted with its objects"
        yield Statement(template, ("keep_data",), risk=Risk.DESTRUCTIVE, headline="data no longer kept")
    if after.keep_data and not before.keep_data:
        yield Statement("{} enabled: a bucket removed from the stack is kept with its objects", ("keep_data",))


def _bucket_changed(old_bucket: str, new_bucket: str, before: Environment) -> Statement:
    """Return the consequence for the data, which follows from the settings that the old bucket was created with."""
    changed = "bucket changed from {} to {}: "
    buckets = (old_bucket, new_bucket)
    if before.protect:
        refused = (
            "jobs use the new bucket, but Pulumi refuses to remove the old one from the stack while it is protected"
        )
        return Statement(changed + refused, buckets)
    if before.keep_data:
        return Statement(
            changed + "the new bucket starts empty, and the old one is kept with its objects and still billed", buckets
        )
    deleted = "the new bucket starts empty, and the old one is deleted with its objects"
    return Statement(changed + deleted, buckets, risk=Risk.DESTRUCTIVE, headline="data deleted")
