"""The request body in a file, and the draft of a spec with all of its keys and figures.

A draft has a gap for each required value that the request body lacks.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from tpucfg.catalog import Catalog, Slice
from tpucfg.importing.comparison import Note
from tpucfg.importing.keys import (
    BATCH_FIGURES,
    CHILD,
    POD,
    Number,
    flags_of,
    program_words,
    read_program,
    settings,
)
from tpucfg.paths import KeyPath, matches, value_at, values_at
from tpucfg.plan.job import XLA_FLAGS_VARIABLE
from tpucfg.refusal import RefusalError
from tpucfg.schemas import load_schema, resolve_references
from tpucfg.targets.gke import nodes
from tpucfg.targets.objects import is_foreign, kubernetes_objects
from tpucfg.text_format import format_value
from tpucfg.yamldoc import Document, count_values_and_depth, without_nulls
from tpucfg.yamldoc.writer import yaml_entry, yaml_scalar

# The request body in a file, and the target that it is for.

_FORMS: Final = {"replicatedJobs": "gke", "workerPoolSpecs": "vertex-ai", "nodeSpec": "cloud-tpu"}
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
    kind = document.data.get("kind") if isinstance(document.data, dict) else None
    what = f"its kind is {format_value(kind)}" if isinstance(kind, str) else "it has none of their fields"
    raise ImportRefusedError(f"{document.file} is no config that can be imported: {what}", f"give the file of {_KNOWN}")


def _target_of(value: Any) -> str | None:
    """Return the target whose request body a value is or contains; None if there is none."""
    return next((target for field, target in _FORMS.items() if any(values_at(value, f"**.{field}"))), None)


def _job_set(document: Document) -> Source:
    bodies, others = kubernetes_objects(document, "gke")
    body = next((item for item in bodies if _target_of(item.data)), bodies[0])
    rest = [item.data for item in (*others, *bodies) if item is not body]
    notes = map(_other_object, rest)
    name = _text(body.data.get("metadata"), "name")
    return Source("gke", body.data, name, None, None, tuple(notes))


def _other_object(value: Any) -> Note:
    kind = format_value(_text(value, "kind"), quoted=False)
    name = _text(value_at(value, ("metadata",)), "name")
    title = f"the {kind} {name}".strip() if kind else "a further document"
    keep = "tpucfg does not render it, so keep it in a file of its own"
    return Note((), f"{title} is left out: {keep if is_foreign(value, 'gke') else 'one job is imported at a time'}")


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


# The sizes whose machines a request body describes.


class Choice(NamedTuple):
    """A size, with what differs from its defaults."""

    size: str
    topology: str | None = None
    machine: str | None = None


def choices(target: str, body: Mapping[str, Any], catalog: Catalog) -> list[Choice]:
    """Return the sizes that fit the fields of a request body, the simplest first; none if no size does."""
    slices = (slice_ for generation in catalog.generations() for slice_ in generation.slices)
    return [choice for slice_ in slices for choice in _CHOICES[target](body, slice_)]


def _of_job_set(body: Mapping[str, Any], slice_: Slice) -> Iterator[Choice]:
    selector = value_at(body, (*POD, "nodeSelector"), {})
    annotations = value_at(body, (*CHILD, "template", "metadata", "annotations"), {})
    topology = selector.get(nodes.TOPOLOGY) or value_at(annotations, (nodes.SLICE_TOPOLOGY,))
    hosts, slices = value_at(body, (*CHILD, "parallelism"), 1), value_at(body, (*CHILD[:3], "replicas"), 1)
    limits = (value for _, value in values_at(value_at(body, POD), f"containers.*.resources.limits.[{nodes.CHIPS}]"))
    chips = sum(int(text) for text in map(str, limits) if re.fullmatch("[0-9]{1,4}", text))
    if not isinstance(hosts, int) or slice_.chips != hosts * chips or not isinstance(slices, int):
        return
    if topology not in (None, slice_.topology, *slice_.topologies):
        return
    own = None if topology in (None, slice_.topology) else str(topology)
    size = f"{slice_.size}x{slices}" if slices > 1 else slice_.size
    for machine in (*slice_.machines, *slice_.named_machines):
        if machine.chips == chips and machine.gke_label == selector.get(nodes.ACCELERATOR):
            # The target's own default may be another machine than the catalog's.
            yield Choice(size, own)
            yield Choice(size, own, machine.name)


def _of_custom_job(body: Mapping[str, Any], slice_: Slice) -> Iterator[Choice]:
    machine = value_at(body, ("workerPoolSpecs", 0, "machineSpec"), {})
    if not isinstance(machine, dict):
        return
    kind, topology = machine.get("acceleratorType"), machine.get("tpuTopology")
    count = str(machine.get("acceleratorCount"))
    if kind and (slice_.accelerators.get("vertex-ai"), str(slice_.cores)) == (kind, count):
        yield Choice(slice_.size)
    for each in () if kind else (*slice_.machines, *slice_.named_machines):
        if each.name == machine.get("machineType") and topology in (slice_.topology, *slice_.topologies):
            own = None if topology == slice_.topology else topology
            yield Choice(slice_.size, own)
            yield Choice(slice_.size, own, each.name)


def _of_queued_resource(body: Mapping[str, Any], slice_: Slice) -> Iterator[Choice]:
    spec = value_at(body, ("tpu", "nodeSpec", 0), {})
    nodes_ = value_at(spec, ("multisliceParams", "nodeCount"), 1)
    size = f"{slice_.size}x{nodes_}" if isinstance(nodes_, int) and nodes_ > 1 else slice_.size
    if value_at(spec, ("node", "acceleratorType")) == slice_.accelerator_type:
        yield Choice(size)


_CHOICES: Final = {"gke": _of_job_set, "vertex-ai": _of_custom_job, "cloud-tpu": _of_queued_resource}


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
    source: Source, view: dict[str, Any], given: Given, choice: Choice, catalog: Catalog, *, figures: bool = True
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
        training["batch_size"] = given.batch_size and Number(given.batch_size)
    if not training.keys() & {"train_steps", "epochs"}:
        training["train_steps"] = given.train_steps and Number(given.train_steps)
    spec: dict[str, Any] = {
        "version": 1,
        "name": _name(source.name),
        "target": source.target,
        "sizes": [choice.size or None],
        "environments": {
            given.environment: {"project": source.project or given.project, "region": region or given.region}
        },
        "trainer": {"image": None, **program.trainer},
        "training": {"tuned_on": choice.size or None, **training},
    }
    if (flags := flags_of(program, training)) is not None:
        spec["training"]["flags"] = flags
    for key, value in values.items():
        *sections, last = (given.environment if step == "<env>" else step for step in key.split("."))
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
_MAX_WIDTH: Final = 100


def is_gap(path: KeyPath, value: Any) -> bool:
    """Return True for a value of a spec that the reader fills in; any other null is a value."""
    return value is None and any(matches(pattern, path) for pattern in _GAPS)


def spec_text(spec: Mapping[str, Any]) -> str:
    """Return the text of a spec; a required value that is None is marked."""
    ordered = _ordered(spec, load_schema("tpucfg"))
    return _SCHEMA_LINE + "".join(f"{line}\n" for line in _mapping(ordered, ()))


def _mapping(values: Mapping[str, Any], path: KeyPath) -> Iterator[str]:
    indent = "  " * len(path)
    for key, value in values.items():
        place = (*path, key)
        if isinstance(value, dict) and value:
            yield f"{indent}{yaml_scalar(key)}:"
            yield from _mapping(value, place)
        elif is_gap(place, value):
            yield f"{indent}{key}: null  # fill in"
        elif isinstance(value, Number):
            yield f"{indent}{key}: {value}"
        elif isinstance(value, list) and (line := _short_list(value, place)):
            yield f"{indent}{yaml_scalar(key)}: {line}"
        else:
            yield f"{indent}{yaml_entry(key, value, len(indent))}"


def _short_list(values: list[Any], path: KeyPath) -> str | None:
    """Return a list of short scalars as one line; None for any other list."""
    if not all(isinstance(value, str | int | float | None) for value in values):
        return None
    line = f"[{', '.join(map(yaml_scalar, values))}]"
    gap = "  # fill in" if any(is_gap((*path, index), value) for index, value in enumerate(values)) else ""
    return line + gap if len(line) <= _MAX_WIDTH else None


def _ordered(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return a mapping with its keys in the order of the schema, those that it does not list last."""
    if not isinstance(value, dict):
        return value
    schema = resolve_references(load_schema("tpucfg"), schema)
    known, others = schema.get("properties", {}), schema.get("additionalProperties")
    keys = [*(key for key in known if key in value), *(key for key in value if key not in known)]
    return {key: _ordered(value[key], known.get(key, others if isinstance(others, dict) else {})) for key in keys}
