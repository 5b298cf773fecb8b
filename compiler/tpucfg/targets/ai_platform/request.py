"""The request body of a job: a Job of the API ml.v1, in one of its published forms."""

from collections.abc import Mapping
from typing import Any, Final

from tpucfg.plan.job import Job
from tpucfg.targets.interface import (
    DEADLINE,
    MACHINE,
    MACHINES,
    Origin,
    RequestBody,
    Reserved,
    without_empty,
)

NAME: Final = "ai-platform"
GUIDE: Final = "https://cloud.google.com/ai-platform/training/docs/using-tpus"
"""TPU machines, regions, runtimes and containers."""
FIELDS: Final = "https://cloud.google.com/ai-platform/training/docs/reference/rest/v1/projects.jobs"
"""The request body; its page states which fields depend on each other."""

MASTERS: Final[Mapping[str, str | None]] = {
    "basic": None,
    "legacy": "complex_model_m",
    "compute-engine": "n1-highcpu-16",
}
"""The variants of `machine`, each with the master that the guide recommends; the basic tier chooses its own."""
DEFAULT_MACHINE: Final = "compute-engine"
"""The default variant, the only one with both generations of TPUs."""
ORIGINS: Final[Mapping[str, Origin]] = {
    "labels.*": Origin("spec", "environments.<env>.labels"),
    "trainingInput.scaleTier": Origin("spec", "targets.ai-platform.machine", GUIDE),
    "trainingInput.masterType": Origin("spec", "targets.ai-platform.master", GUIDE),
    "trainingInput.masterConfig.imageUri": Origin("spec", "trainer.image"),
    "trainingInput.masterConfig.containerCommand.*": Origin("spec", "trainer.command", FIELDS),
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


RESERVED: Final[Mapping[str, Reserved]] = {
    "trainingInput.parameterServer*": Reserved(MACHINES, GUIDE),
    "trainingInput.evaluator*": Reserved(MACHINES, FIELDS),
    "trainingInput.hyperparameters": Reserved(MACHINES, FIELDS),
    "trainingInput.masterType": Reserved(MACHINE, GUIDE),
    "trainingInput.workerType": Reserved(MACHINE, GUIDE),
    "trainingInput.workerCount": Reserved(MACHINES, GUIDE),
    "trainingInput.*Config.acceleratorConfig.**": Reserved(MACHINE, GUIDE),
    "trainingInput.scheduling.maxRunningTime": Reserved(DEADLINE, FIELDS),
}
"""See `Target.RESERVED`."""


def request_body(job: Job) -> RequestBody:
    """Return the Job, without its id, which is an argument of the submit command."""
    # No jobDir: the service would pass it to the program as --job-dir, a flag that the program may not accept.
    machine = job.options.get("machine") or DEFAULT_MACHINE
    custom = MASTERS[machine] is not None
    training = without_empty(
        scaleTier="CUSTOM" if custom else "BASIC_TPU",
        masterType=(job.options.get("master") or MASTERS[machine]) if custom else None,
        # The program runs on the master; the TPU's worker keeps the entry point of its own image.
        masterConfig=without_empty(imageUri=job.image, containerCommand=list(job.command)),
        workerType="cloud_tpu" if custom else None,
        workerCount=1 if custom else None,
        workerConfig=without_empty(
            **_container(job),
            acceleratorConfig=_accelerator(job) if machine == DEFAULT_MACHINE else None,
        ),
        region=job.environment.region,
        **({} if job.image else _package(job)),
        args=list(job.args),
        scheduling={"maxRunningTime": f"{job.max_run_duration.seconds}s"}
        if job.max_run_duration
        else None,
    )
    return without_empty(labels=dict(job.environment.labels), trainingInput=training)


def _container(job: Job) -> dict[str, Any]:
    """Return the container of the TPU worker, with the defaults written out."""
    return (
        {"imageUri": job.worker_image or job.image, "tpuTfVersion": job.runtime}
        if job.image
        else {}
    )


def _package(job: Job) -> dict[str, Any]:
    return {
        "runtimeVersion": job.runtime,
        "pythonVersion": job.python,
        "packageUris": [job.package] if is_uploaded(job.package) else None,
        "pythonModule": job.module,
    }


def is_uploaded(package: str | None) -> bool:
    """Return True if the package is in Cloud Storage; gcloud builds and uploads a local folder."""
    return package is not None and package.startswith("gs://")


def _accelerator(job: Job) -> dict[str, Any]:
    return {"type": job.slice.accelerators[NAME], "count": job.slice.cores}
