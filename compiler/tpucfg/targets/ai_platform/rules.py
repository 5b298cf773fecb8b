"""Rules of AI Platform Training for a job with TPUs, rendered or written by hand.

Google's client checks few of them: it submits the config, and the service refuses the job minutes later.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tpucfg.catalog import Catalog, Slice
from tpucfg.schemas import Problem
from tpucfg.targets.common import service_problem
from tpucfg.targets.interface import RequestBody
from tpucfg.text_format import dotted
from tpucfg.yamldoc.document import KeyPath

NAME: Final = "ai-platform"
GUIDE: Final = "https://cloud.google.com/ai-platform/training/docs/using-tpus"
"""TPU machines, regions, runtimes and containers."""
FIELDS: Final = "https://cloud.google.com/ai-platform/training/docs/reference/rest/v1/projects.jobs"
"""The request body; its page states which fields depend on each other."""
NAMING: Final = "https://cloud.google.com/ai-platform/training/docs/managing-models-jobs"

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

_JOB_ID: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,127}")
_MAX_PACKAGES: Final = 100
_PRIORITIES: Final = range(1001)
_MIN_WAIT_S: Final = 1800
_PARAMETER_SERVERS: Final = ("parameterServerCount", "parameterServerType", "parameterServerConfig")
_CUSTOM_ONLY: Final[tuple[KeyPath, ...]] = (
    ("masterType",),
    ("masterConfig", "acceleratorConfig"),
    ("workerType",),
    ("workerCount",),
    ("workerConfig", "acceleratorConfig"),
    ("evaluatorType",),
    ("evaluatorCount",),
    ("evaluatorConfig",),
)
_UNSET: Final[tuple[object, ...]] = (None, 0, "0", "", {}, [])
"""Values that the API treats as an omitted field."""

TrainingInput = Mapping[str, Any]
"""The request body's trainingInput."""


def region_problem(region: str) -> Problem | None:
    """Return the problem of a region where the service has no TPUs; None if it has TPUs there."""
    if region in REGIONS:
        return None
    message = f"AI Platform Training has no TPUs in {region}, only in {' and '.join(REGIONS)}"
    fix = f"set region to {' or '.join(REGIONS)}"
    return Problem("TPU027", message, _training_path("region"), fix, details=(f"the service's list: {GUIDE}",))


def runtime_problem(runtime: str, *path: str) -> Problem | None:
    """Return the problem of a runtime without TPU support; None if it has support."""
    if runtime in PYTHONS:
        return None
    message = f"runtime {runtime} has no TPU support on AI Platform Training; {', '.join(PYTHONS)} have"
    fix = "choose the one with the trainer's own TensorFlow: the two must match"
    return Problem("TPU052", message, _training_path(*path), fix, details=(f"the service's list: {GUIDE}",))


def python_problem(runtime: str, python: str) -> Problem | None:
    """Return the problem of a Python version that the runtime lacks; None if the runtime is unknown."""
    pythons = PYTHONS.get(runtime, (python,))
    if python in pythons:
        return None
    message = f"runtime {runtime} does not have Python {python}, only {' and '.join(pythons)}"
    return Problem("TPU054", message, _training_path("pythonVersion"), f'set the Python version to "{pythons[0]}"')


def rules(body: RequestBody, catalog: Catalog) -> Iterator[Problem]:
    """Yield the problems of a body; a valid one has one TPU worker of 8 cores, in a region and a runtime with TPUs."""
    job_id, training = body.get("jobId"), body["trainingInput"]
    if job_id is not None and not _JOB_ID.fullmatch(job_id):
        fix = f"see {NAMING}"
        yield service_problem(("jobId",), "it needs 1 to 128 letters, digits and underscores, the first a letter", fix)
    yield from _parameter_server_problems(training)
    yield from (
        _custom_problems(training, catalog) if training.get("scaleTier") == "CUSTOM" else _tier_problems(training)
    )
    yield from _version_problems(training)
    yield from _image_problems(training)
    yield from _container_problems(training)
    yield from _limit_problems(training)


def _parameter_server_problems(training: TrainingInput) -> Iterator[Problem]:
    servers = [field for field in _PARAMETER_SERVERS if training.get(field) not in _UNSET]
    if servers:
        message = "the service refuses parameter servers in a job with a TPU"
        yield service_problem(_training_path(servers[0]), message, f"delete {' and '.join(servers)}", at_key=True)


def _tier_problems(training: TrainingInput) -> Iterator[Problem]:
    """Yield the problems of any tier but CUSTOM: only BASIC_TPU has a TPU, and it chooses every machine itself."""
    tier = training.get("scaleTier")
    if tier != "BASIC_TPU":
        message = f"{tier} has no TPU" if tier else "it is missing, and the API requires it"
        yield service_problem(
            _training_path("scaleTier"), message, "set scaleTier to BASIC_TPU (8 cores of TPU v2), or to CUSTOM"
        )
        return
    custom_only = [path for path in _CUSTOM_ONLY if _value(training, path) not in _UNSET]
    if custom_only:
        fix = f"delete {', '.join(dotted(path) for path in custom_only)}; or set scaleTier to CUSTOM"
        message = "BASIC_TPU chooses its machines itself; this field is for CUSTOM only"
        yield service_problem(_training_path(*custom_only[0]), message, fix)


def _custom_problems(training: TrainingInput, catalog: Catalog) -> Iterator[Problem]:
    master, worker, count = (training.get(field) for field in ("masterType", "workerType", "workerCount"))
    if not master:
        yield service_problem(
            _training_path("masterType"), "scaleTier CUSTOM needs the master's machine", "add masterType: n1-highcpu-16"
        )
    if str(_value(training, ("masterConfig", "acceleratorConfig", "type"))).startswith("TPU"):
        path = _training_path("masterConfig", "acceleratorConfig")
        yield service_problem(
            path, "the TPU belongs to the worker, not to the master", "move it to workerConfig.acceleratorConfig"
        )
    if worker != "cloud_tpu":
        message = f"{worker} is not a TPU worker" if worker else "it is missing, so the job has no TPU"
        yield service_problem(_training_path("workerType"), message, "set workerType to cloud_tpu and workerCount to 1")
        return
    if str(count) != "1":
        yield service_problem(
            _training_path("workerCount"),
            f"a TPU job has exactly one worker{_not_value(count)}",
            "set workerCount to 1",
        )
    if master:
        yield from _accelerator_problems(master, training.get("workerConfig", {}).get("acceleratorConfig"), catalog)


def _accelerator_problems(master: str, config: Mapping[str, Any] | None, catalog: Catalog) -> Iterator[Problem]:
    """Yield the problems of acceleratorConfig: a legacy master excludes it, a Compute Engine master requires it."""
    path = _training_path("workerConfig", "acceleratorConfig")
    if not is_compute_engine(master):
        if config is not None:
            fix = "delete acceleratorConfig, or set masterType to n1-highcpu-16"
            yield service_problem(path, f"{master} is a legacy machine: it has TPU v2 and no acceleratorConfig", fix)
        return
    if not config:
        fix = "add acceleratorConfig: {type: TPU_V2, count: 8}"
        yield service_problem(
            path, f"it is missing, and with the Compute Engine machine {master} it names the TPU", fix
        )
        return
    kind, count = config.get("type"), config.get("count")
    slice_ = _slice(kind, catalog)
    if slice_ is None:
        fix = "set type to TPU_V2 or TPU_V3; larger slices run on vertex-ai, cloud-tpu and gke"
        yield service_problem((*path, "type"), f"{kind or 'no type'} is not a TPU of a worker", fix)
    elif str(count) != str(slice_.cores):
        message = f"{kind} has {slice_.cores} cores{_not_value(count)}"
        fix = f"set count to {slice_.cores}; larger slices run on vertex-ai, cloud-tpu and gke"
        yield service_problem((*path, "count"), message, fix)


def is_compute_engine(machine: str) -> bool:
    """Return True for a machine type of Compute Engine (n1-highcpu-16), False for a legacy one (complex_model_m)."""
    return "-" in machine


def _slice(accelerator: str | None, catalog: Catalog) -> Slice | None:
    """Return the size of an accelerator type of the service; None if there is none."""
    # One generation at a time, because each is read from its own file.
    for generation in catalog.generations():
        for slice_ in generation.slices:
            if NAME in slice_.targets and slice_.accelerators.get(NAME) == accelerator:
                return slice_
    return None


def _version_problems(training: TrainingInput) -> Iterator[Problem]:
    """Yield the problems of region, runtime and Python. Each may be missing, because it can be a flag of gcloud."""
    region, runtime, python = (training.get(field) for field in ("region", "runtimeVersion", "pythonVersion"))
    worker = training.get("workerConfig", {}).get("tpuTfVersion")
    problems = (
        region_problem(region) if region else None,
        runtime_problem(runtime, "runtimeVersion") if runtime else None,
        python_problem(runtime, python) if runtime and python else None,
        runtime_problem(worker, "workerConfig", "tpuTfVersion") if worker else None,
    )
    yield from (problem for problem in problems if problem)


def _image_problems(training: TrainingInput) -> Iterator[Problem]:
    master = _value(training, ("masterConfig", "imageUri"))
    image = _value(training, ("workerConfig", "imageUri")) or master
    if master and training.get("runtimeVersion"):
        fix = "delete runtimeVersion; for the TPU it is workerConfig.tpuTfVersion"
        yield service_problem(_training_path("runtimeVersion"), "it and masterConfig.imageUri exclude each other", fix)
    for role in ("masterConfig", "evaluatorConfig"):
        if _value(training, (role, "tpuTfVersion")):
            yield service_problem(
                _training_path(role, "tpuTfVersion"), "only the TPU worker has this field", "move it to workerConfig"
            )
    version, path = _value(training, ("workerConfig", "tpuTfVersion")), _training_path("workerConfig", "tpuTfVersion")
    if image and not version:
        fix = "add it: the runtime with the container's own TensorFlow"
        yield service_problem(path, "it is missing, and a TPU worker that runs a container needs it", fix)
    if version and not image:
        fix = "delete it, or add masterConfig.imageUri"
        yield service_problem(path, "it is only for a worker that runs a container", fix)


def _container_problems(training: TrainingInput) -> Iterator[Problem]:
    master = _value(training, ("masterConfig", "imageUri"))
    for role in ("masterConfig", "workerConfig", "evaluatorConfig"):
        for field in ("containerCommand", "containerArgs"):
            if _value(training, (role, field)) in _UNSET:
                continue
            if training.get("args"):
                message, fix = "it and trainingInput.args exclude each other", f"delete {field} or args"
                yield service_problem(_training_path(role, field), message, fix)
            elif not (_value(training, (role, "imageUri")) or master):
                fix = f"add {role}.imageUri, or use trainingInput.args"
                yield service_problem(
                    _training_path(role, field), "it is for a custom container, and there is none", fix
                )


def _limit_problems(training: TrainingInput) -> Iterator[Problem]:
    scheduling = training.get("scheduling", {})
    if scheduling.get("priority", 0) not in _PRIORITIES:
        fix = f"set priority to {_PRIORITIES[-1]}, the highest, or less"
        yield service_problem(_training_path("scheduling", "priority"), f"it must be 0 to {_PRIORITIES[-1]}", fix)
    wait = scheduling.get("maxWaitTime")
    if wait and float(wait.removesuffix("s")) < _MIN_WAIT_S:
        fix = f'set maxWaitTime to "{_MIN_WAIT_S}s", or delete it'
        yield service_problem(
            _training_path("scheduling", "maxWaitTime"), f"{wait} is below the minimum of {_MIN_WAIT_S}s", fix
        )
    packages = training.get("packageUris", ())
    if len(packages) > _MAX_PACKAGES:
        message = f"{len(packages)} packages, and {_MAX_PACKAGES} are allowed"
        yield service_problem(_training_path("packageUris"), message, "combine several packages into one")


def _training_path(*steps: str | int) -> KeyPath:
    return ("trainingInput", *steps)


def _not_value(value: object) -> str:
    return "" if value is None else f", not {value}"


def _value(training: TrainingInput, path: KeyPath) -> object:
    """Return the value at a path; None if there is none."""
    value: Any = training
    for step in path:
        value = value.get(step, {})
    return value or None
