"""The nodes that a pod may run on: those of its slice, obtained in the way that the spec names.

Sources: https://cloud.google.com/kubernetes-engine/docs/concepts/spot-vms (spot),
https://cloud.google.com/kubernetes-engine/docs/concepts/dws (flex-start),
https://cloud.google.com/kubernetes-engine/docs/how-to/consuming-reservations (reservations),
https://cloud.google.com/kubernetes-engine/docs/concepts/about-custom-compute-classes (compute classes).
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from tpucfg.plan.job import Job
from tpucfg.spec.settings import CapacityKind
from tpucfg.targets.common import without_empty
from tpucfg.targets.gke.labels import (
    ACCELERATOR,
    CHIPS,
    COMPUTE_CLASS,
    FLEX_START,
    INSTANCE,
    MAX_RUN_DURATION,
    PLACEMENT_POLICY,
    RESERVATION_AFFINITY,
    RESERVATION_NAME,
    RESERVATION_PROJECT,
    SPOT,
    TOPOLOGY,
)
from tpucfg.targets.gke.placement import DOMAINS, is_placed_by_queue

_TPU_TOLERATION: Final = {"key": CHIPS, "operator": "Exists", "effect": "NoSchedule"}
# Node pools that GKE creates for spot pods have this taint; those created by hand may have it.
_SPOT_TOLERATION: Final = {"key": SPOT, "operator": "Equal", "value": "true", "effect": "NoSchedule"}


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


def tolerations(job: Job) -> list[dict[str, str]]:
    """Return the taints of nodes that the job's pods tolerate."""
    # flex-start has none: GKE refuses a toleration of its taint without the selector, and the selector alone is enough.
    return [_TPU_TOLERATION, _SPOT_TOLERATION] if job.capacity.kind == "spot" else [_TPU_TOLERATION]


def _is_selected_by_name(job: Job) -> bool:
    """Return True if a pod selects its machine by name.

    All machines of a size have the same labels. A pod for the smaller machine would also fit on half of a larger one. A
    pod for the larger machine fits no smaller one. Some machines are provided only by name, and part of a larger node
    pool is selected by its machine instead of its topology.
    """
    machine = job.slice.machine
    if machine is None:
        return False
    is_part_of_pool = is_placed_by_queue(job) and DOMAINS[job.slice.generation].selects_machine
    return is_part_of_pool or machine.only_named or any(machine.chips < other.chips for other in job.slice.machines)


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
