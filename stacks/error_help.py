"""What a refusal of Google means for the person who runs `pulumi up` or `destroy`, and the command that ends it.

The provider prints Google's own words; this is what is printed beside them.
"""

import re
from collections.abc import Callable
from typing import Final

import org_policy
from api_error import Refusal
from settings import Settings

BUCKET: Final = "gcp:storage/bucket:Bucket"
SERVICE: Final = "gcp:projects/service:Service"
BOOTSTRAP: Final = "docs/bootstrap.md of tpucfg"

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


def help_for(refusal: Refusal, settings: Settings) -> str:
    """What happened, what follows, and what to do; empty where the provider's words say as much."""
    return next((help_(refusal, settings) for pattern, help_ in _HELP if pattern.search(refusal.error)), "")


def _taken(_: Refusal, settings: Settings) -> str:
    return (
        f"the bucket name {settings.bucket} belongs to somebody else: all of Cloud Storage shares one space of names. "
        "The bucket was not made, and the configs would name a bucket that is not yours.\n"
        f"help: give another name in the spec with environments.{settings.environment}.bucket, render the configs "
        f"again, then: pulumi up --stack {settings.environment}"
    )


def _owned(refusal: Refusal, settings: Settings) -> str:
    if settings.region not in settings.bucket:
        return _pinned(settings)
    return (
        f"the bucket {settings.bucket} exists in your project and this stack does not know it: an earlier stay in the "
        "region left it behind, or it was made by hand.\n"
        f"help: to go on with it and its objects, take it into the stack, then: {refusal.again(settings)}\n"
        f"  {refusal.taken_in(settings.bucket, settings)}\n"
        f"or give another name in the spec with environments.{settings.environment}.bucket"
    )


def _account_there(refusal: Refusal, settings: Settings) -> str:
    email = f"{settings.account_id}@{settings.project}.iam.gserviceaccount.com"
    return (
        f"the account {email} exists and this stack does not know it: an earlier stack left it behind, or it was made "
        "by hand. Whatever it may do already, the jobs could do too.\n"
        f"help: to let the jobs run as it, take it into the stack, then: {refusal.again(settings)}\n"
        f"  {refusal.taken_in(f'projects/{settings.project}/serviceAccounts/{email}', settings)}\n"
        f"or delete it, where nobody needs it: gcloud iam service-accounts delete {email} --project={settings.project}"
    )


def _pinned(settings: Settings) -> str:
    """A name without the region: importing a bucket that the stack has elsewhere would end in deleting it."""
    return (
        f"the bucket {settings.bucket} exists in your project, and a bucket never changes its region: "
        f"it was not made in {settings.region}.\n"
        f"help: to move, give environments.{settings.environment}.bucket another name, or leave it out, which puts the "
        f"region into the name; to take in a bucket made by hand in {settings.region}, see docs/environments.md"
    )


def _no_location(_: Refusal, settings: Settings) -> str:
    return (
        f"Cloud Storage has no location {settings.region}: the bucket of {settings.environment} was not made.\n"
        f"help: correct environments.{settings.environment}.region in the spec; regions with TPUs: tpucfg sizes"
    )


def _disabled(refusal: Refusal, settings: Settings) -> str:
    found = re.search(r"\b([a-z]+\.googleapis\.com)\b", refusal.error)
    service = found[1] if found else "serviceusage.googleapis.com"
    return (
        f"the API {service} of {settings.project} is still not usable: {refusal.consequence}.\n"
        f"help: gcloud services enable {service} --project {settings.project}; then, after a minute: "
        f"{refusal.again(settings)}"
    )


def _forbidden(refusal: Refusal, settings: Settings) -> str:
    permission = _permission(refusal.error)
    role = next((role for start, role in _ROLES if permission and permission.startswith(start)), None)
    role = role or _ROLES_BY_TYPE.get(refusal.type, "the role that bootstrap names")
    lacking = f"the permission {permission}" if permission else "a permission"
    return (
        f"whoever runs pulumi lacks {lacking} in {settings.project}: {refusal.consequence}.\n"
        f"help: gcloud projects add-iam-policy-binding {settings.project} --member=user:YOU@example.com "
        f"--role={role}; all roles that pulumi up needs: {BOOTSTRAP}"
    )


def _no_billing(refusal: Refusal, settings: Settings) -> str:
    return (
        f"the project {settings.project} has no open billing account: {refusal.consequence}.\n"
        f"help: gcloud billing projects link {settings.project} --billing-account=ACCOUNT_ID; then: "
        f"{refusal.again(settings)}"
    )


def _permission(error: str) -> str | None:
    found = re.search(r"Permission '?([a-z]+\.[A-Za-z.]+)'? denied|does not have ([a-z]+\.[A-Za-z.]+) access", error)
    return (found[1] or found[2]) if found else None


def _no_account(refusal: Refusal, settings: Settings) -> str:
    found = re.search(r"Service account ([^\s@]+)@(\S+?)\.iam\.gserviceaccount\.com", refusal.error)
    if found is None or found[1].startswith("service-"):  # an agent of Google's, which comes by itself
        named, way = "an agent of Google's", "in a minute"
    else:
        named = f"the account {found[1]}@{found[2]}.iam.gserviceaccount.com"
        made = f"gcloud iam service-accounts create {found[1]} --project={found[2]}"
        way = f"correct its name in the spec, or make it: {made}; then"
    return (
        f"{named} does not exist, or IAM has not seen it for five minutes: {refusal.consequence}.\n"
        f"help: {way}: {refusal.again(settings)}"
    )


def _no_pool(_: Refusal, settings: Settings) -> str:
    return (
        f"the project {settings.project} has no identity pool yet: it comes with its first GKE cluster that has "
        "Workload Identity. Until then no pod can act as the account.\n"
        "help: make or update the cluster: gcloud container clusters update CLUSTER --region "
        f"{settings.region} --workload-pool={settings.project}.svc.id.goog; then: pulumi up --stack "
        f"{settings.environment}"
    )


def _not_empty(_: Refusal, settings: Settings) -> str:
    return (
        "a bucket with objects is not deleted, and the stack still has it.\n"
        "help: to leave it behind with its objects, set "
        f"environments.{settings.environment}.keep_data: true (the default), run pulumi up, then try again"
    )


_Help = Callable[[Refusal, Settings], str]

_HELP: Final[tuple[tuple[re.Pattern[str], _Help], ...]] = (
    (re.compile(r"Error 409\b.*bucket name is not available", re.DOTALL), _taken),
    (re.compile(r"Error 409\b.*you already own it", re.DOTALL), _owned),
    (re.compile(r"Error 409\b.*not empty", re.DOTALL), _not_empty),
    # https://github.com/hashicorp/terraform-provider-google/issues/19112
    (re.compile(r"Error 409\b.*Service account \S+ already exists", re.DOTALL), _account_there),
    (org_policy.PERIMETER, org_policy.perimeter),
    (org_policy.CONSTRAINT, org_policy.policy),
    (re.compile(r"Error 400\b.*location constraint", re.DOTALL), _no_location),
    (re.compile(r"Error 400\b.*Service account \S+ does not exist", re.DOTALL), _no_account),
    (re.compile(r"Error 400\b.*Identity (Pool|Namespace) does not exist", re.DOTALL | re.IGNORECASE), _no_pool),
    (
        re.compile(r"Error 403\b.*(has not been used in project|accessNotConfigured|SERVICE_DISABLED)", re.DOTALL),
        _disabled,
    ),
    (re.compile(r"Error 403\b.*billing account", re.DOTALL | re.IGNORECASE), _no_billing),
    (re.compile(r"Error 403\b", re.DOTALL), _forbidden),
)
