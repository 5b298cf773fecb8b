"""The rules of the Cloud TPU API: names of a spec, and request bodies, that it refuses.

Source: https://cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.queuedResources (the request body).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tpucfg.catalog import Catalog, Slice
from tpucfg.findings import Finding
from tpucfg.paths import KeyPath
from tpucfg.schemas import Problem
from tpucfg.spec import Environment, Project
from tpucfg.targets.cloud_tpu.request import API, NAME, node_suffix
from tpucfg.targets.hosts import disk_problems, host_findings
from tpucfg.targets.interface import RequestBody
from tpucfg.targets.rules import service_problem
from tpucfg.text_format import format_value, listed

_MAX_NAME_LENGTH: Final = 63
"""Characters of a VM's name (NAMES); the Cloud TPU API states no limit for a node."""


def spec_findings(
    project: Project, environment: Environment, slices: Sequence[Slice]
) -> Iterator[Finding]:
    """Yield findings about names and secrets that Cloud TPU refuses, and sizes without a zone."""
    yield from host_findings(project, environment, slices, _max_job_name_length)


def _max_job_name_length(slice_: Slice) -> int:
    return _MAX_NAME_LENGTH - len(node_suffix(slice_.slices))


def rules(body: RequestBody, catalog: Catalog) -> Iterator[Problem]:
    """Yield the problems of unknown sizes and topologies, and of disks that the hosts cannot attach."""
    for index, spec in enumerate(body["tpu"]["nodeSpec"]):
        yield from _spec_rules(("tpu", "nodeSpec", index), spec, catalog)


def _spec_rules(path: KeyPath, spec: Mapping[str, Any], catalog: Catalog) -> Iterator[Problem]:
    node, count = spec["node"], spec.get("multisliceParams", {}).get("nodeCount", 1)
    yield from _size_rules((*path, "node"), node, catalog)
    slice_ = catalog.find(node.get("acceleratorType", ""))
    hosts, zone = (slice_.hosts if slice_ else 1) * count, spec["parent"].rpartition("/")[2]
    disks: Sequence[Mapping[str, Any]] = node.get("dataDisks", ())
    yield from disk_problems(
        (*path, "node", "dataDisks"), disks, "sourceDisk", hosts=hosts, zone=zone
    )


def _size_rules(path: KeyPath, node: Mapping[str, Any], catalog: Catalog) -> Iterator[Problem]:
    """Yield an error for a size that Cloud TPU does not have, and for a topology that a generation does not have."""
    size, slice_ = node.get("acceleratorType"), catalog.find(node.get("acceleratorType", ""))
    if size is not None and (slice_ is None or NAME not in slice_.targets):
        near = None if slice_ else catalog.nearest(size)
        message = slice_.refusals[NAME].reason if slice_ else "it is not a TPU size"
        fix = (
            f"did you mean {near}?"
            if near
            else f"list the sizes with: tpucfg sizes --target {NAME}"
        )
        shown = f"{format_value(size, quoted=False)}: {message}"
        yield service_problem((*path, "acceleratorType"), shown, fix, API)
    config = node.get("acceleratorConfig", {})
    kind, topology = config.get("type"), config.get("topology")
    known = [
        slice_.topology
        for slice_ in catalog.all()
        if kind and slice_.accelerators.get(NAME) == kind
    ]
    # If the topology of any size is unknown, none can be refused.
    if known and None not in known and topology not in known:
        fix = f"set topology to one of: {listed([str(shape) for shape in known], 14)}"
        where = (*path, "acceleratorConfig", "topology")
        yield service_problem(where, f"{kind} has no topology {topology}", fix, API)
