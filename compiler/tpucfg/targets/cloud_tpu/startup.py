"""The start-up script of a host of a queued resource, and the request that deletes the resource.

Source: https://cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.queuedResources/delete.
"""

from tpucfg.plan.job import Job
from tpucfg.targets.hosts import startup


def startup_script(job: Job) -> str:
    """Return the bash script that every host runs as root at every boot."""
    service = startup.Service(
        # Without force, a request whose nodes exist is refused.
        delete_url=f"{collection_url(job)}/{job.name}?force=true",
        slice_noun="queued resource with its nodes",
        permission="tpu.nodes.delete",
    )
    return startup.startup_script(job, service)


def collection_url(job: Job) -> str:
    """Return the URL of the queued resources in a job's zone."""
    return f"https://tpu.googleapis.com/v2/projects/{job.environment.project}/locations/{job.zone}/queuedResources"
