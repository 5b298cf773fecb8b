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
from tpucfg.targets.cloud_tpu.request import NAME, node_suffix
from tpucfg.targets.common import service_problem
from tpucfg.targets.hosts.disks import remote_disks, shared_disks
from tpucfg.targets.hosts.findings import NAMES, host_findings
from tpucfg.targets.hosts.metadata import metadata_problems
from tpucfg.targets.interface import RequestBody
from tpucfg.text_format import format_value, listed
from tpucfg.yamldoc.document import KeyPath

_MAX_NAME_LENGTH: Final = 63
"""Characters of a VM's name (NAMES); the Cloud TPU API states no limit for a node."""
_MAX_DESCRIPTION_LENGTH: Final = 512
_MIN_NODES: Final = 2
"""Nodes of a multislice request: https://cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.queuedResources#multisliceparams."""
_PARENT: Final = re.compile(r"projects/[^/]+/locations/[^/]+")


def spec_findings(project: Project, environment: Environment, slices: Sequence[Slice]) -> Iterator[Finding]:
    """Yield findings about sizes, trainers, names and tiers that Cloud TPU refuses, and sizes without a zone."""
    yield from host_findings(project, environment, slices, NAME, _max_job_name_length, chooses_machine=False)


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
    yield from shared_disks(disks_path, disks, "sourceDisk", hosts)
    yield from remote_disks(disks_path, disks, "sourceDisk", spec["parent"].rpartition("/")[2])


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
    metadata = node.get("metadata", {})
    values = {(*path, "metadata", key): (key, value) for key, value in metadata.items()}
    yield from metadata_problems((*path, "metadata"), values)


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
