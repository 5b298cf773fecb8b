"""The rules of Vertex AI for a CustomJobSpec: one pool, replica and program, on a TPU that it offers."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tpucfg.catalog import Catalog, Slice
from tpucfg.plan.rules.capacity_table import capacity_verdict
from tpucfg.schemas import Problem
from tpucfg.spec.settings import CapacityKind
from tpucfg.targets.common import service_problem
from tpucfg.targets.interface import RequestBody
from tpucfg.targets.vertex_ai.request import NAME, is_counted
from tpucfg.text_format import dotted, listed
from tpucfg.yamldoc.document import KeyPath

_KINDS: Final[Mapping[str, CapacityKind]] = {"SPOT": "spot", "FLEX_START": "flex-start"}
"""The strategies of `scheduling` that are a kind of capacity."""
_BOOT_DISK_GB: Final = range(100, 64_001)


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
    fields = ("acceleratorType", "acceleratorCount") if is_counted(slices[0]) else ("tpuTopology",)
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
    fields = ("acceleratorType", "acceleratorCount") if is_counted(slice_) else ("tpuTopology",)
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


def _machine_types(slice_: Slice) -> tuple[str, ...]:
    fixed = slice_.vertex_machine_type
    return (fixed,) if fixed else tuple(machine.name for machine in slice_.machines)


def _shape(slice_: Slice) -> tuple[str | None, ...]:
    return (slice_.accelerators[NAME], str(slice_.cores)) if is_counted(slice_) else (slice_.topology,)
