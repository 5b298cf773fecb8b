"""Events of the Pulumi engine, from the file of a preview: one document or a stream, with other lines between them.

The steps among them have a resource before and after, as the comparison of programs has.

The file is what anyone may have written: it is read within bounds.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, get_args

from tpucfg.changes.resource_diff import forces_replacement, input_changes
from tpucfg.changes.resources import UNKNOWN, Op, ResourceStep
from tpucfg.infra.resources import Resource
from tpucfg.paths import grouped
from tpucfg.redaction import SECRET

_MAX_DEPTH: Final = 64
"""Levels of a value; deeper ones are dropped. Properties of resources have a dozen levels at most."""
_MAX_PIECES: Final = 200_000
"""Enough for a stack of 50,000 resources, each with two relevant events and two others."""
_PRUNED: Final = "[…]"
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
_BRIDGE_PROPERTIES: Final = frozenset(
    ("__defaults", "__meta", "__pulumi_raw_state_delta", "__internal")
)
"""Internal properties of the bridge between Pulumi and the Terraform provider."""
_SIGNATURE_KEY, _SECRET_SIGNATURE = (
    "4dabf18193072939515e22adb298388d",
    "1b47061264138c4ac30d75fd1eb44270",
)
"""The mark of a secret: https://github.com/pulumi/pulumi/blob/master/sdk/go/common/resource/sig/sig.go."""
# NaN and Infinity are no JSON: they become text, as the JSON of a review cannot contain them.
_DECODER: Final = json.JSONDecoder(parse_constant=str)
_SPACES: Final = re.compile(r"\s*")


class JsonPiece(NamedTuple):
    """A JSON object, a line of other text, or the error of an object that cannot be parsed."""

    line: int
    """The first line of the piece, or the line of the error; from 1."""
    value: dict[str, Any] | None
    text: str = ""
    """The line of other text, or the error's reason if `broken`."""
    broken: bool = False


def scan_json(data: bytes) -> Iterator[JsonPiece]:
    """Yield objects and lines of text in their order, without empty lines, up to the first error."""
    text = data.decode(errors="replace")
    position, line, end = 0, 1, len(text.rstrip())
    pieces = 0
    while position < end:
        pieces += 1
        if pieces > _MAX_PIECES:
            yield JsonPiece(
                line, None, f"there are more than {_MAX_PIECES:,} objects and lines", broken=True
            )
            return
        spaces = _SPACES.match(text, position)
        start = spaces.end() if spaces else position
        line += text.count("\n", position, start)
        if text[start] == "{":
            piece, last = _parse_object(text, start, line)
        else:
            last = _line_end(text, start)
            piece = JsonPiece(line, None, text[start:last].rstrip())
        yield piece
        line += text.count("\n", start, last + 1)
        position = last + 1


def _parse_object(text: str, start: int, line: int) -> tuple[JsonPiece, int]:
    """Return the object that begins at `start`, and the index of the last character to skip."""
    try:
        value, object_end = _DECODER.raw_decode(text, start)
    except (RecursionError, ValueError) as error:
        line += text.count("\n", start, getattr(error, "pos", start))
        reason = (
            f"invalid JSON: {error}"
            if isinstance(error, ValueError)
            else "invalid JSON: it is nested too deeply"
        )
        return JsonPiece(line, None, reason, broken=True), len(text)
    return JsonPiece(
        line, {key: _clean(item, _MAX_DEPTH) for key, item in value.items()}
    ), object_end - 1


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end == -1 else end


def _clean(value: Any, levels: int) -> Any:
    """Return a value without internal properties, and with placeholders for what is secret, unknown or too deep."""
    if isinstance(value, str):
        return UNKNOWN if value in _UNKNOWN_MARKERS else value
    if not isinstance(value, dict | list):
        return value
    if not levels:
        return _PRUNED
    if isinstance(value, list):
        return [_clean(item, levels - 1) for item in value]
    if value.get(_SIGNATURE_KEY) == _SECRET_SIGNATURE:
        return SECRET
    return {
        key: _clean(item, levels - 1)
        for key, item in value.items()
        if key not in _BRIDGE_PROPERTIES
    }


# Events

_KINDS: Final[Mapping[str, str]] = {
    "resourcePreEvent": "step",
    "resOutputsEvent": "outcome",
    "diagnosticEvent": "diagnostic",
    "policyEvent": "policy",
    "summaryEvent": "summary",
}
"""The events of the stream that have a content; others show that the file is a preview, if an incomplete one."""
_DOCUMENT_KEYS: Final = frozenset(("steps", "changeSummary", "diagnostics"))
"""Keys of the document; each of them can be missing."""


class Event(NamedTuple):
    """An event of the engine."""

    kind: str
    """`step`, `outcome` (of a step), `diagnostic`, `policy`, `summary` or `progress`."""
    data: Mapping[str, Any]

    def text(self, key: str) -> str:
        """Return a text of the event; empty if the key is missing or has a value of another type."""
        value = self.data.get(key)
        return value if isinstance(value, str) else ""


def events_of(value: Mapping[str, Any]) -> Iterator[Event]:
    """Yield the events in a JSON object: all of them for a document, one for a line of the stream."""
    if not _DOCUMENT_KEYS.isdisjoint(value):
        yield from _events_of_document(value)
        return
    for key, item in value.items():
        kind = _KINDS.get(key, "progress" if key.endswith("Event") else "")
        data = (
            item.get("metadata") if kind in {"step", "outcome"} and isinstance(item, dict) else item
        )
        if kind and isinstance(data, dict):
            yield Event(kind, data)


def _events_of_document(value: Mapping[str, Any]) -> Iterator[Event]:
    """Yield the events of a document, with the keys that they have in the stream."""
    for step in _dicts(value.get("steps")):
        states = {"old": step.get("oldState"), "new": step.get("newState")}
        reasons = {"keys": step.get("replaceReasons"), "diffs": step.get("diffReasons")}
        yield Event("step", {"op": step.get("op"), "urn": step.get("urn"), **states, **reasons})
    for diagnostic in _dicts(value.get("diagnostics")):
        yield Event("diagnostic", diagnostic)
    if isinstance(value.get("changeSummary"), dict):
        yield Event("summary", {})


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


# Steps

REFRESH: Final = "refresh"
"""The operation that reads a resource from the cloud."""
_OPS: Final = frozenset(get_args(Op))
_REPLACEMENT_PARTS: Final = ("create-replacement", "delete-replaced", "import-replacement")
_REPLACING_OPS: Final = ("replace", *_REPLACEMENT_PARTS)
_NO_OPS: Final = frozenset(
    (
        "read",
        "read-replacement",
        "read-discard",
        REFRESH,
        "discard-replaced",
        "remove-pending-replace",
        "diff",
    )
)
"""Operations that change nothing in the cloud."""
_KNOWN_OPS: Final = frozenset((*_OPS, *_REPLACING_OPS, *_NO_OPS))


def other_stack(events: Iterable[Event], environment: str) -> str:
    """Return the name of another stack that steps are about; empty if there is none."""
    urns = [event.text("urn").split("::") for event in events if event.kind in {"step", "outcome"}]
    # Stack, project, type and name.
    stacks = {urn[0].removeprefix("urn:pulumi:") for urn in urns if len(urn) > 3}  # noqa: PLR2004 - the line above
    return min(stacks - {environment}, default="")


def engine_steps(events: Iterable[Event]) -> Iterator[ResourceStep]:
    """Yield the steps about resources of the cloud, and not those about components, providers and the stack itself.

    Of a refresh it is the outcome, which has the resource as the cloud has it.
    """
    for event in events:
        data, urn, op = event.data, event.text("urn"), event.text("op")
        states = [
            state if isinstance(state := data.get(key), dict) else None for key in ("old", "new")
        ]
        is_custom = any(state and state.get("custom") is True for state in states)
        is_known = is_custom if event.kind == "step" else event.kind == "outcome"
        if is_known and (event.kind == "outcome") == (op == REFRESH) and urn:
            type_, name = _type_and_name(urn)
            # What is created or imported was not there before, and what is deleted is not there afterwards.
            hidden = ({"create", "import"}, {"delete"})
            before, after = (
                _resource(type_, name, state) if state is not None and op not in ops else None
                for state, ops in zip(states, hidden, strict=True)
            )
            if op not in _KNOWN_OPS:
                # An operation of a newer engine: its states are all that is known.
                op = "update" if before and after else "delete" if before else "create"
            outputs = (_mapping(states[0], "outputs"), _mapping(states[1], "outputs"))
            if not type_.startswith("pulumi:"):
                yield ResourceStep(
                    before,
                    after,
                    op,
                    _texts(data.get("keys")),
                    _texts(data.get("diffs")),
                    urn,
                    outputs,
                )


def _type_and_name(urn: str) -> tuple[str, str]:
    """Return type and name of a resource: https://www.pulumi.com/docs/iac/concepts/resources/names/#urns."""
    _, _, types, name = (*urn.split("::", 3), "", "", "")[:4]
    # The types of the parents precede the resource's own: `parent$child`.
    return types.rpartition("$")[2], name


def _resource(type_: str, name: str, state: Mapping[str, Any]) -> Resource:
    """Return a resource in the state of the stack."""
    protect, retain = (state.get(key) is True for key in ("protect", "retainOnDelete"))
    return Resource(type_, name, _mapping(state, "inputs"), protect, retain)


def _mapping(state: Mapping[str, Any] | None, key: str) -> Mapping[str, Any]:
    values = (state or {}).get(key)
    return values if isinstance(values, dict) else {}


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


# The change


def change_steps(steps: Sequence[ResourceStep]) -> list[ResourceStep]:
    """Return the step of each resource.

    The engine emits a replacement as a `replace` event and an event for each of its parts. They become one step, with
    the reasons from any of these events. A stream that was cut off may contain only the parts.
    """
    parts = grouped((step.urn, step) for step in steps if step.op in _REPLACEMENT_PARTS)
    complete = [step for step in steps if step.op in _OPS]
    replaced = {step.urn for step in complete if step.op == "replace"}
    joined = [
        _joined([*parts.get(step.urn, ()), step]) if step.op == "replace" else step
        for step in complete
    ]
    joined += [
        _joined(items)._replace(op="replace") for urn, items in parts.items() if urn not in replaced
    ]
    return [step._replace(because=_reasons(step)) for step in joined]


def _joined(steps: Sequence[ResourceStep]) -> ResourceStep:
    """Return the steps of one replacement as one, with the last of the values of each field."""
    fields = {key: value for step in steps for key, value in step._asdict().items() if value}
    return steps[0]._replace(**fields)


def _reasons(step: ResourceStep) -> tuple[str, ...]:
    """Return the inputs that force a replacement; those that Google cannot change, if the engine names none."""
    if step.op != "replace":
        return ()
    known = (
        forces_replacement(step.after.type, input_changes(step.before, step.after))
        if step.after
        else ()
    )
    return step.because or (known if step.before else ())
