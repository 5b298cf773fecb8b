"""Names of the resources that a job uses; the Pulumi program in stacks/ uses these functions to name them as well."""

import re
from typing import Final

from tpucfg.catalog import TARGET_FACTS, Slice
from tpucfg.spec import Environment, Project

MAX_BUCKET_LENGTH: Final = 63
"""Maximum length of a bucket name without dots: https://cloud.google.com/storage/docs/buckets#naming."""
MAX_ACCOUNT_ID_LENGTH: Final = 30
"""Maximum length of a service account's id: https://cloud.google.com/iam/docs/service-accounts-create."""
MAX_DNS_LABEL_LENGTH: Final = 63
"""Maximum length of a DNS label: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/."""

_BUCKET: Final = re.compile(r"[a-z0-9][-_a-z0-9]{1,61}[a-z0-9]")


def bucket_name_problem(bucket: str) -> str | None:
    """Return the reason why Cloud Storage refuses a name without dots, as a clause; None if the name is valid."""
    if len(bucket) > MAX_BUCKET_LENGTH:
        return f"it has {len(bucket)} characters, and Cloud Storage allows {MAX_BUCKET_LENGTH}"
    if not _BUCKET.fullmatch(bucket):
        return "it needs 3 to 63 lower-case letters, digits, - and _, with a letter or digit at both ends"
    return None


def account_id(*, name: str, environment: str) -> str:
    """Return the id of the service account that an environment's stack creates for its jobs."""
    return f"tpu-{name}-{environment}"


def account_email(*, project: str, name: str, environment: str) -> str:
    """Return the e-mail address of the service account: https://cloud.google.com/iam/docs/service-account-types#user-managed."""
    # A project of a domain is written `example.com:my-project`, and `my-project.example.com` in an e-mail.
    *domain, project_id = project.split(":")
    host = ".".join([project_id, *domain])
    return f"{account_id(name=name, environment=environment)}@{host}.iam.gserviceaccount.com"


def job_name(
    *, name: str, environment: str, size: str, run: str | None, kind: str | None = None
) -> str:
    """Return a job's name, which ends with its kind if it is a probe, and the run's id if there is one."""
    return "-".join(part for part in (name, environment, size, kind, run) if part)


def bucket_of(project: Project, environment: Environment) -> str:
    """Return the name of an environment's bucket, from the spec or by default."""
    # The region is in the name, so that a move to another region creates a new bucket and keeps the old one's data.
    default = f"{environment.project}-{project.name}-{environment.name}-{environment.region}"
    return environment.bucket or default


def zone_of(environment: Environment, slice_: Slice) -> str | None:
    """Return the zone for a slice: from the spec or, by default, the first one in the region, Google's list first."""
    zones = slice_.zones_in(environment.region)
    return environment.zones.get(slice_.size) or (zones[0].name if zones else None)


def named_account(project: Project, environment: Environment, size: str = "") -> str | None:
    """Return the e-mail address of the service account that the spec sets; None if it sets none.

    Args:
        project: The project with the layered settings.
        environment: The environment of the job.
        size: The job's size; without one, the settings of the environment alone count.
    """
    # A Kubernetes account impersonates the stack's account.
    if TARGET_FACTS[environment.target].runs_pods:
        return None
    settings = project.settings[environment.name, size]
    email: str | None = settings.targets.get(environment.target, {}).get("service_account")
    return email


def workload_account(project: Project, environment: Environment, size: str = "") -> str:
    """Return the e-mail address of the service account that a job runs as, from the spec or the stack."""
    default = account_email(
        project=environment.project, name=project.name, environment=environment.name
    )
    return named_account(project, environment, size) or default


def kubernetes_account(project: Project, environment: Environment, size: str = "") -> str | None:
    """Return the pods' Kubernetes service account, as `namespace/name`; None on a target without pods."""
    if not TARGET_FACTS[environment.target].runs_pods:
        return None
    options = project.settings[environment.name, size].targets.get(environment.target, {})
    name = options.get("service_account") or account_id(
        name=project.name, environment=environment.name
    )
    return f"{options.get('namespace') or 'default'}/{name}"


def deletion_role_id(*, name: str, environment: str) -> str:
    """Return the id of the custom role by which an environment's jobs delete their own slices.

    Letters, digits, underscores and periods are allowed, up to 64: https://cloud.google.com/iam/reference/rest/v1/projects.roles/create.
    """
    # Names contain dashes and no underscores, so that no two environments of a Google project share a role.
    return ".".join(("tpu", *(part.replace("-", "_") for part in (name, environment))))
