"""Facts about each target that other parts of the compiler, and the stack program, need without the target's module.

A new target adds one row. What only the service's own requests need is in `targets/`; the capacity that it offers is in
`plan/rules/capacity_table.py`.
"""

from collections.abc import Mapping
from typing import Final, Literal

from tpucfg.named_tuple import NamedTuple

TPU_API: Final = "tpu.googleapis.com"
_HOST_SETTINGS: Final = (
    "external_ips",
    "network",
    "subnetwork",
    "tags",
    "service_account",
    "data_disks",
    "extra",
)
_COMMON_APIS: Final = ("storage.googleapis.com", "iam.googleapis.com")


class SizeRefusal(NamedTuple):
    """The reason why a target does not support a size, or several slices of one."""

    reason: str
    """A clause to follow a colon, without a final full stop."""
    sources: tuple[str, ...]
    """Ids of the sources that state the reason, or that list the supported sizes without this one."""


_ONE_SLICE: Final = SizeRefusal("a job there has exactly one slice", ("vertex-compute",))
_ONE_SLICE_OF_A_GROUP: Final = SizeRefusal(
    "a group of hosts there is exactly one slice", ("compute-groups",)
)


class FirstLadder(NamedTuple):
    """The ladder of a new project: sizes that the target supports, in a region that offers all of them."""

    region: str
    sizes: tuple[str, ...]


class OldestJax(NamedTuple):
    """The first release of JAX whose processes find each other on several hosts of a service."""

    release: tuple[int, int, int]
    source: str
    """The public page that states it."""

    @property
    def text(self) -> str:
        """The release as JAX writes it: `0.10.0`."""
        return ".".join(map(str, self.release))


class NamedResource(NamedTuple):
    """A type of resource by whose name a condition of IAM can limit a grant on the project."""

    type: str
    """The value of `resource.type`."""
    template: str
    """The template with which `extract` takes the name from `resource.name`."""


class TargetFacts(NamedTuple):
    """One target."""

    apis: tuple[str, ...]
    """The APIs that its jobs need in the environment's project."""
    first_ladder: FirstLadder
    zones: Literal["own list", "list of Cloud TPU", "chosen by the service"] = "list of Cloud TPU"
    """The source of the zones of a size. A service that chooses them has a rule about regions in its own module."""
    reservation_has_zone: bool = False
    """True if jobs run in a region, and the name of a reservation has its zone."""
    one_slice_refusal: SizeRefusal | None = _ONE_SLICE
    """The reason why a job cannot run on several slices; None if it can."""
    builds_packages: bool = False
    """True if the service's client builds a local package; other targets refuse one."""
    runs_pods: bool = False
    """True if `service_account` is a Kubernetes account, which acts as the Google account of the stack."""
    unset_capacity: str = "on-demand"
    """The words for the capacity of a spec that sets none."""
    has_tenant_project: bool = False
    """True if the TPUs are in a project of the service, whose agent needs a role on the environment's project."""
    machine_choice: Literal["none", "machine", "machine and topology"] = "none"
    """The overrides by which a spec chooses among the machines of a size; the others the service chooses itself."""
    trainer_keys: tuple[str, ...] = ()
    """The keys of `trainer` that no other target reads."""
    environment_keys: tuple[str, ...] = ()
    """The keys of an environment that no other target reads."""
    host_settings: tuple[str, ...] = ()
    """The settings that a change of target must not lose: limits of its hosts, their disks, and `extra`.

    Targets with one of them give it the same name and meaning; only the fields of `extra` differ by service.
    """
    deletion_permissions: tuple[str, ...] = ()
    """The permissions with which a job deletes its own slice; empty if the service ends the slice itself."""
    one_host_deletion_permissions: tuple[str, ...] = ()
    """The permissions for a slice of one host, if another request deletes it."""
    one_host_resource: NamedResource | None = None
    """The resource of a slice of one host; None if no condition can limit its deletion to the environment's own."""
    oldest_jax: OldestJax | None = None
    """The oldest JAX whose processes find each other on several hosts of the service; None if the age does not matter.
    """
    agent_uses_bucket: bool = True
    """True if Google's TPU service agent reads and writes the bucket for the jobs."""
    image_puller: Literal["account", "nodes", "service"] = "service"
    """The puller of the image: the jobs' account, the account of a cluster's nodes, or the service's own agent."""
    writes_logs: bool = False
    """True if the hosts send the program's output to Cloud Logging as the jobs' account."""


TARGET_FACTS: Final[Mapping[str, TargetFacts]] = {
    "vertex-ai": TargetFacts(
        apis=(*_COMMON_APIS, TPU_API, "aiplatform.googleapis.com"),
        first_ladder=FirstLadder("us-central1", ("v2-8", "v2-32", "v2-128")),
        # https://cloud.google.com/vertex-ai/docs/training/use-reservations
        reservation_has_zone=True,
        machine_choice="machine",
        host_settings=("service_account",),
    ),
    "cloud-tpu": TargetFacts(
        apis=(*_COMMON_APIS, TPU_API),
        first_ladder=FirstLadder("us-central1", ("v2-8", "v2-32", "v2-128")),
        zones="own list",
        one_slice_refusal=None,
        host_settings=_HOST_SETTINGS,
        image_puller="account",
        # Queued resources have no permissions of their own:
        # https://docs.cloud.google.com/iam/docs/roles-permissions/tpu.
        deletion_permissions=(
            "tpu.nodes.delete",
            "tpu.nodes.get",
            "tpu.nodes.list",
            "tpu.operations.get",
        ),
    ),
    "compute-engine": TargetFacts(
        # The program's output goes to Cloud Logging: https://docs.docker.com/engine/logging/drivers/gcplogs/.
        apis=(*_COMMON_APIS, TPU_API, "compute.googleapis.com", "logging.googleapis.com"),
        first_ladder=FirstLadder("us-central1", ("v6e-4", "v6e-16", "v6e-64")),
        one_slice_refusal=_ONE_SLICE_OF_A_GROUP,
        machine_choice="machine",
        # The hosts are instances of Compute Engine, and only their own account acts for the program.
        agent_uses_bucket=False,
        image_puller="account",
        host_settings=_HOST_SETTINGS,
        # A group deletes its instances itself, as Google's own agent:
        # https://cloud.google.com/compute/docs/reference/rest/v1/instanceGroupManagers/delete.
        deletion_permissions=("compute.instanceGroupManagers.delete",),
        one_host_deletion_permissions=("compute.instances.delete",),
        # Instances, but not managed instance groups, are among the types with a name:
        # https://cloud.google.com/iam/docs/conditions-resource-attributes.
        one_host_resource=NamedResource("compute.googleapis.com/Instance", "/instances/{name}"),
        # The metadata lists the hosts of a group in another form than that of the Cloud TPU API.
        oldest_jax=OldestJax(
            (0, 10, 0),
            "https://github.com/jax-ml/jax/blob/main/jax/_src/clusters/cloud_tpu_cluster.py",
        ),
        writes_logs=True,
    ),
    "gke": TargetFacts(
        # Pods act as the account by Workload Identity, which requests its tokens from iamcredentials:
        # https://cloud.google.com/kubernetes-engine/docs/how-to/workload-identity.
        apis=(*_COMMON_APIS, TPU_API, "container.googleapis.com", "iamcredentials.googleapis.com"),
        first_ladder=FirstLadder("us-central1", ("v6e-16", "v6e-64")),
        one_slice_refusal=None,
        machine_choice="machine and topology",
        runs_pods=True,
        agent_uses_bucket=False,
        image_puller="nodes",
        unset_capacity="the node pool decides",
        environment_keys=("cluster", "kube_context"),
    ),
    "ai-platform": TargetFacts(
        # No TPU API: the TPUs are in the service's own project, where only the service can enable APIs.
        apis=(*_COMMON_APIS, "ml.googleapis.com"),
        first_ladder=FirstLadder("us-central1", ("v2-8",)),
        zones="chosen by the service",
        builds_packages=True,
        has_tenant_project=True,
        trainer_keys=("worker_image", "runtime", "python"),
    ),
}
"""The facts by target."""
