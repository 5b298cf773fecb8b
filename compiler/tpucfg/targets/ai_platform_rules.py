"""What AI Platform Training refuses of a training job with TPUs, whoever wrote its config.

Google's client says nothing of most of this: it sends what it is given, and the service answers minutes later.
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
"""The message, with what each field's text demands of the others."""
NAMING: Final = "https://cloud.google.com/ai-platform/training/docs/managing-models-jobs"

REGIONS: Final = ("us-central1", "europe-west4")
"""Where the service has TPUs (GUIDE)."""
PYTHONS: Final[Mapping[str, tuple[str, ...]]] = {
    "1.13": ("3.5", "2.7"),
    "1.14": ("3.5", "2.7"),
    "1.15": ("3.7", "2.7"),
    "2.1": ("3.7",),
    "2.2": ("3.7",),
}
"""The runtimes with TPU support (GUIDE), each with the Python versions that come with it (FIELDS, pythonVersion)."""

_JOB_ID: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,127}")
_MOST_PACKAGES: Final = 100
_PRIORITIES: Final = range(1001)
_SHORTEST_WAIT_S: Final = 1800
_SERVERS: Final = ("parameterServerCount", "parameterServerType", "parameterServerConfig")
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
"""What the API takes for a field left out."""

Training = Mapping[str, Any]
"""The message's trainingInput."""


def region_problem(region: str) -> Problem | None:
    """A region where the service has no TPUs."""
    if region in REGIONS:
        return None
    message = f"AI Platform Training has TPUs in {' and '.join(REGIONS)}, and none in {region}"
    fix = f"set region to {' or '.join(REGIONS)}"
    return Problem("TPU027", message, _at("region"), fix, details=(f"the service's list: {GUIDE}",))


def runtime_problem(runtime: str, *where: str) -> Problem | None:
    """A runtime that the service does not run TPUs with."""
    if runtime in PYTHONS:
        return None
    message = f"runtime {runtime} has no TPU support on AI Platform Training; {', '.join(PYTHONS)} have it"
    fix = "choose the one that has the trainer's own TensorFlow: the two must match"
    return Problem("TPU052", message, _at(*where), fix, details=(f"the service's list: {GUIDE}",))


def python_problem(runtime: str, python: str) -> Problem | None:
    """A Python that does not come with the runtime; nothing where the runtime itself is not known."""
    pythons = PYTHONS.get(runtime, (python,))
    if python in pythons:
        return None
    message = f"Python {python} does not come with runtime {runtime}, which has {' and '.join(pythons)}"
    return Problem("TPU054", message, _at("pythonVersion"), f'set the Python version to "{pythons[0]}"')


def rules(message: RequestBody, catalog: Catalog) -> Iterator[Problem]:
    """One TPU worker of 8 cores, no parameter servers, a region and runtime with TPUs, and fields that go together."""
    job_id, training = message.get("jobId"), message["trainingInput"]
    if job_id is not None and not _JOB_ID.fullmatch(job_id):
        fix = f"see {NAMING}"
        yield service_problem(("jobId",), "it takes 1 to 128 letters, digits and underscores, the first a letter", fix)
    yield from _servers(training)
    yield from (_custom(training, catalog) if training.get("scaleTier") == "CUSTOM" else _tier(training))
    yield from _versions(training)
    yield from _images(training)
    yield from _containers(training)
    yield from _limits(training)


def _servers(training: Training) -> Iterator[Problem]:
    asked = [field for field in _SERVERS if training.get(field) not in _UNSET]
    if asked:
        said = "the service refuses a job that has parameter servers beside a TPU"
        yield service_problem(_at(asked[0]), said, f"delete {' and '.join(asked)}", at_key=True)


def _tier(training: Training) -> Iterator[Problem]:
    """Any tier but CUSTOM: only BASIC_TPU has a TPU, and it chooses every machine itself."""
    tier = training.get("scaleTier")
    if tier != "BASIC_TPU":
        said = f"{tier} has no TPU" if tier else "no tier is given, and the API requires one"
        yield service_problem(_at("scaleTier"), said, "set scaleTier to BASIC_TPU (8 cores of TPU v2), or to CUSTOM")
        return
    extra = [path for path in _CUSTOM_ONLY if _value(training, path) not in _UNSET]
    if extra:
        fix = f"delete {', '.join(dotted(path) for path in extra)}; or set scaleTier to CUSTOM"
        yield service_problem(_at(*extra[0]), "BASIC_TPU chooses its machines itself; this is for CUSTOM only", fix)


def _custom(training: Training, catalog: Catalog) -> Iterator[Problem]:
    master, worker, count = (training.get(field) for field in ("masterType", "workerType", "workerCount"))
    if not master:
        yield service_problem(
            _at("masterType"), "scaleTier CUSTOM needs the master's machine", "add masterType: n1-highcpu-16"
        )
    if str(_value(training, ("masterConfig", "acceleratorConfig", "type"))).startswith("TPU"):
        path = _at("masterConfig", "acceleratorConfig")
        yield service_problem(
            path, "the TPU is the worker's, not the master's", "move it to workerConfig.acceleratorConfig"
        )
    if worker != "cloud_tpu":
        said = f"{worker} is no TPU worker" if worker else "no worker is given, so the job has no TPU"
        yield service_problem(_at("workerType"), said, "set workerType to cloud_tpu and workerCount to 1")
        return
    if str(count) != "1":
        yield service_problem(
            _at("workerCount"), f"a TPU job has exactly one worker{_not(count)}", "set workerCount to 1"
        )
    if master:
        yield from _accelerator(master, training.get("workerConfig", {}).get("acceleratorConfig"), catalog)


def _accelerator(master: str, config: Mapping[str, Any] | None, catalog: Catalog) -> Iterator[Problem]:
    """A legacy machine has TPU v2 and takes no acceleratorConfig; beside a Compute Engine machine it names the TPU."""
    path = _at("workerConfig", "acceleratorConfig")
    if not is_compute_engine(master):
        if config is not None:
            fix = "delete acceleratorConfig, or set masterType to n1-highcpu-16"
            yield service_problem(
                path, f"{master} is a legacy machine: it has TPU v2 and takes no acceleratorConfig", fix
            )
        return
    if not config:
        fix = "add acceleratorConfig: {type: TPU_V2, count: 8}"
        yield service_problem(
            path, f"it is missing, and beside the Compute Engine machine {master} it names the TPU", fix
        )
        return
    kind, count = config.get("type"), config.get("count")
    slice_ = _slice(kind, catalog)
    if slice_ is None:
        fix = "set type to TPU_V2 or TPU_V3; larger slices run on vertex-ai, cloud-tpu and gke"
        yield service_problem((*path, "type"), f"{kind or 'no type'} is not what a TPU worker takes", fix)
    elif str(count) != str(slice_.cores):
        said = f"{kind} comes with {slice_.cores} cores and no other number{_not(count)}"
        fix = f"set count to {slice_.cores}; larger slices run on vertex-ai, cloud-tpu and gke"
        yield service_problem((*path, "count"), said, fix)


def is_compute_engine(machine: str) -> bool:
    """Whether a machine type is one of Compute Engine's (n1-highcpu-16) and not a legacy one (complex_model_m)."""
    return "-" in machine


def _slice(accelerator: str | None, catalog: Catalog) -> Slice | None:
    """The size that the service gives an accelerator type; no further generation is read than the one that has it."""
    for generation in catalog.generations():
        for slice_ in generation.slices:
            if NAME in slice_.targets and slice_.accelerators.get(NAME) == accelerator:
                return slice_
    return None


def _versions(training: Training) -> Iterator[Problem]:
    """What is not given here can still come by flag, so only what is given is checked."""
    region, runtime, python = (training.get(field) for field in ("region", "runtimeVersion", "pythonVersion"))
    worker = training.get("workerConfig", {}).get("tpuTfVersion")
    found = (
        region_problem(region) if region else None,
        runtime_problem(runtime, "runtimeVersion") if runtime else None,
        python_problem(runtime, python) if runtime and python else None,
        runtime_problem(worker, "workerConfig", "tpuTfVersion") if worker else None,
    )
    yield from (problem for problem in found if problem)


def _images(training: Training) -> Iterator[Problem]:
    master = _value(training, ("masterConfig", "imageUri"))
    image = _value(training, ("workerConfig", "imageUri")) or master
    if master and training.get("runtimeVersion"):
        fix = "delete runtimeVersion; for the TPU it is workerConfig.tpuTfVersion"
        yield service_problem(_at("runtimeVersion"), "it and masterConfig.imageUri exclude each other", fix)
    for role in ("masterConfig", "evaluatorConfig"):
        if _value(training, (role, "tpuTfVersion")):
            yield service_problem(_at(role, "tpuTfVersion"), "only the TPU worker has it", "move it to workerConfig")
    version, path = _value(training, ("workerConfig", "tpuTfVersion")), _at("workerConfig", "tpuTfVersion")
    if image and not version:
        fix = "add it: the runtime that has the container's own TensorFlow"
        yield service_problem(path, "it is missing, and a TPU worker that runs a container needs it", fix)
    if version and not image:
        fix = "delete it, or add masterConfig.imageUri"
        yield service_problem(path, "it is for a worker that runs a container only", fix)


def _containers(training: Training) -> Iterator[Problem]:
    master = _value(training, ("masterConfig", "imageUri"))
    for role in ("masterConfig", "workerConfig", "evaluatorConfig"):
        for field in ("containerCommand", "containerArgs"):
            if _value(training, (role, field)) in _UNSET:
                continue
            if training.get("args"):
                said, fix = "it and trainingInput.args exclude each other", f"delete {field} or args"
                yield service_problem(_at(role, field), said, fix)
            elif not (_value(training, (role, "imageUri")) or master):
                fix = f"add {role}.imageUri, or write trainingInput.args"
                yield service_problem(_at(role, field), "it is for a custom container, and none is given", fix)


def _limits(training: Training) -> Iterator[Problem]:
    scheduling = training.get("scheduling", {})
    if scheduling.get("priority", 0) not in _PRIORITIES:
        fix = f"set priority to {_PRIORITIES[-1]}, the highest, or less"
        yield service_problem(_at("scheduling", "priority"), f"it takes 0 to {_PRIORITIES[-1]}", fix)
    wait = scheduling.get("maxWaitTime")
    if wait and float(wait.removesuffix("s")) < _SHORTEST_WAIT_S:
        fix = f'set maxWaitTime to "{_SHORTEST_WAIT_S}s", or delete it'
        yield service_problem(
            _at("scheduling", "maxWaitTime"), f"{wait}; the shortest wait is {_SHORTEST_WAIT_S}s", fix
        )
    packages = training.get("packageUris", ())
    if len(packages) > _MOST_PACKAGES:
        said = f"{len(packages)} packages; it takes {_MOST_PACKAGES}"
        yield service_problem(_at("packageUris"), said, "put several of them into one")


def _at(*steps: str | int) -> KeyPath:
    return ("trainingInput", *steps)


def _not(found: object) -> str:
    return "" if found is None else f", not {found}"


def _value(training: Training, path: KeyPath) -> object:
    """What stands at the path; None where nothing does."""
    value: Any = training
    for step in path:
        value = value.get(step, {})
    return value or None
