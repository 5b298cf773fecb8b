"""States of a preview with `--refresh`: what the last update left, what the cloud has, and the change between them.

In a stream, the engine prints the state in the cloud with the outcome of each `refresh` step. The document contains
only the beginning of these steps, with the recorded state twice; there, the old state of a resource's next step is the
one in the cloud: https://github.com/pulumi/pulumi/issues/16278.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from tpucfg.review.changes.resources.drift import CloudState
from tpucfg.review.preview.engine_events import REFRESH, Event
from tpucfg.review.preview.engine_steps import is_provider_managed, resource_of, state_values, step_op, strings

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
    managed = (
        (urn, state, {"urn": urn, "old": state.recorded, "new": state.current})
        for urn, state in states.items()
        if is_provider_managed({"urn": urn, "old": state.recorded})
    )
    return [_cloud_state(environment, data, state, steps.get(urn)) for urn, state, data in managed]


def _cloud_state(environment: str, data: Mapping[str, Any], state: RefreshedState, step: Event | None) -> CloudState:
    recorded = resource_of(data, "old")
    assert recorded is not None  # noqa: S101 - a refresh begins with a recorded state
    return CloudState(
        environment,
        str(data["urn"]),
        recorded,
        state_values(state.recorded, "outputs"),
        resource_of(data, "new"),
        state_values(state.current or {}, "outputs"),
        resource_of(step.data, "new") if step else None,
        (step_op(step.text("op")) if step else None) or "same",
        state.differs,
        strings(step.data.get("diffs")) if step else (),
    )
