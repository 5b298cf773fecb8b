"""The JSON objects in a text that may hold lines of other text between them, as stdout and stderr in one file do."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

MAX_PREVIEW_BYTES: Final = 32 * 1024 * 1024
"""Of a preview; a stack of a thousand resources has about 5 MB."""
MAX_DEPTH: Final = 64
"""Of a value; what lies deeper is dropped. Properties of resources are a dozen deep at most."""

_MOST_BROKEN: Final = 20
"""Objects that cannot be read; to find out why costs as much as all that stands before them."""
_MOST_OBJECTS: Final = 200_000
"""Each resource has two events at most that matter, and two besides."""
_MOST_LINES: Final = 10_000
"""Lines of other text; the rest of them is passed over."""
_DEEPER: Final = "[…]"
_SPACES: Final = re.compile(r"[ \t\r\f\v]*")
_DECODER: Final = json.JSONDecoder(parse_constant=str)
"""NaN and Infinity, which JSON has not, become words."""


class JsonPiece(NamedTuple):
    """One JSON object, one line of other text, or a place where JSON begins that cannot be read."""

    line: int
    """Where it begins, from 1."""
    value: dict[str, Any] | None
    text: str = ""
    """The line of other text; why it cannot be read, where `broken`."""
    broken: bool = False


def decode_text(data: bytes) -> str:
    """The text; PowerShell writes what a command prints as UTF-16."""
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig")):
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    return data.decode(errors="replace")


def scan_json(text: str) -> Iterator[JsonPiece]:
    """Everything in the text, in its order; of empty lines nothing, and nothing after too much that cannot be read."""
    at, line, last = 0, 1, len(text.rstrip())
    broken, lines, objects = _MOST_BROKEN, _MOST_LINES, _MOST_OBJECTS
    while at < last and broken:
        start = _first(text, at)
        if text[start] == "{":
            piece, stop = _object(text, start, line, last)
            yield piece
            broken -= piece.broken
            objects -= 1
            if not objects:
                yield JsonPiece(line, None, f"it has more than {_MOST_OBJECTS:,} objects", broken=True)
                return
        else:
            stop = _line_end(text, start)
            if stop > start and lines:
                lines -= 1
                yield JsonPiece(line, None, text[start:stop].rstrip())
        line += text.count("\n", at, stop + 1)
        at = stop + 1


def _object(text: str, at: int, line: int, last: int) -> tuple[JsonPiece, int]:
    """The object that begins there, and the index of the last character that need not be looked at again."""
    try:
        value, end = _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        cut = error.pos >= last or error.msg.startswith("Unterminated string")
        reason = "it ends in the middle of an object" if cut else f"{error.msg} in column {error.colno}"
        location = line + text.count("\n", at, error.pos)
        return JsonPiece(location, None, reason, broken=True), len(text) if cut else _line_end(text, error.pos)
    except (RecursionError, ValueError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        return JsonPiece(line, None, reason, broken=True), len(text)
    return JsonPiece(line, pruned(value, MAX_DEPTH)), end - 1


def _first(text: str, at: int) -> int:
    """Where the line's first character stands that is no space, or where the line ends."""
    found = _SPACES.match(text, at)
    return found.end() if found else at


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end == -1 else end


def pruned(value: Any, levels: int) -> Any:
    """The value without what lies deeper than that."""
    if isinstance(value, dict):
        return {key: pruned(item, levels - 1) for key, item in value.items()} if levels else _DEEPER
    if isinstance(value, list):
        return [pruned(item, levels - 1) for item in value] if levels else _DEEPER
    return value


# The events of the engine, in whichever form a preview tells them.


_KINDS: Final = {
    "resourcePreEvent": "step",
    "diagnosticEvent": "diagnostic",
    "policyEvent": "policy",
    "summaryEvent": "summary",
    "preludeEvent": "prelude",
}
"""The events of the stream that say something; the others are progress."""
_PROGRESS: Final = frozenset(
    ("cancelEvent", "stdoutEvent", "resOutputsEvent", "policyLoadEvent", "progressEvent", "startDebuggingEvent")
)
_DOCUMENT: Final = frozenset(("steps", "changeSummary", "diagnostics"))
"""What the document has, of which not every one has all."""


class Event(NamedTuple):
    """One event."""

    line: int
    """Of the file."""
    kind: str
    """`step`, `diagnostic`, `policy`, `summary`, `prelude`, or empty for what only tells of progress."""
    data: Mapping[str, Any]

    def word(self, key: str) -> str:
        """One of its texts; empty where there is none, or something else in its place."""
        value = self.data.get(key)
        return value if isinstance(value, str) else ""

    @property
    def stack(self) -> str:
        """Whose it is; empty where it does not say."""
        parts = self.word("urn").split("::") if self.kind == "step" else []
        return parts[0].removeprefix("urn:pulumi:") if len(parts) >= 4 else ""  # noqa: PLR2004 - stack, project, type, name

    @classmethod
    def all_of(cls, line: int, value: Mapping[str, Any]) -> "Iterator[Event]":
        """The events in one object: a line of the stream has one, the document has them all."""
        if not _DOCUMENT.isdisjoint(value):
            yield from cls._of_document(line, value)
            return
        for key, kind in _KINDS.items():
            data = value.get(key)
            data = data.get("metadata") if kind == "step" and isinstance(data, dict) else data
            if isinstance(data, dict):
                yield cls(line, kind, data)
        if _PROGRESS & value.keys():
            yield cls(line, "", {})

    @classmethod
    def _of_document(cls, line: int, value: Mapping[str, Any]) -> "Iterator[Event]":
        for step in _dicts(value.get("steps")):
            states = {"old": step.get("oldState"), "new": step.get("newState")}
            reasons = {"keys": step.get("replaceReasons"), "diffs": step.get("diffReasons")}
            yield cls(line, "step", {"op": step.get("op"), "urn": step.get("urn"), **states, **reasons})
        for diagnostic in _dicts(value.get("diagnostics")):
            yield cls(line, "diagnostic", diagnostic)
        if isinstance(value.get("changeSummary"), dict):
            yield cls(line, "summary", {})


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
