"""Steps of the engine: each resource before and after, read from a preview's events."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, get_args

from tpucfg.changes.preview_events import Event
from tpucfg.changes.resource_diff import forces_replacement, input_changes
from tpucfg.changes.resources import UNKNOWN, Op, Step
from tpucfg.infra.resources import Resource
from tpucfg.redaction import SECRET
from tpucfg.text_format import format_value

_UNKNOWN_MARKERS: Final = frozenset(
    (
        "04da6b54-80e4-46f7-96ec-b56ff0331ba9",
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
        "030794c1-ac77-496b-92df-f27374a8bd58",
        "e48ece36-62e2-4504-bad9-02848725956a",
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
    )
)
"""Markers of a value that is known only after the update, one for each type:
https://github.com/pulumi/pulumi/blob/master/sdk/go/common/resource/plugin/rpc.go."""
_BRIDGE_PROPERTIES: Final = frozenset(("__defaults", "__meta", "__pulumi_raw_state_delta", "__internal"))
"""Internal properties of the bridge between Pulumi and the Terraform provider."""
_SIGNATURE_KEY, _SECRET_SIGNATURE = "4dabf18193072939515e22adb298388d", "1b47061264138c4ac30d75fd1eb44270"
"""The mark of a secret: https://github.com/pulumi/pulumi/blob/master/sdk/go/common/resource/sig/sig.go."""
_OPS: Final[Mapping[str, Op]] = {op: op for op in get_args(Op)} | {"import-replacement": "replace"}
_REPLACEMENT_PARTS: Final = frozenset(("create-replacement", "delete-replaced", "import-replacement"))
_NO_OPS: Final = frozenset(
    ("read", "read-replacement", "read-discard", "refresh", "discard-replaced", "remove-pending-replace", "diff")
)
"""Operations that change nothing in the cloud."""


class _Urn(NamedTuple):
    """The parts of a URN that identify a resource in its stack."""

    type: str
    name: str

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "_Urn":
        """Parse the URN of a step: https://www.pulumi.com/docs/iac/concepts/resources/names/#urns."""
        _, _, types, name = (*str(data.get("urn")).split("::", 3), "", "", "")[:4]
        # The types of the parents precede the resource's own: `parent$child`.
        return cls(types.rpartition("$")[2], name)


def resource_steps(events: Sequence[Event]) -> tuple[list[Step], list[str]]:
    """Return the step of each resource that a provider manages, and a warning for each unknown operation.

    The engine emits a replacement as a `replace` event and an event for each of its parts. They become one step, with
    the reasons from any of these events. A stream that was cut off may contain only the parts.
    """
    complete: list[tuple[Op, Mapping[str, Any]]] = []
    parts: dict[str, dict[str, Any]] = {}
    warnings: list[str] = []
    for event in events:
        data = event.data
        if event.kind != "step" or not is_provider_managed(data):
            continue
        op = event.text("op")
        if op in _REPLACEMENT_PARTS:
            parts.setdefault(data["urn"], {}).update({key: item for key, item in data.items() if item})
        elif op in _OPS:
            complete.append((_OPS[op], data))
        elif op not in _NO_OPS:
            # A newer engine may have operations that change something: to ignore them silently would be unsafe.
            name = format_value(_Urn.of(data).name, quoted=False)
            warnings.append(f"the preview contains an unknown operation, {format_value(op)} of {name}")
    replaced = {data["urn"] for op, data in complete if op == "replace"}
    complete += [("replace", data) for urn, data in parts.items() if urn not in replaced]
    return [_step(op, data, parts.get(data["urn"], {})) for op, data in complete], warnings


def _step(op: Op, data: Mapping[str, Any], parts: Mapping[str, Any]) -> Step:
    before, after = resource_of(data, "old"), resource_of(data, "new")
    because: tuple[str, ...] = ()
    if op == "replace":
        because = strings(data.get("keys")) or strings(parts.get("keys")) or _immutable_changes(before, after)
    elif op in {"create", "import"}:
        before = None
    elif op == "delete":
        after = None
    return Step(before, after, op, because, strings(data.get("diffs")))


def _immutable_changes(before: Resource | None, after: Resource | None) -> tuple[str, ...]:
    """Return the reasons of a replacement if no event contains them."""
    if before is None or after is None:
        return ()
    return forces_replacement(after.type, input_changes(before, after))


def is_provider_managed(data: Mapping[str, Any]) -> bool:
    """Return True for a resource of the cloud, and False for components, providers and the stack itself."""
    states = [state for key in ("old", "new") if isinstance(state := data.get(key), dict)]
    is_custom = any(state.get("custom") is True for state in states)
    return is_custom and isinstance(data.get("urn"), str) and not _Urn.of(data).type.startswith("pulumi:")


def step_op(op: str) -> Op | None:
    """Return the operation of an event; None if it changes nothing, or is unknown."""
    return "replace" if op in _REPLACEMENT_PARTS else _OPS.get(op)


def state_values(state: Mapping[str, Any], key: Literal["inputs", "outputs"]) -> Mapping[str, Any]:
    """Return the inputs or outputs of a state, without internal properties and secrets."""
    values = state.get(key)
    return _clean(values) if isinstance(values, dict) else {}


def resource_of(data: Mapping[str, Any], key: Literal["old", "new"]) -> Resource | None:
    """Return the resource of a step before or after the operation; None if it does not exist then."""
    state = data.get(key)
    if not isinstance(state, dict):
        return None
    return Resource(
        *_Urn.of(data),
        inputs=state_values(state, "inputs"),
        protect=state.get("protect") is True,
        retain=state.get("retainOnDelete") is True,
    )


def _clean(value: Any) -> Any:
    """Return a value without internal properties, and with placeholders for secret and unknown values."""
    if isinstance(value, dict):
        if value.get(_SIGNATURE_KEY) == _SECRET_SIGNATURE:
            return SECRET
        return {key: _clean(item) for key, item in value.items() if key not in _BRIDGE_PROPERTIES}
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return UNKNOWN if isinstance(value, str) and value in _UNKNOWN_MARKERS else value


def strings(value: Any) -> tuple[str, ...]:
    """Return the texts of a list; none for any other value."""
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
