"""The sizes whose machines a request body describes."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tpucfg.catalog import Catalog, Slice
from tpucfg.paths import value_at, values_at
from tpucfg.targets.gke import nodes

_CHILD = ("spec", "replicatedJobs", 0, "template", "spec")
_POD = (*_CHILD, "template", "spec")


class Choice(NamedTuple):
    """A size, with what differs from its defaults."""

    size: str
    topology: str | None = None
    machine: str | None = None

    def override(self) -> dict[str, str]:
        """Return the settings of `overrides.<size>`."""
        return {key: value for key, value in (("topology", self.topology), ("machine", self.machine)) if value}


def choices(target: str, body: Mapping[str, Any], catalog: Catalog) -> list[Choice]:
    """Return the sizes that fit the fields of a request body, the simplest first; none if no size does."""
    slices = (slice_ for generation in catalog.generations() for slice_ in generation.slices)
    return [choice for slice_ in slices for choice in _CHOICES[target](body, slice_)]


def _of_job_set(body: Mapping[str, Any], slice_: Slice) -> Iterator[Choice]:
    selector = value_at(body, (*_POD, "nodeSelector"), {})
    annotations = value_at(body, (*_CHILD, "template", "metadata", "annotations"), {})
    topology = selector.get(nodes.TOPOLOGY) or value_at(annotations, (nodes.SLICE_TOPOLOGY,))
    hosts, slices = (
        value_at(body, (*_CHILD, "parallelism"), 1),
        value_at(body, ("spec", "replicatedJobs", 0, "replicas"), 1),
    )
    limits = (value for _, value in values_at(value_at(body, _POD), f"containers.*.resources.limits.[{nodes.CHIPS}]"))
    chips = sum(int(text) for text in map(str, limits) if re.fullmatch("[0-9]{1,4}", text))
    if not isinstance(hosts, int) or slice_.chips != hosts * chips or not isinstance(slices, int):
        return
    if topology not in (None, slice_.topology, *slice_.topologies):
        return
    own = None if topology in (None, slice_.topology) else str(topology)
    size = f"{slice_.size}x{slices}" if slices > 1 else slice_.size
    for machine in (*slice_.machines, *slice_.named_machines):
        if machine.chips == chips and machine.gke_label == selector.get(nodes.ACCELERATOR):
            # The target's own default may be another machine than the catalog's.
            yield Choice(size, own)
            yield Choice(size, own, machine.name)


def _of_custom_job(body: Mapping[str, Any], slice_: Slice) -> Iterator[Choice]:
    machine = value_at(body, ("workerPoolSpecs", 0, "machineSpec"), {})
    if not isinstance(machine, dict):
        return
    kind, topology = machine.get("acceleratorType"), machine.get("tpuTopology")
    if (
        kind
        and slice_.accelerators.get("vertex-ai") == kind
        and str(slice_.cores) == str(machine.get("acceleratorCount"))
    ):
        yield Choice(slice_.size)
    for each in () if kind else (*slice_.machines, *slice_.named_machines):
        if each.name == machine.get("machineType") and topology in (slice_.topology, *slice_.topologies):
            own = None if topology == slice_.topology else topology
            yield Choice(slice_.size, own)
            yield Choice(slice_.size, own, each.name)


def _of_queued_resource(body: Mapping[str, Any], slice_: Slice) -> Iterator[Choice]:
    spec = value_at(body, ("tpu", "nodeSpec", 0), {})
    nodes_ = value_at(spec, ("multisliceParams", "nodeCount"), 1)
    size = f"{slice_.size}x{nodes_}" if isinstance(nodes_, int) and nodes_ > 1 else slice_.size
    if value_at(spec, ("node", "acceleratorType")) == slice_.accelerator_type:
        yield Choice(size)


def _of_training_input(body: Mapping[str, Any], slice_: Slice) -> Iterator[Choice]:
    accelerator = value_at(body, ("trainingInput", "workerConfig", "acceleratorConfig"), {})
    wanted = (accelerator.get("type", "TPU_V2"), str(accelerator.get("count", 8)))
    if (slice_.accelerators.get("ai-platform"), str(slice_.cores)) == wanted:
        yield Choice(slice_.size)


_CHOICES = {
    "gke": _of_job_set,
    "vertex-ai": _of_custom_job,
    "cloud-tpu": _of_queued_resource,
    "ai-platform": _of_training_input,
}
