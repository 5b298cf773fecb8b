"""The steps among the engine's events: each resource before and after."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tpucfg.infra.resources import Resource
from tpucfg.redaction import SECRET
from tpucfg.review.changes.resource_change import UNKNOWN, Op
from tpucfg.review.changes.resource_diff import IMMUTABLE_INPUTS, Step, input_changes
from tpucfg.review.preview.events import Event
from tpucfg.text_format import format_value

_UNKNOWNS: Final = frozenset(
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
"""What stands for a value that only the update will know, one for each type:
https://github.com/pulumi/pulumi/blob/master/sdk/go/common/resource/plugin/rpc.go."""
_OF_THE_BRIDGE: Final = frozenset(("__defaults", "__meta", "__pulumi_raw_state_delta", "__internal"))
"""Properties that the provider's bridge keeps for itself."""
_MARK, _SECRET_MARK = "4dabf18193072939515e22adb298388d", "1b47061264138c4ac30d75fd1eb44270"
"""https://github.com/pulumi/pulumi/blob/master/sdk/go/common/resource/sig/sig.go."""
_OPS: Final[Mapping[str, Op]] = {
    "create": "create",
    "update": "update",
    "delete": "delete",
    "replace": "replace",
    "import": "import",
    "import-replacement": "replace",
    "same": "same",
}
_PARTS_OF_A_REPLACEMENT: Final = frozenset(("create-replacement", "delete-replaced", "import-replacement"))
_NOTHING: Final = frozenset(
    ("read", "read-replacement", "read-discard", "refresh", "discard-replaced", "remove-pending-replace", "diff")
)
"""Operations that leave the cloud as it is."""


def resource_steps(events: Sequence[Event]) -> tuple[list[Step], list[str]]:
    """What happens to each resource that a plugin keeps, and what is said about steps that nobody here knows.

    The engine says a replacement in three parts, of which the one that stands for all is taken, and its reasons from
    whichever has them.
    """
    whole: list[tuple[Op, Mapping[str, Any]]] = []
    parts: dict[str, dict[str, Any]] = {}
    unknown: list[str] = []
    for event in events:
        data = event.data
        if event.kind != "step" or not _is_kept_by_a_plugin(data):
            continue
        op = event.word("op")
        if op in _PARTS_OF_A_REPLACEMENT:
            parts.setdefault(data["urn"], {}).update({key: item for key, item in data.items() if item})
        elif op in _OPS:
            whole.append((_OPS[op], data))
        elif op not in _NOTHING:
            unknown.append(
                f"the preview has a step {format_value(op)} of {format_value(_named(data)[1], quoted=False)}, which is not known here"
            )
    replaced = {data["urn"] for op, data in whole if op == "replace"}
    whole += [("replace", data) for urn, data in parts.items() if urn not in replaced]
    return [_step(op, data, parts.get(data["urn"], {})) for op, data in whole], unknown


def _step(op: Op, data: Mapping[str, Any], parts: Mapping[str, Any]) -> Step:
    before, after = _resource(data, "old"), _resource(data, "new")
    because: tuple[str, ...] = ()
    if op == "replace":
        because = _words(data.get("keys")) or _words(parts.get("keys")) or _fixed(before, after)
    elif op in {"create", "import"}:
        before = None
    elif op == "delete":
        after = None
    return Step(before, after, op, because, _words(data.get("diffs")))


def _fixed(before: Resource | None, after: Resource | None) -> tuple[str, ...]:
    if before is None or after is None or after.type not in IMMUTABLE_INPUTS:
        return ()
    changed = dict.fromkeys(str(change.path[0]) for change in input_changes(before, after))
    return tuple(key for key in changed if key in IMMUTABLE_INPUTS[after.type].inputs)


def _is_kept_by_a_plugin(data: Mapping[str, Any]) -> bool:
    """Whether it is a resource of the cloud: no component, no provider, not the stack."""
    states = [state for side in ("old", "new") if isinstance(state := data.get(side), dict)]
    custom = any(state.get("custom") is True for state in states)
    return custom and isinstance(data.get("urn"), str) and not _named(data)[0].startswith("pulumi:")


def _named(data: Mapping[str, Any]) -> tuple[str, str]:
    """Type and logical name, out of the URN: https://www.pulumi.com/docs/iac/concepts/resources/names/#urns."""
    _, _, types, name = (*str(data.get("urn")).split("::", 3), "", "", "")[:4]
    return types.rpartition("$")[2], name


def _resource(data: Mapping[str, Any], side: str) -> Resource | None:
    state = data.get(side)
    if not isinstance(state, dict):
        return None
    inputs = state.get("inputs")
    kept = cleaned(inputs) if isinstance(inputs, dict) else {}
    protect, retain = state.get("protect") is True, state.get("retainOnDelete") is True
    return Resource(*_named(data), kept, protect=protect, retain=retain)


def cleaned(value: Any) -> Any:
    """A value without the bridge's own properties, with words in the place of what is secret or not known yet."""
    if isinstance(value, dict):
        if value.get(_MARK) == _SECRET_MARK:
            return SECRET
        return {key: cleaned(item) for key, item in value.items() if key not in _OF_THE_BRIDGE}
    if isinstance(value, list):
        return [cleaned(item) for item in value]
    return UNKNOWN if isinstance(value, str) and value in _UNKNOWNS else value


def _words(value: Any) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
