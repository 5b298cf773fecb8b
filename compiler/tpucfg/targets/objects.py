"""Configs of several objects: the documents of a request body, and the companions that it needs.

On Compute Engine, the request body has a key for each object of a slice. In a YAML file, each object is a document, in
the order in which they are created, and `kind` identifies it: `compute#instance` is the object under `instance`. A JSON
file has the request body itself. `extra`, `tpucfg why`, comparisons and rules thus work on one mapping, while every
document of a file is a message that the API takes as it is.

On GKE, companions provide the secrets of a job. They are a function of the job alone. In a YAML file each is a document
before that of the request body; a JSON file has a `List` of all, which kubectl reads in the same way. Whatever
identifies, compares or explains a config takes them together with the request body, under one key: `combined`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from tpucfg.findings import Finding
from tpucfg.paths import KeyPath, value_at
from tpucfg.plan import Job
from tpucfg.schemas import Problem, load_schema
from tpucfg.targets import target_named
from tpucfg.targets.interface import COMPANIONS, RequestBody
from tpucfg.text_format import format_value, listed, nearest
from tpucfg.yamldoc import Document, Node, without_nulls
from tpucfg.yamldoc.reader import read_text

# The documents of a request body

_SEPARATOR: Final = "#"
"""Separates the API's name from the object's in a `kind`, as in `compute#instance`."""
_DIGEST: Final = "Made by tpucfg, content "


def digest(content: Any) -> str:
    """Return the description of an object that a later start reuses if its content is equal.

    The API's answers have added fields, so that the objects themselves cannot be compared.
    """
    import hashlib
    import json

    return _DIGEST + hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def is_digest(key: str, value: Any) -> bool:
    """Return True if a field is such a description, which differs if and only if another field does."""
    return key == "description" and isinstance(value, str) and value.startswith(_DIGEST)


def document_keys(target: Any) -> tuple[str, ...]:
    """Return the keys of a target's request body that are documents of their own; most targets have none."""
    keys: tuple[str, ...] = getattr(target, "DOCUMENTS", ())
    return keys


def documents(target: Any, request_body: RequestBody) -> tuple[RequestBody, ...]:
    """Return the documents of a file in order: the objects of a request body, or the request body itself."""
    return tuple(request_body.values()) if document_keys(target) else (request_body,)


def key_of_kind(kind: Any) -> str:
    """Return the key of an object by its `kind`, such as `instance` of `compute#instance`; empty if it has none."""
    return kind.partition(_SEPARATOR)[2] if isinstance(kind, str) else ""


def by_kind(objects: Sequence[Any]) -> RequestBody | None:
    """Return objects by the key of their kind; None unless each has a kind of its own."""
    keys = [key_of_kind(item.get("kind")) if isinstance(item, dict) else "" for item in objects]
    if not all(keys) or len({*keys}) < len(keys):
        return None
    return dict(zip(keys, objects, strict=True))


def numbered_by_kind(objects: Sequence[Any]) -> RequestBody:
    """Return objects by the key of their kind, `object` without one, and further ones of a key with a number."""
    numbered: RequestBody = {}
    counts: Counter[str] = Counter()
    for item in objects:
        key = (key_of_kind(item.get("kind")) if isinstance(item, dict) else "") or "object"
        counts[key] += 1
        numbered[key if counts[key] == 1 else f"{key} {counts[key]}"] = item
    return numbered


def objects_of(value: Any) -> RequestBody:
    """Return the objects of a JSON file by key, or those of a List by kind; empty if it is one object."""
    if isinstance(value, dict) and _LIST.items() <= value.items():
        return {
            str(item.get("kind")): item for item in value.get("items", []) if isinstance(item, dict)
        }
    objects = by_kind(list(value.values())) if isinstance(value, dict) else None
    return objects if objects is not None and objects.keys() == value.keys() else {}


def merge_documents(document: Document, target: Any) -> tuple[Document, list[Finding]]:
    """Return a file's documents as one that has the target's key of each, and the findings about their kinds.

    A file that has the keys already, as a JSON file has, is returned as it is.
    """
    parts = document.parts()
    if len(parts) == 1 and _is_request_body(document.data):
        return document, []
    kinds = {f"{target.KIND_PREFIX}{key}": key for key in document_keys(target)}
    nodes: dict[str, Node] = {}
    findings = []
    for part in parts:
        kind = part.data.get("kind") if isinstance(part.data, dict) else None
        key = kinds.get(kind) if isinstance(kind, str) else None
        if part.root is not None and key is not None and key not in nodes:
            nodes[key] = part.root
        else:
            findings.append(_unknown(part.data, target, repeated=key in nodes).finding_in(part))
    roots = [part.root for part in parts if part.root]
    whole = Node(roots[0].start, roots[-1].end, {key: node.value for key, node in nodes.items()})
    whole.children, whole.keys = nodes, {key: _kind_node(node) for key, node in nodes.items()}
    return document._replace(root=whole, further_roots=()), findings


def _is_request_body(value: Any) -> bool:
    """Return True for a mapping of objects by key; an object has a name and, except by mistake, a kind."""
    return isinstance(value, dict) and not value.keys() & {"kind", "name"}


def _unknown(value: Any, target: Any, *, repeated: bool) -> Problem:
    """Return the problem of a document that is no object of a slice, or the second one of its kind."""
    kinds = [f"{target.KIND_PREFIX}{key}" for key in document_keys(target)]
    if isinstance(value, list):
        fix = (
            "write each item as a document that begins with its kind, with --- between two of them"
        )
        return Problem(
            "TPU072",
            "a document of the config is a list, and each object is a document of its own",
            (),
            fix,
        )
    if not isinstance(value, dict):
        return Problem(
            "TPU072",
            "a document of the config is no mapping",
            (),
            f"begin it with kind: {kinds[-1]}",
        )
    kind = value.get("kind")
    if kind is None:
        message = "a document of the config has no kind, which states what object it is"
        return Problem("TPU071", message, (), f"add kind: {listed(kinds, last=' or ')}")
    if repeated:
        return Problem(
            "TPU074",
            f"two documents have the kind {format_value(kind)}",
            ("kind",),
            "delete one of them",
        )
    # Without the prefix, which would make any two kinds similar.
    near = nearest(str(kind).rpartition(_SEPARATOR)[2], document_keys(target))
    message = f"a document has the kind {format_value(kind)}; a config takes {listed(kinds)}"
    fix = (
        f"did you mean {target.KIND_PREFIX}{near}?"
        if near
        else "move it to a file that is not checked as a config"
    )
    return Problem("TPU073", message, ("kind",), fix)


def _kind_node(node: Node) -> Node:
    """Return the node of an object's kind, which stands for its key in locations."""
    children = node.children
    return children["kind"] if isinstance(children, Mapping) else node


# The companions of a request body

_LIST: Final = {"apiVersion": "v1", "kind": "List"}
"""https://kubernetes.io/docs/reference/using-api/api-concepts/#collections: kubectl creates each of its items."""
_SECRETS: Final = ("spec", "parameters", "secrets")
_ENTRY: Final = {"resourceName", "path"}
SERVER_METADATA: Final = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
)
"""Fields of metadata that only the server writes:
https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/."""


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
    text = value_at(companion, _SECRETS)
    entries = read_text(text, "secrets").data if isinstance(text, str) else None
    if not isinstance(entries, list) or not all(
        isinstance(item, dict) and item.keys() == _ENTRY for item in entries
    ):
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
        yield document._replace(
            root=item, findings=document.findings if number == 0 else (), is_part=True
        )


def kubernetes_objects(document: Document, target: str) -> tuple[list[Document], list[Document]]:
    """Return the request bodies of a file, and its other objects. Without any, the last object is taken for one.

    A null field is left out, as the server drops it before it applies defaults, and one that only the server writes:
    https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#defaulting-and-nullable
    """
    objects = [
        item._replace(root=item.root and _as_applied(item.root)) for item in documents_of(document)
    ]
    numbers = {number for number, item in enumerate(objects) if _is_of_api(item.data, target)} or {
        len(objects) - 1
    }
    others = [item for number, item in enumerate(objects) if number not in numbers]
    return [objects[number] for number in sorted(numbers)], others


def _as_applied(root: Node) -> Node:
    root = without_nulls(root)
    metadata = root.children.get("metadata") if isinstance(root.children, Mapping) else None
    for node, fields in ((root, ("status",)), (metadata, SERVER_METADATA)):
        for field in fields:
            if (
                node is not None
                and isinstance(node.children, dict)
                and node.children.pop(field, None)
            ):
                del node.value[field]
    return root


def is_foreign(value: Any, target: str) -> bool:
    """Return True for an object of an API that no config of the target uses, such as a Service."""
    if not (
        isinstance(value, dict) and isinstance(value.get("kind"), str) and value.get("apiVersion")
    ):
        return False
    return not any(
        _is_of_api(value, schema) for schema in (target, *companion_schemas(target).values())
    )


def _is_of_api(value: Any, schema: str) -> bool:
    """Return True for an object of the kind of a schema, or of another kind or version in the group of its API."""
    if not isinstance(value, dict):
        return False
    known = load_schema(schema)["properties"]
    group = known["apiVersion"]["const"].partition("/")[0]
    return bool(
        value.get("kind") == known["kind"]["const"]
        or str(value.get("apiVersion")).partition("/")[0] == group
    )


def unknown_kind(value: Any, known: Iterable[str]) -> Problem:
    """Return the problem of an object beside the request body whose kind the target does not know."""
    kind = value.get("kind") if isinstance(value, dict) else None
    message = f"an object of the kind {format_value(kind)} is not checked as part of a config"
    hint = f"move it to a file of its own: beside its request body, a config has only {' and '.join(known)}"
    return Problem("TPU073", message, ("kind",), hint)


# The target of a config, if the `kind` of its objects shows it

_TARGETS: Final[Mapping[str, str]] = {
    "compute#": "compute-engine",
    **dict.fromkeys(("JobSet", "SecretProviderClass", "SecretSync"), "gke"),
}
"""The targets by the start of the kinds that only they have."""


def target_of_kinds(document: Document) -> str | None:
    """Return the target of the first object whose kind only one target has; None without such an object."""
    return next((target for *_, target in _known_kinds(document)), None)


def other_target(document: Document, target: str) -> Finding | None:
    """Return an error for a config of another target, at the first kind that shows it."""
    for part, path, kind, other in _known_kinds(document):
        if other == target:
            return None
        message = f"the kind {format_value(kind)} is one of {other}, and the config is checked for {target}"
        location = part.value_location(path)
        return Finding.of(
            "TPU073", message, location, help=f"replace --target {target} by --target {other}"
        )
    return None


def _known_kinds(document: Document) -> Iterator[tuple[Document, KeyPath, str, str]]:
    """Yield the document, path and value of each kind that only one target has, with the target."""
    for part in documents_of(document):
        for path in _kind_paths(part.data):
            node = part.node(path)
            kind = node.value if node else None
            for start, target in _TARGETS.items():
                if isinstance(kind, str) and kind.startswith(start):
                    yield part, path, kind, target


def _kind_paths(value: Any) -> Iterator[KeyPath]:
    """Yield the paths at which a document, or each object of a JSON file of Compute Engine, has its kind."""
    yield ("kind",)
    if isinstance(value, dict):
        yield from ((key, "kind") for key in value)
