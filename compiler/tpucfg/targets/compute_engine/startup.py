"""The start-up script of a host, and the request that deletes its group, or the instance itself.

Sources: https://cloud.google.com/compute/docs/reference/rest/v1/instanceGroupManagers/delete,
https://cloud.google.com/compute/docs/reference/rest/v1/instances/delete.
"""

from typing import Final

from tpucfg.plan.job import Job
from tpucfg.targets.hosts import startup

API: Final = "https://compute.googleapis.com/compute/v1"
LOG_LABEL: Final = "tpucfg-job"
"""The label of the container, by which Cloud Logging finds the output of a job."""


def startup_script(job: Job) -> str:
    """Return the bash script that every host runs as root at every boot."""
    is_group = job.slice.hosts > 1
    service = startup.Service(
        slice_url=slice_url(job),
        slice_name="group with its instances; this host is one of them" if is_group else "instance, which is this host",
        permission="compute.instanceGroupManagers.delete" if is_group else "compute.instances.delete",
        installs_docker=True,
        log_label=LOG_LABEL,
        limits_hosts=True,
    )
    return startup.startup_script(job, service)


def slice_url(job: Job) -> str:
    """Return the URL of what a job's hosts are created and deleted by: their group, or the only instance."""
    collection = "instanceGroupManagers" if job.slice.hosts > 1 else "instances"
    return f"{API}/projects/{job.environment.project}/zones/{job.zone}/{collection}/{job.name}"
