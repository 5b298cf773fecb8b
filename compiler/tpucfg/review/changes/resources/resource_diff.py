"""Comparison of resources before and after a change, from a preview or from stack programs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from tpucfg.changes.facts import ABSENT, Change, mark_as_other, redact_change
from tpucfg.changes.statements import Statement
from tpucfg.changes.tree_diff import value_changes
from tpucfg.infra.resources import Resource
from tpucfg.redaction import SECRET, redact
from tpucfg.review.changes.resources.iam_changes import access_widenings
from tpucfg.review.changes.resources.option_changes import option_statements
from tpucfg.review.changes.resources.resource_change import REMOVING_OPS, ResourceChange, Step, Widening
from tpucfg.review.changes.resources.resource_statements import resource_statements


def resource_changes(environment: str, steps: Sequence[Step]) -> tuple[ResourceChange, ...]:
    """Return the steps that change something, sorted by type and name, without personal data and secrets."""
    # All steps at once: a grant that moves to a new bucket is revoked in one step and given in another.
    meanings = zip(steps, access_widenings(steps), resource_statements(steps), strict=True)
    changes = (_change(environment, *meaning) for meaning in meanings)
    return tuple(
        sorted(
            (change for change in changes if change.op != "same" or change.protection or change.statements),
            key=lambda change: (change.type, change.name, change.op),
        )
    )


def input_changes(before: Resource | None, after: Resource | None) -> Iterable[Change]:
    """Return the inputs that differ, by name; of a created or deleted resource, one change for each input."""
    old, new = (sort_keys(resource.inputs if resource else {}) for resource in (before, after))
    if before is not None and after is not None:
        other = {key for key, digest in after.secrets.items() if before.secrets.get(key, digest) != digest}
        secrets = (Change((key,), SECRET, mark_as_other(SECRET)) for key in sorted(other))
        return (*value_changes(old, new), *secrets)
    return (Change((key,), old.get(key, ABSENT), new.get(key, ABSENT)) for key in (old or new))


def sort_keys(value: Any) -> Any:
    """Return the value with sorted keys: engine and stack program emit them in any order."""
    if isinstance(value, Mapping):
        return {key: sort_keys(value[key]) for key in sorted(value)}
    return [sort_keys(item) for item in value] if isinstance(value, list) else value


def _change(
    environment: str, step: Step, widened: Sequence[Widening], statements: tuple[Statement, ...]
) -> ResourceChange:
    resource = step.after or step.before
    assert resource is not None  # noqa: S101 - every step has at least one resource
    inputs = tuple(input_changes(step.before, step.after))
    return ResourceChange(
        environment=environment,
        op=step.op,
        type=resource.type,
        name=redact(resource.name),
        inputs=tuple(map(redact_change, inputs)),
        because=step.because,
        hidden=() if inputs else step.differs,
        protected=bool(step.before and step.before.protect),
        protection=_protection(step),
        retained=bool(step.op in REMOVING_OPS and step.before and step.before.retain),
        widened=tuple(
            widening._replace(what=redact(widening.what), who=redact(widening.who), on=redact(widening.on))
            for widening in widened
        ),
        statements=(*statements, *option_statements(step.before, step.after)),
    )


def _protection(step: Step) -> Literal["", "lifted", "added"]:
    if step.before is None or step.after is None or step.before.protect == step.after.protect:
        return ""
    return "lifted" if step.before.protect else "added"
