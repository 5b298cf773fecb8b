"""Configs of several documents: on Compute Engine, one for each object that a slice is made of.

The request body of such a target has a key for each object. In a YAML file, each object is a document, in the order in
which they are created, and `kind` identifies it: `compute#instance` is the object under the key `instance`. A JSON
file has the request body itself. `extra`, `tpucfg why`, comparisons and rules thus work on one mapping, while every
document of a file is a message that the API takes as it is.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tpucfg.findings import Finding
from tpucfg.schemas import Problem
from tpucfg.targets.interface import RequestBody
from tpucfg.text_format import format_value, listed, nearest
from tpucfg.yamldoc import Document, Node

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
    """Return the value of a JSON file if it is made of several documents, else an empty mapping."""
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
        fix = "write each item as a document that begins with its kind, with --- between two of them"
        return Problem(
            "TPU072", "a document of the config is a list, and each object is a document of its own", (), fix
        )
    if not isinstance(value, dict):
        return Problem("TPU072", "a document of the config is no mapping", (), f"begin it with kind: {kinds[-1]}")
    kind = value.get("kind")
    if kind is None:
        message = "a document of the config has no kind, which states what object it is"
        return Problem("TPU071", message, (), f"add kind: {listed(kinds, last=' or ')}")
    if repeated:
        return Problem("TPU074", f"two documents have the kind {format_value(kind)}", ("kind",), "delete one of them")
    # Without the prefix, which would make any two kinds similar.
    near = nearest(str(kind).rpartition(_SEPARATOR)[2], document_keys(target))
    message = f"a document has the kind {format_value(kind)}; a config takes {listed(kinds)}"
    fix = f"did you mean {target.KIND_PREFIX}{near}?" if near else "move it to a file that is not checked as a config"
    return Problem("TPU073", message, ("kind",), fix)


def _kind_node(node: Node) -> Node:
    """Return the node of an object's kind, which stands for its key in locations."""
    children = node.children
    return children["kind"] if isinstance(children, Mapping) else node
