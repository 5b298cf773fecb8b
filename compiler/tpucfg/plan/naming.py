"""The names of what a job uses. The infrastructure makes the same ones, from the same functions."""

import re
from typing import Final

from tpucfg.catalog import Slice
from tpucfg.spec.project import Environment, Project

MAX_BUCKET_LENGTH: Final = 63
"""Characters of a bucket's name without dots: https://cloud.google.com/storage/docs/buckets#naming."""
MAX_ACCOUNT_ID_LENGTH: Final = 30
"""Characters of a service account's id: https://cloud.google.com/iam/docs/service-accounts-create."""
MAX_DNS_LABEL_LENGTH: Final = 63
"""Characters of a DNS label: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/."""

_BUCKET: Final = re.compile(r"[a-z0-9][-_a-z0-9]{1,61}[a-z0-9]")


def bucket_name(*, project: str, name: str, environment: str, region: str) -> str:
    """The bucket of an environment. The region is in it so that a move makes a new bucket beside the old one."""
    return f"{project}-{name}-{environment}-{region}"


def bucket_name_problem(bucket: str) -> str | None:
    """Why Cloud Storage would refuse the name, by the rules for names without dots; None where it would not."""
    if len(bucket) > MAX_BUCKET_LENGTH:
        return f"it has {len(bucket)} characters, and Cloud Storage takes {MAX_BUCKET_LENGTH}"
    if not _BUCKET.fullmatch(bucket):
        return "a bucket has 3 to 63 lower-case letters, digits, - and _, with a letter or digit at both ends"
    if bucket.startswith("goog") or "google" in bucket:
        return "it starts with goog or contains google, which Cloud Storage keeps for itself"
    return None


def account_id(*, name: str, environment: str) -> str:
    """The id of the account that the jobs of an environment run as."""
    return f"tpu-{name}-{environment}"


def account_email(*, project: str, name: str, environment: str) -> str:
    """Its address: https://cloud.google.com/iam/docs/service-account-types#user-managed."""
    *domain, project_id = project.split(":")
    host = ".".join([project_id, *domain])
    return f"{account_id(name=name, environment=environment)}@{host}.iam.gserviceaccount.com"


def job_name(*, name: str, environment: str, size: str, run: str | None) -> str:
    """The job's name, with the run's id where there is one."""
    return "-".join(part for part in (name, environment, size, run) if part)


def bucket_of(project: Project, environment: Environment) -> str:
    """The bucket's name: as the spec says, or as it follows."""
    return environment.bucket or bucket_name(
        project=environment.project, name=project.name, environment=environment.name, region=environment.region
    )


def zone_of(environment: Environment, slice_: Slice) -> str | None:
    """The zone for a slice: the spec's, else the first of the region in Google's list, else in another's."""
    listed_here = slice_.zones_in(environment.region)
    return environment.zones.get(slice_.size) or (listed_here[0].name if listed_here else None)


# Whom the jobs of an environment run as: the account that its stack makes, or the one that the spec names.


def named_account(project: Project, environment: Environment) -> str | None:
    """The account that the spec names; on gke that key names a Kubernetes account, which acts as the stack's."""
    if environment.target == "gke":
        return None
    named: str | None = project.targets.get(environment.target, {}).get("service_account")
    return named


def workload_account(project: Project, environment: Environment) -> str:
    """The e-mail of the account that the jobs run as."""
    made = account_email(project=environment.project, name=project.name, environment=environment.name)
    return named_account(project, environment) or made


def kubernetes_account(project: Project, environment: Environment) -> str | None:
    """On gke, the Kubernetes service account of the pods, as `namespace/name`."""
    if environment.target != "gke":
        return None
    options = project.targets.get("gke", {})
    name = options.get("service_account") or account_id(name=project.name, environment=environment.name)
    return f"{options.get('namespace', 'default')}/{name}"
