"""The rules of the Cloud TPU API: values of a spec, and request bodies, that it refuses.

Source: https://cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.queuedResources (the request body).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tpucfg.catalog import Catalog, Slice
from tpucfg.findings import Finding
from tpucfg.schemas import Problem
from tpucfg.spec.project import Environment, Project
from tpucfg.targets.cloud_tpu.request import NAME, NAMES, node_suffix
from tpucfg.targets.common import (
    distinct_settings,
    long_account_id,
    long_job_names,
    package_unsupported,
    service_problem,
    unsupported_machines,
    unsupported_sizes,
    uses_own_account,
)
from tpucfg.targets.hosts.metadata import metadata_problems
from tpucfg.targets.hosts.secret_variables import secret_findings
from tpucfg.targets.hosts.zones import missing_zones
from tpucfg.targets.interface import RequestBody
from tpucfg.text_format import dotted, format_value, listed
from tpucfg.yamldoc.document import KeyPath

_MAX_NAME_LENGTH: Final = 63
"""Characters of a VM's name (NAMES); the Cloud TPU API states no limit for a node."""
_MAX_DESCRIPTION_LENGTH: Final = 512
_DISKS: Final = "https://docs.cloud.google.com/tpu/docs/attach-durable-block-storage"
_ZONAL: Final = "https://cloud.google.com/compute/docs/regions-zones/global-regional-zonal-resources"
"""A disk is attached only in its own zone."""
_DISK_ZONE: Final = re.compile(r"/zones/([^/]+)/disks/")
_MIN_NODES: Final = 2
"""Nodes of a multislice request: https://cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.queuedResources#multisliceparams."""
_PARENT: Final = re.compile(r"projects/[^/]+/locations/[^/]+")


def spec_findings(project: Project, environment: Environment, slices: Sequence[Slice]) -> Iterator[Finding]:
    """Yield findings about sizes, trainers, names and tiers that Cloud TPU refuses, and sizes without a zone."""
    yield from unsupported_sizes(project, environment, slices, NAME)
    yield from unsupported_machines(project, slices, NAME, chooses=False)
    yield from package_unsupported(project, distinct_settings(project, environment, slices), NAME)
    yield from secret_findings(project, environment, slices, NAME)
    yield from missing_zones(project, environment, slices, NAME)
    yield from long_job_names(project, environment, slices, _max_job_name_length, NAMES)
    if not uses_own_account(project, environment, slices, NAME):
        yield from long_account_id(project, environment, NAME)


def _max_job_name_length(slice_: Slice) -> int:
    return _MAX_NAME_LENGTH - len(node_suffix(slice_.slices))


def rules(body: RequestBody, catalog: Catalog) -> Iterator[Problem]:
    """Yield the problems of fields that exclude each other, of an unknown size, and of too much metadata."""
    yield from _exclusive((), body, ("spot", "guaranteed"))
    yield from _exclusive((), body, ("spot", "reservationName"))
    yield from _exclusive(("queueingPolicy",), body.get("queueingPolicy", {}))
    specs = body["tpu"]["nodeSpec"]
    if not specs:
        fix = "add an entry with parent, nodeId and node"
        yield service_problem(("tpu", "nodeSpec"), "it is empty, so no TPU is requested", fix)
    for index, spec in enumerate(specs):
        yield from _spec_rules(("tpu", "nodeSpec", index), spec, catalog)


def _spec_rules(path: KeyPath, spec: Mapping[str, Any], catalog: Catalog) -> Iterator[Problem]:
    if not _PARENT.fullmatch(spec["parent"]):
        message = f"{format_value(spec['parent'], quoted=False)} is not of the form projects/PROJECT/locations/ZONE"
        yield service_problem((*path, "parent"), message, "write projects/, the project's id, /locations/ and the zone")
    if ("nodeId" in spec) == ("multisliceParams" in spec):
        yield service_problem(path, "it needs exactly one of nodeId and multisliceParams", _one_of_hint(spec, "nodeId"))
    yield from _name_rules((*path, "nodeId"), spec.get("nodeId", ""))
    params = spec.get("multisliceParams", {})
    count_path = (*path, "multisliceParams", "nodeCount")
    if (count := params.get("nodeCount", _MIN_NODES)) < _MIN_NODES:
        yield service_problem(count_path, f"{count} is below {_MIN_NODES}", "set it to 2 or more, or use nodeId")
    prefix_path = (*path, "multisliceParams", "nodeIdPrefix")
    yield from _name_rules(prefix_path, params.get("nodeIdPrefix", ""), node_suffix(count))
    yield from _node_rules((*path, "node"), spec["node"], catalog)
    slice_ = catalog.find(spec["node"].get("acceleratorType", ""))
    hosts = (slice_.hosts if slice_ else 1) * params.get("nodeCount", 1)
    disks, disks_path = spec["node"].get("dataDisks", []), (*path, "node", "dataDisks")
    yield from _disk_rules(disks_path, disks, hosts)
    yield from _disk_zones(disks_path, disks, spec["parent"].rpartition("/")[2])


def _name_rules(path: KeyPath, name: str, suffix: str = "") -> Iterator[Problem]:
    if (excess := len(name) + len(suffix) - _MAX_NAME_LENGTH) > 0:
        length = len(name) + len(suffix)
        message = f"the node name {name}{suffix} has {length} characters, and {_MAX_NAME_LENGTH} are allowed"
        yield Problem("TPU030", message, path, f"shorten it by {excess}", details=(f"the rule: {NAMES}",))


def _node_rules(path: KeyPath, node: Mapping[str, Any], catalog: Catalog) -> Iterator[Problem]:
    if ("acceleratorType" in node) == ("acceleratorConfig" in node):
        message = "it needs exactly one of acceleratorType and acceleratorConfig"
        yield service_problem(path, message, _one_of_hint(node, "acceleratorType"))
    if (size := node.get("acceleratorType")) is not None:
        slice_ = catalog.find(size)
        if slice_ is None or NAME not in slice_.targets:
            near = None if slice_ else catalog.nearest(size)
            message = slice_.refusals[NAME].reason if slice_ else "it is not a TPU size"
            fix = f"did you mean {near}?" if near else f"list the sizes with: tpucfg sizes --target {NAME}"
            yield service_problem((*path, "acceleratorType"), f"{format_value(size, quoted=False)}: {message}", fix)
    yield from _topology_rules((*path, "acceleratorConfig"), node.get("acceleratorConfig", {}), catalog)
    yield from _exclusive(path, node, ("networkConfig", "networkConfigs"))
    if len(node.get("description", "")) > _MAX_DESCRIPTION_LENGTH:
        excess = len(node["description"]) - _MAX_DESCRIPTION_LENGTH
        message = f"it has more than {_MAX_DESCRIPTION_LENGTH} characters"
        yield service_problem((*path, "description"), message, f"shorten it by {excess}")
    yield from metadata_problems((*path, "metadata"), node.get("metadata", {}))


def _disk_rules(path: KeyPath, disks: Sequence[Mapping[str, Any]], hosts: int) -> Iterator[Problem]:
    """Yield an error for each disk that several hosts would write to; READ_WRITE is the mode of the API by default."""
    for index, disk in enumerate(disks):
        if hosts > 1 and disk.get("mode") != "READ_ONLY":
            field = "mode" if "mode" in disk else "sourceDisk"
            message = f"{dotted((*path, index, field))}: {hosts} hosts cannot attach one disk for writing"
            fix = "attach it for reading: READ_ONLY in a config, and in a spec without read_only: false"
            yield Problem("TPU074", message, (*path, index, field), fix, details=(f"the rule: {_DISKS}",))


def _disk_zones(path: KeyPath, disks: Sequence[Mapping[str, Any]], zone: str) -> Iterator[Problem]:
    """Yield an error for each disk in another zone than the slice."""
    for index, disk in enumerate(disks):
        match = _DISK_ZONE.search(disk.get("sourceDisk", ""))
        if match and match[1] != zone:
            source = (*path, index, "sourceDisk")
            message = f"{dotted(source)}: the disk is in {match[1]}, and the slice in {zone}"
            fix = f"name a disk in {zone}, or request the slice in {match[1]}: in a spec, by zones of the environment"
            yield Problem("TPU074", message, source, fix, details=(f"the rule: {_ZONAL}",))


def _one_of_hint(mapping: Mapping[str, Any], field: str) -> str:
    return "delete one of the two" if field in mapping else f"add {field}"


def _topology_rules(path: KeyPath, config: Mapping[str, Any], catalog: Catalog) -> Iterator[Problem]:
    kind, topology = config.get("type"), config.get("topology")
    topologies_of_type = [slice_.topology for slice_ in catalog.all() if kind and slice_.accelerators.get(NAME) == kind]
    # If the topology of any size is unknown, none can be refused.
    if topologies_of_type and None not in topologies_of_type and topology not in topologies_of_type:
        topologies = listed([str(shape) for shape in topologies_of_type], 14)
        fix = f"set topology to one of: {topologies}"
        yield service_problem((*path, "topology"), f"{kind} has no topology {topology}", fix)


def _exclusive(path: KeyPath, mapping: Mapping[str, Any], fields: Sequence[str] = ()) -> Iterator[Problem]:
    """Yield an error if a mapping has more than one of the fields; without `fields`, more than one of any fields."""
    present = [field for field in mapping if not fields or field in fields]
    if len(present) > 1:
        first, second = present[:2]
        yield service_problem((*path, second), f"it excludes {first}", f"delete {first} or {second}")
