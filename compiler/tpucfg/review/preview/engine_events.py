"""Events of the Pulumi engine, from either form of a preview: one document or a stream."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

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
