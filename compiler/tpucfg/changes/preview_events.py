"""Events of the Pulumi engine, from the file of a preview: one document or a stream, with other lines between them.

The file is what anyone may have written: it is read within bounds.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

_MAX_DEPTH: Final = 64
"""Levels of a value; deeper ones are dropped. Properties of resources have a dozen levels at most."""
_MAX_BROKEN: Final = 20
"""Limit for objects with errors: each JSONDecodeError counts lines from the start of the text, in quadratic time."""
_MAX_OBJECTS: Final = 200_000
"""Enough for a stack of 50,000 resources, each with two relevant events and two others."""
_MAX_TEXT_LINES: Final = 10_000
"""Limit for lines of other text; further lines are skipped."""
_PRUNED: Final = "[…]"
_SPACES: Final = re.compile(r"[ \t\r\f\v]*")
# NaN and Infinity are no JSON: they become text, as the JSON of a review cannot contain them.
_DECODER: Final = json.JSONDecoder(parse_constant=str)


class JsonPiece(NamedTuple):
    """A JSON object, a line of other text, or the error of an object that cannot be parsed."""

    line: int
    """The first line of the piece, or the line of the error; from 1."""
    value: dict[str, Any] | None
    text: str = ""
    """The line of other text, or the error's reason if `broken`."""
    broken: bool = False


def decode_text(data: bytes) -> str:
    """Decode the text; PowerShell redirects output as UTF-16, or as UTF-8 with a byte order mark."""
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig")):
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    return data.decode(errors="replace")


def scan_json(text: str) -> Iterator[JsonPiece]:
    """Yield objects and lines of text in their order, without empty lines, up to a bounded number of errors."""
    position, line, end = 0, 1, len(text.rstrip())
    broken, text_lines, objects = 0, 0, 0
    while position < end and broken < _MAX_BROKEN:
        start = _skip_spaces(text, position)
        if text[start] == "{":
            piece, last = _parse_object(text, start, line, end)
            yield piece
            broken += piece.broken
            objects += 1
            if objects == _MAX_OBJECTS:
                yield JsonPiece(line, None, f"there are more than {_MAX_OBJECTS:,} objects", broken=True)
                return
        else:
            last = _line_end(text, start)
            if last > start and text_lines < _MAX_TEXT_LINES:
                text_lines += 1
                yield JsonPiece(line, None, text[start:last].rstrip())
        line += text.count("\n", position, last + 1)
        position = last + 1


def _parse_object(text: str, start: int, line: int, end: int) -> tuple[JsonPiece, int]:
    """Return the object that begins at `start`, and the index of the last character to skip."""
    try:
        value, object_end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        is_cut = error.pos >= end or error.msg.startswith("Unterminated string")
        reason = "it ends in the middle of an object" if is_cut else f"{error.msg} in column {error.colno}"
        error_line = line + text.count("\n", start, error.pos)
        # Scanning ends after a truncated object: each further attempt would read to the end, in quadratic time.
        return JsonPiece(error_line, None, reason, broken=True), len(text) if is_cut else _line_end(text, error.pos)
    except (RecursionError, ValueError) as error:  # ValueError: an integer with more digits than Python converts
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        return JsonPiece(line, None, reason, broken=True), len(text)
    return JsonPiece(line, _prune(value, _MAX_DEPTH)), object_end - 1


def _skip_spaces(text: str, position: int) -> int:
    """Return the index of the first character that is not a space, which may be the line break."""
    match = _SPACES.match(text, position)
    return match.end() if match else position


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end == -1 else end


def _prune(value: Any, levels: int) -> Any:
    """Return the value with a placeholder for each value that is nested deeper than this number of levels."""
    if isinstance(value, dict):
        return {key: _prune(item, levels - 1) for key, item in value.items()} if levels else _PRUNED
    if isinstance(value, list):
        return [_prune(item, levels - 1) for item in value] if levels else _PRUNED
    return value


# Events

_KINDS: Final = {
    "resourcePreEvent": "step",
    "diagnosticEvent": "diagnostic",
    "policyEvent": "policy",
    "summaryEvent": "summary",
    "preludeEvent": "prelude",
}
"""The relevant events of the stream."""
_PROGRESS_EVENTS: Final = frozenset(
    ("cancelEvent", "stdoutEvent", "resOutputsEvent", "policyLoadEvent", "progressEvent", "startDebuggingEvent")
)
"""Events of the stream that only report progress."""
_DOCUMENT_KEYS: Final = frozenset(("steps", "changeSummary", "diagnostics"))
"""Keys of the document; each of them can be missing."""
_URN_PARTS: Final = 4
"""Stack, project, type and name."""


REFRESH: Final = "refresh"
"""The operation that reads a resource from the cloud."""


class Event(NamedTuple):
    """An event of the engine."""

    line: int
    """The line of the file."""
    kind: str
    """`step`, `refreshed`, `diagnostic`, `policy`, `summary` or `prelude`; empty for progress.

    `refreshed` is the outcome of a refresh; the outcomes of other steps are progress, as nothing runs in a preview.
    """
    data: Mapping[str, Any]

    def text(self, key: str) -> str:
        """Return a text of the event; empty if the key is missing or has a value of another type."""
        value = self.data.get(key)
        return value if isinstance(value, str) else ""

    @property
    def stack(self) -> str:
        """The stack of a step or a refreshed resource; empty for other events."""
        parts = self.text("urn").split("::") if self.kind in {"step", "refreshed"} else []
        return parts[0].removeprefix("urn:pulumi:") if len(parts) >= _URN_PARTS else ""

    @classmethod
    def all_of(cls, line: int, value: Mapping[str, Any]) -> "Iterator[Event]":
        """Yield the events in a JSON object: all of them for a document, one for a line of the stream."""
        if is_document(value):
            yield from cls._of_document(line, value)
            return
        for key, kind in _KINDS.items():
            data = value.get(key)
            data = data.get("metadata") if kind == "step" and isinstance(data, dict) else data
            if isinstance(data, dict):
                yield cls(line, kind, data)
        if isinstance(outcome := value.get("resOutputsEvent"), dict):
            data = outcome.get("metadata")
            if isinstance(data, dict) and data.get("op") == REFRESH:
                yield cls(line, "refreshed", data)
        # Progress has no content, but it shows that the file is a preview, if an incomplete one.
        if _PROGRESS_EVENTS & value.keys():
            yield cls(line, "", {})

    @classmethod
    def _of_document(cls, line: int, value: Mapping[str, Any]) -> "Iterator[Event]":
        """Yield the events of a document, with the keys that they have in the stream."""
        for step in _dicts(value.get("steps")):
            states = {"old": step.get("oldState"), "new": step.get("newState")}
            reasons = {"keys": step.get("replaceReasons"), "diffs": step.get("diffReasons")}
            yield cls(line, "step", {"op": step.get("op"), "urn": step.get("urn"), **states, **reasons})
        for diagnostic in _dicts(value.get("diagnostics")):
            yield cls(line, "diagnostic", diagnostic)
        if isinstance(value.get("changeSummary"), dict):
            yield cls(line, "summary", {})


def is_document(value: Mapping[str, Any]) -> bool:
    """Return True for the document of a preview, and False for an event of its stream."""
    return not _DOCUMENT_KEYS.isdisjoint(value)


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
