"""Drift: resources that differ in the cloud from what the last update left, whatever the change does.

Drift is never made by the change, so it never decides `--fail-on`. An update reverts most of it without being asked,
so a reviewer has to know it nevertheless.

With `--refresh` the engine first reads each resource from the cloud. Only a stream of events has that state, with the
outcome of each `refresh` step: https://github.com/pulumi/pulumi/issues/16278.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final, NamedTuple

from tpucfg.changes.facts import ABSENT, Change, Risk, redact_change
from tpucfg.changes.preview_events import NO_OPS, REFRESH, REPLACING_OPS, EngineStep, State
from tpucfg.changes.resource_diff import differs_only_in_case, input_changes
from tpucfg.changes.resources import Step, access_statements, holds_data
from tpucfg.changes.statements import Statement
from tpucfg.changes.tree_diff import value_changes
from tpucfg.infra.grants import is_grant
from tpucfg.infra.resources import BUCKET, Resource
from tpucfg.paths import KeyPath, sort_keys, value_at
from tpucfg.redaction import redact

COMPUTED: Final = frozenset(
    (
        "createTime",
        "effectiveAnnotations",
        "effectiveLabels",
        "effectiveTime",
        "etag",
        "fingerprint",
        "generation",
        "metageneration",
        "pulumiLabels",
        "timeCreated",
        "updateTime",
        "updated",
    )
)
"""Properties at any depth that Google or the provider calculates: they differ without anybody's doing, or repeat a
property that differs too. https://www.pulumi.com/registry/packages/gcp/api-docs/storage/bucket/#outputs."""


class Refreshed(NamedTuple):
    """A resource as the last update left it, and as the cloud has it."""

    recorded: State
    cloud: State | None
    """None if the resource was deleted in the cloud."""
    differs: tuple[str, ...] = ()
    """The properties that differ in the cloud according to the provider."""


class Drift(NamedTuple):
    """One resource that differs in the cloud."""

    environment: str
    urn: str
    """As in the state: unlike the other values, it is not redacted."""
    type: str
    name: str
    """The logical name."""
    holds_data: bool = False
    """True if data may be lost with the resource."""
    deleted: bool = False
    """True if the resource was deleted in the cloud."""
    recreated: bool = False
    """True if the update creates the deleted resource again."""
    changes: tuple[Change, ...] = ()
    """The properties of the program, or of the provider's own comparison, that differ."""
    unmanaged: tuple[Change, ...] = ()
    """The properties that differ although no program sets them."""
    reverted: tuple[KeyPath, ...] = ()
    """The paths of the changes that the update sets back."""
    statements: tuple[Statement, ...] = ()
    """Sentences about access that the difference opens, or that the update grants again."""

    @property
    def kind(self) -> str:
        """The short form of the type: `storage.Bucket`."""
        return Resource(self.type, self.name, {}).kind

    @property
    def loses_data(self) -> bool:
        """True if data was deleted in the cloud."""
        return self.deleted and self.holds_data

    @property
    def risk(self) -> Risk:
        """The risk; never DESTRUCTIVE, as the change does not make it."""
        least = Risk.CAUTION if self.deleted or self.changes else Risk.NONE
        return max((statement.risk for statement in self.statements), default=least)


# Refresh


def separate_drift(environment: str, steps: Sequence[EngineStep]) -> tuple[list[EngineStep], tuple[Drift, ...]]:
    """Return the steps without drift, and the drift.

    A change begins where the last update ended, not where the cloud has drifted to.
    """
    states = {step.urn: Refreshed(step.old, step.new, step.differs) for step in steps if step.is_outcome and step.old}
    updates = (step for step in steps if step.op != REFRESH)
    recorded = [_from_recorded(step, states[step.urn]) if step.urn in states else step for step in updates]
    return recorded, _find_drift(environment, steps, states)


def _from_recorded(step: EngineStep, state: Refreshed) -> EngineStep:
    """Return the step that the engine would have taken without the drift."""
    is_recreated = step.op == "create" and state.cloud is None
    if step.old is None and not is_recreated:
        return step
    before, after = state.recorded.resource, step.new.resource if step.new else None
    from_recorded = step._replace(old=state.recorded)
    if after is None or not (is_recreated or step.op in {"update", "same"}):
        return from_recorded
    options_differ = (before.protect, before.retain) != (after.protect, after.retain)
    drifted = {str(change.path[0]) for change in _property_changes(state)}
    if options_differ or any(input_changes(before, after)) or not drifted.issuperset(step.differs):
        return from_recorded._replace(op="update")
    return from_recorded._replace(op="same", differs=())


# Drift


def _find_drift(environment: str, steps: Iterable[EngineStep], states: Mapping[str, Refreshed]) -> tuple[Drift, ...]:
    """Return the resources that differ in the cloud, sorted, without personal data and secrets."""
    updates = {step.urn: step for step in steps if step.op not in NO_OPS}
    deleted = [state.recorded.resource for state in states.values() if state.cloud is None]
    buckets = {resource.inputs.get("name") for resource in deleted if resource.type == BUCKET}
    drifts: list[Drift] = []
    for urn, state in states.items():
        resource = state.recorded.resource
        has_data = holds_data(resource.type, is_grant=is_grant(resource))
        drift = Drift(environment, urn, resource.type, redact(resource.name), has_data)
        if state.cloud is None:
            drifts.append(_deletion(drift, resource, updates.get(urn), buckets))
        elif changes := _property_changes(state):
            drifts.append(_difference(drift, state, changes, updates.get(urn)))
    return tuple(sorted(drifts, key=lambda drift: (drift.type, drift.name, drift.urn)))


def _deletion(drift: Drift, resource: Resource, update: EngineStep | None, buckets: Collection[Any]) -> Drift:
    """Return the drift of a resource that was deleted in the cloud, as these buckets were."""
    declared = update.new if update and update.op != "delete" else None
    # A grant on a deleted bucket is gone with it, and gives access to a new, empty one.
    follows_bucket = resource.inputs.get("bucket") in buckets
    statements = _access(None, declared.resource) if declared and not follows_bucket else ()
    return drift._replace(deleted=True, recreated=declared is not None, statements=statements)


def _difference(drift: Drift, state: Refreshed, changes: Sequence[Change], update: EngineStep | None) -> Drift:
    recorded = state.recorded.resource
    declared = update.new.resource.inputs if update and update.new else {}
    managed = {*recorded.inputs, *declared, *state.differs}
    values = {**state.cloud.outputs, **state.cloud.resource.inputs} if state.cloud else {}
    drifted = {key: values[key] for change in changes if (key := str(change.path[0])) in values}
    return drift._replace(
        changes=tuple(redact_change(change) for change in changes if change.path[0] in managed),
        unmanaged=tuple(redact_change(change) for change in changes if change.path[0] not in managed),
        reverted=tuple(redact_change(change).path for change in changes if _is_reverted(change.path, recorded, update)),
        statements=_access(recorded, recorded._replace(inputs={**recorded.inputs, **drifted})),
    )


def _property_changes(state: Refreshed) -> list[Change]:
    """Return the inputs that differ, and the outputs that differ although the inputs of that name are equal."""
    if state.cloud is None:
        return []
    inputs = _value_changes(state.recorded.resource.inputs, state.cloud.resource.inputs, frozenset())
    shown = [change for change in inputs if not differs_only_in_case(change)]
    # A provider that returns no inputs, or properties that the program leaves to Google, show only in the outputs.
    seen = {"location", *(change.path[0] for change in shown)}
    outputs = _value_changes(state.recorded.outputs, state.cloud.outputs, COMPUTED)
    return [*shown, *(change for change in outputs if change.path[0] not in seen)]


def _value_changes(before: Mapping[str, Any], after: Mapping[str, Any], ignored: frozenset[str]) -> Iterator[Change]:
    return value_changes(*(sort_keys(_essential(values, ignored)) for values in (before, after)))


def _essential(value: Any, ignored: frozenset[str]) -> Any:
    """Return a value without ignored properties, and without empty ones, which providers add and drop at will."""
    if isinstance(value, Mapping):
        items = ((key, _essential(item, ignored)) for key, item in value.items() if key not in ignored)
        return {key: item for key, item in items if item not in ({}, [], "", None)}
    return [_essential(item, ignored) for item in value] if isinstance(value, list) else value


def _is_reverted(path: KeyPath, recorded: Resource, update: EngineStep | None) -> bool:
    """Return True if the update gives a property the value that it had before it drifted."""
    if update is None or update.new is None or update.op not in {"update", *REPLACING_OPS}:
        return False
    declared = update.new.resource.inputs
    if path[0] not in recorded.inputs and path[0] not in declared:
        return str(path[0]) in update.differs
    # Items of lists have other indices in other lists, so a list counts as a whole.
    keys = tuple(takewhile(lambda step: isinstance(step, str), path))
    return bool(value_at(declared, keys, ABSENT) == value_at(recorded.inputs, keys, ABSENT))


def _access(before: Resource | None, after: Resource) -> tuple[Statement, ...]:
    """Return the access that differs, as it does for a change."""
    # Another resource that exists already: the stack is not new, so its grants are no part of creating it.
    other = Resource("", "", {})
    [_, statements] = access_statements([Step(other, other, "same"), Step(before, after, "update")])
    return statements
