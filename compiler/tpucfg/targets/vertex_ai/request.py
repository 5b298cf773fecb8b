"""The request body of a job: a bare CustomJobSpec.

Sources: https://cloud.google.com/vertex-ai/docs/training/configure-compute#tpu (machines, topologies, one replica) and
https://cloud.google.com/vertex-ai/docs/reference/rest/v1/CustomJobSpec (the request body).
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from tpucfg.catalog import Slice
from tpucfg.plan import Job
from tpucfg.targets.interface import (
    CAPACITY,
    DEADLINE,
    MACHINE,
    MACHINES,
    Origin,
    RequestBody,
    Reserved,
    google_account,
    reservation_path,
    without_empty,
)

NAME: Final = "vertex-ai"
COMPUTE: Final = "https://cloud.google.com/vertex-ai/docs/training/configure-compute#tpu"
_SPEC: Final = "https://cloud.google.com/vertex-ai/docs/reference/rest/v1/CustomJobSpec"
_REFERENCE: Final = r"\$+(?=\()"
"""Dollar signs before a parenthesis, with which the service would read it as a reference."""

ORIGINS: Final[Mapping[str, Origin]] = {
    "workerPoolSpecs.*.machineSpec.machineType": Origin("catalog", "machine", COMPUTE),
    "workerPoolSpecs.*.machineSpec.acceleratorType": Origin("catalog", "accelerator", COMPUTE),
    "workerPoolSpecs.*.machineSpec.acceleratorCount": Origin("catalog", "cores", COMPUTE),
    "workerPoolSpecs.*.machineSpec.tpuTopology": Origin("catalog", "topology", COMPUTE),
    "workerPoolSpecs.*.machineSpec.reservationAffinity.**": Origin("spec", "capacity"),
    "workerPoolSpecs.*.replicaCount": Origin(
        "rule", "one replica for any number of hosts", COMPUTE, "sizes"
    ),
    "workerPoolSpecs.*.containerSpec.imageUri": Origin("spec", "trainer.image"),
    "workerPoolSpecs.*.containerSpec.command.*": Origin("spec", "trainer.command"),
    "workerPoolSpecs.*.containerSpec.args.*": Origin("figure", ""),
    "workerPoolSpecs.*.containerSpec.env.**": Origin("spec", "trainer.env"),
    "workerPoolSpecs.*.pythonPackageSpec.executorImageUri": Origin("spec", "trainer.image"),
    "workerPoolSpecs.*.pythonPackageSpec.packageUris.*": Origin("spec", "trainer.package"),
    "workerPoolSpecs.*.pythonPackageSpec.pythonModule": Origin("spec", "trainer.module"),
    "workerPoolSpecs.*.pythonPackageSpec.args.*": Origin("figure", ""),
    "workerPoolSpecs.*.pythonPackageSpec.env.**": Origin("spec", "trainer.env"),
    "scheduling.timeout": Origin("spec", "trainer.max_run_duration"),
    "scheduling.disableRetries": Origin("spec", "trainer.restarts"),
    "scheduling.strategy": Origin("spec", "capacity"),
    "serviceAccount": Origin("spec", "targets.vertex-ai.service_account"),
    "baseOutputDirectory.outputUriPrefix": Origin(
        "rule",
        "the job's own folder in the environment's bucket",
        _SPEC,
        "environments.<env>.bucket",
    ),
}


RESERVED: Final[Mapping[str, Reserved]] = {
    "workerPoolSpecs.*": Reserved(MACHINES, COMPUTE),
    "workerPoolSpecs.*.machineSpec.**": Reserved(MACHINE, COMPUTE),
    "persistentResourceId": Reserved(CAPACITY, _SPEC),
    "scheduling.strategy": Reserved(CAPACITY, _SPEC),
    "scheduling.timeout": Reserved(DEADLINE, _SPEC),
}
"""See `Target.RESERVED`."""


def request_body(job: Job) -> RequestBody:
    """Return the CustomJobSpec: one pool with one replica, which the service spreads over the slice's hosts."""
    program = "pythonPackageSpec" if job.package else "containerSpec"
    pool = {"machineSpec": _machine(job), "replicaCount": 1, program: _program(job)}
    return without_empty(
        workerPoolSpecs=[pool],
        scheduling=_scheduling(job),
        serviceAccount=google_account(job),
        baseOutputDirectory={"outputUriPrefix": job.job_dir},
    )


def _machine(job: Job) -> dict[str, Any]:
    reservation = reservation_path(job, "zones")
    affinity = {
        "reservationAffinityType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": [reservation],
    }
    counted = is_counted(job.slice)
    return without_empty(
        machineType=_machine_type(job.slice),
        acceleratorType=job.slice.accelerators.get(NAME),
        acceleratorCount=job.slice.cores if counted else None,
        tpuTopology=None if counted else job.slice.topology,
        reservationAffinity=affinity if reservation else None,
    )


def _scheduling(job: Job) -> dict[str, Any]:
    # Another number of restarts is an error: the service has its own.
    return without_empty(
        disableRetries=True if job.restarts == 0 else None,
        timeout=f"{job.max_run_duration.seconds}s" if job.max_run_duration else None,
        strategy="SPOT" if job.capacity.kind == "spot" else None,
    )


def _program(job: Job) -> dict[str, Any]:
    env = [{"name": key, "value": escape_references(value)} for key, value in job.env]
    if job.package:
        return without_empty(
            executorImageUri=job.image,
            packageUris=[job.package],
            pythonModule=job.module,
            args=list(job.args),
            env=env,
        )
    return without_empty(
        imageUri=job.image, command=list(job.command), args=list(job.args), env=env
    )


def escape_references(text: str) -> str:
    """Return a variable's value escaped for Vertex AI, which expands `$(NAME)` and reads `$$(NAME)` as `$(NAME)`.

    The page states no rule for other dollar signs or for arguments, so these are unchanged.
    https://cloud.google.com/vertex-ai/docs/reference/rest/v1/EnvVar
    """
    return re.sub(_REFERENCE, r"\g<0>\g<0>", text)


def is_counted(slice_: Slice) -> bool:
    """Return True if Vertex AI expects accelerator type and count for the slice, not machine type and topology."""
    return NAME in slice_.accelerators


def _machine_type(slice_: Slice) -> str | None:
    return slice_.vertex_machine_type or (slice_.machine.name if slice_.machine else None)
