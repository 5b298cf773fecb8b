"""Drift: resources that differ in the cloud from what the last update left, whatever the change does.

Drift is never made by the change, so it never decides `--fail-on`. An update reverts most of it without being asked,
so a reviewer has to know it nevertheless.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Any, Final, Literal, NamedTuple

from tpucfg.changes.facts import ABSENT, Change, redact_change
from tpucfg.changes.statements import Risk
from tpucfg.changes.tree_diff import value_changes
from tpucfg.infra.resources import Resource
from tpucfg.redaction import redact
from tpucfg.review.changes.resources.iam_changes import access_widenings
from tpucfg.review.changes.resources.resource_change import BUCKET, STATEFUL_TYPES, Op, ResourceChange, Step, Widening
from tpucfg.review.changes.resources.resource_diff import sort_keys
from tpucfg.yamldoc.document import KeyPath

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

Knowledge = Literal["", "base", "head"]
"""The revision whose spec knows the drift: `base` if both specs do, `head` if only the change adds it."""


class CloudState(NamedTuple):
    """A resource as the last update left it, as the cloud has it, and as the program declares it."""

    environment: str
    urn: str
    recorded: Resource
    recorded_outputs: Mapping[str, Any]
    current: Resource | None
    """None if the resource was deleted in the cloud."""
    current_outputs: Mapping[str, Any]
    declared: Resource | None = None
    """The resource after the update; None if the preview does not contain it."""
    op: Op = "same"
    """The operation of the update."""
    differs: tuple[str, ...] = ()
    """The properties that differ in the cloud according to the provider."""
    differs_in_update: tuple[str, ...] = ()
    """The properties that the update changes according to the provider."""


class Drift(NamedTuple):
    """One resource that differs in the cloud."""

    environment: str
    urn: str
    """As in the state: unlike the other values, it is not redacted."""
    type: str
    name: str
    """The logical name."""
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
    widened: tuple[Widening, ...] = ()
    """Access that the difference opens, or that the update grants again."""
    known_in: Knowledge = ""
    reason: str = ""
    """The reason from `allow_drift`."""

    @property
    def kind(self) -> str:
        """The short form of the type: `storage.Bucket`."""
        return Resource(self.type, self.name, {}).kind

    @property
    def loses_data(self) -> bool:
        """True if data was deleted in the cloud."""
        return self.deleted and self.type in STATEFUL_TYPES

    @property
    def is_known(self) -> bool:
        """True if `allow_drift` applies: never to deletions and to access, which an old reason cannot foresee."""
        return self.known_in == "base" and not (self.deleted or self.widened)

    @property
    def risk(self) -> Risk:
        """The risk; never DESTRUCTIVE, as the change does not make it."""
        if self.widened:
            return Risk.ACCESS
        return Risk.CAUTION if self.deleted or (self.changes and not self.is_known) else Risk.NONE


def find_drift(states: Iterable[CloudState]) -> tuple[Drift, ...]:
    """Return the resources that differ in the cloud, sorted, without personal data and secrets."""
    all_states = tuple(states)
    deleted_buckets = {
        state.recorded.inputs.get("name")
        for state in all_states
        if state.current is None and state.recorded.type == BUCKET
    }
    drifts = (drift for state in all_states if (drift := _drift(state, deleted_buckets)))
    return tuple(sorted(drifts, key=lambda drift: (drift.type, drift.name, drift.urn)))


def mark_known(
    drifts: Iterable[Drift], before: Mapping[str, str] | None, after: Mapping[str, str] | None
) -> tuple[Drift, ...]:
    """Return the drift with the reasons of `allow_drift`.

    Args:
        drifts: the drift of one environment.
        before: the key of the base's spec; None if that spec cannot be read.
        after: the key of the head's spec; None if that spec cannot be read.
    """
    return tuple(_mark(drift, before or {}, after or {}) for drift in drifts)


def _mark(drift: Drift, before: Mapping[str, str], after: Mapping[str, str]) -> Drift:
    if drift.urn not in after:
        return drift
    return drift._replace(known_in="base" if drift.urn in before else "head", reason=after[drift.urn])


def _drift(state: CloudState, deleted_buckets: Collection[Any]) -> Drift | None:
    recorded = state.recorded
    drift = Drift(state.environment, state.urn, recorded.type, redact(recorded.name))
    if state.current is None:
        recreated = state.declared is not None and state.op != "delete"
        # A grant on a deleted bucket is gone with it, and gives access to a new, empty one.
        follows_bucket = recorded.inputs.get("bucket") in deleted_buckets
        widened = () if follows_bucket or not recreated else _widened(None, state.declared)
        return drift._replace(deleted=True, recreated=recreated, widened=widened)
    changes = [*_property_changes(state)]
    if not changes:
        return None
    managed = {*recorded.inputs, *(state.declared.inputs if state.declared else ()), *state.differs}
    return drift._replace(
        changes=tuple(redact_change(change) for change in changes if change.path[0] in managed),
        unmanaged=tuple(redact_change(change) for change in changes if change.path[0] not in managed),
        reverted=tuple(redact_change(change).path for change in changes if _is_reverted(change.path, state)),
        widened=_widened(recorded, _with_values(recorded, changes, state)),
    )


def _property_changes(state: CloudState) -> Iterator[Change]:
    """Yield the inputs that differ, and the outputs that differ although the inputs of that name are equal."""
    current = state.current.inputs if state.current else {}
    inputs = [
        change
        for change in _value_changes(state.recorded.inputs, current, frozenset())
        # A location is written in any case, and Google returns it in upper case.
        if change.path != ("location",) or str(change.before).upper() != str(change.after).upper()
    ]
    yield from inputs
    # A provider that returns no inputs, or properties that the program leaves to Google, show only in the outputs.
    seen = {"location", *(change.path[0] for change in inputs)}
    outputs = _value_changes(state.recorded_outputs, state.current_outputs, COMPUTED)
    yield from (change for change in outputs if change.path[0] not in seen)


def _value_changes(before: Mapping[str, Any], after: Mapping[str, Any], ignored: frozenset[str]) -> Iterator[Change]:
    return value_changes(*(sort_keys(_essential(values, ignored)) for values in (before, after)))


def _essential(value: Any, ignored: frozenset[str]) -> Any:
    """Return a value without ignored properties, and without empty ones, which providers add and drop at will."""
    if isinstance(value, Mapping):
        items = ((key, _essential(item, ignored)) for key, item in value.items() if key not in ignored)
        return {key: item for key, item in items if item not in ({}, [], "", None)}
    return [_essential(item, ignored) for item in value] if isinstance(value, list) else value


def _is_reverted(path: KeyPath, state: CloudState) -> bool:
    """Return True if the update gives a property the value that it had before it drifted."""
    declared = state.declared
    if declared is None or state.op not in {"update", "replace"}:
        return False
    if path[0] not in state.recorded.inputs and path[0] not in declared.inputs:
        return str(path[0]) in state.differs_in_update
    # Items of lists have other indices in other lists, so a list counts as a whole.
    keys = tuple(takewhile(lambda step: isinstance(step, str), path))
    return bool(_value_at(declared.inputs, keys) == _value_at(state.recorded.inputs, keys))


def _value_at(value: Any, path: KeyPath) -> Any:
    for step in path:
        value = value.get(step, ABSENT) if isinstance(value, Mapping) else ABSENT
    return value


def _with_values(recorded: Resource, changes: Iterable[Change], state: CloudState) -> Resource:
    """Return the recorded resource with the drifted values of the cloud as its inputs."""
    assert state.current is not None  # noqa: S101 - a deleted resource has no values
    keys = {str(change.path[0]) for change in changes}
    values = {**state.current_outputs, **state.current.inputs}
    return recorded._replace(
        inputs={**recorded.inputs, **{key: values.get(key, ABSENT) for key in keys if key in values}}
    )


def _widened(before: Resource | None, after: Resource | None) -> tuple[Widening, ...]:
    """Return the access that differs, as it does for a change."""
    if after is None:
        return ()
    # Another resource that exists already: the stack is not new, so its grants are no part of creating it.
    other = Resource("", "", {})
    [_, widened] = access_widenings([Step(other, other, "same"), Step(before, after, "update")])
    return tuple(widening._replace(who=redact(widening.who)) for widening in widened)


def without_reverts(changes: Iterable[ResourceChange], states: Iterable[CloudState]) -> tuple[ResourceChange, ...]:
    """Return the changes without the updates that only set drift back, which are no part of the change."""
    by_key = {(state.recorded.type, redact(state.recorded.name)): state for state in states}
    return tuple(
        change
        for change in changes
        if not ((state := by_key.get((change.type, change.name))) and _only_reverts(change, state))
    )


def _only_reverts(change: ResourceChange, state: CloudState) -> bool:
    if change.op != "update" or change.inputs or change.protection or change.statements:
        return False
    drifted = {str(item.path[0]) for item in _property_changes(state)} if state.current else set[str]()
    return {*change.hidden} <= drifted
