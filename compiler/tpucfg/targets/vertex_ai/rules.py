"""The rules of Vertex AI: mounts and packages of a spec, and one replica on a TPU that it offers in a config."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from tpucfg.catalog import Catalog, Slice
from tpucfg.findings import Finding
from tpucfg.paths import KeyPath
from tpucfg.plan.job import path_values
from tpucfg.plan.rules.access_rules import removal_hint
from tpucfg.plan.rules.capacity_table import capacity_verdict
from tpucfg.schemas import Problem
from tpucfg.spec.placeholders import fill_placeholders
from tpucfg.spec.project import Environment, Project
from tpucfg.spec.settings import CapacityKind, Mount, Settings
from tpucfg.targets.interface import RequestBody
from tpucfg.targets.rules import FieldRule, distinct_settings, rule_problems, service_problem
from tpucfg.targets.vertex_ai.request import COMPUTE, NAME, is_counted
from tpucfg.text_format import dotted, listed

_FUSE: Final = "https://cloud.google.com/vertex-ai/docs/training/cloud-storage-file-system"
_ROOT: Final = "/gcs/"
"""The folder in which the service shows every bucket that the job's account may read (_FUSE)."""
_JOB_DIR: Final = "${job_dir}"
_STRATEGIES: Final[Mapping[str, CapacityKind]] = {"SPOT": "spot", "FLEX_START": "flex-start"}
"""The strategies of `scheduling` that are a kind of capacity."""
_RULES: Final = (
    FieldRule(
        "workerPoolSpecs",
        lambda pools, _: len(pools or ()) != 1,
        "a TPU job has exactly one pool, for any number of hosts",
        "keep one pool",
        COMPUTE,
    ),
    FieldRule(
        "workerPoolSpecs.*.replicaCount",
        lambda count, _: str(1 if count is None else count) != "1",
        "{value} replicas; a TPU job has exactly one for any number of hosts",
        "set {path} to 1",
        COMPUTE,
    ),
)


def spec_findings(
    project: Project, environment: Environment, slices: Sequence[Slice]
) -> Iterator[Finding]:
    """Yield findings about packages and mounts that Vertex AI refuses."""
    for settings in distinct_settings(project, environment, slices):
        yield from _package_findings(project, settings)
    for slice_ in slices:
        for mount in project.settings[environment.name, slice_.size].trainer.mounts:
            yield from _mount_elsewhere(project, environment, slice_, mount)


def _package_findings(project: Project, settings: Settings) -> Iterator[Finding]:
    trainer, path = settings.trainer, settings.source(("trainer", "package"))
    if trainer.package and not trainer.image:
        hint = "add image: us-docker.pkg.dev/vertex-ai/training/tf-tpu.2-15.cp310:latest, or another executor image"
        message = f"a package needs an executor image on {NAME}, which runs the package in it"
        yield Finding.of("TPU051", message, project.document.key_location(path), help=hint)
    if trainer.package and not trainer.package.startswith(("gs://", "${bucket}", "${job_dir}")):
        hint = f"build it with: python -m build --sdist, copy it to the bucket, and set {dotted(path)} to ${{bucket}}/…"
        message = f"{dotted(path)} is the local folder {trainer.package}; {NAME} reads packages from Cloud Storage"
        yield Finding.of("TPU051", message, project.document.value_location(path), help=hint)


def _mount_elsewhere(
    project: Project, environment: Environment, slice_: Slice, mount: Mount
) -> Iterator[Finding]:
    """Yield an error for a mount whose folder is not the one where the service shows the bucket."""
    values = _KnownPlaceholders(path_values(project, environment, slice_.size))
    folder = _ROOT + fill_placeholders(mount.source, values).rstrip("/").removeprefix("gs://")
    if mount.path == folder:
        return
    path = project.settings[environment.name, slice_.size].source(("trainer", "mounts", mount.path))
    move = removal_hint(project, environment, path, "mounts", mount.path)
    own_path: KeyPath = (
        path[:-1] if move.startswith("delete") else (*environment.path, "trainer", "mounts")
    )
    if _JOB_DIR in mount.source:
        reason = "its folder changes with the size and run"
        fix = f"pass {mount.source} as a flag"
    else:
        reason = f"this bucket is at {folder}"
        fix = f"add to {dotted(own_path)}: {folder}: {mount.source}"
    yield Finding.of(
        "TPU059",
        f"{NAME} cannot mount {mount.source} at {mount.path}: every bucket is below {_ROOT}, and {reason}",
        project.document.key_location(path),
        help=f"{move}, and {fix}",
        details=(f"see {_FUSE}",),
    )


class _KnownPlaceholders(dict[str, str]):
    """Values of placeholders; one without a value, which depends on the figures of a rung, stays."""

    def __missing__(self, name: str) -> str:
        return f"${{{name}}}"


def rules(body: RequestBody, catalog: Catalog) -> Iterator[Problem]:
    """Yield the problems of a body that does not have exactly one pool and replica, on an offered TPU."""
    yield from rule_problems(_RULES, body)
    for index, pool in enumerate(body.get("workerPoolSpecs", ())):
        machine = pool.get("machineSpec", {})
        yield from _machine_rules(("workerPoolSpecs", index, "machineSpec"), machine, catalog)
        yield from _strategy_rules(body, machine, catalog)


def _strategy_rules(
    body: RequestBody, spec: Mapping[str, Any], catalog: Catalog
) -> Iterator[Problem]:
    """Yield the problem of a strategy that the service does not have for a slice."""
    path, strategy = ("scheduling", "strategy"), body.get("scheduling", {}).get("strategy")
    if (kind := _STRATEGIES.get(str(strategy))) is None:
        return
    for slice_ in _slices_on_machine(
        str(spec.get("machineType")), str(spec.get("acceleratorType")), catalog
    ):
        row = capacity_verdict(NAME, slice_, kind)
        if _shape_of(spec, slice_) == _shape(slice_) and row.level == "error":
            message = f"{dotted(path)}: {strategy} on {slice_.size}: {row.text}"
            details = tuple(f"see {url}" for url in row.sources)
            yield Problem(
                "TPU074", message, path, f"set {dotted(path)} to STANDARD", details=details
            )


def _machine_rules(path: KeyPath, spec: Mapping[str, Any], catalog: Catalog) -> Iterator[Problem]:
    machine = spec.get("machineType")
    slices = _slices_on_machine(str(machine), str(spec.get("acceleratorType")), catalog)
    if not slices and _slices_on_machine(str(machine), "None", catalog):
        message = f"{machine} is not offered with {spec['acceleratorType']}"
        hint = refused_help((*path, "acceleratorType"), spec, catalog) or _accelerators_hint(
            path, catalog
        )
        yield service_problem((*path, "acceleratorType"), message, hint, COMPUTE)
        return
    if not slices:
        offered = [slice_ for slice_ in catalog.all() if NAME in slice_.targets]
        machines = tuple(
            dict.fromkeys(name for slice_ in offered for name in _machine_types(slice_))
        )
        yield service_problem(
            (*path, "machineType"),
            f"{machine} has no TPU",
            _set_hint((*path, "machineType"), machines),
            COMPUTE,
        )
        return
    fields = ("acceleratorType", "acceleratorCount") if is_counted(slices[0]) else ("tpuTopology",)
    for field in ("acceleratorType", "acceleratorCount", "tpuTopology"):
        if field in spec and field not in fields:
            message = f"a slice of {machine} is chosen by {' and '.join(fields)}"
            problem = service_problem(
                (*path, field), message, f"delete {dotted((*path, field))}", COMPUTE
            )
            yield problem._replace(at_key=True)
    shape = _shape_of(spec, slices[0])
    if shape not in map(_shape, slices):
        field = next((field for field in fields if field not in spec), fields[-1])
        index = fields.index(field)
        values = tuple(dict.fromkeys(str(_shape(slice_)[index]) for slice_ in slices))
        shown = " ".join(part for part in shape if part) or f"no {fields[0]}"
        yield service_problem(
            (*path, field),
            f"{machine} is not offered with {shown}",
            _set_hint((*path, field), values),
            COMPUTE,
        )


def refused_help(path: KeyPath, parent: Any, catalog: Catalog) -> str:
    """Return the edit for a refused `acceleratorType` that names a generation of other fields; else an empty text."""
    *above, key = path
    accelerator = str(parent[key]) if key == "acceleratorType" and key in parent else ""
    if not (generation := catalog.nearest_generation(re.sub("[-_]", "", accelerator))):
        return ""
    slices = [slice_ for slice_ in catalog.generation(generation).slices if NAME in slice_.targets]
    if not slices or is_counted(slices[0]):
        return "" if slices else _accelerators_hint(tuple(above), catalog)
    machine_path, topology_path = (
        dotted((*above, name)) for name in ("machineType", "tpuTopology")
    )
    machines = tuple(
        dict.fromkeys(machine for slice_ in slices for machine in _machine_types(slice_))
    )
    count = str(parent.get("acceleratorCount"))
    if (slice_ := next((slice_ for slice_ in slices if str(slice_.number) == count), None)) is None:
        return (
            f"delete {dotted(path)}, and set {machine_path} to {listed(machines, 14, last=' or ')}"
        )
    machine = next(
        (name for name in _machine_types(slice_) if name == parent.get("machineType")),
        slice_.machines[0].name,
    )
    edits = f"set {machine_path} to {machine} and {topology_path} to {slice_.topology}"
    return f"{edits}, and delete acceleratorType and acceleratorCount"


def _accelerators_hint(path: KeyPath, catalog: Catalog) -> str:
    offered = (
        slice_.accelerators[NAME]
        for slice_ in catalog.all()
        if NAME in slice_.targets and is_counted(slice_)
    )
    return _set_hint((*path, "acceleratorType"), tuple(dict.fromkeys(offered)))


def _shape_of(spec: Mapping[str, Any], slice_: Slice) -> tuple[str | None, ...]:
    """Return the values by which a machine spec chooses among the sizes of the slice's machine."""
    fields = ("acceleratorType", "acceleratorCount") if is_counted(slice_) else ("tpuTopology",)
    return tuple(str(spec[field]) if field in spec else None for field in fields)


def _set_hint(path: KeyPath, values: Sequence[str]) -> str:
    return f"set {dotted(path)} to {listed(values, 14, last=' or ')}"


# Cached because the configs of many rungs have one machine.
@lru_cache
def _slices_on_machine(machine: str, accelerator: str, catalog: Catalog) -> tuple[Slice, ...]:
    """Return the sizes of a machine type and, if it is given and counted, an accelerator type."""
    # One generation at a time, because each is read from its own file.
    for generation in catalog.generations():
        slices = tuple(
            slice_
            for slice_ in generation.slices
            if NAME in slice_.targets and machine in _machine_types(slice_)
        )
        if slices and (
            not is_counted(slices[0]) or accelerator in (slices[0].accelerators[NAME], "None")
        ):
            return slices
    return ()


def _machine_types(slice_: Slice) -> tuple[str, ...]:
    fixed = slice_.vertex_machine_type
    return (fixed,) if fixed else tuple(machine.name for machine in slice_.machines)


def _shape(slice_: Slice) -> tuple[str | None, ...]:
    return (
        (slice_.accelerators[NAME], str(slice_.cores)) if is_counted(slice_) else (slice_.topology,)
    )
