"""Helpers with which several targets build their request bodies."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from tpucfg.plan import Job
from tpucfg.targets.interface import Origin

CLOUD_PLATFORM: Final = "https://www.googleapis.com/auth/cloud-platform"
"""The scope of all of Google Cloud, for hosts whose account's roles limit its access:
https://cloud.google.com/compute/docs/access/service-accounts#associating_a_service_account_to_an_instance."""

_LABELS: Final = "https://cloud.google.com/resource-manager/docs/labels-overview"


def label_origins(labels: str) -> Mapping[str, Origin]:
    """Return the origins of a job's labels, which are below a path of the request body."""
    own = Origin("rule", "lists and the bill are read by spec, environment, size and run", _LABELS, "name")
    return {f"{labels}.[tpucfg-*]": own, f"{labels}.*": Origin("spec", "environments.<env>.labels")}


def labels_flag(labels: Mapping[str, str]) -> str:
    """Return gcloud's flag for the labels of a job."""
    return f"--labels={','.join(f'{key}={value}' for key, value in labels.items())}"


def reservation_path(job: Job, collection: Literal["zones", "locations"]) -> str | None:
    """Return the full name of a job's reservation, with the zone that the spec omits; None for other capacity.

    Args:
        job: The job, whose size has a zone: a reservation without one is TPU005.
        collection: The word before the zone in the names of the target's API.
    """
    capacity = job.capacity
    if capacity.reservation is None:
        return None
    project = capacity.reservation_project or job.environment.project
    return f"projects/{project}/{collection}/{job.zone}/reservations/{capacity.reservation_name}"


def google_account(job: Job) -> str:
    """Return the Google account that a job runs as: the one that the spec names, or the environment's own."""
    account: str = job.options.get("service_account") or job.account
    return account


def without_empty(**fields: Any) -> dict[str, Any]:
    """Return the fields without those that are None or an empty text, list or mapping."""
    return {key: value for key, value in fields.items() if value not in (None, [], {}, "")}
