"""The start-up script of a host, and the request that deletes its group, or the instance itself.

Sources: https://cloud.google.com/compute/docs/reference/rest/v1/instanceGroupManagers/delete,
https://cloud.google.com/compute/docs/reference/rest/v1/instances/delete.
"""

from typing import Final

from tpucfg.plan.job import Job
from tpucfg.targets.compute_engine.paths import COLLECTIONS, GROUP, INSTANCE, object_url, slice_key
from tpucfg.targets.hosts import startup

LOG_LABEL: Final = "tpucfg-job"
"""The label of the container, by which Cloud Logging finds the output of a job."""
_NOUNS: Final = {GROUP: "group with its instances", INSTANCE: "instance"}


def startup_script(job: Job) -> str:
    """Return the bash script that every host runs as root at every boot."""
    key = slice_key(job)
    service = startup.Service(
        delete_url=object_url(job, key),
        slice_noun=_NOUNS[key],
        permission=f"compute.{COLLECTIONS[key]}.delete",
        installs_docker=True,
        log_label=LOG_LABEL,
        limits_hosts=True,
    )
    return startup.startup_script(job, service)
