"""Why a preview is none, or not a whole one, in Pulumi's own words."""

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from tpucfg.redaction import redact
from tpucfg.review.preview.events import Event, JsonPiece
from tpucfg.text_format import printable

MAX_LINE_LENGTH: Final = 400
"""Characters of a line."""
HOST_WARNINGS: Final = re.compile(
    r"using pulumi-\S+ from|new version of Pulumi|update-check|upgrade to version", re.IGNORECASE
)
"""Warnings about the machine that took the preview, which are none about the change."""
_LINES: Final = 40
"""Of an error: twice what a finding of the compiler needs."""
_CHARACTERS: Final = 100_000
"""Of a text, of which no more is looked at."""
_URN: Final = re.compile(r"urn:pulumi:[^:\s'\"`]+::[^:\s'\"`]+::[^\s'\"`]*?::(?P<name>[^\s'\"`]+)")
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|<\{%[^%]*%\}>")
_PREFIX: Final = re.compile(r"(?:warning: )?(?:error: )?(?:[Pp]review failed: |an unhandled error occurred: )?")
NO_STACK: Final = "the stack does not exist yet: its first pulumi up makes everything"
"""The reason where there is nothing yet to compare with, which is nobody's mistake."""
_NO_STACK: Final = re.compile(r"no stack named '[^']*' found")
_SAYS_NOTHING: Final = ("preview failed", "update failed")
"""The engine's last error, after it has said why."""
_MANDATORY: Final = "mandatory"
"""The enforcement level that ends an update: https://www.pulumi.com/docs/insights/policy/."""


class Failure(NamedTuple):
    """Why a preview is none, or not a whole one."""

    location: str
    """`dev.jsonl:17`, where in the file, or the file alone where the place is chance."""
    reason: str
    """In one sentence."""
    lines: tuple[str, ...] = ()
    """Pulumi's own words, line by line."""


class _Read(NamedTuple):
    file: str
    found: Sequence[JsonPiece]
    events: Sequence[Event]

    def failure(self, line: int | None, reason: str, texts: Sequence[str] = ()) -> Failure:
        lines = [line for text in texts for line in message_lines(text)]
        more = [f"… and {len(lines) - _LINES} more lines"] if len(lines) > _LINES else []
        return Failure(f"{self.file}:{line}" if line else self.file, reason, (*lines[:_LINES], *more))

    @property
    def texts(self) -> list[JsonPiece]:
        """The lines between the objects."""
        lines = [piece for piece in self.found if piece.text and not piece.broken]
        return [piece for piece in lines if not HOST_WARNINGS.search(piece.text)] or lines


def find_failure(file: str, found: Sequence[JsonPiece], events: Sequence[Event]) -> Failure | None:
    """The first thing that keeps the preview from being a whole one; None where nothing does."""
    read = _Read(file, found, events)
    return next((failure for check in _CHECKS if (failure := check(read))), None)


def diagnostic_message(event: Event) -> str:
    """What a diagnostic says, without colours and without the words that it shares with all others."""
    return _PREFIX.sub("", _COLOURS.sub("", event.word("message")[:_CHARACTERS]).strip(), count=1)


def message_lines(text: str) -> list[str]:
    """A text of Pulumi's, line by line: redacted, without colours, and each resource by its name alone."""
    return [_line(line) for line in redact(_COLOURS.sub("", text[:_CHARACTERS])).splitlines() if line.strip()]


def _line(line: str) -> str:
    # A command is shown as it has to be typed, with the whole name.
    short = line if "`pulumi " in line else _URN.sub(r"\g<name>", line)
    return printable(short.replace("\t", "  ").rstrip())[:MAX_LINE_LENGTH]


def _empty(read: _Read) -> Failure | None:
    return None if read.found else read.failure(1, "the file is empty: pulumi preview printed nothing")


def _errors(read: _Read) -> Failure | None:
    errors = [event for event in read.events if event.kind == "diagnostic" and event.word("severity") == "error"]
    told = [event for event in errors if diagnostic_message(event).lower() not in _SAYS_NOTHING] or errors
    # The engine works at many resources at once: which it speaks of first, and in which line, is a matter of chance.
    told.sort(key=lambda event: (event.word("urn"), diagnostic_message(event)))
    return read.failure(None, "pulumi preview failed", [diagnostic_message(event) for event in told]) if told else None


def _unreadable(read: _Read) -> Failure | None:
    broken = next((piece for piece in read.found if piece.broken), None)
    return read.failure(broken.line, f"this cannot be read as JSON: {printable(broken.text)}") if broken else None


def _only_text(read: _Read) -> Failure | None:
    if read.events:
        return None
    texts = [piece.text for piece in read.texts]
    reason = "pulumi preview failed before it had begun" if texts else "this is no preview of Pulumi's"
    if any(_NO_STACK.search(text) for text in texts):
        reason = NO_STACK
    return read.failure(read.texts[0].line if texts else read.found[0].line, reason, texts)


def _errors_as_text(read: _Read) -> Failure | None:
    first = next((piece.line for piece in read.texts if piece.text.startswith("error:")), None)
    if first is None:
        return None
    return read.failure(first, "pulumi preview failed", [piece.text for piece in read.texts if piece.line >= first])


def _cut_off(read: _Read) -> Failure | None:
    if any(event.kind == "summary" for event in read.events):
        return None
    return read.failure(read.found[-1].line, "the preview has no summary: it was cut off before its end")


def _refused(read: _Read) -> Failure | None:
    for event in read.events:
        if event.kind == "policy" and event.word("enforcementLevel") == _MANDATORY:
            return read.failure(None, "a mandatory policy forbids it")
        if event.kind == "summary" and event.word("result") == "failed":
            return read.failure(None, "pulumi preview failed, and does not say why")
    return None


_CHECKS: Final[tuple[Callable[[_Read], Failure | None], ...]] = (
    _empty,
    _errors,
    _unreadable,
    _only_text,
    _errors_as_text,
    _cut_off,
    _refused,
)
"""From what says most to what says least."""
