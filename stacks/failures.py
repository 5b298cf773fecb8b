"""What a refusal of Google means for the person who runs `pulumi up`, and the command that ends it.

The provider prints Google's own words; this is what is printed beside them.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from settings import Settings

BUCKET: Final = "gcp:storage/bucket:Bucket"
SERVICE: Final = "gcp:projects/service:Service"
BOOTSTRAP: Final = "docs/bootstrap.md of tpucfg"


class Failure(NamedTuple):
    """A resource that could not be made, and why."""

    type: str
    name: str
    """The logical name."""
    urn: str
    inputs: Mapping[str, Any]
    error: str
    """In the provider's words."""


_ROLES: Final = (
    ("storage.", "roles/storage.admin"),
    ("serviceusage.", "roles/serviceusage.serviceUsageAdmin"),
    ("iam.serviceAccounts.", "roles/iam.serviceAccountAdmin"),
    ("resourcemanager.projects.", "roles/resourcemanager.projectIamAdmin"),
)
"""By the start of a permission, the role that holds it: https://cloud.google.com/iam/docs/roles-permissions."""

_ROLES_BY_TYPE: Final = {
    BUCKET: "roles/storage.admin",
    "gcp:storage/bucketIAMMember:BucketIAMMember": "roles/storage.admin",
    SERVICE: "roles/serviceusage.serviceUsageAdmin",
    "gcp:projects/serviceIdentity:ServiceIdentity": "roles/serviceusage.serviceUsageAdmin",
    "gcp:projects/iAMMember:IAMMember": "roles/resourcemanager.projectIamAdmin",
    "gcp:serviceaccount/account:Account": "roles/iam.serviceAccountAdmin",
    "gcp:serviceaccount/iAMMember:IAMMember": "roles/iam.serviceAccountAdmin",
}
"""The same where Google does not say which permission it was."""


def help_for(failure: Failure, settings: Settings) -> str:
    """What happened, what follows, and what to do; empty where the provider's words say as much."""
    return next((help_(failure, settings) for pattern, help_ in _HELP if pattern.search(failure.error)), "")


def _taken(_: Failure, settings: Settings) -> str:
    return (
        f"the bucket name {settings.bucket} belongs to somebody else: all of Cloud Storage shares one space of names. "
        "The bucket was not made, and the configs would name a bucket that is not yours.\n"
        f"help: give another name in the spec with environments.{settings.environment}.bucket, render the configs "
        f"again, then: pulumi up --stack {settings.environment}"
    )


def _owned(failure: Failure, settings: Settings) -> str:
    if settings.region not in settings.bucket:
        return _pinned(settings)
    stack, start = settings.environment, "::".join(failure.urn.split("::")[:2])
    return (
        f"the bucket {settings.bucket} exists in your project and this stack does not know it: an earlier stay in the "
        "region left it behind, or it was made by hand.\n"
        "help: to go on with it and its objects, take it into the stack, then: pulumi up --stack "
        f"{stack}\n  pulumi import {failure.type} {failure.name} {settings.bucket} --stack {stack} --protect=false "
        f"--generate-code=false --parent environment={start}::tpucfg:index:Environment::{stack} "
        f"--provider gcp={start}::pulumi:providers:gcp::gcp\n"
        f"or give another name in the spec with environments.{stack}.bucket"
    )


def _pinned(settings: Settings) -> str:
    """A name without the region: importing a bucket that the stack has elsewhere would end in deleting it."""
    return (
        f"the bucket {settings.bucket} exists in your project, and a bucket never changes its region: "
        f"it was not made in {settings.region}.\n"
        f"help: to move, give environments.{settings.environment}.bucket another name, or leave it out, which puts the "
        f"region into the name; to take in a bucket made by hand in {settings.region}, see docs/environments.md"
    )


def _no_location(_: Failure, settings: Settings) -> str:
    return (
        f"Cloud Storage has no location {settings.region}: the bucket of {settings.environment} was not made.\n"
        f"help: correct environments.{settings.environment}.region in the spec; regions with TPUs: tpucfg sizes"
    )


def _disabled(failure: Failure, settings: Settings) -> str:
    found = re.search(r"\b([a-z]+\.googleapis\.com)\b", failure.error)
    service = found[1] if found else "serviceusage.googleapis.com"
    return (
        f"the API {service} of {settings.project} is still not usable: {failure.name} was not made.\n"
        f"help: gcloud services enable {service} --project {settings.project}; then, after a minute: "
        f"pulumi up --stack {settings.environment}"
    )


def _forbidden(failure: Failure, settings: Settings) -> str:
    permission = _permission(failure.error)
    role = next((role for start, role in _ROLES if permission and permission.startswith(start)), None)
    role = role or _ROLES_BY_TYPE.get(failure.type, "the role that bootstrap names")
    lacking = f"the permission {permission}" if permission else "a permission"
    return (
        f"whoever runs pulumi lacks {lacking} in {settings.project}: {failure.name} was not made.\n"
        f"help: gcloud projects add-iam-policy-binding {settings.project} --member=user:YOU@example.com "
        f"--role={role}; all roles that pulumi up needs: {BOOTSTRAP}"
    )


def _no_billing(failure: Failure, settings: Settings) -> str:
    return (
        f"the project {settings.project} has no open billing account: {failure.name} was not made.\n"
        f"help: gcloud billing projects link {settings.project} --billing-account=ACCOUNT_ID; then: "
        f"pulumi up --stack {settings.environment}"
    )


def _permission(error: str) -> str | None:
    found = re.search(r"Permission '?([a-z]+\.[A-Za-z.]+)'? denied|does not have ([a-z]+\.[A-Za-z.]+) access", error)
    return (found[1] or found[2]) if found else None


def _no_pool(_: Failure, settings: Settings) -> str:
    return (
        f"the project {settings.project} has no identity pool yet: it comes with its first GKE cluster that has "
        "Workload Identity. Until then no pod can act as the account.\n"
        "help: make or update the cluster: gcloud container clusters update CLUSTER --region "
        f"{settings.region} --workload-pool={settings.project}.svc.id.goog; then: pulumi up --stack "
        f"{settings.environment}"
    )


def _not_empty(_: Failure, settings: Settings) -> str:
    return (
        "a bucket with objects is not deleted, and the stack still has it.\n"
        "help: to leave it behind with its objects, set "
        f"environments.{settings.environment}.keep_data: true (the default), run pulumi up, then try again"
    )


_Help = Callable[[Failure, Settings], str]

_HELP: Final[tuple[tuple[re.Pattern[str], _Help], ...]] = (
    (re.compile(r"Error 409\b.*bucket name is not available", re.DOTALL), _taken),
    (re.compile(r"Error 409\b.*you already own it", re.DOTALL), _owned),
    (re.compile(r"Error 409\b.*not empty", re.DOTALL), _not_empty),
    (re.compile(r"Error 400\b.*location constraint", re.DOTALL), _no_location),
    (re.compile(r"Error 400\b.*Identity (Pool|Namespace) does not exist", re.DOTALL | re.IGNORECASE), _no_pool),
    (
        re.compile(r"Error 403\b.*(has not been used in project|accessNotConfigured|SERVICE_DISABLED)", re.DOTALL),
        _disabled,
    ),
    (re.compile(r"Error 403\b.*billing account", re.DOTALL | re.IGNORECASE), _no_billing),
    (re.compile(r"Error 403\b", re.DOTALL), _forbidden),
)
