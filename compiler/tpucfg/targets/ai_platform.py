"""AI Platform Training, which Google has shut down: the config is a Job of the API ml.v1.

It has three published variants: the tier BASIC_TPU, and the tier CUSTOM with a legacy or a Compute Engine machine as
the master of one TPU worker. Each runs a Python package or containers, as the service's own account.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tpucfg.catalog import Slice
from tpucfg.findings import Finding
from tpucfg.plan.job import Job
from tpucfg.spec.project import Environment, Project
from tpucfg.spec.settings import Settings
from tpucfg.targets.ai_platform_reserved import RESERVED
from tpucfg.targets.ai_platform_rules import (
    FIELDS,
    GUIDE,
    NAME,
    PYTHONS,
    REGIONS,
    is_compute_engine,
    python_problem,
    region_problem,
    rules,
    runtime_problem,
)
from tpucfg.targets.common import (
    distinct_settings,
    unsupported_machines,
    unsupported_sizes,
    without_empty,
)
from tpucfg.targets.extra import merge_extra
from tpucfg.targets.interface import Command, Origin, RequestBody, Submission
from tpucfg.targets.trainer_settings import Unsupported, unsupported_settings
from tpucfg.text_format import dotted
from tpucfg.yamldoc.document import KeyPath

__all__ = ["NAME", "ORIGINS", "RESERVED", "request_body", "rules", "spec_findings", "submission"]

_SHUTDOWN: Final = "https://cloud.google.com/ai-platform/training/docs/deprecations"
_MASTERS: Final[Mapping[str, str | None]] = {
    "basic": None,
    "legacy": "complex_model_m",
    "compute-engine": "n1-highcpu-16",
}
"""The variants of `machine`, each with the master that the guide recommends; the basic tier chooses its own."""
_MACHINE: Final = "compute-engine"
"""The default variant, the only one with both generations of TPUs."""
_NO_VARIABLES: Final = f"{NAME} sets no environment variables for the program"
_UNSUPPORTED: Final = (
    Unsupported("env", _NO_VARIABLES, "and pass the values as trainer.args, or set them in the image", FIELDS),
    Unsupported("secrets", f"{_NO_VARIABLES}, so none from Secret Manager", "and read them in the program", FIELDS),
    Unsupported("xla_flags", f"{_NO_VARIABLES}, so no flags of libtpu", "", FIELDS),
    Unsupported("mounts", f"{NAME} mounts no buckets", "and read from Cloud Storage in the program", FIELDS),
    Unsupported("restarts", f"{NAME} has no number of restarts", "", FIELDS),
)
"""The settings of the trainer for which a job has no field."""

ORIGINS: Final[Mapping[str, Origin]] = {
    "labels.*": Origin("spec", "environments.<env>.labels"),
    "trainingInput.scaleTier": Origin("spec", "targets.ai-platform.machine", GUIDE),
    "trainingInput.masterType": Origin("spec", "targets.ai-platform.master", GUIDE),
    "trainingInput.masterConfig.imageUri": Origin("spec", "trainer.image"),
    "trainingInput.workerType": Origin("rule", "a TPU is a worker of this type", GUIDE, "sizes"),
    "trainingInput.workerCount": Origin("rule", "a TPU job has exactly one worker", GUIDE, "sizes"),
    "trainingInput.workerConfig.imageUri": Origin("spec", "trainer.worker_image", FIELDS),
    "trainingInput.workerConfig.tpuTfVersion": Origin("spec", "trainer.runtime", FIELDS),
    "trainingInput.workerConfig.acceleratorConfig.type": Origin("catalog", "accelerator", GUIDE),
    "trainingInput.workerConfig.acceleratorConfig.count": Origin("catalog", "cores", GUIDE),
    "trainingInput.region": Origin("spec", "environments.<env>.region"),
    "trainingInput.runtimeVersion": Origin("spec", "trainer.runtime"),
    "trainingInput.pythonVersion": Origin("spec", "trainer.python"),
    "trainingInput.packageUris.*": Origin("spec", "trainer.package"),
    "trainingInput.pythonModule": Origin("spec", "trainer.module"),
    "trainingInput.args.*": Origin("figure", ""),
    "trainingInput.scheduling.maxRunningTime": Origin("spec", "trainer.max_run_duration"),
}


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
    machine, master = options.get("machine") or _MACHINE, options.get("master")
    machine_path, master_path = (settings.source(("targets", NAME, key)) for key in ("machine", "master"))
    if machine != _MACHINE and NAME in slice_.targets and slice_.generation != "v2":
        message = f"{slice_.size} does not run with machine {machine}, which has TPU v2 only"
        hint = f"set {dotted(machine_path)} to {_MACHINE}"
        location = document.value_location(machine_path)
        yield Finding.of("TPU026", message, location, help=hint, details=(f"see {GUIDE}",))
    if master and _MASTERS[machine] is None:
        message = f"machine {machine} and master exclude each other: the basic tier chooses its master itself"
        hint = f"delete {dotted(master_path)}, or set {dotted(machine_path)} to {_MACHINE}"
        yield Finding.of("TPU054", message, document.key_location(master_path), help=hint)
    elif master and is_compute_engine(master) != (machine == _MACHINE):
        kind, other = ("legacy", "legacy") if machine == _MACHINE else ("Compute Engine", _MACHINE)
        message = f"machine {machine} and master {master} exclude each other: {master} is a {kind} machine"
        hint = f"set {dotted(machine_path)} to {other}, or delete {dotted(master_path)} for {_MASTERS[machine]}"
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


def request_body(job: Job) -> RequestBody:
    """Return the Job, without its id, which is an argument of the submit command."""
    # No jobDir: the service would pass it to the program as --job-dir, a flag that the program may not accept.
    machine = job.options.get("machine") or _MACHINE
    custom = _MASTERS[machine] is not None
    training = without_empty(
        scaleTier="CUSTOM" if custom else "BASIC_TPU",
        masterType=(job.options.get("master") or _MASTERS[machine]) if custom else None,
        masterConfig=without_empty(imageUri=job.image),
        workerType="cloud_tpu" if custom else None,
        workerCount=1 if custom else None,
        workerConfig=without_empty(
            **_container(job), acceleratorConfig=_accelerator(job) if machine == _MACHINE else None
        ),
        region=job.environment.region,
        **({} if job.image else _package(job)),
        args=list(job.args),
        scheduling={"maxRunningTime": f"{job.max_run_duration.seconds}s"} if job.max_run_duration else None,
    )
    return without_empty(labels=dict(job.environment.labels), trainingInput=training)


def _container(job: Job) -> dict[str, Any]:
    """Return the container of the TPU worker, with the defaults written out."""
    return {"imageUri": job.worker_image or job.image, "tpuTfVersion": job.runtime} if job.image else {}


def _package(job: Job) -> dict[str, Any]:
    return {
        "runtimeVersion": job.runtime,
        "pythonVersion": job.python,
        "packageUris": [job.package] if _is_uploaded(job.package) else None,
        "pythonModule": job.module,
    }


def _is_uploaded(package: str | None) -> bool:
    """Return True if the package is in Cloud Storage; gcloud builds and uploads a local folder."""
    return package is not None and package.startswith("gs://")


def _accelerator(job: Job) -> dict[str, Any]:
    return {"type": job.slice.accelerators[NAME], "count": job.slice.cores}


def submission(job: Job) -> Submission:
    """Return gcloud's commands, with flags for the fields of the config that gcloud ignores."""
    # gcloud ignores packageUris of the file. Without --scale-tier it reads --config twice: the second time, the pipe is
    # empty, and it silently submits a job without a TPU. With CUSTOM, --scale-tier needs --master-machine-type.
    training = merge_extra(job, request_body(job), ORIGINS, RESERVED).body["trainingInput"]
    id_, project = job.name.replace("-", "_"), f"--project={job.environment.project}"
    jobs, args = ("gcloud", "ai-platform", "jobs"), training.get("args", [])
    flags = {
        "staging-bucket": f"gs://{job.bucket}",
        "config": "/dev/stdin",
        **_package_flags(job, training),
    } | without_empty(
        **{"scale-tier": training["scaleTier"], "master-machine-type": training.get("masterType")},
        region=training["region"],
    )
    start = (*jobs, "submit", "training", id_, project, *(f"--{flag}={value}" for flag, value in flags.items()))
    return Submission(
        start=Command((*start, *(("--", *args) if args else ())), reads_config=True),
        watch=Command((*jobs, "stream-logs", id_, project)),
        delete=Command((*jobs, "cancel", id_, project)),
        notes=tuple(_notes(job)),
    )


def _package_flags(job: Job, training: Mapping[str, Any]) -> dict[str, Any]:
    if job.image:
        return {}
    return without_empty(
        **{
            "package-path": None if _is_uploaded(job.package) else job.package,
            "packages": ",".join(training.get("packageUris", ())),
            "module-name": training.get("pythonModule"),
            "runtime-version": training.get("runtimeVersion"),
            "python-version": training.get("pythonVersion"),
        }
    )


def _notes(job: Job) -> Iterator[str]:
    yield "the service accepts a job id only once: start each further run of this size with its own --run"
    if job.package and not _is_uploaded(job.package):
        yield f"gcloud builds {job.package} with the setup.py next to it: run this in the folder that contains both"
