"""The objects of a job: a workload policy, an instance template and a managed instance group, or one instance.

Sources: https://docs.cloud.google.com/tpu/docs/tpus-and-migs (the objects of a slice),
https://cloud.google.com/compute/docs/instance-groups/about-bulk-mode (all hosts of a slice at once).
"""

from typing import Any, Final

from tpucfg.plan.job import Job
from tpucfg.targets.common import without_empty
from tpucfg.targets.compute_engine.machine import host_fields, wait_parameters
from tpucfg.targets.compute_engine.paths import GROUP, INSTANCE, KIND_PREFIX, POLICY, TEMPLATE, object_path, slice_key
from tpucfg.targets.documents import digest
from tpucfg.targets.interface import RequestBody

_REUSED: Final = (POLICY, TEMPLATE)
"""The objects that cost nothing and outlive the group, which deletes itself."""


def request_body(job: Job) -> RequestBody:
    """Return the objects of a slice: a group with what it refers to, or for one host an instance."""
    if slice_key(job) == INSTANCE:
        # A workload policy is for groups only.
        return {INSTANCE: _instance(job)}
    objects = {
        POLICY: {"workloadPolicy": {"type": "HIGH_THROUGHPUT", "acceleratorTopology": job.slice.topology}},
        TEMPLATE: {"properties": host_fields(job)},
        GROUP: _group(job),
    }
    return {key: {**_head(job, key), **_description(job, key, fields), **fields} for key, fields in objects.items()}


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
