"""Drift: resources that differ in the cloud from what the last update left, whatever the change does.

Drift is never made by the change, so it never decides `--fail-on`. An update reverts most of it without being asked,
so a reviewer has to know it nevertheless.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final, Literal, NamedTuple

from tpucfg.changes.facts import ABSENT, Change, redact_change
from tpucfg.changes.grants import access_widenings
from tpucfg.changes.preview_events import REFRESH, Event
from tpucfg.changes.preview_steps import is_provider_managed, resource_of, state_values, step_op, strings
from tpucfg.changes.resource_diff import sort_keys
from tpucfg.changes.resources import Op, ResourceChange, Step, Widening, holds_data
from tpucfg.changes.statements import Risk
from tpucfg.changes.tree_diff import value_changes
from tpucfg.infra.grants import is_grant
from tpucfg.infra.resources import BUCKET, Resource
from tpucfg.redaction import redact
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
    widened: tuple[Widening, ...] = ()
    """Access that the difference opens, or that the update grants again."""

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
        if self.widened:
            return Risk.ACCESS
        return Risk.CAUTION if self.deleted or self.changes else Risk.NONE


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


def _drift(state: CloudState, deleted_buckets: Collection[Any]) -> Drift | None:
    recorded = state.recorded
    has_data = holds_data(recorded.type, is_grant=is_grant(recorded))
    drift = Drift(state.environment, state.urn, recorded.type, redact(recorded.name), has_data)
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
    values = {**state.current_outputs, **state.current.inputs}
    drifted = {key: values[key] for change in changes if (key := str(change.path[0])) in values}
    return recorded._replace(inputs={**recorded.inputs, **drifted})


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


# Refresh
#
# In a stream, the engine prints the state in the cloud with the outcome of each `refresh` step. The document contains
# only the beginning of these steps, with the recorded state twice; there, the old state of a resource's next step is
# the one in the cloud: https://github.com/pulumi/pulumi/issues/16278.

RefreshScope = Literal["none", "changed", "all"]
"""The resources whose drift a preview shows.

`none`: it was taken without `--refresh`. `changed`: only those that the update changes, as the document of a preview
has no others. `all`: those of a stream.
"""


class RefreshedState(NamedTuple):
    """A resource's state before and after its refresh, as the engine prints it."""

    recorded: Mapping[str, Any]
    current: Mapping[str, Any] | None
    """None if the resource was deleted in the cloud."""
    differs: tuple[str, ...] = ()
    """The properties that the provider names."""


def refreshed_states(events: Sequence[Event]) -> dict[str, RefreshedState]:
    """Return the refreshed state of each resource by URN; none if the preview was taken without `--refresh`."""
    recorded = {event.text("urn"): event.data["old"] for event in events if _is_refresh(event)}
    states: dict[str, RefreshedState] = {}
    for event in events:
        urn = event.text("urn")
        if event.kind == "refreshed" and urn in recorded:
            new = event.data.get("new")
            current = new if isinstance(new, dict) else None
            states[urn] = RefreshedState(recorded[urn], current, strings(event.data.get("diffs")))
    for event in events:
        urn = event.text("urn")
        if event.kind == "step" and urn in recorded and urn not in states and event.text("op") != REFRESH:
            old = event.data.get("old")
            states[urn] = RefreshedState(recorded[urn], old if isinstance(old, dict) else None)
    return states


def refresh_scope(events: Sequence[Event]) -> RefreshScope:
    """Return the resources whose drift the preview shows."""
    if any(event.kind == "refreshed" for event in events):
        return "all"
    return "changed" if any(map(_is_refresh, events)) else "none"


def from_recorded_states(events: Sequence[Event], states: Mapping[str, RefreshedState]) -> list[Event]:
    """Return the events with steps that begin at the recorded state, so that they contain the change without drift."""
    return [_from_recorded_state(event, states.get(event.text("urn"))) for event in events]


def _from_recorded_state(event: Event, state: RefreshedState | None) -> Event:
    op = event.text("op")
    if state is None or event.kind != "step" or op == REFRESH:
        return event
    if op == "create" and state.current is None:
        # Without the deletion in the cloud, the engine would have updated the resource.
        return event._replace(data={**event.data, "op": "update", "old": state.recorded})
    old, new = event.data.get("old"), event.data.get("new")
    if not isinstance(old, dict):
        return event
    if op == "same" and isinstance(new, dict) and new.get("inputs") != state.recorded.get("inputs"):
        # The program declares what the cloud has already, which nothing is left to do for but to record.
        op = "update"
    return event._replace(data={**event.data, "op": op, "old": {**old, "inputs": state.recorded.get("inputs")}})


def _is_refresh(event: Event) -> bool:
    return event.kind == "step" and event.text("op") == REFRESH and isinstance(event.data.get("old"), dict)


def cloud_states(environment: str, events: Sequence[Event], states: Mapping[str, RefreshedState]) -> list[CloudState]:
    """Return the refreshed resources with their state after the update. The events begin at the recorded states."""
    steps = {
        event.text("urn"): event for event in events if event.kind == "step" and step_op(event.text("op")) is not None
    }
    return [
        _cloud_state(environment, urn, state, steps.get(urn))
        for urn, state in states.items()
        if is_provider_managed({"urn": urn, "old": state.recorded})
    ]


def _cloud_state(environment: str, urn: str, state: RefreshedState, step: Event | None) -> CloudState:
    data = {"urn": urn, "old": state.recorded, "new": state.current}
    recorded = resource_of(data, "old")
    assert recorded is not None  # noqa: S101 - a refresh begins with a recorded state
    cloud = CloudState(
        environment,
        urn,
        recorded,
        state_values(state.recorded, "outputs"),
        resource_of(data, "new"),
        state_values(state.current or {}, "outputs"),
        differs=state.differs,
    )
    if step is None:
        return cloud
    declared, op = resource_of(step.data, "new"), step_op(step.text("op")) or "same"
    return cloud._replace(declared=declared, op=op, differs_in_update=strings(step.data.get("diffs")))
