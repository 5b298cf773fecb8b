"""Comparison of the resources that the stack programs of two revisions declare, without an engine or credentials."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tpucfg.changes.facts import Change
from tpucfg.infra.resources import EnvironmentResources, Resource, urn_name
from tpucfg.redaction import redact, redact_value
from tpucfg.review.changes.resources.immutable_inputs import forces_replacement
from tpucfg.review.changes.resources.resource_change import Op, ResourceChange, Step
from tpucfg.review.changes.resources.resource_diff import input_changes, resource_changes, sort_keys


class _Key(NamedTuple):
    """The identity of a resource in a stack."""

    parent: str
    """The types of its parents."""
    type: str
    name: str


def program_changes(base: EnvironmentResources | None, head: EnvironmentResources | None) -> tuple[ResourceChange, ...]:
    """Return the changes to the resources of an environment; a revision without the environment is None."""
    declared = head or base
    if declared is None:
        return ()
    steps = [_step(before, after) for before, after in _pairs(base, head)]
    return resource_changes(declared.environment.name, steps)


def redacted_resources(declared: EnvironmentResources) -> tuple[Resource, ...]:
    """Return the resources without personal data and secrets, for a head that has no base to compare with."""
    return tuple(
        resource._replace(name=redact(resource.name), inputs=redact_value(sort_keys(resource.inputs)))
        for resource in declared.resources
    )


def _pairs(
    base: EnvironmentResources | None, head: EnvironmentResources | None
) -> Iterator[tuple[Resource | None, Resource | None]]:
    """Yield each resource before and after: by its identity in the stack, or else by an alias in head."""
    before, after = _by_key(base), _by_key(head)
    removed = {key: before[key] for key in before if key not in after}
    for key, resource in sorted(after.items(), key=lambda item: item[0]):
        aliased = next((old for old in sorted(removed) if old[1:] in _aliases(resource)), None)
        if key in before:
            yield before[key], resource
        else:
            yield removed.pop(aliased) if aliased else None, resource
    for key in sorted(removed):
        yield removed[key], None


def _by_key(declared: EnvironmentResources | None) -> dict[_Key, Resource]:
    resources = declared.resources if declared else ()
    return {_Key(resource.parent, resource.type, resource.name): resource for resource in resources}


def _aliases(resource: Resource) -> set[tuple[str, str]]:
    """Return type and name of the resources that a resource may continue, wherever in the stack they are."""
    listed = resource.options.get("aliases")
    # The program could have written the options itself.
    own = [alias for alias in listed if isinstance(alias, Mapping)] if isinstance(listed, list) else []
    names = {(str(alias.get("type", resource.type)), _alias_name(alias, resource)) for alias in own}
    return names | ({(resource.type, resource.name)} if resource.options.get("parentAliases") else set())


def _alias_name(alias: Mapping[str, Any], resource: Resource) -> str:
    return urn_name(str(alias["urn"])) if "urn" in alias else str(alias.get("name", resource.name))


def _step(before: Resource | None, after: Resource | None) -> Step:
    if before is None or after is None:
        return Step(before, after, "create" if before is None else "delete")
    changed = [change for change in input_changes(before, after) if not _differs_only_in_case(change)]
    because = forces_replacement(after.type, changed)
    op: Op = "replace" if because else "update" if changed else "same"
    return Step(before, after, op, because)


def _differs_only_in_case(change: Change) -> bool:
    """Return True for a location written in another case, which the provider stores in upper case anyway."""
    return change.path == ("location",) and str(change.before).upper() == str(change.after).upper()
