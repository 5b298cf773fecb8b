"""The fields that describe a host: those of an instance, and of the template of a group's instances.

Both messages have the same fields, but only an instance names its zone in the paths of machine types and disks.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from tpucfg.plan.job import Job
from tpucfg.spec.settings import CapacityKind
from tpucfg.targets.common import CLOUD_PLATFORM, google_account, without_empty
from tpucfg.targets.compute_engine.paths import INSTANCE, region_of, slice_key
from tpucfg.targets.compute_engine.startup import startup_script

DEFAULT_DISK_GB: Final = 200
"""The default of `disk_gb`; the image's own 10 GB are too few for Docker and the trainer's image."""
_RESERVATION_KEY: Final = "compute.googleapis.com/reservation-name"
"""The key by which a reservation is named (pages.RESERVATIONS).

The discovery document of compute.v1 has it without `compute.`; Google's pages, and the provider's
https://registry.terraform.io/providers/hashicorp/google/latest/docs/resources/compute_instance_template, have this one.
"""
_WAIT_SECONDS: Final = 7200
"""The longest that a flex-start instance may wait for its machine, two hours (pages.FLEX_START_WAIT)."""


class HostImage(NamedTuple):
    """The boot disk of a generation's hosts."""

    family: str
    """The family of images in the project ubuntu-os-accelerator-images; the newest image of a family is taken."""
    disk_type: str
    """The type of boot disk that the generation's machines take."""


_UBUNTU_22: Final = "ubuntu-accel-2204-amd64-tpu-v5e-v5p-v6e"
HOST_IMAGES: Final[Mapping[str, HostImage]] = {
    "v5p": HostImage(_UBUNTU_22, "pd-balanced"),
    "v6e": HostImage(_UBUNTU_22, "hyperdisk-balanced"),
    "tpu7x": HostImage("ubuntu-accel-2404-amd64-tpu-tpu7x", "hyperdisk-balanced"),
}
"""By generation: https://docs.cloud.google.com/tpu/docs/attach-durable-block-storage has the types of disks."""
PROVISIONING: Final[Mapping[CapacityKind, str]] = {
    "on-demand": "STANDARD",
    "spot": "SPOT",
    "flex-start": "FLEX_START",
    "reservation": "RESERVATION_BOUND",
}
"""`provisioningModel` by capacity: https://cloud.google.com/compute/docs/instances/provisioning-models."""
_NEVER_RESTARTED: Final = ("spot", "flex-start")
"""Capacity whose instances are not restarted after they have ended.

Spot: https://cloud.google.com/compute/docs/instances/spot#limitations. Flex-start machines are lent for one period, and
a published request has it: https://cloud.google.com/compute/docs/instances/create-flex-start-vm.
"""

_ENDED_BY_SERVICE: Final = (*_NEVER_RESTARTED, "reservation")
"""Capacity whose instances the service ends, those of a reservation at its end (pages.BULK_GROUPS)."""


def host_fields(job: Job) -> dict[str, Any]:
    """Return the fields of a host, which name the zone in the paths of types only in an instance."""
    machine = job.slice.machine
    zone_prefix = f"zones/{job.zone}/" if slice_key(job) == INSTANCE else ""
    return without_empty(
        machineType=_typed(zone_prefix, "machineTypes", machine.name if machine else ""),
        disks=[_boot_disk(job, zone_prefix), *_data_disks(job)],
        networkInterfaces=[_network_interface(job)],
        serviceAccounts=[{"email": google_account(job), "scopes": [CLOUD_PLATFORM]}],
        scheduling=_scheduling(job),
        reservationAffinity=_reservation_affinity(job),
        tags=without_empty(items=list(job.options.get("tags") or [])),
        labels=dict(job.environment.labels),
        metadata={"items": [{"key": "startup-script", "value": startup_script(job)}]},
    )


def wait_parameters(job: Job) -> dict[str, Any]:
    """Return the longest wait of a single instance; empty for capacity that is there at once or not at all."""
    return {"requestValidForDuration": {"seconds": str(_WAIT_SECONDS)}} if job.capacity.kind == "flex-start" else {}


def _typed(zone_prefix: str, collection: str, name: str) -> str:
    return f"{zone_prefix}{collection}/{name}" if zone_prefix else name


def _boot_disk(job: Job, zone_prefix: str) -> dict[str, Any]:
    image = HOST_IMAGES[job.slice.generation]
    return {
        "boot": True,
        "autoDelete": True,
        "initializeParams": {
            "sourceImage": f"projects/ubuntu-os-accelerator-images/global/images/family/{image.family}",
            "diskSizeGb": str(job.options.get("disk_gb") or DEFAULT_DISK_GB),
            "diskType": _typed(zone_prefix, "diskTypes", image.disk_type),
        },
    }


def _data_disks(job: Job) -> Iterator[dict[str, Any]]:
    """Yield the existing disks of the spec, which an instance names by their paths, and a template by their names.

    https://cloud.google.com/compute/docs/reference/rest/v1/instanceTemplates (properties.disks[].source)
    """
    for disk in job.options.get("data_disks") or ():
        path: str = disk["source"]
        yield {
            "source": path if slice_key(job) == INSTANCE else path.rpartition("/")[2],
            "mode": "READ_WRITE" if disk.get("read_only") is False else "READ_ONLY",
            "autoDelete": False,
        }


def _network_interface(job: Job) -> dict[str, Any]:
    network, subnetwork = job.options.get("network"), job.options.get("subnetwork")
    external = {"name": "External NAT", "type": "ONE_TO_ONE_NAT"}
    return without_empty(
        network=_path("global/networks", network or (None if subnetwork else "default")),
        subnetwork=_path(f"regions/{region_of(job)}/subnetworks", subnetwork),
        nicType="GVNIC",
        accessConfigs=[] if job.options.get("external_ips") is False else [external],
    )


def _path(collection: str, name: str | None) -> str | None:
    """Return the path of a name; a name with slashes is a path already."""
    return f"{collection}/{name}" if name and "/" not in name else name


def _scheduling(job: Job) -> dict[str, Any]:
    duration, kind = job.max_run_duration, job.capacity.kind
    is_ended_by_service = duration is not None or kind in _ENDED_BY_SERVICE
    return without_empty(
        provisioningModel=PROVISIONING[kind],
        # TPU VMs cannot be moved to another machine while they run.
        onHostMaintenance="TERMINATE",
        automaticRestart=False if kind in _NEVER_RESTARTED else None,
        # A stopped instance could not be started again, but its disk would be charged.
        instanceTerminationAction="DELETE" if is_ended_by_service else None,
        maxRunDuration={"seconds": str(duration.seconds)} if duration else None,
    )


def _reservation_affinity(job: Job) -> dict[str, Any]:
    capacity = job.capacity
    if not capacity.reservation:
        # Google's requests for flex-start exclude a reservation that would match: pages.FLEX_START_WAIT.
        return {"consumeReservationType": "NO_RESERVATION"} if capacity.kind == "flex-start" else {}
    shared = capacity.reservation_project and capacity.reservation_project != job.environment.project
    name = capacity.reservation_name
    value = f"projects/{capacity.reservation_project}/reservations/{name}" if shared else name
    return {"consumeReservationType": "SPECIFIC_RESERVATION", "key": _RESERVATION_KEY, "values": [value]}
