"""The nodes that a pod may run on: those of its slice, obtained in the way that the spec names.

Without a queue, each slice is a node pool. With Kueue's topology-aware scheduling, its pods share a domain: a part of
a larger v6e node pool, or a dynamic TPU7x slice of several cubes. The nodes then have no label of the job's topology,
and a node pool may run several jobs. Sources:
https://cloud.google.com/kubernetes-engine/docs/concepts/spot-vms (spot),
https://cloud.google.com/kubernetes-engine/docs/concepts/dws (flex-start),
https://cloud.google.com/kubernetes-engine/docs/how-to/consuming-reservations (reservations),
https://cloud.google.com/kubernetes-engine/docs/concepts/about-custom-compute-classes (compute classes),
https://kueue.sigs.k8s.io/docs/concepts/topology_aware_scheduling/ (annotations of a queue),
https://github.com/AI-Hypercomputer/xpk/blob/v1.13.1/recipes/Workload_create_sub-slicing.md (parts of v6e),
https://github.com/AI-Hypercomputer/xpk/blob/v1.13.1/recipes/Workload_create_super-slicing.md (TPU7x).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from tpucfg.catalog import Slice
from tpucfg.named_tuple import NamedTuple
from tpucfg.plan import Job
from tpucfg.spec import CapacityKind
from tpucfg.targets.interface import without_empty

# Labels of nodes, which a pod selects.
ACCELERATOR: Final = "cloud.google.com/gke-tpu-accelerator"
TOPOLOGY: Final = "cloud.google.com/gke-tpu-topology"
INSTANCE: Final = "node.kubernetes.io/instance-type"
NODE_POOL: Final = "cloud.google.com/gke-nodepool"
SPOT: Final = "cloud.google.com/gke-spot"
FLEX_START: Final = "cloud.google.com/gke-flex-start"
MAX_RUN_DURATION: Final = "cloud.google.com/gke-max-run-duration-seconds"
PROVISIONING: Final = "cloud.google.com/gke-provisioning"
QUEUED: Final = "cloud.google.com/gke-queued"
RESERVATION_NAME: Final = "cloud.google.com/reservation-name"
RESERVATION_PROJECT: Final = "cloud.google.com/reservation-project"
RESERVATION_AFFINITY: Final = "cloud.google.com/reservation-affinity"
COMPUTE_CLASS: Final = "cloud.google.com/compute-class"
PLACEMENT_POLICY: Final = "cloud.google.com/placement-policy-name"

# Annotations of a pod.
SLICE_TOPOLOGY: Final = "cloud.google.com/gke-tpu-slice-topology"
REQUIRED_TOPOLOGY: Final = "kueue.x-k8s.io/podset-required-topology"
SLICE_REQUIRED_TOPOLOGY: Final = "kueue.x-k8s.io/podset-slice-required-topology"
SLICE_SIZE: Final = "kueue.x-k8s.io/podset-slice-size"

CHIPS: Final = "google.com/tpu"
"""The resource that counts the chips of a pod."""

_TPU_TOLERATION: Final = {"key": CHIPS, "operator": "Exists", "effect": "NoSchedule"}


def _tolerated(key: str, value: str) -> dict[str, str]:
    return {"key": key, "operator": "Equal", "value": value, "effect": "NoSchedule"}


_OTHER_CAPACITIES: Final[Sequence[Mapping[str, Any]]] = (
    *(
        {"key": key, "operator": "DoesNotExist"}
        for key in (SPOT, FLEX_START, QUEUED, RESERVATION_NAME)
    ),
    # Also true of nodes without the label, and of those with the value `standard`.
    {"key": PROVISIONING, "operator": "NotIn", "values": ["spot", "preemptible", "flex-start"]},
)
"""The requirements on labels by which on-demand excludes the nodes of the other capacities.

The labels are those of GKE's own autoscaler, also of pools that it creates:
https://github.com/GoogleCloudPlatform/cluster-autoscaler/tree/main/pkg/cloudprovider/gke.
"""


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


DEFAULT_QUEUE: Final = "default"
"""The queue of each job without one in its namespace, where the namespace has a LocalQueue of this name:
https://kueue.sigs.k8s.io/docs/tasks/manage/enforce_job_management/setup_default_local_queue/."""


def queue_of(job: Job) -> str | None:
    """Return the queue that starts the job; None for a job that needs none."""
    return job.options.get("queue") or (
        DEFAULT_QUEUE if job.options.get("topology_aware") else None
    )


def is_placed_by_queue(job: Job) -> bool:
    """Return True if the job's queue chooses the nodes by topology."""
    return bool(job.options.get("topology_aware")) and can_be_placed(job.slice)


def can_be_placed(slice_: Slice) -> bool:
    """Return True if a queue can choose the nodes of a size by topology."""
    domain = DOMAINS.get(slice_.generation)
    if domain is None or slice_.topology is None or slice_.hosts_per_slice == 1:
        return False
    return all(int(side) % domain.side == 0 for side in slice_.topology.split("x"))


def node_selector(job: Job) -> dict[str, str]:
    """Return the labels of the nodes of the job's slices."""
    machine = job.slice.machine
    return without_empty(
        **{
            ACCELERATOR: machine and machine.gke_label,
            TOPOLOGY: None if is_placed_by_queue(job) else job.slice.topology,
            INSTANCE: machine.name if machine and _is_selected_by_name(job) else None,
            COMPUTE_CLASS: job.options.get("compute_class"),
            PLACEMENT_POLICY: job.options.get("placement_policy"),
            **_SELECTORS[job.capacity.kind](job),
        }
    )


def node_labels(job: Job) -> list[str]:
    """Return the requirements on the labels of the nodes, as kubectl's `--selector` takes them."""
    selected = [f"{label}={value}" for label, value in node_selector(job).items()]
    return selected + [_as_selector(requirement) for requirement in _excluded(job)]


def node_affinity(job: Job) -> dict[str, Any]:
    """Return the affinity that excludes nodes; empty if the job excludes none.

    An unset capacity excludes nothing: the node pool decides. A compute class has an order of its own.
    """
    terms = [{"matchExpressions": [*_excluded(job)]}] if _excluded(job) else []
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"nodeAffinity": required} if terms else {}


def _excluded(job: Job) -> Sequence[Mapping[str, Any]]:
    capacity = job.capacity
    return _OTHER_CAPACITIES if capacity.is_set and capacity.kind == "on-demand" else ()


def _as_selector(requirement: Mapping[str, Any]) -> str:
    key = requirement["key"]
    return (
        f"{key} notin ({','.join(requirement['values'])})" if "values" in requirement else f"!{key}"
    )


def tolerations(job: Job) -> list[dict[str, str]]:
    """Return the taints of nodes that the job's pods tolerate."""
    return [_TPU_TOLERATION, *_TOLERATIONS[job.capacity.kind](job)]


def _is_selected_by_name(job: Job) -> bool:
    """Return True if a pod selects its machine by name.

    All machines of a size have the same labels. A pod for the smaller machine would also fit on half of a larger one,
    so a spec that chooses it gets no other. A pod for the larger machine fits no smaller one. Some machines are
    provided only by name, and part of a larger node pool is selected by its machine instead of its topology.
    """
    machine = job.slice.machine
    if machine is None:
        return False
    is_part_of_pool = is_placed_by_queue(job) and DOMAINS[job.slice.generation].selects_machine
    is_smaller = any(machine.chips < other.chips for other in job.slice.machines)
    return (
        is_part_of_pool or machine.only_named or (is_smaller and "machine" in job.rung.overridden)
    )


def _flex_start(job: Job) -> dict[str, str]:
    duration = job.max_run_duration
    return {FLEX_START: "true"} | ({MAX_RUN_DURATION: str(duration.seconds)} if duration else {})


def _reservation(job: Job) -> dict[str, Any]:
    return {
        RESERVATION_NAME: job.capacity.reservation_name,
        RESERVATION_PROJECT: job.capacity.reservation_project,
        RESERVATION_AFFINITY: "specific",
    }


_SELECTORS: Final[Mapping[CapacityKind, Callable[[Job], dict[str, Any]]]] = {
    "on-demand": lambda _: {},
    "spot": lambda _: {SPOT: "true"},
    "flex-start": _flex_start,
    "reservation": _reservation,
}
"""The labels of nodes that each capacity selects."""

_TOLERATIONS: Final[Mapping[CapacityKind, Callable[[Job], list[dict[str, str]]]]] = {
    "on-demand": lambda _: [],
    # Pools created by hand may have the first, and those that GKE creates for pods have the second.
    "spot": lambda _: [_tolerated(SPOT, "true"), _tolerated(PROVISIONING, "spot")],
    # GKE refuses a toleration of this taint without the selector, and the selector alone is enough.
    "flex-start": lambda _: [],
    "reservation": lambda job: [_tolerated(RESERVATION_NAME, str(job.capacity.reservation_name))],
}
"""The taints of the nodes of each capacity, those of pools that GKE creates included:
https://github.com/GoogleCloudPlatform/cluster-toolkit/blob/main/docs/gcluster_job_guide.md."""


def placement_annotations(job: Job) -> dict[str, str]:
    """Return the pods' annotations, by which Kueue keeps those of a slice in one domain."""
    if not is_placed_by_queue(job):
        return {}
    topology, level = str(job.slice.topology), DOMAINS[job.slice.generation].level
    return {SLICE_TOPOLOGY: topology} | (
        _domain(job.slice, level.format(topology=topology)) if level else {}
    )


def _domain(slice_: Slice, level: str) -> dict[str, str]:
    """Return the annotations that require a domain for all pods, or with several slices, for the pods of each."""
    if slice_.slices == 1:
        return {REQUIRED_TOPOLOGY: level}
    return {SLICE_REQUIRED_TOPOLOGY: level, SLICE_SIZE: str(slice_.hosts_per_slice)}
