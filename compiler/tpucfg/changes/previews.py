"""Reader of `pulumi preview --json`, which prints one document or a stream of engine events.

The document: https://github.com/pulumi/pulumi/blob/master/pkg/backend/display/json.go. The stream, which
PULUMI_ENABLE_STREAMING_JSON_PREVIEW=true enables and which also contains policy violations:
https://github.com/pulumi/pulumi/blob/master/sdk/go/common/apitype/events.go.

A preview that is unreadable or incomplete has a failure. Its changes are those that could be read, and more may exist.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from tpucfg.changes.drift import (
    Drift,
    RefreshScope,
    cloud_states,
    find_drift,
    from_recorded_states,
    refresh_scope,
    refreshed_states,
    without_reverts,
)
from tpucfg.changes.preview_events import Event, JsonPiece, decode_text, is_document, scan_json
from tpucfg.changes.preview_failures import (
    HOST_WARNINGS,
    MAX_LINE_LENGTH,
    NO_STACK,
    Failure,
    diagnostic_message,
    find_failure,
    message_lines,
)
from tpucfg.changes.preview_steps import resource_steps
from tpucfg.changes.resource_diff import resource_changes
from tpucfg.changes.resources import ResourceChange
from tpucfg.infra.resources import Resource, sort_resources
from tpucfg.text_format import printable

MAX_PREVIEW_BYTES: Final = 32 * 1024 * 1024
"""A stack of a thousand resources has about 5 MB."""


class Violation(NamedTuple):
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
    failure: Failure | None = None
    violations: tuple[Violation, ...] = ()
    warnings: tuple[str, ...] = ()
    """Pulumi's warnings, one line each, without those about the machine that ran the preview."""
    drift: tuple[Drift, ...] = ()
    """Differences in the cloud, which are no part of the changes."""
    refresh: RefreshScope = "none"
    is_stream: bool = True
    """True if the preview contains all resources, and not only those that change."""

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
        return Preview(environment, failure=Failure(file, reason))
    pieces = tuple(scan_json(decode_text(data)))
    events = tuple(_events(pieces))
    other_stacks = sorted({stack for event in events if (stack := event.stack)} - {environment})
    if other_stacks:
        reason = f"the preview is of the stack {printable(other_stacks[0])} instead of {environment}"
        return Preview(environment, failure=Failure(f"{file}:1", reason))
    refreshed = refreshed_states(events)
    # Drift has its own place: a change begins where the last update ended, not where the cloud has drifted to.
    change_events = from_recorded_states(events, refreshed)
    cloud = cloud_states(environment, change_events, refreshed)
    steps, unknown_operations = resource_steps(change_events)
    return Preview(
        environment,
        changes=without_reverts(resource_changes(environment, steps), cloud),
        before=sort_resources(step.before for step in steps if step.before),
        after=sort_resources(step.after for step in steps if step.after),
        failure=find_failure(file, pieces, events),
        # Sorted, as the order of parallel events differs from run to run.
        violations=tuple(sorted(_violations(events))),
        warnings=tuple(sorted([*unknown_operations, *_warnings(events)])),
        drift=find_drift(cloud),
        refresh=refresh_scope(events),
        is_stream=not any(piece.value and is_document(piece.value) for piece in pieces),
    )


def _events(pieces: Sequence[JsonPiece]) -> Iterator[Event]:
    for piece in pieces:
        if piece.value is not None:
            yield from (event for event in Event.all_of(piece.line, piece.value) if not _is_progress(event))


def _is_progress(event: Event) -> bool:
    """Return True for a diagnostic that is only shown while Pulumi runs.

    A program's standard error is among these, line by line; the engine repeats it as one error.
    """
    is_transient = event.data.get("ephemeral") is True or event.text("severity") in {"debug", "info#err"}
    return event.kind == "diagnostic" and is_transient


def _violations(events: Sequence[Event]) -> Iterator[Violation]:
    for event in events:
        if event.kind == "policy":
            policy = f"{event.text('policyPackName')}/{event.text('policyName')}"
            name, message = (
                " ".join(message_lines(event.text(key)))[:MAX_LINE_LENGTH] for key in ("resourceUrn", "message")
            )
            yield Violation(policy, event.text("enforcementLevel"), name, message)


def _warnings(events: Sequence[Event]) -> Iterator[str]:
    for event in events:
        if event.kind == "diagnostic" and event.text("severity") == "warning":
            text = " ".join(message_lines(diagnostic_message(event)))
            if not HOST_WARNINGS.search(text):
                yield text[:MAX_LINE_LENGTH]
