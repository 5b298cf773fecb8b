"""Failures of a preview: the reason why it is missing or incomplete, with Pulumi's own messages."""

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from tpucfg.changes.preview_events import Event, JsonPiece
from tpucfg.redaction import redact
from tpucfg.text_format import printable

MAX_LINE_LENGTH: Final = 400
"""Characters of a line."""
HOST_WARNINGS: Final = re.compile(
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
_PREFIX: Final = re.compile(r"(?:warning: )?(?:error: )?(?:[Pp]review failed: |an unhandled error occurred: )?")
_STACK_NOT_FOUND: Final = re.compile(r"no stack named '[^']*' found")
_GENERIC_ERRORS: Final = ("preview failed", "update failed")
"""Messages of the engine's last error, which add nothing to the errors before it."""
_MANDATORY: Final = "mandatory"
"""The enforcement level that stops an update: https://www.pulumi.com/docs/insights/policy/."""


class Failure(NamedTuple):
    """The reason why a preview is missing or incomplete."""

    location: str
    """`dev.jsonl:17`, or the file alone if the line is arbitrary."""
    reason: str
    """One sentence."""
    lines: tuple[str, ...] = ()
    """Pulumi's own messages, line by line."""


class _Content(NamedTuple):
    """The content of a preview's file."""

    file: str
    pieces: Sequence[JsonPiece]
    events: Sequence[Event]

    def failure(self, line: int | None, reason: str, messages: Sequence[str] = ()) -> Failure:
        lines = [line for message in messages for line in message_lines(message)]
        more = [f"… and {len(lines) - _MAX_LINES} more lines"] if len(lines) > _MAX_LINES else []
        return Failure(f"{self.file}:{line}" if line else self.file, reason, (*lines[:_MAX_LINES], *more))

    @property
    def text_lines(self) -> list[JsonPiece]:
        """The lines between the JSON objects, without warnings about the machine unless there is nothing else."""
        lines = [piece for piece in self.pieces if piece.text and not piece.broken]
        return [piece for piece in lines if not HOST_WARNINGS.search(piece.text)] or lines


def find_failure(file: str, pieces: Sequence[JsonPiece], events: Sequence[Event]) -> Failure | None:
    """Return the most informative reason why the preview is incomplete; None if it is complete."""
    content = _Content(file, pieces, events)
    return next((failure for check in _CHECKS if (failure := check(content))), None)


def diagnostic_message(event: Event) -> str:
    """Return the message of a diagnostic without colors and without generic prefixes."""
    return _PREFIX.sub("", _COLORS.sub("", event.text("message")[:_MAX_MESSAGE_LENGTH]).strip(), count=1)


def message_lines(text: str) -> list[str]:
    """Return the lines of a message of Pulumi: redacted, without colors, and with names instead of URNs."""
    return [_line(line) for line in redact(_COLORS.sub("", text[:_MAX_MESSAGE_LENGTH])).splitlines() if line.strip()]


def _line(line: str) -> str:
    # A command has to work when copied, so its URN stays.
    short = line if "`pulumi " in line else _URN.sub(r"\g<name>", line)
    return printable(short.replace("\t", "  ").rstrip())[:MAX_LINE_LENGTH]


def _empty_file(content: _Content) -> Failure | None:
    return None if content.pieces else content.failure(1, "the file is empty: pulumi preview printed nothing")


def _error_diagnostics(content: _Content) -> Failure | None:
    errors = [event for event in content.events if event.kind == "diagnostic" and event.text("severity") == "error"]
    informative = [event for event in errors if diagnostic_message(event).lower() not in _GENERIC_ERRORS] or errors
    if not informative:
        return None
    # The engine works on resources in parallel: the order of their errors, and the lines, differ from run to run.
    informative.sort(key=lambda event: (event.text("urn"), diagnostic_message(event)))
    return content.failure(None, "pulumi preview failed", [diagnostic_message(event) for event in informative])


def _invalid_json(content: _Content) -> Failure | None:
    broken = next((piece for piece in content.pieces if piece.broken), None)
    return content.failure(broken.line, f"invalid JSON: {printable(broken.text)}") if broken else None


def _no_events(content: _Content) -> Failure | None:
    if content.events:
        return None
    messages = [piece.text for piece in content.text_lines]
    line = content.text_lines[0].line if messages else content.pieces[0].line
    if any(_STACK_NOT_FOUND.search(message) for message in messages):
        return content.failure(line, NO_STACK, messages)
    if messages:
        return content.failure(line, "pulumi preview failed before it started", messages)
    return content.failure(line, "the file is not the output of pulumi preview --json")


def _error_lines(content: _Content) -> Failure | None:
    """Return a failure for an error that was printed between the events, such as a lost connection."""
    first = next((piece.line for piece in content.text_lines if piece.text.startswith("error:")), None)
    if first is None:
        return None
    messages = [piece.text for piece in content.text_lines if piece.line >= first]
    return content.failure(first, "pulumi preview failed", messages)


def _no_summary(content: _Content) -> Failure | None:
    if any(event.kind == "summary" for event in content.events):
        return None
    return content.failure(content.pieces[-1].line, "the preview has no summary: its output was cut off")


def _refused(content: _Content) -> Failure | None:
    for event in content.events:
        if event.kind == "policy" and event.text("enforcementLevel") == _MANDATORY:
            return content.failure(None, "a mandatory policy is violated")
        if event.kind == "summary" and event.text("result") == "failed":
            return content.failure(None, "pulumi preview failed without an error message")
    return None


_CHECKS: Final[tuple[Callable[[_Content], Failure | None], ...]] = (
    _empty_file,
    _error_diagnostics,
    _invalid_json,
    _no_events,
    _error_lines,
    _no_summary,
    _refused,
)
"""From the most informative reason to the least."""
