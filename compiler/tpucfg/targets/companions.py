"""The further objects of a config, which its job's request body needs: on GKE, those that provide its secrets.

They are a function of the job alone. In a YAML file each is a document before that of the request body; a JSON file has
a `List` of all, which kubectl reads in the same way. Whatever identifies, compares or explains a config takes them
together with the request body, under one key: `combined`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from tpucfg.plan import Job
from tpucfg.schemas import Problem
from tpucfg.targets import RequestBody, target_named
from tpucfg.targets.documents import by_kind, key_of_kind, numbered_by_kind
from tpucfg.targets.interface import COMPANIONS
from tpucfg.text_format import format_value
from tpucfg.yamldoc import Document, KeyPath
from tpucfg.yamldoc.reader import read_text

_LIST: Final = {"apiVersion": "v1", "kind": "List"}
"""https://kubernetes.io/docs/reference/using-api/api-concepts/#collections: kubectl creates each of its items."""
_SECRETS: Final = ("spec", "parameters", "secrets")
_ENTRY: Final = {"resourceName", "path"}


def companions_of(job: Job) -> tuple[RequestBody, ...]:
    """Return the objects that are created before the request body of a job; most jobs have none."""
    build = getattr(target_named(job.target), "companions", None)
    return build(job) if build else ()


def companion_schemas(target: str) -> Mapping[str, str]:
    """Return the names of the schemas of a target's further objects, by kind; empty if its configs have none."""
    names: Mapping[str, str] = getattr(target_named(target), "COMPANION_SCHEMAS", {})
    return names


def combined(request_body: Any, companions: Iterable[Any]) -> Any:
    """Return the request body with its companions under one key, by kind: a single value for paths and comparisons.

    The list of a SecretProviderClass, which is YAML in a text, becomes a mapping of secrets by path.
    """
    objects = list(companions)
    if not objects:
        return request_body
    if not isinstance(request_body, dict):
        return [*objects, request_body]
    named: dict[str, Any] = {}
    for companion in objects:
        kind = str(companion.get("kind")) if isinstance(companion, dict) else "object"
        # A file written by hand may have several of a kind.
        name = kind if kind not in named else f"{kind} {len(named) + 1}"
        named[name] = _with_secrets_by_path(companion)
    return {**request_body, COMPANIONS: named}


def companion_path(companion: RequestBody, path: KeyPath = ()) -> KeyPath:
    """Return the path of a companion's field in a combined value."""
    return (COMPANIONS, companion["kind"], *path)


def json_value(request_body: RequestBody, companions: tuple[RequestBody, ...]) -> Any:
    """Return the content of a JSON file, which has only one value."""
    return {**_LIST, "items": [*companions, request_body]} if companions else request_body


def documents_of(document: Document) -> tuple[Document, ...]:
    """Return each object of a file as a document: those of a stream of YAML documents, or the items of a List."""
    return tuple(item for part in document.parts() for item in _items(part))


def combined_data(document: Document) -> Any:
    """Return the data of a config file as the compiler returns it for a job; the last object is the request body.

    Objects of Compute Engine are a request body together, even if a file written by hand has two of a kind.
    """
    objects = [part.data for part in documents_of(document)]
    if (request_body := by_kind(objects)) is not None:
        return request_body
    if any(key_of_kind(item.get("kind")) for item in objects if isinstance(item, dict)):
        return numbered_by_kind(objects)
    *companions, request_body = objects
    return combined(request_body, companions)


def _with_secrets_by_path(companion: Any) -> Any:
    text: Any = companion
    for step in _SECRETS:
        text = text.get(step) if isinstance(text, dict) else None
    entries = read_text(text, "secrets").data if isinstance(text, str) else None
    if not isinstance(entries, list) or not all(isinstance(item, dict) and item.keys() == _ENTRY for item in entries):
        return companion
    by_path = {str(item["path"]): item["resourceName"] for item in entries}
    return companion if len(by_path) < len(entries) else _replaced(companion, _SECRETS, by_path)


def _replaced(data: Any, path: Sequence[str], value: Any) -> Any:
    """Return nested mappings with another value at a path."""
    return {**data, path[0]: _replaced(data[path[0]], path[1:], value)} if path else value


def _items(document: Document) -> Iterator[Document]:
    items = document.node(("items",))
    is_list = isinstance(document.data, dict) and _LIST.items() <= document.data.items()
    if not is_list or items is None or not isinstance(items.value, list) or not items.value:
        yield document
        return
    for number in range(len(items.value)):
        item = document.node(("items", number))
        yield document._replace(root=item, findings=document.findings if number == 0 else (), is_part=True)


def unknown_kind(value: Any, known: Iterable[str]) -> Problem:
    """Return the problem of an object beside the request body whose kind the target does not know."""
    kind = value.get("kind") if isinstance(value, dict) else None
    message = f"an object of the kind {format_value(kind)} is not checked as part of a config"
    hint = f"move it to a file of its own: beside its request body, a config has only {' and '.join(known)}"
    return Problem("TPU073", message, ("kind",), hint)
