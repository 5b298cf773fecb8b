"""Reader of `pulumi preview --json`, which prints one document or a stream of engine events, and the drift in it.

The document: https://github.com/pulumi/pulumi/blob/master/pkg/backend/display/json.go. The stream, which
PULUMI_ENABLE_STREAMING_JSON_PREVIEW=true enables and which also contains policy violations:
https://github.com/pulumi/pulumi/blob/master/sdk/go/common/apitype/events.go.

A preview that is unreadable or incomplete has a failure. Its changes are those that could be read, and more may exist.

Drift are resources that differ in the cloud from what the last update left. It is never made by the change, so it never
decides `--fail-on`; an update reverts most of it without being asked, so a reviewer has to know it nevertheless. With
`--refresh` the engine first reads each resource from the cloud. Only a stream of events has that state, with the
outcome of each `refresh` step: https://github.com/pulumi/pulumi/issues/16278.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tpucfg.changes.preview_events import (
    REFRESH,
    Event,
    JsonPiece,
    change_steps,
    engine_steps,
    events_of,
    other_stack,
    scan_json,
)
from tpucfg.changes.resource_diff import input_changes, resource_changes
from tpucfg.changes.resources import ResourceChange, ResourceStep
from tpucfg.infra.resources import Resource, sort_resources
from tpucfg.redaction import redact
from tpucfg.text_format import printable


def separate_drift(steps: Sequence[ResourceStep]) -> tuple[list[ResourceStep], tuple[str, ...]]:
    """Return the steps without drift, and the resources that drifted, sorted: `storage.Bucket data`.

    A change begins where the last update ended, not where the cloud has drifted to.
    """
    states = {step.urn: (step.before, step) for step in steps if step.op == REFRESH and step.before}
    updates = (step for step in steps if step.op != REFRESH)
    recorded = [
        _from_recorded(step, *states[step.urn]) if step.urn in states else step for step in updates
    ]
    drift = {
        f"{before.kind} {redact(before.name)}"
        for before, state in states.values()
        if state.after is None or _drifted_properties(before, state)
    }
    return recorded, tuple(sorted(drift))


def _from_recorded(step: ResourceStep, before: Resource, state: ResourceStep) -> ResourceStep:
    """Return the step that the engine would have taken without the drift."""
    is_recreated = step.op == "create" and state.after is None
    if step.before is None and not is_recreated:
        return step
    after, from_recorded = step.after, step._replace(before=before)
    if after is None or not (is_recreated or step.op in {"update", "same"}):
        return from_recorded
    options_differ = (before.protect, before.retain) != (after.protect, after.retain)
    is_drift = _drifted_properties(before, state).issuperset(step.differs)
    if options_differ or any(input_changes(before, after)) or not is_drift:
        return from_recorded._replace(op="update")
    return from_recorded._replace(op="same", differs=())


def _drifted_properties(recorded: Resource, state: ResourceStep) -> set[str]:
    """Return what differs of the properties that the program sets, or the provider compares; Google adds others."""
    if state.after is None:
        return set()
    old_outputs, new_outputs = state.outputs
    # A provider that returns no inputs shows the difference only in the outputs.
    before = _essential({**recorded.inputs, **old_outputs})
    after = _essential({**state.after.inputs, **new_outputs})
    managed = {*recorded.inputs, *state.differs}
    return {key for key in managed if before.get(key) != after.get(key)}


def _essential(value: Any) -> Any:
    """Return a value without empty properties, which providers add and drop, and with its location in upper case."""
    if isinstance(value, list):
        return [_essential(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    items = ((key, _essential(item)) for key, item in value.items())
    return {
        key: item.upper() if key == "location" and isinstance(item, str) else item
        for key, item in items
        if item not in ({}, [], "", None)
    }


# Previews


MAX_PREVIEW_BYTES: Final = 32 * 1024 * 1024
"""A stack of a thousand resources has about 5 MB."""
_MAX_LINE_LENGTH: Final = 400
"""Characters of a line."""
_HOST_WARNINGS: Final = re.compile(
    r"using pulumi-\S+ from|new version of Pulumi|update-check|upgrade to version", re.IGNORECASE
)
"""Warnings about the machine that ran the preview, which are irrelevant to the change."""
NO_STACK: Final = "the stack does not exist yet: its first pulumi up creates everything"
"""The reason for a preview without a stack, which is no error: there is nothing to compare with yet."""
_MAX_LINES: Final = 40
"""Lines of a failure: twice the limit for a finding of the compiler."""
_MAX_MESSAGE_LENGTH: Final = 100_000
"""Characters of a message; the regular expressions below are never applied to longer texts."""
_URN: Final = re.compile(r"urn:pulumi:[^:\s'\"`]+::[^:\s'\"`]+::[^\s'\"`]*?::(?P<name>[^\s'\"`]+)")
_COLORS: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|<\{%[^%]*%\}>")
"""Escape sequences of a terminal, and Pulumi's own color tags, which it leaves in messages of policies."""
_PREFIX: Final = re.compile(
    r"(?:warning: )?(?:error: )?(?:[Pp]review failed: |an unhandled error occurred: )?"
)
_STACK_NOT_FOUND: Final = re.compile(r"no stack named '[^']*' found")
_INCOMPLETE: Final = "pulumi preview did not complete"
_MANDATORY: Final = "mandatory"
"""The enforcement level that stops an update: https://www.pulumi.com/docs/insights/policy/."""


class PreviewFailure(NamedTuple):
    """The reason why a preview is missing or incomplete."""

    location: str
    """`dev.jsonl:17`, or the file alone if the line is arbitrary."""
    reason: str
    """One sentence."""
    lines: tuple[str, ...] = ()
    """Pulumi's own messages, line by line."""


class PolicyViolation(NamedTuple):
    """A violation of a policy by a resource or by the stack."""

    policy: str
    """`pack/policy`."""
    level: str
    """`mandatory` stops an update; `advisory` and others do not."""
    name: str
    """The resource's logical name; empty for the stack."""
    message: str


class Preview(NamedTuple):
    """The preview of one environment."""

    environment: str
    changes: tuple[ResourceChange, ...] = ()
    before: tuple[Resource, ...] = ()
    """All resources of the stack before the update, also those that do not change."""
    after: tuple[Resource, ...] = ()
    """All resources of the stack after the update."""
    failure: PreviewFailure | None = None
    violations: tuple[PolicyViolation, ...] = ()
    warnings: tuple[str, ...] = ()
    """Pulumi's warnings, one line each, without those about the machine that ran the preview."""
    drift: tuple[str, ...] = ()
    """The resources that differ in the cloud, or are missing there, which is no part of the changes."""
    is_refreshed: bool = False
    """True if the preview shows the drift: a stream of events, taken with `--refresh`."""

    @property
    def is_new(self) -> bool:
        """True if the stack has no resources yet."""
        return self.failure is None and not self.before

    @property
    def has_no_stack(self) -> bool:
        """True if the stack does not exist yet."""
        return bool(self.failure and self.failure.reason == NO_STACK)


def read_preview(environment: str, file: str, data: bytes) -> Preview:
    """Read the preview of an environment.

    Args:
        environment: the name that the stack in the file must have.
        file: its name, for messages.
        data: its content, of which at most MAX_PREVIEW_BYTES are accepted.
    """
    if len(data) > MAX_PREVIEW_BYTES:
        reason = f"the file is larger than {MAX_PREVIEW_BYTES // 2**20} MiB"
        return Preview(environment, failure=PreviewFailure(file, reason))
    pieces = tuple(scan_json(data))
    events = tuple(_events(pieces))
    if other := other_stack(events, environment):
        reason = f"the preview is of the stack {printable(other)} instead of {environment}"
        return Preview(environment, failure=PreviewFailure(f"{file}:1", reason))
    engine = [*engine_steps(events)]
    recorded, drift = separate_drift(engine)
    steps = change_steps(recorded)
    return Preview(
        environment,
        changes=resource_changes(environment, steps),
        before=sort_resources(step.before for step in steps if step.before),
        after=sort_resources(step.after for step in steps if step.after),
        failure=_failure(file, pieces, events),
        # Sorted, as the order of parallel events differs from run to run.
        violations=tuple(sorted(_violations(events))),
        warnings=tuple(sorted(_warnings(events))),
        drift=drift,
        is_refreshed=any(step.op == REFRESH for step in engine),
    )


def _events(pieces: Sequence[JsonPiece]) -> Iterator[Event]:
    for piece in pieces:
        if piece.value is not None:
            yield from (event for event in events_of(piece.value) if not _is_progress(event))


def _is_progress(event: Event) -> bool:
    """Return True for a diagnostic that is only shown while Pulumi runs.

    A program's standard error is among these, line by line; the engine repeats it as one error.
    """
    is_transient = event.data.get("ephemeral") is True or event.text("severity") in {
        "debug",
        "info#err",
    }
    return event.kind == "diagnostic" and is_transient


def _violations(events: Sequence[Event]) -> Iterator[PolicyViolation]:
    for event in events:
        if event.kind == "policy":
            policy = f"{event.text('policyPackName')}/{event.text('policyName')}"
            name, message = (
                " ".join(_message_lines(event.text(key)))[:_MAX_LINE_LENGTH]
                for key in ("resourceUrn", "message")
            )
            yield PolicyViolation(policy, event.text("enforcementLevel"), name, message)


def _warnings(events: Sequence[Event]) -> Iterator[str]:
    for event in events:
        if event.kind == "diagnostic" and event.text("severity") == "warning":
            text = " ".join(_message_lines(_diagnostic_message(event)))
            if not _HOST_WARNINGS.search(text):
                yield text[:_MAX_LINE_LENGTH]


# Failures


def _failure(
    file: str, pieces: Sequence[JsonPiece], events: Sequence[Event]
) -> PreviewFailure | None:
    """Return the reason why a preview is incomplete: errors, or no summary of a success; None if it is complete."""
    lines = [piece for piece in pieces if piece.text and not piece.broken]
    lines = [piece for piece in lines if not _HOST_WARNINGS.search(piece.text)] or lines
    # Without events, any line is the reason; between them, what starts as an error, such as a lost connection.
    first = next(
        (
            index
            for index, piece in enumerate(lines)
            if not events or piece.text.startswith("error:")
        ),
        None,
    )
    located = [piece for piece in pieces if piece.broken] + (
        lines[first:] if first is not None else []
    )
    messages = [*_error_messages(events), *(piece.text for piece in located)]
    outcomes = {event.text(key) for event in events for key in ("result", "enforcementLevel")}
    is_successful = outcomes.isdisjoint(("failed", _MANDATORY)) and any(
        event.kind == "summary" for event in events
    )
    if is_successful and not messages:
        return None
    location = f"{file}:{located[0].line}" if located else file
    if any(map(_STACK_NOT_FOUND.search, messages)):
        return PreviewFailure(location, NO_STACK)
    shown = [line for message in messages for line in _message_lines(message)]
    more = [f"… and {len(shown) - _MAX_LINES} more lines"] if len(shown) > _MAX_LINES else []
    return PreviewFailure(location, _INCOMPLETE, (*shown[:_MAX_LINES], *more))


def _error_messages(events: Sequence[Event]) -> list[str]:
    """Return the errors, sorted: the engine works on resources in parallel, and their order differs from run to run."""
    errors = [
        event
        for event in events
        if event.kind == "diagnostic" and event.text("severity") == "error"
    ]
    return sorted(map(_diagnostic_message, errors))


def _diagnostic_message(event: Event) -> str:
    """Return the message of a diagnostic without colors and without generic prefixes."""
    return _PREFIX.sub(
        "", _COLORS.sub("", event.text("message")[:_MAX_MESSAGE_LENGTH]).strip(), count=1
    )


def _message_lines(text: str) -> list[str]:
    """Return the lines of a message of Pulumi: redacted, without colors, and with names instead of URNs."""
    return [
        _line(line)
        for line in redact(_COLORS.sub("", text[:_MAX_MESSAGE_LENGTH])).splitlines()
        if line.strip()
    ]


def _line(line: str) -> str:
    # A command has to work when copied, so its URN stays.
    short = line if "`pulumi " in line else _URN.sub(r"\g<name>", line)
    return printable(short.replace("\t", "  ").rstrip())[:_MAX_LINE_LENGTH]
