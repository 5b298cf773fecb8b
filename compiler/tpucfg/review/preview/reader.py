"""What `pulumi preview --json` says, in either of its forms: one document, or a stream of the engine's events.

The document: https://github.com/pulumi/pulumi/blob/master/pkg/backend/display/json.go. The stream, which
PULUMI_ENABLE_STREAMING_JSON_PREVIEW=true asks for and which has the policies besides:
https://github.com/pulumi/pulumi/blob/master/sdk/go/common/apitype/events.go.

A preview that cannot be read, or is not whole, is a failed one: what it does say is taken, and never for all there is.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tpucfg.review.changes.resource_change import ResourceChange
from tpucfg.review.changes.resource_diff import resource_changes
from tpucfg.review.preview.engine_steps import resource_steps
from tpucfg.review.preview.events import MAX_PREVIEW_BYTES, Event, JsonPiece, decode_text, scan_json
from tpucfg.review.preview.failures import (
    HOST_WARNINGS,
    MAX_LINE_LENGTH,
    NO_STACK,
    Failure,
    diagnostic_message,
    find_failure,
    message_lines,
)
from tpucfg.text_format import printable


class Violation(NamedTuple):
    """What a policy pack says about a resource, or about the stack."""

    policy: str
    """`pack/policy`."""
    level: str
    """`mandatory`, which ends an update, or `advisory` and others, which do not."""
    name: str
    """The resource's logical name; empty where it is about the stack."""
    message: str


class Preview(NamedTuple):
    """One environment's preview."""

    environment: str
    changes: tuple[ResourceChange, ...] = ()
    failure: Failure | None = None
    violations: tuple[Violation, ...] = ()
    warnings: tuple[str, ...] = ()
    """In Pulumi's words, each one line; without those about the machine that it ran on."""
    is_first: bool = False
    """Whether it makes everything that it names: nothing stays, and nothing was there before."""

    @property
    def is_of_nothing(self) -> bool:
        """Whether there is no stack yet."""
        return bool(self.failure and self.failure.reason == NO_STACK)


def read_preview(environment: str, file: str, data: bytes) -> Preview:
    """The preview in a file.

    Args:
        environment: whose it is; the stack in the file has to have this name.
        file: its name, for messages.
        data: what it holds: at most MOST_BYTES.
    """
    if len(data) > MAX_PREVIEW_BYTES:
        return Preview(environment, failure=Failure(file, f"the file has more than {MAX_PREVIEW_BYTES // 2**20} MiB"))
    found = tuple(scan_json(decode_text(data)))
    events = tuple(_events(found))
    stacks = sorted({stack for event in events if (stack := event.stack)} - {environment})
    if stacks:
        reason = f"this is a preview of the stack {printable(stacks[0])}, and not of {environment}"
        return Preview(environment, failure=Failure(f"{file}:1", reason))
    steps, unknown = resource_steps(events)
    return Preview(
        environment,
        resource_changes(environment, steps),
        find_failure(file, found, events),
        tuple(sorted(_violations(events))),
        tuple(sorted([*unknown, *_warnings(events)])),
    )


def _events(found: Sequence[JsonPiece]) -> Iterator[Event]:
    for piece in found:
        if piece.value is not None:
            yield from (event for event in Event.all_of(piece.line, piece.value) if not _is_chatter(event))


def _is_chatter(event: Event) -> bool:
    """What passes by on a terminal: the lines of a program's standard error come again, in one, as an error."""
    passing = event.data.get("ephemeral") is True or event.word("severity") in {"debug", "info#err"}
    return event.kind == "diagnostic" and passing


def _violations(events: Sequence[Event]) -> Iterator[Violation]:
    for event in events:
        if event.kind == "policy":
            policy = f"{event.word('policyPackName')}/{event.word('policyName')}"
            name, message = (
                " ".join(message_lines(event.word(key)))[:MAX_LINE_LENGTH] for key in ("resourceUrn", "message")
            )
            yield Violation(policy, event.word("enforcementLevel"), name, message)


def _warnings(events: Sequence[Event]) -> Iterator[str]:
    for event in events:
        if event.kind == "diagnostic" and event.word("severity") == "warning":
            text = " ".join(message_lines(diagnostic_message(event)))
            if not HOST_WARNINGS.search(text):
                yield text[:MAX_LINE_LENGTH]
