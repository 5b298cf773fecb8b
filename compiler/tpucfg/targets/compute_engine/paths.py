"""The objects of a job, and their paths and URLs in the API.

Source: https://cloud.google.com/compute/docs/reference/rest/v1 (the collections).
"""

from typing import Final

from tpucfg.plan.job import Job
from tpucfg.targets.compute_engine import pages

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
REFERENCES: Final = {GROUP: (POLICY, TEMPLATE)}
"""The objects that an object refers to, which have to exist when it is created."""
REFUSED_KINDS: Final = {
    f"{KIND_PREFIX}instanceGroupManagerResizeRequest": "a group in the mode BULK takes no resize request, and creates "
    f"its hosts by its targetSize: {pages.BULK}"
}
"""Objects that other groups take, by kind."""
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
