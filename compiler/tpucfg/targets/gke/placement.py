"""The nodes that a queue chooses by topology, instead of one node pool for each slice.

With Kueue's topology-aware scheduling, the pods of a slice share a domain: a part of a larger v6e node pool, or a
dynamic TPU7x slice of several cubes. The nodes then have no label of the job's topology, and a node pool may run
several jobs. Sources: https://kueue.sigs.k8s.io/docs/concepts/topology_aware_scheduling/ (annotations),
https://github.com/AI-Hypercomputer/xpk/blob/v1.13.1/recipes/Workload_create_sub-slicing.md (v6e),
https://github.com/AI-Hypercomputer/xpk/blob/v1.13.1/recipes/Workload_create_super-slicing.md (TPU7x).
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from tpucfg.catalog import Slice
from tpucfg.plan.job import Job
from tpucfg.targets.gke.labels import REQUIRED_TOPOLOGY, SLICE_REQUIRED_TOPOLOGY, SLICE_SIZE, SLICE_TOPOLOGY


class Domain(NamedTuple):
    """The nodes among which a generation forms slices."""

    level: str | None
    """The node label of a domain, with `{topology}` for that of a slice; None if a controller of GKE adds it."""
    selects_machine: bool
    """True if pods select their machine type, because the pool has a topology of its own."""
    side: int
    """The number of chips by which every side of a slice is divisible."""


DOMAINS: Final[Mapping[str, Domain]] = {
    "v6e": Domain("cloud.google.com/gke-tpu-slice-{topology}-id", selects_machine=True, side=1),
    "tpu7x": Domain(None, selects_machine=False, side=4),
}
"""By generation; the others have slices of whole node pools only."""


def is_placed_by_queue(job: Job) -> bool:
    """Return True if the job's queue chooses the nodes by topology."""
    return bool(job.options.get("topology_aware") and job.options.get("queue") and can_be_placed(job.slice))


def can_be_placed(slice_: Slice) -> bool:
    """Return True if a queue can choose the nodes of a size by topology."""
    domain = DOMAINS.get(slice_.generation)
    if domain is None or slice_.topology is None or slice_.hosts_per_slice == 1:
        return False
    return all(int(side) % domain.side == 0 for side in slice_.topology.split("x"))


def annotations(job: Job) -> dict[str, str]:
    """Return the pods' annotations, by which Kueue keeps those of a slice in one domain."""
    if not is_placed_by_queue(job):
        return {}
    topology, level = str(job.slice.topology), DOMAINS[job.slice.generation].level
    return {SLICE_TOPOLOGY: topology} | (_domain(job.slice, level.format(topology=topology)) if level else {})


def _domain(slice_: Slice, level: str) -> dict[str, str]:
    """Return the annotations that require a domain for all pods, or with several slices, for the pods of each."""
    if slice_.slices == 1:
        return {REQUIRED_TOPOLOGY: level}
    return {SLICE_REQUIRED_TOPOLOGY: level, SLICE_SIZE: str(slice_.hosts_per_slice)}
