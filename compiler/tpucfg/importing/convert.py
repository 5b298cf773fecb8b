"""Convert a request body to a spec with a ladder of one rung.

The draft sets the keys that render the fields of the file. Its config is compared with the file: fields that only the
file has go to `extra`, keys that the compiler refuses are removed from the draft, and the remaining differences are
listed. No list of cases decides what can be imported, and the config of each returned spec was compared.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final, NamedTuple

from tpucfg import schemas
from tpucfg.catalog import Catalog
from tpucfg.findings import MAX_FINDINGS, errors
from tpucfg.importing.comparison import (
    Note,
    ValueDifferences,
    compare,
    is_written_by_server,
    left_out,
    path_in,
    reader,
    renamed,
    server_view,
    with_one_line,
)
from tpucfg.importing.draft import (
    ForeignConfig,
    Given,
    ImportRefusedError,
    SizeChoice,
    choices,
    draft_spec,
    find_source,
    is_gap,
    spec_text,
)
from tpucfg.paths import KeyPath, value_at, values_at
from tpucfg.render.pipeline import CompiledSpec, compile_project
from tpucfg.spec.parse import parse_project
from tpucfg.yamldoc import Document
from tpucfg.yamldoc.reader import read_text

# What the compiler refuses: taken out of a draft, so that the rest can be rendered.

Refused = tuple[Note, ...]
"""The values that the compiler refused, each with its path in the spec and the reason."""
_MAX_ROUNDS: Final = 3
"""A section that is wrong hides mistakes elsewhere, which a second round shows; `check` explains what is left."""
_STAND_INS: Final = {"project": "my-project", "image": "example.com/image:1"}
_MIN_DEPTH: Final = {"capacity": 1, "trainer": 2, "environments": 3, "targets": 3}
"""The shortest path of a setting in each section that an import may leave out."""


def without_refused(
    spec: dict[str, Any], rendered: Mapping[str, Any], catalog: Catalog
) -> tuple[dict[str, Any], Refused, CompiledSpec | None]:
    """Take out what the compiler refuses; without a compiled spec, what it refuses of the rest is listed too.

    Args:
        spec: The draft.
        rendered: The request body without `extra`.
        catalog: The catalog of TPU sizes.
    """
    spec = deepcopy(spec)
    refused: list[Note] = []
    for _ in range(_MAX_ROUNDS):
        compiled, mistakes = _compile(spec, catalog)
        parts = {_part_of(spec, path, rendered): message for path, message in mistakes}
        parts.pop((), None)
        if not parts:
            return spec, (*refused, *mistakes), compiled
        # From the end, as the items of a list move up.
        for part in sorted(parts, reverse=True):
            _take_out(spec, part)
        refused += [Note(part, message) for part, message in parts.items()]
    return spec, tuple(refused), None


def _compile(spec: Mapping[str, Any], catalog: Catalog) -> tuple[CompiledSpec | None, Refused]:
    """Return the compiled spec; None if the compiler refuses it, with what it refuses."""
    document = read_text(spec_text(_filled(spec, catalog)), "the spec")
    project, findings = parse_project(document)
    compiled = compile_project(project, catalog, earlier_findings=findings) if project else None
    mistakes = errors(compiled.findings if compiled else findings)
    if not mistakes:
        return compiled, ()
    paths = _paths(document)
    return None, tuple(Note(paths.get(each.location.point, ()), each.message) for each in mistakes)


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
    # A batch that divides over all devices and micro-batches.
    batch_size = (slice_.devices if slice_ else 1) * int(training.get("grad_accum") or 1)
    for key in ("batch_size", "train_steps"):
        if training.get(key, "") is None:
            training[key] = batch_size
    return filled


def _paths(document: Document) -> dict[tuple[str, int, int], KeyPath]:
    """Return the paths of the values of a spec by the places of their keys and their texts."""
    places: dict[tuple[str, int, int], KeyPath] = {}
    for path, _ in values_at(document.data, "**"):
        places.setdefault(document.value_location(path).point, path)
        places.setdefault(document.key_location(path).point, path)
    return places


def _part_of(spec: dict[str, Any], path: KeyPath, rendered: Mapping[str, Any]) -> KeyPath:
    """Return the path of the part of a spec that goes with a refused value; () if a spec cannot be without it."""
    if is_gap(path, None) and path[:1] != ("sizes",):
        return path if value_at(spec, path) is not None else ()
    if not path or len(path) < _MIN_DEPTH.get(str(path[0]), len(path) + 1):
        return ()
    return _whole_item(spec, path, rendered)


def _take_out(spec: dict[str, Any], path: KeyPath) -> None:
    """Take out the part of a spec at a path, with what is empty without it, or leave a gap where it is required."""
    if is_gap(path, None):
        value_at(spec, path[:-1])[path[-1]] = None
        return
    while path and value_at(spec, path, ...) is not ...:
        parent = value_at(spec, path[:-1])
        del parent[path[-1]]
        if parent and (not isinstance(parent, dict) or parent.keys() != {"name"}):
            break
        path = path[:-1]


def _whole_item(spec: Mapping[str, Any], path: KeyPath, rendered: Any) -> KeyPath:
    """Return the path of what goes with a refused value: an item that `extra` would add, or another list.

    A list without one of its words would be another command, and a container without its chips another container.
    """
    if path[2:3] == ("extra",):
        return path[: 4 + len(path_in(value_at(spec, path[:3]), rendered, path[3:]))]
    return path[
        : next((index for index, step in enumerate(path) if isinstance(step, int)), len(path))
    ]


# The conversion.


_NOT_COMPARED: Final = Note(
    (), "the other fields, as the spec has an error with which none can be compared"
)
_MAX_CHOICES: Final = 8
"""The sizes that are rendered and compared."""


class Imported(NamedTuple):
    """A spec from a file."""

    text: str
    notes: tuple[Note, ...]
    """The fields that were not carried over."""
    gaps: tuple[KeyPath, ...]
    """The paths in the spec that the reader fills in."""


def import_config(document: Document, given: Given, catalog: Catalog) -> Imported:
    """Return the spec of a file that could be read.

    Raises:
        ImportRefusedError: The file has no request body that can become a spec.
    """
    source = find_source(document)
    unknown = _unknown_fields(source)
    view = server_view(source.body)
    notes = [*source.notes, *unknown, *left_out(view)]
    sizes = choices(view, catalog)
    attempts = [_attempt(source, view, given, choice, catalog) for choice in sizes[:_MAX_CHOICES]]
    if not attempts:
        note = Note(
            (),
            "no size of the catalog has the machines of the file: accelerator, topology, hosts and chips",
        )
        attempts = [(draft_spec(source, view, given, SizeChoice(""), catalog), (note,))]
    spec, lost = min(attempts, key=lambda attempt: len(attempt[1]))
    gaps = tuple(path for path, value in values_at(spec, "**") if is_gap(path, value))
    notes += lost
    if len(notes) > MAX_FINDINGS:
        notes[MAX_FINDINGS:] = [Note((), "further fields, which are not listed")]
    return Imported(spec_text(spec), tuple(notes), gaps)


def _unknown_fields(source: ForeignConfig) -> list[Note]:
    """Take the fields out of a request body that the service's API does not have, and return a note for each.

    Raises:
        ImportRefusedError: The rest is no request body either.
    """
    notes: list[Note] = []
    for problem in schemas.schema_problems(source.target, source.body, schemas.CONFIG):
        parent = value_at(source.body, problem.path[:-1])
        if problem.id != schemas.CONFIG.unknown or not isinstance(parent, dict):
            continue
        parent.pop(problem.path[-1], None)
        if not is_written_by_server(problem.path):
            notes.append(Note(problem.path, problem.message))
    if mistakes := schemas.schema_problems(source.target, source.body, schemas.CONFIG):
        raise ImportRefusedError(
            f"the file is no valid config of {source.target}: {mistakes[0].message}",
            f"tpucfg check --config FILE --target {source.target} shows the lines",
        )
    return notes


_Attempt = tuple[dict[str, Any], tuple[Note, ...]]
"""A spec, and what its config does not have of the file."""


def _attempt(
    source: ForeignConfig, view: dict[str, Any], given: Given, choice: SizeChoice, catalog: Catalog
) -> _Attempt:
    """Return the spec with a size, and what its config does not have of the file."""
    # Where the figures of the line are not those of a spec, they stay text.
    for figures in (True, False):
        draft = draft_spec(source, view, given, choice, catalog, figures=figures)
        spec, refused, compiled = without_refused(draft, {}, catalog)
        if compiled or all(note.path[:1] != ("training",) for note in refused):
            break
    if compiled is None:
        return spec, (*refused, _NOT_COMPARED)
    comparison = _comparison(source, view, compiled)
    in_extra: Refused = ()
    if comparison.extra:
        spec.setdefault("targets", {}).setdefault(source.target, {})["extra"] = comparison.extra
        spec, in_extra, compiled = without_refused(spec, compiled.request_bodies[0][1], catalog)
        if compiled is None:
            return spec, (*refused, *in_extra, _NOT_COMPARED)
        comparison = _comparison(source, view, compiled)
    # `extra` may say what a key could not: the refusal of a key explains a loss, and is none itself.
    lost = (*in_extra, *comparison.missing, *comparison.notes)[: MAX_FINDINGS + 1]
    return spec, (*refused, *lost) if lost else ()


def _comparison(
    source: ForeignConfig, view: dict[str, Any], compiled: CompiledSpec
) -> ValueDifferences:
    job, body = compiled.request_bodies[0]
    ours = with_one_line(server_view(body))
    view = with_one_line(view)
    return compare(renamed(view, ours), ours, reader(view, ours, jobs=(source.name, job.name)))
