"""The objects of a job: a workload policy, an instance template and a managed instance group, or one instance.

Sources: https://docs.cloud.google.com/tpu/docs/tpus-and-migs (the objects of a slice),
https://cloud.google.com/compute/docs/instance-groups/about-bulk-mode (all hosts of a slice at once).
"""

from typing import Any, Final

from tpucfg.plan.job import Job
from tpucfg.targets.common import without_empty
from tpucfg.targets.compute_engine.machine import host_fields, is_ended_by_service, region_of, wait_parameters
from tpucfg.targets.documents import digest
from tpucfg.targets.interface import RequestBody

NAME: Final = "compute-engine"
POLICY: Final = "resourcePolicy"
TEMPLATE: Final = "instanceTemplate"
GROUP: Final = "instanceGroupManager"
INSTANCE: Final = "instance"
KIND_PREFIX: Final = "compute#"
"""The start of an object's `kind`: https://cloud.google.com/compute/docs/reference/rest/v1/instances."""
DOCUMENTS: Final = (POLICY, TEMPLATE, GROUP, INSTANCE)
"""The keys of the request body, each a document of the config, in the order in which they are created."""


def request_body(job: Job) -> RequestBody:
    """Return the objects of a slice: a group with what it refers to, or for one host an instance."""
    if job.slice.hosts == 1:
        # A workload policy is for groups only.
        return {INSTANCE: _instance(job)}
    objects = {
        POLICY: {"workloadPolicy": {"type": "HIGH_THROUGHPUT", "acceleratorTopology": job.slice.topology}},
        TEMPLATE: {"properties": host_fields(job)},
        GROUP: _group(job),
    }
    return {key: {**_head(job, key), **_description(job, key, fields), **fields} for key, fields in objects.items()}


def object_path(job: Job, key: str) -> str:
    """Return the path of an object below the URL of the API."""
    return f"{collection_path(job, key)}/{job.name}"


def collection_path(job: Job, key: str) -> str:
    """Return the path in which an object is created: the policy and the template of a group are regional."""
    is_regional = key in (POLICY, TEMPLATE)
    place = f"regions/{region_of(job)}" if is_regional else f"zones/{job.zone}"
    return f"projects/{job.environment.project}/{place}/{_COLLECTIONS[key]}"


_REUSED: Final = (POLICY, TEMPLATE)
"""The objects that cost nothing and outlive the group, which deletes itself."""
_COLLECTIONS: Final = {
    POLICY: "resourcePolicies",
    TEMPLATE: "instanceTemplates",
    GROUP: "instanceGroupManagers",
    INSTANCE: "instances",
}


def _head(job: Job, key: str) -> dict[str, str]:
    return {"kind": f"{KIND_PREFIX}{key}", "name": job.name}


def _description(job: Job, key: str, fields: dict[str, Any]) -> dict[str, str]:
    """Return the description by which an equal object is found."""
    if key not in _REUSED:
        return {}
    return {"description": digest([fields, (job.options.get("extra") or {}).get(key)])}


def _instance(job: Job) -> dict[str, Any]:
    fields = host_fields(job, f"zones/{job.zone}/")
    return without_empty(**_head(job, INSTANCE), **fields, params=wait_parameters(job))


def _group(job: Job) -> dict[str, Any]:
    return without_empty(
        baseInstanceName=job.name,
        targetSize=job.slice.hosts,
        versions=[{"instanceTemplate": object_path(job, TEMPLATE)}],
        targetSizePolicy={"mode": "BULK"},
        resourcePolicies={"workloadPolicy": object_path(job, POLICY)},
        # An instance that the service or the deadline deletes is not created again; flex-start requires this.
        instanceLifecyclePolicy={"defaultActionOnFailure": "DO_NOTHING"} if is_ended_by_service(job) else None,
    )
