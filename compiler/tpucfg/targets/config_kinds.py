"""The target of a config, if the `kind` of its objects shows it: those of Compute Engine and of GKE have one."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tpucfg.findings import Finding
from tpucfg.targets.companions import documents_of
from tpucfg.targets.compute_engine import KIND_PREFIX
from tpucfg.targets.gke import COMPANION_SCHEMAS
from tpucfg.text_format import format_value
from tpucfg.yamldoc import Document, KeyPath

_TARGETS: Final[Mapping[str, str]] = {
    KIND_PREFIX: "compute-engine",
    "JobSet": "gke",
    **dict.fromkeys(COMPANION_SCHEMAS, "gke"),
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
        return Finding.of("TPU073", message, location, help=f"replace --target {target} by --target {other}")
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
