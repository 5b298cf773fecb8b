"""Steps of the engine about resources of the cloud, read from the events of a preview."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast, get_args

from tpucfg.changes.preview_events import Event
from tpucfg.changes.resource_diff import forces_replacement, input_changes
from tpucfg.changes.resources import Op, Step
from tpucfg.infra.resources import Resource
from tpucfg.text_format import format_value

REFRESH: Final = "refresh"
"""The operation that reads a resource from the cloud."""
_OPS: Final = frozenset(get_args(Op))
_REPLACEMENT_PARTS: Final = ("create-replacement", "delete-replaced", "import-replacement")
REPLACING_OPS: Final = ("replace", *_REPLACEMENT_PARTS)
NO_OPS: Final = frozenset(
    ("read", "read-replacement", "read-discard", REFRESH, "discard-replaced", "remove-pending-replace", "diff")
)
"""Operations that change nothing in the cloud."""


class State(NamedTuple):
    """A resource in the state of the stack."""

    resource: Resource
    outputs: Mapping[str, Any]


class EngineStep(NamedTuple):
    """A step of the engine, or the outcome of a refresh, about a resource that a provider manages."""

    urn: str
    op: str
    old: State | None
    new: State | None
    reasons: tuple[str, ...] = ()
    """The inputs that force a replacement."""
    differs: tuple[str, ...] = ()
    """The properties that differ according to the provider."""
    is_outcome: bool = False


def other_stack(events: Iterable[Event], environment: str) -> str:
    """Return the name of another stack that steps are about; empty if there is none."""
    urns = [event.text("urn").split("::") for event in events if event.kind in {"step", "outcome"}]
    # Stack, project, type and name.
    stacks = {urn[0].removeprefix("urn:pulumi:") for urn in urns if len(urn) > 3}  # noqa: PLR2004 - the line above
    return min(stacks - {environment}, default="")


def engine_steps(events: Iterable[Event]) -> Iterator[EngineStep]:
    """Yield the steps about resources of the cloud, and not those about components, providers and the stack itself."""
    for event in events:
        data, urn, op = event.data, event.text("urn"), event.text("op")
        is_outcome = event.kind == "outcome" and op == REFRESH
        is_custom = any(isinstance(data.get(key), dict) and data[key].get("custom") is True for key in ("old", "new"))
        if is_outcome or (event.kind == "step" and is_custom):
            old, new = (_state(urn, data.get(key)) for key in ("old", "new"))
            if urn and not _type_and_name(urn)[0].startswith("pulumi:"):
                yield EngineStep(urn, op, old, new, _texts(data.get("keys")), _texts(data.get("diffs")), is_outcome)


def _type_and_name(urn: str) -> tuple[str, str]:
    """Return type and name of a resource: https://www.pulumi.com/docs/iac/concepts/resources/names/#urns."""
    _, _, types, name = (*urn.split("::", 3), "", "", "")[:4]
    # The types of the parents precede the resource's own: `parent$child`.
    return types.rpartition("$")[2], name


def _state(urn: str, state: Any) -> State | None:
    """Return a state of a resource; None if it does not exist then."""
    if not isinstance(state, dict):
        return None
    inputs, outputs = (values if isinstance(values := state.get(key), dict) else {} for key in ("inputs", "outputs"))
    protect, retain = (state.get(key) is True for key in ("protect", "retainOnDelete"))
    return State(Resource(*_type_and_name(urn), inputs, protect, retain), outputs)


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


# The change


def unknown_operations(steps: Iterable[EngineStep]) -> list[str]:
    """Return a warning for each operation of a newer engine, which may change something."""
    known = {*_OPS, *REPLACING_OPS, *NO_OPS}
    return [
        f"the preview contains an unknown operation, {format_value(step.op)} of "
        f"{format_value(_type_and_name(step.urn)[1], quoted=False)}"
        for step in steps
        if step.op not in known
    ]


def change_steps(steps: Iterable[EngineStep]) -> list[Step]:
    """Return the step of each resource.

    The engine emits a replacement as a `replace` event and an event for each of its parts. They become one step, with
    the reasons from any of these events. A stream that was cut off may contain only the parts.
    """
    complete: list[EngineStep] = []
    parts: dict[str, list[EngineStep]] = {}
    for step in steps:
        if step.op in _REPLACEMENT_PARTS:
            parts.setdefault(step.urn, []).append(step)
        elif step.op in _OPS:
            complete.append(step)
    replaced = {step.urn for step in complete if step.op == "replace"}
    joined = [_joined([*parts.get(step.urn, ()), step]) if step.op == "replace" else step for step in complete]
    joined += [_joined(items)._replace(op="replace") for urn, items in parts.items() if urn not in replaced]
    return [*map(_change_step, joined)]


def _joined(steps: Sequence[EngineStep]) -> EngineStep:
    """Return the steps of one replacement as one, with the last of the values of each field."""
    fields = {key: value for step in steps for key, value in step._asdict().items() if value}
    return steps[0]._replace(**fields)


def _change_step(step: EngineStep) -> Step:
    op = cast("Op", step.op)
    before = step.old.resource if step.old and op not in {"create", "import"} else None
    after = step.new.resource if step.new and op != "delete" else None
    because: tuple[str, ...] = ()
    if op == "replace":
        because = step.reasons
        if not because and before and after:
            because = forces_replacement(after.type, input_changes(before, after))
    return Step(before, after, op, because, step.differs)
