"""The names of what a job uses. The infrastructure makes the same ones, from the same functions."""

import re
from typing import Final

LONGEST_BUCKET: Final = 63
"""Characters of a bucket's name without dots: https://cloud.google.com/storage/docs/buckets#naming."""
LONGEST_ACCOUNT: Final = 30
"""Characters of a service account's id: https://cloud.google.com/iam/docs/service-accounts-create."""
LONGEST_KUBERNETES: Final = 63
"""Characters of a DNS label: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/."""

_BUCKET: Final = re.compile(r"[a-z0-9][-_a-z0-9]{1,61}[a-z0-9]")


def bucket_name(*, project: str, name: str, environment: str, region: str) -> str:
    """The bucket of an environment. The region is in it so that a move makes a new bucket beside the old one."""
    return f"{project}-{name}-{environment}-{region}"


def bucket_mistake(bucket: str) -> str | None:
    """Why Cloud Storage would refuse the name, by the rules for names without dots; None where it would not."""
    if len(bucket) > LONGEST_BUCKET:
        return f"it has {len(bucket)} characters, and Cloud Storage takes {LONGEST_BUCKET}"
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
