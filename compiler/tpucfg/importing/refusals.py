"""Take out of a draft what the compiler refuses, so that the rest can be rendered."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

from tpucfg.catalog import Catalog
from tpucfg.findings import Finding, errors
from tpucfg.importing.comparison import Note, counterpart
from tpucfg.importing.spec_text import is_gap, spec_text
from tpucfg.paths import KeyPath, value_at, values_at
from tpucfg.render.pipeline import CompiledSpec, compile_project
from tpucfg.spec.parse import parse_project
from tpucfg.yamldoc import Document
from tpucfg.yamldoc.reader import read_text

Refused = tuple[tuple[KeyPath, Note], ...]
"""The paths in the spec of what the compiler refused, each with the reason."""
_MAX_ROUNDS: Final = 40
"""The refusals that are taken out one after another; a file with more is listed as it is."""
_STAND_INS: Final = {"project": "my-project", "image": "example.com/image:1"}
_MIN_DEPTH: Final = {"capacity": 1, "trainer": 2, "environments": 3, "targets": 3}
"""The shortest path of a setting in each section that an import may leave out."""


def without_refused(
    spec: dict[str, Any], rendered: Mapping[str, Any], catalog: Catalog
) -> tuple[dict[str, Any], Refused, CompiledSpec | None]:
    """Take out what the compiler refuses, one part at a time; without a compiled spec, what is left is listed.

    Args:
        spec: The draft.
        rendered: The request body without `extra`.
        catalog: The catalog of TPU sizes.
    """
    spec = deepcopy(spec)
    refused: list[tuple[KeyPath, Note]] = []
    for _ in range(_MAX_ROUNDS):
        document = read_text(spec_text(_filled(spec, catalog)), "the spec")
        project, findings = parse_project(document)
        compiled = compile_project(project, catalog, earlier_findings=findings) if project else None
        mistakes = errors(compiled.findings if compiled else findings)
        if not mistakes:
            return spec, tuple(refused), compiled
        path = _path_of(document, mistakes[0])
        taken_out = _take_out(spec, path, rendered)
        refused.append((taken_out or path, Note(taken_out or path, mistakes[0].message)))
        if not taken_out:
            return spec, tuple(refused), None
    return spec, tuple(refused), None


def _filled(spec: Mapping[str, Any], catalog: Catalog) -> dict[str, Any]:
    """Return a spec with stand-ins for its gaps, with which no field of the config is decided."""
    filled = deepcopy(dict(spec))
    slice_ = catalog.find(filled["sizes"][0] or "")
    for environment in filled["environments"].values():
        environment["project"] = environment["project"] or _STAND_INS["project"]
        regions = slice_.regions() if slice_ else ()
        environment["region"] = environment["region"] or next(iter(regions), "us-central1")
    trainer, training = filled["trainer"], filled["training"]
    if trainer.get("image", "") is None:
        trainer["image"] = _STAND_INS["image"]
    for key in ("batch_size", "train_steps"):
        if training.get(key, "") is None:
            training[key] = slice_.devices if slice_ else 1
    return filled


def _path_of(document: Document, finding: Finding) -> KeyPath:
    """Return the path in the spec of the value that a finding is about."""
    places: dict[tuple[Any, ...], KeyPath] = {}
    for path, _ in values_at(document.data, "**"):
        places.setdefault(document.value_location(path)[:3], path)
        places.setdefault(document.key_location(path)[:3], path)
    return places.get(finding.location[:3], ())


def _take_out(spec: dict[str, Any], path: KeyPath, rendered: Mapping[str, Any]) -> KeyPath:
    """Take out the part of a spec at a path, or leave a gap where it is required.

    Returns:
        The path of the part; () if a spec cannot be without it.
    """
    if is_gap(path, None) and path[:1] != ("sizes",):
        parent = value_at(spec, path[:-1])
        was, parent[path[-1]] = parent.get(path[-1]), None
        return () if was is None else path
    if not path or len(path) < _MIN_DEPTH.get(str(path[0]), len(path) + 1):
        return ()
    whole = path = _whole_item(spec, path, rendered)
    while path:
        parent = value_at(spec, path[:-1])
        del parent[path[-1]]
        if parent and (not isinstance(parent, dict) or parent.keys() != {"name"}):
            break
        path = path[:-1]
    return whole


def _whole_item(spec: Mapping[str, Any], path: KeyPath, rendered: Any) -> KeyPath:
    """Return the path of what goes with a refused value: an item that `extra` would add, or another list.

    A list without one of its words would be another command, and a container without its chips another container.
    """
    if path[2:3] == ("extra",):
        return path[: 4 + len(counterpart(value_at(spec, path[:3]), rendered, path[3:]))]
    return path[: next((index for index, step in enumerate(path) if isinstance(step, int)), len(path))]
