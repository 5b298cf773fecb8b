"""The request body of a job: a queued resource, whose hosts start the trainer's container when they boot.

Sources: https://cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.queuedResources (the request body),
https://cloud.google.com/tpu/docs/queued-resources (tiers and states),
https://cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.queuedResources/delete (the end of a slice).
"""

from collections.abc import Mapping
from typing import Any, Final

from tpucfg.plan import Job, job_labels
from tpucfg.spec.settings import Duration
from tpucfg.targets import hosts
from tpucfg.targets.hosts import NAMES
from tpucfg.targets.interface import (
    CAPACITY,
    CLOUD_PLATFORM,
    MACHINE,
    MACHINES,
    Origin,
    RequestBody,
    Reserved,
    google_account,
    label_origins,
    reservation_path,
    without_empty,
)

NAME: Final = "cloud-tpu"
API: Final = (
    "https://cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.queuedResources"
)
_GCLOUD: Final = (
    "https://cloud.google.com/sdk/gcloud/reference/compute/tpus/queued-resources/create"
)
_DOCKER: Final = "https://cloud.google.com/tpu/docs/run-in-container"
_NODE: Final = "tpu.nodeSpec.*.node"

ORIGINS: Final[Mapping[str, Origin]] = {
    "tpu.nodeSpec.*.parent": Origin(
        "rule",
        "the environment's project, and the zone of the size in its region",
        API,
        "environments.<env>.project",
    ),
    "tpu.nodeSpec.*.nodeId": Origin("rule", "the job's name", NAMES, "name"),
    "tpu.nodeSpec.*.multisliceParams.nodeCount": Origin("catalog", "slices", API),
    "tpu.nodeSpec.*.multisliceParams.nodeIdPrefix": Origin(
        "rule", "the job's name, to which the service adds the slice's number", NAMES, "name"
    ),
    f"{_NODE}.acceleratorType": Origin("catalog", "accelerator_type", API),
    f"{_NODE}.runtimeVersion": Origin("spec", "targets.cloud-tpu.runtime_version"),
    f"{_NODE}.networkConfig.network": Origin("spec", "targets.cloud-tpu.network"),
    f"{_NODE}.networkConfig.subnetwork": Origin("spec", "targets.cloud-tpu.subnetwork"),
    f"{_NODE}.networkConfig.enableExternalIps": Origin(
        "spec", "targets.cloud-tpu.external_ips", _GCLOUD
    ),
    f"{_NODE}.serviceAccount.email": Origin("spec", "targets.cloud-tpu.service_account"),
    f"{_NODE}.serviceAccount.scope.*": Origin(
        "rule", "all: the account's roles limit its access", API
    ),
    f"{_NODE}.schedulingConfig.reserved": Origin("spec", "capacity"),
    f"{_NODE}.dataDisks.*.sourceDisk": Origin("spec", "targets.cloud-tpu.data_disks"),
    f"{_NODE}.dataDisks.*.mode": Origin("spec", "targets.cloud-tpu.data_disks"),
    **label_origins(f"{_NODE}.labels"),
    f"{_NODE}.tags.*": Origin("spec", "targets.cloud-tpu.tags"),
    f"{_NODE}.metadata.startup-script": Origin(
        "rule",
        "a script that runs trainer.image on every host, with trainer.env and the program's flags",
        _DOCKER,
        "trainer",
    ),
    "queueingPolicy.validUntilDuration": Origin("spec", "targets.cloud-tpu.max_wait", API),
    "spot": Origin("spec", "capacity"),
    "reservationName": Origin("spec", "capacity"),
}


RESERVED: Final[Mapping[str, Reserved]] = {
    "tpu.nodeSpec.*": Reserved(MACHINES, API),
    "tpu.nodeSpec.*.multisliceParams.**": Reserved(MACHINES, API),
    f"{_NODE}.acceleratorConfig.**": Reserved(MACHINE, API),
    f"{_NODE}.schedulingConfig.**": Reserved(CAPACITY, API),
    "guaranteed.**": Reserved(CAPACITY, API),
    "spot.**": Reserved(CAPACITY, API),
    "reservationName": Reserved(CAPACITY, API),
}
"""See `Target.RESERVED`."""


def request_body(job: Job) -> RequestBody:
    """Return the QueuedResource: one node for each slice."""
    node_spec = {"parent": parent(job), **_node_names(job), "node": _node(job)}
    max_wait = job.options.get("max_wait")
    body = without_empty(
        tpu={"nodeSpec": [node_spec]},
        queueingPolicy={"validUntilDuration": f"{Duration.read(max_wait).seconds}s"}
        if max_wait
        else None,
        reservationName=reservation_path(job, "locations"),
    )
    # The spot tier is requested by an empty mapping, which `without_empty` would omit.
    return {**body, "spot": {}} if job.capacity.kind == "spot" else body


def parent(job: Job) -> str:
    """Return the zone of a job as the API names it."""
    return f"projects/{job.environment.project}/locations/{job.zone}"


def node_suffix(slices: int) -> str:
    """Return the longest ending that the API appends to the name of one of several slices: `-0`, `-1` and so on."""
    return f"-{slices - 1}" if slices > 1 else ""


def _node_names(job: Job) -> dict[str, Any]:
    if job.slice.slices > 1:
        return {"multisliceParams": {"nodeCount": job.slice.slices, "nodeIdPrefix": job.name}}
    return {"nodeId": job.name}


def _node(job: Job) -> dict[str, Any]:
    options = job.options
    return without_empty(
        acceleratorType=job.slice.accelerator_type,
        runtimeVersion=options.get("runtime_version") or job.slice.runtime_version,
        networkConfig=without_empty(
            network=options.get("network"),
            subnetwork=options.get("subnetwork"),
            enableExternalIps=options.get("external_ips") is not False,
        ),
        serviceAccount={"email": google_account(job), "scope": [CLOUD_PLATFORM]},
        # Without it, a reservation's name alone requests on-demand capacity in v2.
        schedulingConfig={"reserved": True} if job.capacity.reservation else None,
        dataDisks=[_data_disk(disk) for disk in options.get("data_disks") or []],
        labels=job_labels(job),
        tags=list(options.get("tags") or []),
        metadata={"startup-script": startup_script(job)},
    )


def _data_disk(disk: Mapping[str, Any]) -> dict[str, str]:
    return {
        "sourceDisk": disk["source"],
        "mode": "READ_WRITE" if disk.get("read_only") is False else "READ_ONLY",
    }


def startup_script(job: Job) -> str:
    """Return the bash script that every host runs as root at every boot."""
    service = hosts.Service(
        # Without force, a request whose nodes exist is refused.
        delete_url=f"{collection_url(job)}/{job.name}?force=true",
        slice_noun="queued resource with its nodes",
        permission="tpu.nodes.delete",
    )
    return hosts.startup_script(job, service)


def collection_url(job: Job) -> str:
    """Return the URL of the queued resources in a job's zone."""
    return f"https://tpu.googleapis.com/v2/projects/{job.environment.project}/locations/{job.zone}/queuedResources"
