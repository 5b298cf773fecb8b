"""The objects of a job: a workload policy, an instance template and a managed instance group, or one instance.

Template and instance have the same fields of a host, but only an instance names its zone in the paths of machine types
and disks. Sources: https://docs.cloud.google.com/tpu/docs/tpus-and-migs (the objects of a slice),
https://cloud.google.com/compute/docs/instance-groups/about-bulk-mode (all hosts of a slice at once).
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tpucfg.named_tuple import NamedTuple
from tpucfg.plan import Job, job_labels
from tpucfg.spec import CapacityKind
from tpucfg.targets import hosts
from tpucfg.targets.hosts import NAMES
from tpucfg.targets.interface import (
    CAPACITY,
    CLOUD_PLATFORM,
    DEADLINE,
    MACHINE,
    MACHINES,
    ExtraEffect,
    Origin,
    RequestBody,
    Reserved,
    google_account,
    label_origins,
    without_empty,
)
from tpucfg.targets.objects import digest

# The public pages that state the rules of this target.

_COMPUTE: Final = "https://cloud.google.com/compute/docs"

TEMPLATES: Final = f"{_COMPUTE}/reference/rest/v1/instanceTemplates"
GROUPS: Final = f"{_COMPUTE}/reference/rest/v1/instanceGroupManagers"
INSTANCES: Final = f"{_COMPUTE}/reference/rest/v1/instances"
TPUS: Final = f"{_COMPUTE}/tpus/tpu-machines"
GROUPS_OF_TPUS: Final = "https://docs.cloud.google.com/tpu/docs/tpus-and-migs"
BULK: Final = f"{_COMPUTE}/instance-groups/about-bulk-mode"
BULK_GROUPS: Final = f"{_COMPUTE}/instance-groups/bulk-create-instances-in-mig"
SPOT: Final = "https://docs.cloud.google.com/tpu/docs/spot-compute"
FLEX_START: Final = f"{_COMPUTE}/instances/about-flex-start-vms"
FLEX_START_WAIT: Final = f"{_COMPUTE}/instances/create-flex-start-vm"
RESERVATIONS: Final = f"{_COMPUTE}/instances/reservations-consume"
TIME_LIMIT: Final = f"{_COMPUTE}/instances/limit-vm-runtime"
DISKS: Final = "https://docs.cloud.google.com/tpu/docs/attach-durable-block-storage"
IMAGES: Final = "https://docs.cloud.google.com/tpu/docs/quickstart-create-multi-host-slice"
ADDRESSES: Final = "https://cloud.google.com/vpc/docs/private-google-access"
NAT: Final = "https://cloud.google.com/nat/docs/overview"
STARTUP: Final = f"{_COMPUTE}/instances/startup-scripts/linux"
ACCOUNTS: Final = f"{_COMPUTE}/access/service-accounts"

# The objects, and their paths and URLs in the API: https://cloud.google.com/compute/docs/reference/rest/v1.

NAME: Final = "compute-engine"
API: Final = "https://compute.googleapis.com/compute/v1"
POLICY: Final = "resourcePolicy"
TEMPLATE: Final = "instanceTemplate"
GROUP: Final = "instanceGroupManager"
INSTANCE: Final = "instance"
DOCUMENTS: Final = (POLICY, TEMPLATE, GROUP, INSTANCE)
"""The keys of the request body, each a document of the config, in the order in which they are created."""
KIND_PREFIX: Final = "compute#"
"""The start of an object's `kind`: https://cloud.google.com/compute/docs/reference/rest/v1/instances."""
COLLECTIONS: Final = {
    POLICY: "resourcePolicies",
    TEMPLATE: "instanceTemplates",
    GROUP: "instanceGroupManagers",
    INSTANCE: "instances",
}
"""The collection of each object."""
_REGIONAL: Final = (POLICY, TEMPLATE)
"""The objects that are in a region, that of the group's zone; the others are in the zone."""


def slice_key(job: Job) -> str:
    """Return the object that a job's hosts are created and deleted by: their group, or the only instance."""
    return GROUP if job.slice.hosts > 1 else INSTANCE


def region_of(job: Job) -> str:
    """Return the region of the job's zone, in which the group's template and policy are."""
    return (job.zone or "").rpartition("-")[0]


def place_of(job: Job, key: str) -> tuple[str, str]:
    """Return the kind of place in which an object is, and the place: `zone`, `us-east5-a`."""
    return ("region", region_of(job)) if key in _REGIONAL else ("zone", str(job.zone))


def collection_path(job: Job, key: str) -> str:
    """Return the path in which an object is created."""
    kind, place = place_of(job, key)
    return f"projects/{job.environment.project}/{kind}s/{place}/{COLLECTIONS[key]}"


def object_path(job: Job, key: str) -> str:
    """Return the path of an object, by which others refer to it."""
    return f"{collection_path(job, key)}/{job.name}"


def object_url(job: Job, key: str) -> str:
    """Return the URL of an object."""
    return f"{API}/{object_path(job, key)}"


# The fields of a host.

DEFAULT_DISK_GB: Final = 200
"""The default of `disk_gb`; the image's own 10 GB are too few for Docker and the trainer's image."""
_RESERVATION_KEY: Final = "compute.googleapis.com/reservation-name"
"""The key by which a reservation is named (RESERVATIONS).

The discovery document of compute.v1 has it without `compute.`; Google's pages, and the provider's
https://registry.terraform.io/providers/hashicorp/google/latest/docs/resources/compute_instance_template, have this one.
"""
_WAIT_SECONDS: Final = 7200
"""The longest that a flex-start instance may wait for its machine, two hours (FLEX_START_WAIT)."""


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
"""Capacity whose instances the service ends, those of a reservation at its end (BULK_GROUPS)."""
LOG_LABEL: Final = "tpucfg-job"
"""The label of the container, by which Cloud Logging finds the output of a job."""
_NOUNS: Final = {GROUP: "group with its instances", INSTANCE: "instance"}


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
        labels=job_labels(job),
        metadata={"items": [{"key": "startup-script", "value": startup_script(job)}]},
    )


def wait_parameters(job: Job) -> dict[str, Any]:
    """Return the longest wait of a single instance; empty for capacity that is there at once or not at all."""
    return (
        {"requestValidForDuration": {"seconds": str(_WAIT_SECONDS)}}
        if job.capacity.kind == "flex-start"
        else {}
    )


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
            # A disk does not have the labels of its instance, and is charged beside it.
            "labels": job_labels(job),
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
        # Google's requests for flex-start exclude a reservation that would match: FLEX_START_WAIT.
        return {"consumeReservationType": "NO_RESERVATION"} if capacity.kind == "flex-start" else {}
    shared = (
        capacity.reservation_project and capacity.reservation_project != job.environment.project
    )
    name = capacity.reservation_name
    value = f"projects/{capacity.reservation_project}/reservations/{name}" if shared else name
    return {
        "consumeReservationType": "SPECIFIC_RESERVATION",
        "key": _RESERVATION_KEY,
        "values": [value],
    }


def startup_script(job: Job) -> str:
    """Return the bash script that every host runs as root at every boot."""
    key = slice_key(job)
    service = hosts.Service(
        delete_url=object_url(job, key),
        slice_noun=_NOUNS[key],
        permission=f"compute.{COLLECTIONS[key]}.delete",
        installs_docker=True,
        log_label=LOG_LABEL,
        limits_hosts=True,
    )
    return hosts.startup_script(job, service)


# The objects.

_REUSED: Final = (POLICY, TEMPLATE)
"""The objects that cost nothing and outlive the group, which deletes itself."""


def request_body(job: Job) -> RequestBody:
    """Return the objects of a slice: a group with what it refers to, or for one host an instance."""
    if slice_key(job) == INSTANCE:
        # A workload policy is for groups only.
        return {INSTANCE: _instance(job)}
    objects = {
        POLICY: {
            "workloadPolicy": {"type": "HIGH_THROUGHPUT", "acceleratorTopology": job.slice.topology}
        },
        TEMPLATE: {"properties": host_fields(job)},
        GROUP: _group(job),
    }
    return {
        key: {**_head(job, key), **_description(job, key, fields), **fields}
        for key, fields in objects.items()
    }


def _head(job: Job, key: str) -> dict[str, str]:
    return {"kind": f"{KIND_PREFIX}{key}", "name": job.name}


def _description(job: Job, key: str, fields: dict[str, Any]) -> dict[str, str]:
    """Return the description by which an equal object is found."""
    if key not in _REUSED:
        return {}
    return {"description": digest([fields, (job.options.get("extra") or {}).get(key)])}


def _instance(job: Job) -> dict[str, Any]:
    return without_empty(**_head(job, INSTANCE), **host_fields(job), params=wait_parameters(job))


def _group(job: Job) -> dict[str, Any]:
    return {
        "baseInstanceName": job.name,
        "targetSize": job.slice.hosts,
        "versions": [{"instanceTemplate": object_path(job, TEMPLATE)}],
        "targetSizePolicy": {"mode": "BULK"},
        "resourcePolicies": {"workloadPolicy": object_path(job, POLICY)},
        # An instance that is created again has an empty disk, so it would run the program a second time, and alone.
        "instanceLifecyclePolicy": {"defaultActionOnFailure": "DO_NOTHING"},
    }


# The origin of every field, for `tpucfg why` and for the locations of findings.

_CAPACITY: Final = Origin("spec", "capacity")
_DURATION: Final = Origin("spec", "trainer.max_run_duration")
_NETWORK: Final = Origin("spec", "targets.compute-engine.network")
_DATA_DISKS: Final = Origin("spec", "targets.compute-engine.data_disks")
_BOOT: Final = Origin(
    "rule", "the disk that the host boots from, which is deleted with it", INSTANCES
)
_SCRIPT: Final = Origin(
    "rule",
    "a script that runs trainer.image on every host, with trainer.env and the program's flags",
    STARTUP,
    "trainer",
)
_PROJECT: Final = "environments.<env>.project"
_HOST: Final[Mapping[str, Origin]] = {
    "machineType": Origin("catalog", "machine", TPUS),
    "disks.0.boot": _BOOT,
    "disks.0.autoDelete": _BOOT,
    "disks.0.initializeParams.sourceImage": Origin(
        "rule", "Google's image for hosts of the generation", IMAGES, "sizes"
    ),
    "disks.0.initializeParams.diskSizeGb": Origin("spec", "targets.compute-engine.disk_gb"),
    **label_origins("disks.0.initializeParams.labels"),
    "disks.0.initializeParams.diskType": Origin(
        "rule", "the type of disk that the generation takes", DISKS, "sizes"
    ),
    "disks.*.source": _DATA_DISKS,
    "disks.*.mode": _DATA_DISKS,
    "disks.*.autoDelete": Origin(
        "rule",
        "an existing disk outlives the slice",
        INSTANCES,
        "targets.compute-engine.data_disks",
    ),
    "networkInterfaces.0.network": _NETWORK,
    "networkInterfaces.0.subnetwork": Origin("spec", "targets.compute-engine.subnetwork"),
    "networkInterfaces.0.nicType": Origin("rule", "the network interface of TPU VMs", TPUS),
    "networkInterfaces.0.accessConfigs.**": Origin(
        "rule",
        "an external address, unless external_ips is false",
        ADDRESSES,
        "targets.compute-engine.external_ips",
    ),
    "serviceAccounts.0.email": Origin("spec", "targets.compute-engine.service_account"),
    "serviceAccounts.0.scopes.*": Origin(
        "rule", "all: the account's roles limit its access", ACCOUNTS
    ),
    "scheduling.provisioningModel": _CAPACITY,
    "scheduling.onHostMaintenance": Origin("rule", "TPU VMs cannot be moved while they run", SPOT),
    "scheduling.automaticRestart": _CAPACITY,
    "scheduling.instanceTerminationAction": Origin(
        "rule",
        "an instance that has ended is deleted, as a stopped one is charged",
        TIME_LIMIT,
        "capacity",
    ),
    "scheduling.maxRunDuration.seconds": _DURATION,
    "reservationAffinity.**": _CAPACITY,
    "tags.items.*": Origin("spec", "targets.compute-engine.tags"),
    **label_origins("labels"),
    # Comparisons have the items by their keys, and the lines and flags of the script below.
    **dict.fromkeys(
        ("metadata.items.*", "metadata.items.*.key", "metadata.items.*.value"), _SCRIPT
    ),
}
"""The fields of a host, in a template and in an instance."""


ORIGINS: Final[Mapping[str, Origin]] = {
    "*.kind": Origin("rule", "identifies the document in the config", GROUPS_OF_TPUS),
    "*.name": Origin("rule", "the job's name", NAMES, "name"),
    "*.description": Origin("rule", "an equal object that exists is reused", TEMPLATES),
    f"{POLICY}.workloadPolicy.type": Origin(
        "rule", "hosts on the TPU network", GROUPS_OF_TPUS, "sizes"
    ),
    f"{POLICY}.workloadPolicy.acceleratorTopology": Origin("catalog", "topology", GROUPS_OF_TPUS),
    **{f"{TEMPLATE}.properties.{path}": origin for path, origin in _HOST.items()},
    **{f"{INSTANCE}.{path}": origin for path, origin in _HOST.items()},
    f"{INSTANCE}.params.requestValidForDuration.seconds": _CAPACITY,
    f"{GROUP}.baseInstanceName": Origin("rule", "the start of the hosts' names", NAMES, "name"),
    f"{GROUP}.targetSize": Origin("catalog", "hosts", GROUPS_OF_TPUS),
    f"{GROUP}.versions.*.instanceTemplate": Origin(
        "rule", "the template of this config", GROUPS, _PROJECT
    ),
    f"{GROUP}.targetSizePolicy.mode": Origin(
        "rule", "all hosts are created at once, or none", BULK, "sizes"
    ),
    f"{GROUP}.resourcePolicies.workloadPolicy": Origin(
        "rule", "the policy of this config", GROUPS_OF_TPUS, _PROJECT
    ),
    f"{GROUP}.instanceLifecyclePolicy.defaultActionOnFailure": Origin(
        "rule", "a host that has ended is not created again", GROUPS, "sizes"
    ),
}
"""See `Target.ORIGINS`."""
_OTHER_OBJECT: Final = ExtraEffect(
    "TPU068",
    "",
    "create an object beside the slice: jobs of one host are an instance, and those of several hosts a group",
    "delete it, or move it to overrides.<size>.targets.compute-engine.extra of the sizes with this object",
)
RESERVED: Final[Mapping[str, Reserved]] = {
    # A key that the request body has is merged, and only a new one is a further object.
    **dict.fromkeys(DOCUMENTS, Reserved(_OTHER_OBJECT, GROUPS_OF_TPUS)),
    **{
        f"{GROUP}.{field}": Reserved(MACHINES, GROUPS)
        for field in (
            "versions.**",
            "instanceTemplate",
            "target*Size",
            "*FlexibilityPolicy",
            "standbyPolicy",
        )
    },
    "**.scheduling.maxRunDuration.**": Reserved(DEADLINE, TIME_LIMIT),
    "**.scheduling.terminationTime": Reserved(DEADLINE, TIME_LIMIT),
    "*.deletionProtection": Reserved(DEADLINE, INSTANCES),
    "**.scheduling.**": Reserved(CAPACITY, INSTANCES),
    "**.reservationAffinity.**": Reserved(CAPACITY, RESERVATIONS),
    "*.params.requestValidForDuration.**": Reserved(CAPACITY, FLEX_START_WAIT),
    "**.guestAccelerators": Reserved(MACHINE, INSTANCES),
    "instance.sourceMachineImage": Reserved(MACHINE, INSTANCES),
    "instanceTemplate.sourceInstance*": Reserved(MACHINE, TEMPLATES),
}
"""See `Target.RESERVED`."""
