"""The capacity that each target offers: a table by target, kind, generation and hosts, with its public sources.

The first row that matches decides. docs/capacity.md shows the table; a test compares the two.
"""

from collections.abc import Mapping
from typing import Final, Literal

from tpucfg.catalog import Slice
from tpucfg.named_tuple import NamedTuple
from tpucfg.spec import CapacityKind

Level = Literal["allowed", "warning", "error"]
Hosts = Literal["any", "one", "several"]


class CapacityRow(NamedTuple):
    """The verdict on one kind of capacity of a target."""

    target: str
    kind: CapacityKind
    level: Level
    text: str
    """Allowed: the fields that the config gets. Otherwise: the reason, as a clause to follow a colon."""
    sources: tuple[str, ...]
    """The public pages that state it."""
    generations: tuple[str, ...] = ()
    """The generations that the row is about; empty for all."""
    hosts: Hosts = "any"
    """The hosts of one slice that the row is about."""

    def matches(self, target: str, slice_: Slice, kind: CapacityKind) -> bool:
        """Return True if the row decides about a slice on a target."""
        return (
            (self.target, self.kind) == (target, kind)
            and (not self.generations or slice_.generation in self.generations)
            and (self.hosts == "any" or (self.hosts == "one") == (slice_.hosts_per_slice == 1))
        )


_VERTEX: Final = (
    "https://cloud.google.com/vertex-ai/docs/reference/rest/v1/CustomJobSpec#Scheduling"
)
_VERTEX_SPOT: Final = "https://cloud.google.com/vertex-ai/docs/predictions/use-spot-vms"
_VERTEX_FLEX: Final = "https://cloud.google.com/vertex-ai/docs/training/schedule-jobs-dws"
_VERTEX_RESERVATIONS: Final = "https://cloud.google.com/vertex-ai/docs/training/use-reservations"
_ML: Final = "https://cloud.google.com/ai-platform/training/docs/reference/rest/v1/projects.jobs"
_TPU: Final = (
    "https://cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.queuedResources"
)
_TPU_FLEX: Final = (
    "https://cloud.google.com/tpu/docs/reference/rest/v2alpha1/projects.locations.queuedResources"
)
_INSTANCES: Final = "https://cloud.google.com/compute/docs/reference/rest/v1/instances"
_PROVISIONING: Final = "https://cloud.google.com/compute/docs/instances/provisioning-models"
_BULK: Final = "https://cloud.google.com/compute/docs/instance-groups/about-bulk-mode"
_SEVERAL_HOSTS: Final = "https://docs.cloud.google.com/tpu/docs/tpus-and-migs"
_GROUPS_OF_SPOT: Final = "https://docs.cloud.google.com/tpu/docs/spot-compute"
COMPUTE_FLEX: Final = "https://cloud.google.com/compute/docs/instances/about-flex-start-vms"
_RESERVED: Final = "https://docs.cloud.google.com/tpu/docs/consume-reservation-compute"
_GKE: Final = "https://cloud.google.com/kubernetes-engine/docs/how-to/tpus"
_GKE_SPOT: Final = "https://cloud.google.com/kubernetes-engine/docs/concepts/spot-vms"
GKE_FLEX: Final = "https://cloud.google.com/kubernetes-engine/docs/concepts/dws"
_GKE_RESERVATIONS: Final = (
    "https://cloud.google.com/kubernetes-engine/docs/how-to/consuming-reservations"
)
_TOOLKIT: Final = "https://github.com/GoogleCloudPlatform/cluster-toolkit"
_RECIPES: Final = "https://github.com/AI-Hypercomputer/tpu-recipes"
CLUSTER_AUTOSCALER: Final = "https://github.com/GoogleCloudPlatform/cluster-autoscaler"

_NO_FIELD_IN_ML: Final = "its API has no field for it, so a job runs on on-demand TPUs only"
_NO_FLEX_IN_V2: Final = "version 2 of the Cloud TPU API has no field for it, only v2alpha1 has"

_NO_BULK: Final = (
    'Google states that bulk mode, which slices of several hosts need, "is only supported with instance templates that '
    'specify either a reservation-bound or flex-start provisioning model", while its pages on TPUs in groups speak of '
    '"on-demand or Spot VMs"'
)

CAPACITY_TABLE: Final = (
    CapacityRow("vertex-ai", "on-demand", "allowed", "no field", (_VERTEX,)),
    CapacityRow(
        "vertex-ai",
        "spot",
        "error",
        "Google does not support Spot VMs for TPU Pods",
        (_VERTEX_SPOT,),
        hosts="several",
    ),
    CapacityRow(
        "vertex-ai",
        "spot",
        "warning",
        "Google's page on Spot VMs excludes TPU Pods, and states nothing about a single host with TPUs",
        (_VERTEX_SPOT,),
    ),
    CapacityRow(
        "vertex-ai",
        "flex-start",
        "error",
        "Google's page offers it for jobs with certain GPUs only",
        (_VERTEX_FLEX,),
    ),
    CapacityRow(
        "vertex-ai",
        "reservation",
        "allowed",
        "`machineSpec.reservationAffinity`",
        (_VERTEX_RESERVATIONS,),
    ),
    CapacityRow("cloud-tpu", "on-demand", "allowed", "no field", (_TPU,)),
    CapacityRow("cloud-tpu", "spot", "allowed", "`spot: {}`", (_TPU,)),
    CapacityRow("cloud-tpu", "flex-start", "error", _NO_FLEX_IN_V2, (_TPU, _TPU_FLEX)),
    CapacityRow(
        "cloud-tpu",
        "reservation",
        "allowed",
        "`reservationName` and `schedulingConfig.reserved`",
        (_TPU,),
    ),
    CapacityRow(
        "compute-engine", "on-demand", "warning", _NO_BULK, (_BULK, _SEVERAL_HOSTS), (), "several"
    ),
    CapacityRow(
        "compute-engine", "on-demand", "allowed", "`provisioningModel: STANDARD`", (_INSTANCES,)
    ),
    CapacityRow(
        "compute-engine", "spot", "warning", _NO_BULK, (_BULK, _GROUPS_OF_SPOT), (), "several"
    ),
    CapacityRow(
        "compute-engine", "spot", "allowed", "`provisioningModel: SPOT`", (_GROUPS_OF_SPOT,)
    ),
    CapacityRow(
        "compute-engine",
        "flex-start",
        "allowed",
        "`provisioningModel: FLEX_START`",
        (COMPUTE_FLEX,),
    ),
    CapacityRow(
        "compute-engine",
        "reservation",
        "allowed",
        "`provisioningModel: RESERVATION_BOUND` and `reservationAffinity`",
        (_RESERVED, _PROVISIONING),
    ),
    CapacityRow(
        "gke",
        "on-demand",
        "allowed",
        "an affinity that excludes the others; unset: no field",
        (_GKE,),
    ),
    CapacityRow("gke", "spot", "allowed", "the selector `cloud.google.com/gke-spot`", (_GKE_SPOT,)),
    CapacityRow(
        "gke",
        "flex-start",
        "error",
        "GKE's page on flex-start lists v5e, v5p and v6e only",
        (GKE_FLEX,),
        ("v3", "v4"),
    ),
    CapacityRow(
        "gke",
        "flex-start",
        "warning",
        "GKE's page on flex-start lists v5e, v5p and v6e only, while Google's recipes request it for TPU7x",
        (GKE_FLEX, _RECIPES),
        ("tpu7x",),
    ),
    CapacityRow(
        "gke",
        "flex-start",
        "warning",
        "GKE's page recommends it for slices of a single host, while Google's Cluster Toolkit requests it for several",
        (GKE_FLEX, _TOOLKIT),
        (),
        "several",
    ),
    CapacityRow(
        "gke",
        "flex-start",
        "allowed",
        "the selector `cloud.google.com/gke-flex-start`",
        (GKE_FLEX,),
    ),
    CapacityRow(
        "gke",
        "reservation",
        "allowed",
        "the selector `cloud.google.com/reservation-name`",
        (_GKE_RESERVATIONS,),
    ),
    CapacityRow("ai-platform", "on-demand", "allowed", "no field", (_ML,)),
    CapacityRow("ai-platform", "spot", "error", _NO_FIELD_IN_ML, (_ML,)),
    CapacityRow("ai-platform", "flex-start", "error", _NO_FIELD_IN_ML, (_ML,)),
    CapacityRow("ai-platform", "reservation", "error", _NO_FIELD_IN_ML, (_ML,)),
)
"""The rows by target and kind; of two that match a slice, the first decides."""

FLEX_START_SECONDS: Final = range(600, 604_801)
"""Run durations that flex-start accepts, 10 minutes to 7 days: COMPUTE_FLEX and CLUSTER_AUTOSCALER."""
FLEX_START_ZONES: Final[Mapping[str, tuple[str, ...]]] = {
    "v5e": ("us-west4-a",),
    "v5p": ("us-east5-a",),
    "v6e": ("asia-northeast1-b", "us-east5-a", "us-east5-b"),
}
"""The zones of flex-start on gke by generation (GKE_FLEX)."""


def capacity_verdict(target: str, slice_: Slice, kind: CapacityKind) -> CapacityRow:
    """Return the row about a slice's capacity on a target; a target without rows takes on-demand only."""
    row = next((row for row in CAPACITY_TABLE if row.matches(target, slice_, kind)), None)
    if row:
        return row
    level: Level = "allowed" if kind == "on-demand" else "error"
    return CapacityRow(target, kind, level, "tpucfg has no source which states that it does", ())
