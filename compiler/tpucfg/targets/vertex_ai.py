"""Vertex AI custom training: the config is a bare CustomJobSpec.

Sources: https://cloud.google.com/vertex-ai/docs/training/configure-compute#tpu (machines, topologies, one replica) and
https://cloud.google.com/vertex-ai/docs/reference/rest/v1/CustomJobSpec (the request body).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tpucfg.catalog import Catalog, Slice
from tpucfg.findings import Finding
from tpucfg.plan.job import Job
from tpucfg.plan.rules.capacity_table import capacity_verdict
from tpucfg.schemas import Problem
from tpucfg.spec.project import Environment, Project
from tpucfg.spec.settings import CapacityKind, Settings
from tpucfg.targets.common import (
    distinct_settings,
    long_account_id,
    service_problem,
    unsupported_machines,
    unsupported_sizes,
    uses_own_account,
    without_empty,
)
from tpucfg.targets.interface import Command, Origin, RequestBody, Submission
from tpucfg.targets.vertex_ai_reserved import RESERVED
from tpucfg.targets.vertex_ai_settings import setting_findings
from tpucfg.text_format import dotted, listed
from tpucfg.yamldoc.document import KeyPath

__all__ = ["NAME", "ORIGINS", "RESERVED", "request_body", "rules", "spec_findings", "submission"]

NAME: Final = "vertex-ai"
_COMPUTE: Final = "https://cloud.google.com/vertex-ai/docs/training/configure-compute#tpu"
_SPEC: Final = "https://cloud.google.com/vertex-ai/docs/reference/rest/v1/CustomJobSpec"
_REFERENCE: Final = re.compile(r"\$+(?=\()")
"""Dollar signs before a parenthesis, with which the service would read it as a reference."""
_KINDS: Final[Mapping[str, CapacityKind]] = {"SPOT": "spot", "FLEX_START": "flex-start"}
"""The strategies of `scheduling` that are a kind of capacity."""
_BOOT_DISK_GB: Final = range(100, 64_001)

ORIGINS: Final[Mapping[str, Origin]] = {
    "workerPoolSpecs.*.machineSpec.machineType": Origin("catalog", "machine", _COMPUTE),
    "workerPoolSpecs.*.machineSpec.acceleratorType": Origin("catalog", "accelerator", _COMPUTE),
    "workerPoolSpecs.*.machineSpec.acceleratorCount": Origin("catalog", "cores", _COMPUTE),
    "workerPoolSpecs.*.machineSpec.tpuTopology": Origin("catalog", "topology", _COMPUTE),
    "workerPoolSpecs.*.machineSpec.reservationAffinity.**": Origin("spec", "capacity"),
    "workerPoolSpecs.*.replicaCount": Origin("rule", "one replica for any number of hosts", _COMPUTE, "sizes"),
    "workerPoolSpecs.*.containerSpec.imageUri": Origin("spec", "trainer.image"),
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
        "rule", "the job's own folder in the environment's bucket", _SPEC, "environments.<env>.bucket"
    ),
}


def spec_findings(project: Project, environment: Environment, slices: Sequence[Slice]) -> Iterator[Finding]:
    """Yield findings about sizes, machines and trainers that Vertex AI refuses."""
    yield from unsupported_sizes(project, environment, slices, NAME)
    for by_count in (False, True):
        # If accelerators are counted, the machine type is a fixed text (cloud-tpu), so the spec cannot choose it.
        same_kind = [slice_ for slice_ in slices if _by_count(slice_) == by_count]
        yield from unsupported_machines(project, same_kind, NAME, chooses=not by_count)
    for slice_ in slices:
        yield from setting_findings(project, environment, slice_)
    for settings in distinct_settings(project, environment, slices):
        yield from _trainer_findings(project, settings)
    if not uses_own_account(project, environment, slices, NAME):
        yield from long_account_id(project, environment, NAME)


def _trainer_findings(project: Project, settings: Settings) -> Iterator[Finding]:
    trainer, path = settings.trainer, settings.source(("trainer", "package"))
    if trainer.package and not trainer.image:
        hint = "add image: us-docker.pkg.dev/vertex-ai/training/tf-tpu.2-15.cp310:latest, or another executor image"
        message = f"a package needs an executor image on {NAME}, which runs the package in it"
        yield Finding.of("TPU051", message, project.document.key_location(path), help=hint)
    if trainer.package and not trainer.package.startswith(("gs://", "${bucket}", "${job_dir}")):
        hint = f"build it with: python -m build --sdist, copy it to the bucket, and set {dotted(path)} to ${{bucket}}/…"
        message = f"{dotted(path)} is the local folder {trainer.package}; {NAME} reads packages from Cloud Storage"
        yield Finding.of("TPU051", message, project.document.value_location(path), help=hint)


def request_body(job: Job) -> RequestBody:
    """Return the CustomJobSpec: one pool with one replica, which the service spreads over the slice's hosts."""
    program = "pythonPackageSpec" if job.package else "containerSpec"
    pool = {"machineSpec": _machine(job), "replicaCount": 1, program: _program(job)}
    options = job.options
    return without_empty(
        workerPoolSpecs=[pool],
        scheduling=_scheduling(job),
        serviceAccount=options.get("service_account") or job.account,
        baseOutputDirectory={"outputUriPrefix": job.job_dir},
    )


def _machine(job: Job) -> dict[str, Any]:
    reservation = _reservation(job)
    affinity = {
        "reservationAffinityType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": [reservation],
    }
    accelerator = job.slice.accelerators.get(NAME)
    by_count = accelerator is not None
    return without_empty(
        machineType=_machine_type(job.slice),
        acceleratorType=accelerator,
        acceleratorCount=job.slice.cores if by_count else None,
        tpuTopology=None if by_count else job.slice.topology,
        reservationAffinity=affinity if reservation else None,
    )


def _reservation(job: Job) -> str | None:
    """Return the reservation's full name, which has the zone."""
    if (reservation := job.capacity.reservation) is None:
        return None
    project, _, name = reservation.removeprefix("projects/").rpartition("/reservations/")
    return f"projects/{project or job.environment.project}/zones/{job.zone}/reservations/{name}"


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
    return without_empty(imageUri=job.image, args=list(job.args), env=env)


def escape_references(text: str) -> str:
    """Return a variable's value escaped for Vertex AI, which expands `$(NAME)` and reads `$$(NAME)` as `$(NAME)`.

    The page states no rule for other dollar signs or for arguments, so these are unchanged.
    https://cloud.google.com/vertex-ai/docs/reference/rest/v1/EnvVar
    """
    return _REFERENCE.sub(r"\g<0>\g<0>", text)


def rules(body: RequestBody, catalog: Catalog) -> Iterator[Problem]:
    """Yield the problems of a body that does not have exactly one pool, replica and program, on an offered TPU."""
    pools = body.get("workerPoolSpecs", [])
    if len(pools) != 1:
        message = f"{len(pools)} pools; a TPU job has exactly one for any number of hosts"
        yield service_problem(("workerPoolSpecs",), message, "keep one pool")
    for index, pool in enumerate(pools):
        path = ("workerPoolSpecs", index)
        if str(pool.get("replicaCount", 1)) != "1":
            message = f"{pool['replicaCount']} replicas; a TPU job has exactly one for any number of hosts"
            yield service_problem((*path, "replicaCount"), message, f"set {dotted((*path, 'replicaCount'))} to 1")
        if ("containerSpec" in pool) == ("pythonPackageSpec" in pool):
            fix = "delete one of the two" if "containerSpec" in pool else "add containerSpec, with imageUri"
            yield service_problem(path, "it needs exactly one of containerSpec and pythonPackageSpec", fix)
        size_gb = pool.get("diskSpec", {}).get("bootDiskSizeGb")
        if size_gb is not None and size_gb not in _BOOT_DISK_GB:
            message = f"{size_gb} GB; a boot disk has {_BOOT_DISK_GB[0]} to {_BOOT_DISK_GB[-1]} GB"
            disk_path = (*path, "diskSpec", "bootDiskSizeGb")
            yield service_problem(disk_path, message, f"set {dotted(disk_path)} to {_BOOT_DISK_GB[0]} or more")
        yield from _machine_rules((*path, "machineSpec"), pool.get("machineSpec", {}), catalog)
        yield from _strategy_rules(body, pool.get("machineSpec", {}), catalog)


def _strategy_rules(body: RequestBody, spec: Mapping[str, Any], catalog: Catalog) -> Iterator[Problem]:
    """Yield the problem of a strategy that the service does not have for a slice."""
    path, strategy = ("scheduling", "strategy"), body.get("scheduling", {}).get("strategy")
    if (kind := _KINDS.get(str(strategy))) is None:
        return
    for slice_ in _slices_on_machine(str(spec.get("machineType")), str(spec.get("acceleratorType")), catalog):
        row = capacity_verdict(NAME, slice_, kind)
        if _shape_of(spec, slice_) == _shape(slice_) and row.level == "error":
            message = f"{dotted(path)}: {strategy} on {slice_.size}: {row.text}"
            details = tuple(f"see {url}" for url in row.sources)
            yield Problem("TPU074", message, path, f"set {dotted(path)} to STANDARD", details=details)


def _machine_rules(path: KeyPath, spec: Mapping[str, Any], catalog: Catalog) -> Iterator[Problem]:
    machine = spec.get("machineType")
    slices = _slices_on_machine(str(machine), str(spec.get("acceleratorType")), catalog)
    if not slices:
        offered = [slice_ for slice_ in catalog.all() if NAME in slice_.targets]
        machines = tuple(dict.fromkeys(name for slice_ in offered for name in _machine_types(slice_)))
        yield service_problem(
            (*path, "machineType"), f"{machine} has no TPU", _set_hint((*path, "machineType"), machines)
        )
        return
    fields = ("acceleratorType", "acceleratorCount") if _by_count(slices[0]) else ("tpuTopology",)
    for field in ("acceleratorType", "acceleratorCount", "tpuTopology"):
        if field in spec and field not in fields:
            message = f"a slice of {machine} is chosen by {' and '.join(fields)}"
            yield service_problem((*path, field), message, f"delete {dotted((*path, field))}", at_key=True)
    shape = _shape_of(spec, slices[0])
    shapes = [_shape(slice_) for slice_ in slices]
    if shape not in shapes:
        field = next((field for field in fields if field not in spec), fields[-1])
        values = tuple(dict.fromkeys(str(offered[fields.index(field)]) for offered in shapes))
        shown = " ".join(part for part in shape if part) or f"no {fields[0]}"
        yield service_problem(
            (*path, field), f"{machine} is not offered with {shown}", _set_hint((*path, field), values)
        )


def _shape_of(spec: Mapping[str, Any], slice_: Slice) -> tuple[str | None, ...]:
    """Return the values by which a machine spec chooses among the sizes of the slice's machine."""
    fields = ("acceleratorType", "acceleratorCount") if _by_count(slice_) else ("tpuTopology",)
    return tuple(str(spec[field]) if field in spec else None for field in fields)


def _set_hint(path: KeyPath, values: Sequence[str]) -> str:
    return f"set {dotted(path)} to {listed(values, 14, last=' or ')}"


def _slices_on_machine(machine: str, accelerator: str, catalog: Catalog) -> list[Slice]:
    """Return the sizes of a machine type and, if it is given, an accelerator type."""
    # One generation at a time, because each is read from its own file.
    for generation in catalog.generations():
        slices = [
            slice_ for slice_ in generation.slices if NAME in slice_.targets and machine in _machine_types(slice_)
        ]
        if slices and accelerator in (slices[0].accelerators.get(NAME), "None"):
            return slices
    return []


def _by_count(slice_: Slice) -> bool:
    """Return True if Vertex AI expects accelerator type and count for the slice, not machine type and topology."""
    return NAME in slice_.accelerators


def _machine_types(slice_: Slice) -> tuple[str, ...]:
    fixed = slice_.vertex_machine_type
    return (fixed,) if fixed else tuple(machine.name for machine in slice_.machines)


def _machine_type(slice_: Slice) -> str | None:
    return slice_.vertex_machine_type or (slice_.machine.name if slice_.machine else None)


def _shape(slice_: Slice) -> tuple[str | None, ...]:
    return (slice_.accelerators[NAME], str(slice_.cores)) if _by_count(slice_) else (slice_.topology,)


def submission(job: Job) -> Submission:
    """Return gcloud's commands; labels are a flag, as a CustomJobSpec has none."""
    location = (f"--project={job.environment.project}", f"--region={job.environment.region}")
    labels = ",".join(f"{key}={value}" for key, value in job.environment.labels.items())
    gcloud = ("gcloud", "ai", "custom-jobs")
    start = (*gcloud, "create", *location, f"--display-name={job.name}", "--config=/dev/stdin")
    listing = (*gcloud, "list", *location, f"--filter=displayName={job.name}", "--sort-by=~createTime", "--limit=1")
    return Submission(
        start=Command((*start, *((f"--labels={labels}",) if labels else ())), reads_config=True),
        watch=Command(listing),
        delete=Command((*gcloud, "cancel", "JOB_ID", *location)),
        notes=("replace JOB_ID with the job's id from the list",),
        log=Command((*gcloud, "stream-logs", "JOB_ID", *location)),
    )
