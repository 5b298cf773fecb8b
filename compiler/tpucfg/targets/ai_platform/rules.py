"""The rules of AI Platform Training about a spec.

No job runs any more, so a config has no rules beside the API's schema.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tpucfg.catalog import Catalog, Slice
from tpucfg.findings import Finding
from tpucfg.schemas import Problem
from tpucfg.spec.project import Environment, Project
from tpucfg.spec.settings import Settings
from tpucfg.targets.ai_platform.request import DEFAULT_MACHINE, GUIDE, NAME
from tpucfg.targets.interface import RequestBody
from tpucfg.targets.rules import distinct_settings
from tpucfg.text_format import dotted

_SHUTDOWN: Final = "https://cloud.google.com/ai-platform/training/docs/deprecations"
REGIONS: Final = ("us-central1", "europe-west4")
"""The regions where the service has TPUs (GUIDE)."""
RUNTIMES: Final[Mapping[str, str]] = {
    "1.13": "3.5",
    "1.14": "3.5",
    "1.15": "3.7",
    "2.1": "3.7",
    "2.2": "3.7",
}
"""The runtimes with TPU support (GUIDE), each with its newest Python (FIELDS, pythonVersion)."""


def spec_findings(
    project: Project, environment: Environment, slices: Sequence[Slice]
) -> Iterator[Finding]:
    """Yield findings about the service's shutdown, and about regions, machines and trainers that it refuses."""
    yield _shut_down(project)
    for slice_ in slices:
        yield from _old_machine(project, project.settings[environment.name, slice_.size], slice_)
    if environment.region not in REGIONS:
        path, regions = (*environment.path, "region"), " or ".join(REGIONS)
        yield Finding.of(
            "TPU027",
            f"AI Platform Training has no TPUs in {environment.region}, only in {' and '.join(REGIONS)}",
            project.document.value_location(path),
            help=f"set {dotted(path)} to {regions}",
            details=(f"the service's list: {GUIDE}",),
        )
    for settings in distinct_settings(project, environment, slices):
        yield from _trainer_findings(project, settings)


def _shut_down(project: Project) -> Finding:
    """Return one finding for all environments, at the first line that chooses the target."""
    document = project.document
    using_paths = [
        environment.path
        for environment in project.environments.values()
        if environment.target == NAME
    ]
    first_path = using_paths[0] if using_paths and document.data["target"] != NAME else ()
    return Finding.of(
        "TPU060",
        "Google shut down AI Platform Training on 2025-01-31: its configs can be rendered and checked, but no job runs",
        document.value_location((*first_path, "target")),
        help="move to vertex-ai, which replaced it: "
        + ("set target to vertex-ai" if using_paths else "pass another --target than ai-platform"),
        details=(f"announced at {_SHUTDOWN}",),
    )


def _old_machine(project: Project, settings: Settings, slice_: Slice) -> Iterator[Finding]:
    """Yield an error for a size on a form of machine that has only TPU v2."""
    machine = settings.targets.get(NAME, {}).get("machine") or DEFAULT_MACHINE
    if machine != DEFAULT_MACHINE and NAME in slice_.targets and slice_.generation != "v2":
        path = settings.source(("targets", NAME, "machine"))
        message = f"{slice_.size} does not run with machine {machine}, which has TPU v2 only"
        hint = f"set {dotted(path)} to {DEFAULT_MACHINE}"
        location = project.document.value_location(path)
        yield Finding.of("TPU026", message, location, help=hint, details=(f"see {GUIDE}",))


def _trainer_findings(project: Project, settings: Settings) -> Iterator[Finding]:
    trainer, document = settings.trainer, project.document
    image, package, runtime, python = (
        settings.source(("trainer", key)) for key in ("image", "package", "runtime", "python")
    )
    if trainer.image and trainer.package:
        message = (
            f"{dotted(image)} and {dotted(package)} exclude each "
            f"other on {NAME}: a container contains its program"
        )
        yield Finding.of(
            "TPU054",
            message,
            document.key_location(package),
            help="delete package and module, or image",
        )
    if trainer.runtime is None:
        message = (
            f"trainer needs the key runtime on {NAME}: its TensorFlow and the trainer's must match"
        )
        hint = f"add the runtime that has the trainer's own TensorFlow: {', '.join(RUNTIMES)}"
        yield Finding.of("TPU005", message, document.key_location(runtime), help=hint)
    elif trainer.runtime not in RUNTIMES:
        message = f"runtime {trainer.runtime} has no TPU support on AI Platform Training; {', '.join(RUNTIMES)} have"
        hint = "choose the one with the trainer's own TensorFlow: the two must match"
        details = (f"the service's list: {GUIDE}",)
        yield Finding.of(
            "TPU052", message, document.value_location(runtime), help=hint, details=details
        )
    if trainer.package and not trainer.image and trainer.python is None:
        message = f"trainer needs the key python on {NAME}: a package runs in the runtime's Python"
        hint = f'add python: "{RUNTIMES.get(trainer.runtime or "", "3.7")}"'
        yield Finding.of("TPU005", message, document.key_location(python), help=hint)


def rules(_: RequestBody, __: Catalog) -> Sequence[Problem]:
    """Return no problems: see above."""
    return ()
