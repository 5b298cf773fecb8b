"""The rules of AI Platform Training: values of a spec, and a Job with one TPU worker of 8 cores.

No job runs any more, so fields that no form of a job has, such as those of evaluators, have no rules.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tpucfg.catalog import Catalog, Slice
from tpucfg.findings import Finding
from tpucfg.paths import KeyPath
from tpucfg.schemas import Problem
from tpucfg.spec.project import Environment, Project
from tpucfg.spec.settings import Settings
from tpucfg.targets.ai_platform.request import DEFAULT_MACHINE, GUIDE, MASTERS, NAME, WORKER_CORES
from tpucfg.targets.interface import RequestBody
from tpucfg.targets.rules import Rule, rule_problems, service_problem
from tpucfg.targets.spec_rules import distinct_settings
from tpucfg.text_format import dotted

_SHUTDOWN: Final = "https://cloud.google.com/ai-platform/training/docs/deprecations"
REGIONS: Final = ("us-central1", "europe-west4")
"""The regions where the service has TPUs (GUIDE)."""
PYTHONS: Final[Mapping[str, tuple[str, ...]]] = {
    "1.13": ("3.5", "2.7"),
    "1.14": ("3.5", "2.7"),
    "1.15": ("3.7", "2.7"),
    "2.1": ("3.7",),
    "2.2": ("3.7",),
}
"""The runtimes with TPU support (GUIDE), each with its Python versions (FIELDS, pythonVersion)."""
_ACCELERATOR: Final = "trainingInput.workerConfig.acceleratorConfig"
_LARGER: Final = "larger slices run on vertex-ai, cloud-tpu and gke"


def _is_custom(training: Mapping[str, Any]) -> bool:
    return training.get("scaleTier") == "CUSTOM"


_RULES: Final = (
    Rule(
        "trainingInput.scaleTier",
        lambda tier, _: tier not in ("BASIC_TPU", "CUSTOM"),
        "{value} has no TPU",
        "set scaleTier to BASIC_TPU (8 cores of TPU v2), or to CUSTOM",
        GUIDE,
    ),
    Rule(
        "trainingInput.masterType",
        lambda master, training: _is_custom(training) and not master,
        "scaleTier CUSTOM needs the master's machine",
        "add masterType: n1-highcpu-16",
        GUIDE,
    ),
    Rule(
        "trainingInput.masterType",
        lambda master, training: training.get("scaleTier") == "BASIC_TPU" and master,
        "BASIC_TPU chooses its machines itself",
        "delete it, or set scaleTier to CUSTOM",
        GUIDE,
    ),
    Rule(
        "trainingInput.workerType",
        lambda worker, training: _is_custom(training) and worker != "cloud_tpu",
        "{value} is not a TPU worker",
        "set workerType to cloud_tpu and workerCount to 1",
        GUIDE,
    ),
    Rule(
        "trainingInput.workerCount",
        lambda count, training: training.get("workerType") == "cloud_tpu" and str(count) != "1",
        "a TPU job has exactly one worker, not {value}",
        "set workerCount to 1",
        GUIDE,
    ),
    Rule(
        "trainingInput.parameterServerCount",
        lambda count, _: str(count or 0) != "0",
        "the service refuses parameter servers in a job with a TPU",
        "delete it, with parameterServerType",
        GUIDE,
        at_key=True,
    ),
    Rule(
        "trainingInput.masterConfig.acceleratorConfig",
        lambda accelerator, _: str((accelerator or {}).get("type")).startswith("TPU"),
        "the TPU belongs to the worker, not to the master",
        "move it to workerConfig.acceleratorConfig",
        GUIDE,
    ),
    Rule(
        f"{_ACCELERATOR}.type",
        lambda kind, accelerator: accelerator and kind not in WORKER_CORES,
        "{value} is not a TPU of a worker",
        f"set type to TPU_V2 or TPU_V3; {_LARGER}",
        GUIDE,
    ),
    Rule(
        f"{_ACCELERATOR}.count",
        lambda count, accelerator: str(count) != str(WORKER_CORES.get(str(accelerator.get("type")), count)),
        "a worker has 8 cores, not {value}",
        f"set count to 8; {_LARGER}",
        GUIDE,
    ),
)


def spec_findings(project: Project, environment: Environment, slices: Sequence[Slice]) -> Iterator[Finding]:
    """Yield findings about the service's shutdown, and about regions, machines and trainers that it refuses."""
    yield _shut_down(project)
    for slice_ in slices:
        yield from _machine_findings(project, project.settings[environment.name, slice_.size], slice_)
    if problem := _region_problem(environment.region):
        path: KeyPath = (*environment.path, "region")
        fix = f"set {dotted(path)} to {' or '.join(REGIONS)}"
        yield problem._replace(help=fix).finding_at(project.document.value_location(path))
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
    elif master and _is_compute_engine(master) != (machine == DEFAULT_MACHINE):
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
    elif problem := _runtime_problem(trainer.runtime):
        yield problem.finding_at(document.value_location(runtime_path))
    if trainer.package and not trainer.image and trainer.python is None:
        pythons = PYTHONS.get(trainer.runtime or "", ("3.7",))
        message = f"trainer needs the key python on {NAME}: a package runs in the runtime's Python"
        yield Finding.of("TPU005", message, document.key_location(python_path), help=f'add python: "{pythons[0]}"')
    elif trainer.runtime and trainer.python and (problem := _python_problem(trainer.runtime, trainer.python)):
        fix = f'set {dotted(python_path)} to "{PYTHONS[trainer.runtime][0]}"'
        yield problem._replace(help=fix).finding_at(document.value_location(python_path))


def _region_problem(region: str) -> Problem | None:
    """Return the problem of a region where the service has no TPUs; None if it has TPUs there."""
    if region in REGIONS:
        return None
    message = f"AI Platform Training has no TPUs in {region}, only in {' and '.join(REGIONS)}"
    fix = f"set region to {' or '.join(REGIONS)}"
    return Problem("TPU027", message, _training_path("region"), fix, details=(f"the service's list: {GUIDE}",))


def _runtime_problem(runtime: str, *path: str) -> Problem | None:
    """Return the problem of a runtime without TPU support; None if it has support."""
    if runtime in PYTHONS:
        return None
    message = f"runtime {runtime} has no TPU support on AI Platform Training; {', '.join(PYTHONS)} have"
    fix = "choose the one with the trainer's own TensorFlow: the two must match"
    return Problem("TPU052", message, _training_path(*path), fix, details=(f"the service's list: {GUIDE}",))


def _python_problem(runtime: str, python: str) -> Problem | None:
    """Return the problem of a Python version that the runtime lacks; None if the runtime is unknown."""
    pythons = PYTHONS.get(runtime, (python,))
    if python in pythons:
        return None
    message = f"runtime {runtime} does not have Python {python}, only {' and '.join(pythons)}"
    return Problem("TPU054", message, _training_path("pythonVersion"), f'set the Python version to "{pythons[0]}"')


def rules(body: RequestBody, _: Catalog) -> Iterator[Problem]:
    """Yield the problems of a body; a valid one has one TPU worker of 8 cores, in a region and a runtime with TPUs."""
    yield from rule_problems(_RULES, body)
    training = body["trainingInput"]
    if training.get("workerType") == "cloud_tpu":
        yield from _accelerator_problems(training)
    yield from _version_problems(training)


def _accelerator_problems(training: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield an error if acceleratorConfig is beside a legacy master, or missing beside one of Compute Engine."""
    master = training.get("masterType")
    has_config = bool(training.get("workerConfig", {}).get("acceleratorConfig"))
    if not master or not _is_custom(training) or has_config == _is_compute_engine(master):
        return
    path = _training_path("workerConfig", "acceleratorConfig")
    if has_config:
        message = f"{master} is a legacy machine: it has TPU v2 and no acceleratorConfig"
        yield service_problem(path, message, "delete it, or set masterType to n1-highcpu-16", GUIDE)
    else:
        message = f"it is missing, and with the Compute Engine machine {master} it names the TPU"
        yield service_problem(path, message, "add acceleratorConfig: {type: TPU_V2, count: 8}", GUIDE)


def _is_compute_engine(machine: str) -> bool:
    """Return True for a machine type of Compute Engine (n1-highcpu-16), False for a legacy one (complex_model_m)."""
    return "-" in machine


def _version_problems(training: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems of region, runtime and Python. Each may be missing, because it can be a flag of gcloud."""
    region, runtime, python = (training.get(field) for field in ("region", "runtimeVersion", "pythonVersion"))
    worker = training.get("workerConfig", {}).get("tpuTfVersion")
    problems = (
        _region_problem(region) if region else None,
        _runtime_problem(runtime, "runtimeVersion") if runtime else None,
        _python_problem(runtime, python) if runtime and python else None,
        _runtime_problem(worker, "workerConfig", "tpuTfVersion") if worker else None,
    )
    yield from (problem for problem in problems if problem)


def _training_path(*steps: str | int) -> KeyPath:
    return ("trainingInput", *steps)
