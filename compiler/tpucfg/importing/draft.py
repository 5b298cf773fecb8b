"""The request body in a file, and the draft of a spec with all of its keys and figures.

A draft has a gap for each required value that the request body lacks.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from tpucfg.catalog import Catalog, Slice
from tpucfg.importing.comparison import Note, is_written_by_server
from tpucfg.importing.keys import (
    BATCH_FIGURES,
    CHILD,
    NumberText,
    flags_of,
    program_words,
    read_program,
    settings,
)
from tpucfg.paths import KeyPath, leaf_paths, matches, value_at, values_at
from tpucfg.plan.job import XLA_FLAGS_VARIABLE
from tpucfg.refusal import RefusalError
from tpucfg.schemas import load_schema, resolve_references
from tpucfg.targets.objects import kubernetes_objects
from tpucfg.text_format import format_value
from tpucfg.yamldoc import Document, count_values_and_depth, without_nulls
from tpucfg.yamldoc.writer import to_yaml

# The request body in a file, and the target that it is for.

_FORMS: Final = {"replicatedJobs": "gke", "workerPoolSpecs": "vertex-ai", "nodeSpec": "cloud-tpu"}
"""The targets by a field that only their request bodies have."""
_MAX_VALUES: Final = 3000
_MAX_CHARACTERS: Final = 100_000
"""Several times those of the longest published recipe: a draft is rendered and compared more than once."""
_KNOWN: Final = "a JobSet, a CustomJobSpec of Vertex AI or a queued resource of Cloud TPU"


class ImportRefusedError(RefusalError):
    """A file has no request body that can become a spec."""


class ForeignConfig(NamedTuple):
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


def find_source(document: Document) -> ForeignConfig:
    """Return the first request body of a file that could be read.

    Raises:
        ImportRefusedError: The file has none, or is larger than any config.
    """
    values = sum(count_values_and_depth(part.root)[0] for part in document.parts() if part.root)
    if len(document.text) > _MAX_CHARACTERS or values > _MAX_VALUES:
        message = f"{document.file} has more than {_MAX_VALUES:,} values or {_MAX_CHARACTERS:,} characters"
        raise ImportRefusedError(message, "give the file of one job, without other objects")
    for part in document.parts():
        target = _target_of(part.data)
        if target == "gke":
            return _job_set(document)
        if target:
            return _message(target, without_nulls(part.root).value if part.root else {})
    raise ImportRefusedError(
        f"{document.file} is no config that can be imported", f"give the file of {_KNOWN}"
    )


def _target_of(value: Any) -> str | None:
    """Return the target whose request body a value is or contains; None if there is none."""
    return next(
        (target for field, target in _FORMS.items() if any(values_at(value, f"**.{field}"))), None
    )


def _job_set(document: Document) -> ForeignConfig:
    bodies, others = kubernetes_objects(document, "gke")
    body = next((item for item in bodies if _target_of(item.data)), bodies[0])
    rest = [item.data for item in (*others, *bodies) if item is not body]
    notes = map(_other_object, rest)
    name = _text(body.data.get("metadata"), "name")
    return ForeignConfig("gke", body.data, name, None, None, tuple(notes))


def _other_object(value: Any) -> Note:
    kind = format_value(_text(value, "kind"), quoted=False)
    name = _text(value_at(value, ("metadata",)), "name")
    title = f"the {kind} {name}".strip() if kind else "a further document"
    return Note(
        (),
        f"{title} is left out: one job is imported, so keep others and their objects in files of their own",
    )


def _message(target: str, value: dict[str, Any]) -> ForeignConfig:
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
        if body is not value and key != "jobSpec" and not is_written_by_server((key,))
    ]
    return ForeignConfig(
        target, body, name, named.get("projects"), named.get("locations"), tuple(notes)
    )


def _text(value: Any, key: str) -> str:
    text = value.get(key) if isinstance(value, dict) else None
    return text if isinstance(text, str) else ""


# The sizes whose machines a request body describes.


class SizeChoice(NamedTuple):
    """A size, with what differs from its defaults."""

    size: str
    topology: str | None = None
    machine: str | None = None


def choices(body: Mapping[str, Any], catalog: Catalog) -> list[SizeChoice]:
    """Return the sizes that a request body names, the simplest first: the comparison decides which of them it means."""
    texts = {str(value_at(body, path)) for path in leaf_paths(body)}
    nodes = value_at(body, ("tpu", "nodeSpec", 0, "multisliceParams", "nodeCount"), 1)
    count = value_at(body, (*CHILD[:3], "replicas"), nodes)
    slices = (slice_ for generation in catalog.generations() for slice_ in generation.slices)
    return [choice for slice_ in slices for choice in _choices(slice_, texts, count)]


def _choices(slice_: Slice, texts: set[str], count: Any) -> Iterator[SizeChoice]:
    """Yield a size if its type, or one of its machines and topologies, are among the texts of a request body."""
    size = f"{slice_.size}x{count}" if type(count) is int and count > 1 else slice_.size
    if (
        slice_.accelerator_type in texts
        or {slice_.accelerators.get("vertex-ai"), str(slice_.cores)} <= texts
    ):
        yield SizeChoice(size)
    all_machines = (*slice_.machines, *slice_.named_machines)
    machines = [
        machine.name for machine in all_machines if texts & {machine.name, machine.gke_label}
    ]
    for topology in (slice_.topology, *slice_.topologies) if machines else ():
        if topology in texts:
            own = None if topology == slice_.topology else topology
            # The target's own default may be another machine than the catalog's.
            yield from (SizeChoice(size, own, name) for name in (None, *machines))


# The draft.


_NAME: Final = re.compile(r"[^a-z0-9]+")
_MAX_NAME_LENGTH: Final = 30


class Given(NamedTuple):
    """The values that the file lacks."""

    environment: str = "dev"
    project: str | None = None
    region: str | None = None
    batch_size: int | None = None
    train_steps: int | None = None


def draft_spec(
    source: ForeignConfig,
    view: dict[str, Any],
    given: Given,
    choice: SizeChoice,
    catalog: Catalog,
    *,
    figures: bool = True,
) -> dict[str, Any]:
    """Return the spec of all that the keys say, with None for required values that are missing.

    Without `figures`, those of the command line stay in it.
    """
    location = source.location or ""
    region = location.rpartition("-")[0] if location.count("-") > 1 else location  # of a zone
    values = settings(source.target, view)
    program = read_program(*program_words(source.target, view), source.name, with_figures=figures)
    training: dict[str, Any] = dict(program.figures)
    if not training.keys() & {*BATCH_FIGURES}:
        training["batch_size"] = given.batch_size and NumberText(given.batch_size)
    if not training.keys() & {"train_steps", "epochs"}:
        training["train_steps"] = given.train_steps and NumberText(given.train_steps)
    spec: dict[str, Any] = {
        "version": 1,
        "name": _name(source.name),
        "target": source.target,
        "sizes": [choice.size or None],
        "environments": {
            given.environment: {
                "project": source.project or given.project,
                "region": region or given.region,
            }
        },
        "trainer": {"image": None, **program.trainer},
        "training": {"tuned_on": choice.size or None, **training},
    }
    if (flags := flags_of(program, training)) is not None:
        spec["training"]["flags"] = flags
    for key, value in values.items():
        *sections, last = (
            given.environment if step == "<env>" else step for step in key.split(".")
        )
        parent = spec
        for step in sections:
            parent = parent.setdefault(step, {})
        parent[last] = value
    if choice.topology or choice.machine:
        override = {"topology": choice.topology, "machine": choice.machine}
        spec["overrides"] = {choice.size: {key: value for key, value in override.items() if value}}
    _shape_trainer(spec["trainer"], choice, catalog)
    return spec


def _name(text: str) -> str:
    name = _NAME.sub("-", text.lower()).lstrip("-0123456789")[:_MAX_NAME_LENGTH].rstrip("-")
    return name or "imported"


def _shape_trainer(trainer: dict[str, Any], choice: SizeChoice, catalog: Catalog) -> None:
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


# The text: keys in the order of the schema, numbers in the file's spelling, and a mark at each gap.

_SCHEMA_LINE: Final = "# yaml-language-server: $schema=schema/tpucfg.schema.json\n"
_GAPS: Final = (
    "sizes.0",
    "environments.*.project",
    "environments.*.region",
    "trainer.image",
    "training.tuned_on",
    "training.batch_size",
    "training.train_steps",
)
"""The values that every spec needs, and that a file may lack."""
_AS_WRITTEN: Final = r'"\\u0000([^"]*)"'
"""A text that is written without quotes; no value of a file has its first character."""


def is_gap(path: KeyPath, value: Any) -> bool:
    """Return True for a value of a spec that the reader fills in; any other null is a value."""
    return value is None and any(matches(pattern, path) for pattern in _GAPS)


def spec_text(spec: Mapping[str, Any]) -> str:
    """Return the text of a spec; a required value that is None is marked."""
    text = to_yaml(_ordered(spec, load_schema("tpucfg"))).removeprefix("\n")
    return f"{_SCHEMA_LINE}{re.sub(_AS_WRITTEN, lambda match: match[1], text)}\n"


def _ordered(value: Any, schema: Mapping[str, Any], path: KeyPath = ()) -> Any:
    """Return a mapping with its keys in the order of the schema, those that it does not list last."""
    if is_gap(path, value):
        return "\0null  # fill in"
    if isinstance(value, list):
        return [_ordered(item, {}, (*path, index)) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return f"\0{value}" if isinstance(value, NumberText) else value
    schema = resolve_references(load_schema("tpucfg"), schema)
    known, others = schema.get("properties", {}), schema.get("additionalProperties")
    keys = [*(key for key in known if key in value), *(key for key in value if key not in known)]
    return {key: _ordered(value[key], known.get(key, others), (*path, key)) for key in keys}
