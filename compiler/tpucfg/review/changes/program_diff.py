"""Comparison of the resources that the stack programs of two revisions declare, without an engine or credentials."""

from tpucfg.diff.change import Change
from tpucfg.infra.resources import EnvironmentResources, Resource
from tpucfg.redaction import redact, redact_value
from tpucfg.review.changes.immutable_inputs import forces_replacement
from tpucfg.review.changes.resource_change import Op, ResourceChange
from tpucfg.review.changes.resource_diff import Step, input_changes, resource_changes, sort_keys


def program_changes(base: EnvironmentResources | None, head: EnvironmentResources | None) -> tuple[ResourceChange, ...]:
    """Return the changes to the resources of an environment; a revision without the environment is None."""
    declared = head or base
    if declared is None:
        return ()
    before, after = _by_key(base), _by_key(head)
    steps = [_step(before.get(key), after.get(key)) for key in sorted({*before, *after})]
    return resource_changes(declared.environment.name, steps)


def redacted_resources(declared: EnvironmentResources) -> tuple[Resource, ...]:
    """Return the resources without personal data and secrets, for a head that has no base to compare with."""
    return tuple(
        resource._replace(name=redact(resource.name), inputs=redact_value(sort_keys(resource.inputs)))
        for resource in declared.resources
    )


def _by_key(declared: EnvironmentResources | None) -> dict[tuple[str, str], Resource]:
    """Return the resources by type and name, which together identify a resource in a stack."""
    return {(resource.type, resource.name): resource for resource in declared.resources} if declared else {}


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
