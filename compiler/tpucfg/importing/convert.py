"""Convert a request body to a spec with a ladder of one rung.

A draft has a key for each field that a key writes. It is rendered and compared with the file: what only the file has
goes to `extra`, what the compiler refuses leaves the draft again, and what still differs is listed. No list of cases
decides what can be imported, and no spec is returned whose config was not compared.
"""

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, Final, NamedTuple

from tpucfg import schemas
from tpucfg.catalog import Catalog
from tpucfg.findings import Finding, errors
from tpucfg.importing.comparison import NOTHING, Comparison, compare, file_path, item_name, missing
from tpucfg.importing.keys import program_words, settings, written_fields
from tpucfg.importing.notes import Note
from tpucfg.importing.program import BATCH_FIGURES, Number, flags_of, read_program
from tpucfg.importing.server_view import is_written_by_server, left_out, reader, renamed, server_view, with_one_line
from tpucfg.importing.sizes import Choice, choices, described
from tpucfg.importing.source import ImportRefusedError, Source, find_source
from tpucfg.importing.spec_text import is_gap, spec_text
from tpucfg.paths import KeyPath, overlap, value_at
from tpucfg.plan.job import XLA_FLAGS_VARIABLE
from tpucfg.render.pipeline import CompiledSpec, compile_project
from tpucfg.spec.parse import parse_project
from tpucfg.yamldoc import Document
from tpucfg.yamldoc.reader import read_text

_MAX_ROUNDS: Final = 40
"""The refusals that are taken out one after another; a file with more is listed as it is."""
_MAX_CHOICES: Final = 8
_MIN_DEPTH: Final = {"capacity": 1, "trainer": 2, "environments": 3, "targets": 3}
"""The shortest path of a setting in each section that an import may leave out."""
Refused = tuple[tuple[KeyPath, Note], ...]
"""The paths in the spec of what the compiler refused, each with the reason."""
_STAND_INS: Final = {"project": "my-project", "image": "example.com/image:1"}
_NAME: Final = re.compile(r"[^a-z0-9]+")
_MAX_NAME_LENGTH: Final = 30


class Given(NamedTuple):
    """What the file lacks."""

    environment: str = "dev"
    project: str | None = None
    region: str | None = None
    batch_size: int | None = None
    train_steps: int | None = None


class Imported(NamedTuple):
    """A spec from a file."""

    text: str
    notes: tuple[Note, ...]
    """What was not carried over."""
    gaps: tuple[KeyPath, ...]
    """The paths in the spec that the reader fills in."""

    @property
    def is_equal(self) -> bool:
        """True if the rendered config is the file as the server reads it."""
        return not any(note.differs for note in self.notes)


def import_config(document: Document, given: Given, catalog: Catalog) -> Imported:
    """Return the spec of a file that could be read.

    Raises:
        ImportRefusedError: The file has no request body that can become a spec.
    """
    source = find_source(document)
    unknown = _unknown_fields(source)
    view = server_view(source.body)
    notes = [*source.notes, *unknown, *(Note(path, reason, differs=False) for path, reason in left_out(view))]
    found = choices(source.target, view, catalog)
    attempts = [_attempt(source, view, given, choice, catalog) for choice in found[:_MAX_CHOICES]]
    best = min(attempts, key=lambda attempt: len(attempt.notes), default=None)
    if best is None:
        note = Note((), f"no size of the catalog has these machines: see {described(source.target)}")
        best = _Attempt(_draft(source, view, given, Choice(""), catalog), (note,))
    gaps = tuple(path for path, value in _leaves(best.spec) if is_gap(path, value))
    return Imported(spec_text(best.spec), (*notes, *best.notes), gaps)


def _unknown_fields(source: Source) -> list[Note]:
    """Take the fields out of a request body that the service's API does not have, and return a note for each.

    Raises:
        ImportRefusedError: The rest is no request body either.
    """
    problems = schemas.schema_problems(source.target, source.body, schemas.CONFIG)
    unknown = [problem for problem in problems if problem.id == schemas.CONFIG.unknown]
    for problem in unknown:
        parent = value_at(source.body, problem.path[:-1])
        if isinstance(parent, dict):
            parent.pop(problem.path[-1], None)
    mistakes = schemas.schema_problems(source.target, source.body, schemas.CONFIG) if unknown else problems
    if mistakes:
        raise ImportRefusedError(
            f"the file is no valid config of {source.target}: {mistakes[0].message}",
            f"tpucfg check --config FILE --target {source.target} shows the lines",
        )
    return [Note(problem.path, problem.message) for problem in unknown if not is_written_by_server(problem.path)]


class _Attempt(NamedTuple):
    spec: dict[str, Any]
    notes: tuple[Note, ...]


def _attempt(source: Source, view: dict[str, Any], given: Given, choice: Choice, catalog: Catalog) -> _Attempt:
    """Return the spec with a size, and what its config does not have of the file."""
    spec, refused, compiled = _without_refused(_draft(source, view, given, choice, catalog), {}, catalog)
    if compiled is None and any(path[:1] == ("training",) for path, _ in refused):
        # The figures of the line are not those of a spec: they stay text.
        draft = _draft(source, view, given, choice, catalog, figures=False)
        spec, refused, compiled = _without_refused(draft, {}, catalog)
    if compiled is None:
        return _Attempt(spec, tuple(note for _, note in refused))
    comparison = _comparison(source, view, compiled)
    in_extra: Refused = ()
    if comparison.extra is not NOTHING:
        spec.setdefault("targets", {}).setdefault(source.target, {})["extra"] = comparison.extra
        spec, in_extra, compiled = _without_refused(spec, compiled.request_bodies[0][1], catalog)
        if compiled is None:
            return _Attempt(spec, tuple(note for _, note in (*refused, *in_extra)))
        before, comparison = comparison, _comparison(source, view, compiled)
        in_extra = tuple((path, note._replace(path=file_path(before.extra, view, path[3:]))) for path, note in in_extra)
    return _Attempt(spec, (*_lasting(source, view, refused, in_extra, comparison),))


def _lasting(
    source: Source, view: dict[str, Any], refused: Refused, in_extra: Refused, comparison: Comparison
) -> Iterator[Note]:
    """Yield the notes about what the config really lacks: `extra` may say what a key could not."""
    lost = [*(note for _, note in in_extra), *missing(comparison.extra, view), *comparison.notes]
    explained: list[KeyPath] = []
    for path, note in refused:
        fields = written_fields(source.target, view, path)
        hit = [field for field in fields if any(overlap(field, other.path) for other in lost)]
        if hit or not fields:
            explained += hit
            yield note._replace(path=hit[0] if hit else path)
    for note in lost:
        if not any(overlap(note.path, path) for path in explained):
            explained.append(note.path)
            yield note


def _comparison(source: Source, view: dict[str, Any], compiled: CompiledSpec) -> Comparison:
    job, body = compiled.request_bodies[0]
    ours = with_one_line(server_view(body))
    view = with_one_line(view)
    return compare(renamed(view, ours), ours, reader(view, ours, jobs=(source.name, job.name)))


# The draft


def _draft(
    source: Source, view: dict[str, Any], given: Given, choice: Choice, catalog: Catalog, *, figures: bool = True
) -> dict[str, Any]:
    """Return the spec of all that the keys say, with None for what is neither found nor given.

    Without `figures`, those of the command line stay in it.
    """
    values = settings(source.target, view)
    program = read_program(*program_words(source.target, view), source.name, with_figures=figures)
    training: dict[str, Any] = dict(program.figures)
    if not training.keys() & {*BATCH_FIGURES}:
        training["batch_size"] = _number(given.batch_size)
    if not training.keys() & {"train_steps", "epochs"}:
        training["train_steps"] = _number(given.train_steps)
    spec: dict[str, Any] = {
        "version": 1,
        "name": _name(source.name),
        "target": source.target,
        "sizes": [choice.size or None],
        "environments": {given.environment: _environment(source, given)},
        "trainer": {"image": None, **program.trainer},
        "training": {"tuned_on": choice.size or None, **training},
    }
    if (flags := flags_of(program, training)) is not None:
        spec["training"]["flags"] = flags
    for key, value in values.items():
        _put(spec, key.replace("<env>", given.environment).split("."), value)
    if override := choice.override():
        spec["overrides"] = {choice.size: override}
    _shape_trainer(spec["trainer"], choice, catalog)
    return spec


def _environment(source: Source, given: Given) -> dict[str, Any]:
    location = source.location or ""
    region = location.rpartition("-")[0] if location.count("-") > 1 else location
    return {"project": source.project or given.project, "region": region or given.region}


def _name(text: str) -> str:
    name = _NAME.sub("-", text.lower()).lstrip("-0123456789")[:_MAX_NAME_LENGTH].rstrip("-")
    return name or "imported"


def _number(value: int | None) -> Number | None:
    return None if value is None else Number(value)


def _put(spec: dict[str, Any], path: list[str], value: Any) -> None:
    for step in path[:-1]:
        spec = spec.setdefault(step, {})
    spec[path[-1]] = value


def _shape_trainer(trainer: dict[str, Any], choice: Choice, catalog: Catalog) -> None:
    """Move the flags of the TPU compiler out of the variables, and drop the gap of an image beside a package."""
    if (trainer.get("package") or trainer.get("module")) and not trainer["image"]:
        trainer.pop("image")
    env = {name: value.replace("${", "$${") for name, value in trainer.get("env", {}).items()}
    flags, slice_ = env.get(XLA_FLAGS_VARIABLE, ""), catalog.find(choice.size)
    if slice_ and flags and " ".join(flags.split()) == flags:
        trainer["xla_flags"] = {slice_.generation: flags.split()}
        del env[XLA_FLAGS_VARIABLE]
    trainer.pop("env", None)
    trainer.update({"env": env} if env else {})


# The refusals of the compiler


def _without_refused(
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
    for path, _ in _leaves(document.data, whole=True):
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
    if (
        path[:1] not in (("trainer",), ("targets",), ("environments",), ("capacity",))
        or len(path) < _MIN_DEPTH[str(path[0])]
    ):
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
    if path[2:3] != ("extra",):
        return path[: next((index for index, step in enumerate(path) if isinstance(step, int)), len(path))]
    for end in range(3, len(path)):
        step = path[end]
        if isinstance(step, int):
            items, name = rendered if isinstance(rendered, list) else [], item_name(value_at(spec, path[: end + 1]))
            same = [item for item in items if item_name(item) == name] if name else items[step : step + 1]
            if not same:
                return path[: end + 1]
            rendered = same[0]
        else:
            rendered = value_at(rendered, (step,))
    return path


def _leaves(value: Any, path: KeyPath = (), *, whole: bool = False) -> Iterator[tuple[KeyPath, Any]]:
    """Yield the values without parts, and with `whole` the mappings and lists too."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if whole or not isinstance(value, dict | list):
        yield path, value
    for step, part in parts:
        yield from _leaves(part, (*path, step), whole=whole)
