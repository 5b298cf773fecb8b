"""Comparison of resources before and after a change, from stack programs or from a Pulumi preview."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, cast

from tpucfg.changes.facts import ABSENT, Change, mark_as_other, redact_change
from tpucfg.changes.resource_meanings import resource_statements
from tpucfg.changes.resources import (
    KNOWN_TYPES,
    REMOVING_OPS,
    UNKNOWN,
    Op,
    ResourceChange,
    ResourceStep,
    access_statements,
    holds_data,
)
from tpucfg.changes.statements import Statement
from tpucfg.changes.tree_diff import value_changes
from tpucfg.infra.grants import is_grant
from tpucfg.infra.resources import PROJECT_NUMBER, EnvironmentResources, Resource, urn_name
from tpucfg.paths import grouped, sort_keys
from tpucfg.redaction import SECRET, redact, redact_value


def resource_changes(environment: str, steps: Sequence[ResourceStep]) -> tuple[ResourceChange, ...]:
    """Return the steps that change something, sorted by type and name, without personal data and secrets."""
    # All steps at once: a grant that moves to a new bucket is revoked in one step and given in another.
    meanings = zip(steps, access_statements(steps), resource_statements(steps), strict=True)
    changes = (_change(environment, step, (*access, *others)) for step, access, others in meanings)
    return tuple(
        sorted(
            (
                change
                for change in changes
                if change.op != "same" or change.protection or change.statements
            ),
            key=lambda change: (change.type, change.name, change.op),
        )
    )


def input_changes(before: Resource | None, after: Resource | None) -> Iterable[Change]:
    """Return the inputs that differ, by name; of a created or deleted resource, one change for each input."""
    old, new = (sort_keys(resource.inputs if resource else {}) for resource in (before, after))
    if before is not None and after is not None:
        other = {
            key
            for key, digest in after.secrets.items()
            if before.secrets.get(key, digest) != digest
        }
        secrets = (Change((key,), SECRET, mark_as_other(SECRET)) for key in sorted(other))
        return (*value_changes(old, new), *secrets)
    return (Change((key,), old.get(key, ABSENT), new.get(key, ABSENT)) for key in (old or new))


def _change(
    environment: str, step: ResourceStep, statements: tuple[Statement, ...]
) -> ResourceChange:
    resource = step.after or step.before
    assert resource is not None  # noqa: S101 - every step has at least one resource
    inputs = tuple(input_changes(step.before, step.after))
    return ResourceChange(
        environment=environment,
        op=cast("Op", step.op),
        type=resource.type,
        name=redact(resource.name),
        inputs=tuple(map(redact_change, inputs)),
        because=step.because,
        hidden=() if inputs else step.differs,
        protected=bool(step.before and step.before.protect),
        protection=_protection(step),
        retained=bool(step.op in REMOVING_OPS and step.before and step.before.retain),
        holds_data=holds_data(resource.type, is_grant=is_grant(resource)),
        statements=statements,
    )


def _protection(step: ResourceStep) -> Literal["", "lifted", "added"]:
    if step.before is None or step.after is None or step.before.protect == step.after.protect:
        return ""
    return "lifted" if step.before.protect else "added"


# Stack programs


def program_changes(
    base: EnvironmentResources | None, head: EnvironmentResources | None
) -> tuple[ResourceChange, ...]:
    """Return the changes to the resources of an environment; a revision without the environment is None."""
    declared = head or base
    if declared is None:
        return ()
    steps = [_step(before, after) for before, after in _pairs(base, head)]
    return resource_changes(declared.environment.name, steps)


def redacted_resources(declared: EnvironmentResources) -> tuple[Resource, ...]:
    """Return the resources without personal data and secrets, for a head that has no base to compare with."""
    return tuple(
        resource._replace(
            name=redact(resource.name), inputs=redact_value(sort_keys(resource.inputs))
        )
        for resource in declared.resources
    )


def forces_replacement(resource_type: str, changes: Iterable[Change]) -> tuple[str, ...]:
    """Return the changed inputs that force a replacement of a resource of this type, in the order of the changes."""
    immutable = KNOWN_TYPES.get(resource_type, frozenset())
    changed = dict.fromkeys(str(change.path[0]) for change in changes)
    return tuple(key for key in changed if key in immutable)


def _pairs(
    base: EnvironmentResources | None, head: EnvironmentResources | None
) -> Iterator[tuple[Resource | None, Resource | None]]:
    """Yield each resource before and after: by its identity in the stack, or else by an alias in head."""
    before, after = _by_key(base), _by_key(head)
    removed = grouped((key[1:], key) for key in sorted(before, reverse=True) if key not in after)
    for key, resource in sorted(after.items(), key=lambda item: item[0]):
        aliased = (
            [removed[name] for name in _aliases(resource) if removed.get(name)]
            if key not in before
            else []
        )
        old = min(aliased, key=lambda keys: keys[-1]).pop() if aliased else key
        yield before.get(old), resource
    for key in sorted(key for keys in removed.values() for key in keys):
        yield before[key], None


def _by_key(declared: EnvironmentResources | None) -> dict[tuple[str, str, str], Resource]:
    return {resource.key: resource for resource in declared.resources} if declared else {}


def _aliases(resource: Resource) -> set[tuple[str, str]]:
    """Return type and name of the resources that a resource may continue, wherever in the stack they are."""
    listed = resource.options.get("aliases")
    # The program could have written the options itself.
    own = (
        [alias for alias in listed if isinstance(alias, Mapping)]
        if isinstance(listed, list)
        else []
    )
    names = {(str(alias.get("type", resource.type)), _alias_name(alias, resource)) for alias in own}
    return names | (
        {(resource.type, resource.name)} if resource.options.get("parentAliases") else set()
    )


def _alias_name(alias: Mapping[str, Any], resource: Resource) -> str:
    return urn_name(str(alias["urn"])) if "urn" in alias else str(alias.get("name", resource.name))


def _step(before: Resource | None, after: Resource | None) -> ResourceStep:
    if before is None or after is None:
        return ResourceStep(before, after, "create" if before is None else "delete")
    changed = [
        change for change in input_changes(before, after) if not _differs_only_in_case(change)
    ]
    because = forces_replacement(after.type, changed)
    op: Op = "replace" if because else "update" if changed else "same"
    return ResourceStep(before, after, op, because)


def _differs_only_in_case(change: Change) -> bool:
    """Return True for a location written in another case, which the provider stores in upper case anyway."""
    return change.path == ("location",) and str(change.before).upper() == str(change.after).upper()


# What a preview lacks
#
# A preview is a file. Even one that Pulumi wrote is only as true as the program that ran under it, and a forged one can
# leave out anything: the programs of both revisions, run under mocks, are compared with it.


def complete_preview(
    previewed: Sequence[ResourceChange], declared: Sequence[ResourceChange]
) -> tuple[ResourceChange, ...]:
    """Return the changes of a preview with those that only the stack programs declare, which are `only_declared`.

    Args:
        previewed: the changes of the preview.
        declared: the changes between the stack programs of both revisions.
    """
    changes = [*previewed]
    indices = grouped(((change.type, change.name), index) for index, change in enumerate(previewed))
    for change in declared:
        same = indices.get((change.type, change.name), [])
        if len(same) == 1:
            changes[same[0]] = _merge(changes[same[0]], change)
        else:
            # An engine shows no step for other options, so a preview without one lacks nothing.
            changes.append(
                change._replace(only_declared=change.op != "same" or bool(change.protection))
            )
    return tuple(sorted(changes, key=lambda change: (change.type, change.name, change.op)))


def _merge(previewed: ResourceChange, declared: ResourceChange) -> ResourceChange:
    """Return the preview's change of a resource with all that the programs' change of it means.

    The meaning of a value depends on the one before it, which a preview takes from the state, and a forged one from
    nowhere. A preview has few of a resource's options.
    """
    is_milder = (
        (declared.protection == "lifted" and previewed.protection != "lifted")
        or (declared.op in REMOVING_OPS and previewed.op not in REMOVING_OPS)
        or (declared.loses_data and not previewed.loses_data)
    )
    lacking = [
        item
        for item in declared.statements
        if not any(_are_equal(own, item) for own in previewed.statements)
    ]
    merged = previewed._replace(statements=(*previewed.statements, *lacking))
    if not is_milder:
        return merged._replace(only_declared=any(statement.opens for statement in lacking))
    return merged._replace(
        op=declared.op if declared.op in REMOVING_OPS else previewed.op,
        because=previewed.because or declared.because,
        protection=declared.protection or previewed.protection,
        retained=previewed.retained and declared.retained,
        only_declared=True,
    )


def _are_equal(previewed: Statement, declared: Statement) -> bool:
    """Compare two sentences; of a grant's object, its second value, a preview may not know the name."""
    pairs = [*zip(previewed.values, declared.values, strict=False)]
    is_unnamed = previewed.opens and [own for own, _ in pairs[1:2]] == [UNKNOWN]
    compared = [pair for index, pair in enumerate(pairs) if not (is_unnamed and index == 1)]
    return previewed.template == declared.template and all(_matches(*pair) for pair in compared)


def _matches(previewed: str, declared: str) -> bool:
    """Compare texts without their case, which Google changes, and with numbers instead of the mocks' placeholders."""
    # Compiling a pattern takes a hundred times as long as comparing texts, and one resource can have many sentences.
    if not PROJECT_NUMBER.search(declared):
        return previewed.casefold() == declared.casefold() or declared == UNKNOWN
    parts = (re.escape(part.casefold()) for part in PROJECT_NUMBER.split(declared))
    return bool(re.fullmatch("[0-9]+".join(parts), previewed.casefold()))
