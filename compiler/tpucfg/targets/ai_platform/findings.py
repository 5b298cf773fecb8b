"""Findings about values of the spec that AI Platform Training refuses, and about its shutdown."""

from collections.abc import Iterator, Sequence
from typing import Final

from tpucfg.catalog import Slice
from tpucfg.findings import Finding
from tpucfg.spec.project import Environment, Project
from tpucfg.spec.settings import Settings
from tpucfg.targets.ai_platform.request import DEFAULT_MACHINE, MASTERS
from tpucfg.targets.ai_platform.rules import (
    FIELDS,
    GUIDE,
    NAME,
    PYTHONS,
    REGIONS,
    is_compute_engine,
    python_problem,
    region_problem,
    runtime_problem,
)
from tpucfg.targets.common import distinct_settings, unsupported_machines, unsupported_sizes
from tpucfg.targets.trainer_settings import Unsupported, unsupported_settings
from tpucfg.text_format import dotted
from tpucfg.yamldoc.document import KeyPath

_SHUTDOWN: Final = "https://cloud.google.com/ai-platform/training/docs/deprecations"
_NO_VARIABLES: Final = f"{NAME} sets no environment variables for the program"
_UNSUPPORTED: Final = (
    Unsupported("env", _NO_VARIABLES, "and pass the values as trainer.args, or set them in the image", FIELDS),
    Unsupported("secrets", f"{_NO_VARIABLES}, so none from Secret Manager", "and read them in the program", FIELDS),
    Unsupported("xla_flags", f"{_NO_VARIABLES}, so no flags of libtpu", "", FIELDS),
    Unsupported("mounts", f"{NAME} mounts no buckets", "and read from Cloud Storage in the program", FIELDS),
    Unsupported("restarts", f"{NAME} has no number of restarts", "", FIELDS),
)
"""The settings of the trainer for which a job has no field."""


def spec_findings(project: Project, environment: Environment, slices: Sequence[Slice]) -> Iterator[Finding]:
    """Yield findings about the service's shutdown, and about sizes, regions, machines and trainers that it refuses."""
    yield _shut_down(project)
    yield from unsupported_sizes(project, environment, slices, NAME)
    yield from unsupported_machines(project, slices, NAME, chooses=False)
    for slice_ in slices:
        yield from _machine_findings(project, project.settings[environment.name, slice_.size], slice_)
    if problem := region_problem(environment.region):
        path: KeyPath = (*environment.path, "region")
        fix = f"set {dotted(path)} to {' or '.join(REGIONS)}"
        yield problem._replace(help=fix).finding_at(project.document.value_location(path))
    yield from unsupported_settings(project, environment, slices, _UNSUPPORTED)
    for settings in distinct_settings(project, environment, slices):
        yield from _trainer_findings(project, settings)
        yield from _version_findings(project, settings)


def _shut_down(project: Project) -> Finding:
    """Return one finding for all environments, at the first line that chooses the target."""
    document = project.document
    using_paths = [environment.path for environment in project.environments.values() if environment.target == NAME]
    first_path = using_paths[0] if using_paths and document.data["target"] != NAME else ()
    return Finding.of(
        "TPU060",
        "Google shut down AI Platform Training on 2025-01-31: its configs can be rendered and checked, but no job runs",
        document.value_location((*first_path, "target")),
        help="move to vertex-ai, which replaced it: "
        + ("set target to vertex-ai" if using_paths else "pass another --target than ai-platform"),
        details=(f"announced at {_SHUTDOWN}",),
    )


def _machine_findings(project: Project, settings: Settings, slice_: Slice) -> Iterator[Finding]:
    options, document = settings.targets.get(NAME, {}), project.document
    machine, master = options.get("machine") or DEFAULT_MACHINE, options.get("master")
    machine_path, master_path = (settings.source(("targets", NAME, key)) for key in ("machine", "master"))
    if machine != DEFAULT_MACHINE and NAME in slice_.targets and slice_.generation != "v2":
        message = f"{slice_.size} does not run with machine {machine}, which has TPU v2 only"
        hint = f"set {dotted(machine_path)} to {DEFAULT_MACHINE}"
        location = document.value_location(machine_path)
        yield Finding.of("TPU026", message, location, help=hint, details=(f"see {GUIDE}",))
    if master and MASTERS[machine] is None:
        message = f"machine {machine} and master exclude each other: the basic tier chooses its master itself"
        hint = f"delete {dotted(master_path)}, or set {dotted(machine_path)} to {DEFAULT_MACHINE}"
        yield Finding.of("TPU054", message, document.key_location(master_path), help=hint)
    elif master and is_compute_engine(master) != (machine == DEFAULT_MACHINE):
        kind, other = ("legacy", "legacy") if machine == DEFAULT_MACHINE else ("Compute Engine", DEFAULT_MACHINE)
        message = f"machine {machine} and master {master} exclude each other: {master} is a {kind} machine"
        hint = f"set {dotted(machine_path)} to {other}, or delete {dotted(master_path)} for {MASTERS[machine]}"
        yield Finding.of("TPU054", message, document.value_location(master_path), help=hint)


def _trainer_findings(project: Project, settings: Settings) -> Iterator[Finding]:
    trainer = settings.trainer
    keys = ("image", "worker_image", "package", "python")
    image, worker_image, package, python = (settings.source(("trainer", key)) for key in keys)
    key_location = project.document.key_location
    if trainer.worker_image and not trainer.image:
        message = f"{dotted(worker_image)} needs {dotted(image)} too: the master also runs a container"
        yield Finding.of("TPU005", message, key_location(worker_image), help="add image, the master's container")
    if trainer.image and trainer.package:
        message = (
            f"{dotted(image)} and {dotted(package)} exclude each other on {NAME}: a container contains its program"
        )
        yield Finding.of("TPU054", message, key_location(package), help="delete package and module, or image")
    elif trainer.image and trainer.python:
        message = f"{dotted(image)} and {dotted(python)} exclude each other on {NAME}: a container has its own Python"
        yield Finding.of("TPU054", message, key_location(python), help=f"delete {dotted(python)}")


def _version_findings(project: Project, settings: Settings) -> Iterator[Finding]:
    trainer, document = settings.trainer, project.document
    runtime_path, python_path = (settings.source(("trainer", key)) for key in ("runtime", "python"))
    if trainer.runtime is None:
        message = f"trainer needs the key runtime on {NAME}: its TensorFlow and the trainer's must match"
        hint = f"add the runtime that has the trainer's own TensorFlow: {', '.join(PYTHONS)}"
        yield Finding.of("TPU005", message, document.key_location(runtime_path), help=hint)
    elif problem := runtime_problem(trainer.runtime):
        yield problem.finding_at(document.value_location(runtime_path))
    if trainer.package and not trainer.image and trainer.python is None:
        pythons = PYTHONS.get(trainer.runtime or "", ("3.7",))
        message = f"trainer needs the key python on {NAME}: a package runs in the runtime's Python"
        yield Finding.of("TPU005", message, document.key_location(python_path), help=f'add python: "{pythons[0]}"')
    elif trainer.runtime and trainer.python and (problem := python_problem(trainer.runtime, trainer.python)):
        fix = f'set {dotted(python_path)} to "{PYTHONS[trainer.runtime][0]}"'
        yield problem._replace(help=fix).finding_at(document.value_location(python_path))
