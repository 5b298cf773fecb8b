"""Find the request body in a file, and the target that it is for."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tpucfg.importing.comparison import Note
from tpucfg.paths import value_at, values_at
from tpucfg.refusal import RefusalError
from tpucfg.targets.objects import is_foreign, kubernetes_objects
from tpucfg.text_format import format_value
from tpucfg.yamldoc import Document, count_values_and_depth, without_nulls

_FORMS: Final[Mapping[str, str]] = {
    "replicatedJobs": "gke",
    "workerPoolSpecs": "vertex-ai",
    "nodeSpec": "cloud-tpu",
}
"""The targets by a field that only their request bodies have."""
_WRITTEN: Final = ("name", "displayName", "state", "createTime", "startTime", "endTime", "updateTime", "error")
"""Fields that the service answers beside the spec of a custom job, and the name."""
_MAX_VALUES: Final = 3000
_MAX_CHARACTERS: Final = 100_000
"""Several times those of the longest published recipe: a draft is rendered and compared more than once."""
_KNOWN: Final = "a JobSet, a CustomJobSpec of Vertex AI or a queued resource of Cloud TPU"


class ImportRefusedError(RefusalError):
    """A file has no request body that can become a spec."""


class Source(NamedTuple):
    """A request body of another tool."""

    target: str
    body: dict[str, Any]
    name: str
    """The job's name; empty if the file has none."""
    project: str | None
    """The Google project that the file names."""
    location: str | None
    """The region or zone that the file names."""
    notes: tuple[Note, ...]
    """The other objects of the file."""


def find_source(document: Document) -> Source:
    """Return the first request body of a file that could be read.

    Raises:
        ImportRefusedError: The file has none, or is larger than any config.
    """
    if len(document.text) > _MAX_CHARACTERS or _count(document) > _MAX_VALUES:
        message = f"{document.file} has more than {_MAX_VALUES:,} values or {_MAX_CHARACTERS:,} characters"
        raise ImportRefusedError(message, "give the file of one job, without other objects")
    for part in document.parts():
        target = _target_of(part.data)
        if target == "gke":
            return _job_set(document)
        if target:
            return _message(target, without_nulls(part.root).value if part.root else {})
    kind = document.data.get("kind") if isinstance(document.data, dict) else None
    what = f"its kind is {format_value(kind)}" if isinstance(kind, str) else "it has none of their fields"
    raise ImportRefusedError(f"{document.file} is no config that can be imported: {what}", f"give the file of {_KNOWN}")


def _count(document: Document) -> int:
    return sum(count_values_and_depth(part.root)[0] for part in document.parts() if part.root)


def _target_of(value: Any) -> str | None:
    """Return the target whose request body a value is or contains; None if there is none."""
    return next((target for field, target in _FORMS.items() if any(values_at(value, f"**.{field}"))), None)


def _job_set(document: Document) -> Source:
    bodies, others = kubernetes_objects(document, "gke")
    body = next((item for item in bodies if _target_of(item.data)), bodies[0])
    rest = [item.data for item in (*others, *bodies) if item is not body]
    notes = [Note((), f"{_title(other)} is left out: {_reason(other)}") for other in rest]
    name = _text(body.data.get("metadata"), "name")
    return Source("gke", body.data, name, None, None, tuple(notes))


def _title(value: Any) -> str:
    kind = format_value(_text(value, "kind"), quoted=False)
    return f"the {kind} {_text(value_at(value, ('metadata',)), 'name')}".strip() if kind else "a further document"


def _reason(value: Any) -> str:
    if is_foreign(value, "gke"):
        return "tpucfg does not render it, so keep it in a file of its own"
    return "one job is imported at a time"


def _message(target: str, value: dict[str, Any]) -> Source:
    """Return the source of a message that is no Kubernetes object; `gcloud … describe` wraps some of them."""
    inner = value.get("jobSpec")
    body = inner if isinstance(inner, dict) else value
    node = value_at(body, ("tpu", "nodeSpec", 0))
    resource = _text(value, "name") or _text(node, "parent")
    parts = resource.split("/")
    named = dict(zip(parts[::2], parts[1::2], strict=False))
    name = _text(value, "displayName") or _text(node, "nodeId") or _text(node, "nodeIdPrefix")
    notes = [
        Note((key,), "it belongs to the job and not to its spec, and tpucfg renders the spec")
        for key in value
        if body is not value and key != "jobSpec" and key not in _WRITTEN
    ]
    return Source(target, body, name, named.get("projects"), named.get("locations"), tuple(notes))


def _text(value: Any, key: str) -> str:
    text = value.get(key) if isinstance(value, dict) else None
    return text if isinstance(text, str) else ""
