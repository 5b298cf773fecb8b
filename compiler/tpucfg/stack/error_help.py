"""Explanations of Google's API errors: the consequence for the stack, and the command that fixes it.

Pulumi prints them beside the provider's own message during `pulumi up` and `pulumi destroy`.
"""

import re
from collections.abc import Callable
from typing import Final

from tpucfg.infra.grants import BUCKET_GRANT, IMAGE_GRANT, KEY_GRANT
from tpucfg.infra.resources import ACCOUNT, BUCKET
from tpucfg.stack import org_policy, retry
from tpucfg.stack.api_error import ApiError
from tpucfg.stack.settings import StackSettings

SERVICE: Final = "gcp:projects/service:Service"
SECRET_GRANT: Final = "gcp:secretmanager/secretIamMember:SecretIamMember"  # noqa: S105 - a type
CUSTOM_ROLE: Final = "gcp:projects/iAMCustomRole:IAMCustomRole"
BOOTSTRAP: Final = "docs/bootstrap.md of tpucfg"

_ROLES: Final = (
    ("storage.", "roles/storage.admin"),
    ("serviceusage.", "roles/serviceusage.serviceUsageAdmin"),
    ("iam.serviceAccounts.", "roles/iam.serviceAccountAdmin"),
    ("iam.roles.", "roles/iam.roleAdmin"),
    ("secretmanager.", "roles/secretmanager.admin"),
    ("artifactregistry.", "roles/artifactregistry.admin"),
    ("cloudkms.", "roles/cloudkms.admin"),
    ("resourcemanager.projects.", "roles/resourcemanager.projectIamAdmin"),
)
"""Role to grant for a missing permission, by the permission's prefix:
https://cloud.google.com/iam/docs/roles-permissions."""

_ROLES_BY_TYPE: Final = {
    BUCKET: "roles/storage.admin",
    BUCKET_GRANT: "roles/storage.admin",
    SERVICE: "roles/serviceusage.serviceUsageAdmin",
    "gcp:projects/serviceIdentity:ServiceIdentity": "roles/serviceusage.serviceUsageAdmin",
    "gcp:projects/iAMMember:IAMMember": "roles/resourcemanager.projectIamAdmin",
    CUSTOM_ROLE: "roles/iam.roleAdmin",
    SECRET_GRANT: "roles/secretmanager.admin",
    IMAGE_GRANT: "roles/artifactregistry.admin",
    KEY_GRANT: "roles/cloudkms.admin",
    ACCOUNT: "roles/iam.serviceAccountAdmin",
    "gcp:serviceaccount/iAMMember:IAMMember": "roles/iam.serviceAccountAdmin",
}
"""Role to grant if the error does not name the permission, by the resource's type."""


def help_for(error: ApiError, settings: StackSettings) -> str:
    """Return consequence and fix of an error; empty if the provider's message is all that is known."""
    return next(
        (
            explain(error, settings)
            for pattern, explain in _EXPLANATIONS
            if pattern.search(error.message)
        ),
        "",
    )


def _bucket_name_taken(_: ApiError, settings: StackSettings) -> str:
    return (
        f"the bucket name {settings.bucket} belongs to another owner: all of Cloud Storage shares one namespace. "
        "The bucket was not created, and the configs would use a bucket that is not yours.\n"
        f"help: set environments.{settings.environment}.bucket in the spec to another name, render the configs "
        f"again, then: pulumi up --stack {settings.environment}"
    )


def _bucket_exists(error: ApiError, settings: StackSettings) -> str:
    # A name without the region may belong to a bucket elsewhere: imported, the next update would delete it.
    show = f"gcloud storage buckets describe gs://{settings.bucket} --format='value(location)'"
    condition = (
        "to use it with its objects"
        if settings.region in settings.bucket
        else f"if it is in {settings.region}, which {show} prints"
    )
    return (
        f"the bucket {settings.bucket} exists in your project but is not part of this stack: it was left behind by an "
        "earlier move or rename, or created by hand.\n"
        f"help: {condition}, import it into the stack, then: {error.retry_command(settings)}\n"
        f"  {error.import_command(settings.bucket, settings)}\n"
        f"or set environments.{settings.environment}.bucket in the spec to another name"
    )


def _account_exists(error: ApiError, settings: StackSettings) -> str:
    email = f"{settings.account_id}@{settings.project}.iam.gserviceaccount.com"
    return (
        f"the account {email} exists but is not part of this stack: it was left behind by an earlier stack, or created "
        "by hand. The jobs would receive all access that it already has.\n"
        f"help: to run the jobs as this account, import it into the stack, then: {error.retry_command(settings)}\n"
        f"  {error.import_command(f'projects/{settings.project}/serviceAccounts/{email}', settings)}\n"
        f"or delete it, if it is unused: gcloud iam service-accounts delete {email} --project={settings.project}"
    )


def _invalid_location(_: ApiError, settings: StackSettings) -> str:
    return (
        f"Cloud Storage has no location {settings.region}: the bucket of {settings.environment} was not created.\n"
        f"help: correct environments.{settings.environment}.region in the spec; regions with TPUs: tpucfg sizes"
    )


def _api_disabled(error: ApiError, settings: StackSettings) -> str:
    match = re.search(r"\b([a-z]+\.googleapis\.com)\b", error.message)
    service = match[1] if match else "serviceusage.googleapis.com"
    return (
        f"the API {service} of {settings.project} is still not usable: {error.consequence}.\n"
        f"help: gcloud services enable {service} --project {settings.project}; then, after a minute: "
        f"{error.retry_command(settings)}"
    )


def _permission_denied(error: ApiError, settings: StackSettings) -> str:
    permission = _permission(error.message)
    role = next(
        (role for prefix, role in _ROLES if permission and permission.startswith(prefix)), None
    )
    role = role or _ROLES_BY_TYPE.get(error.type, "the role that bootstrap names")
    missing = f"the permission {permission}" if permission else "a permission"
    if error.type == SECRET_GRANT:
        # On the secret alone: another team may own its project.
        secret, project = _secret_of(error, settings)
        place, command = (
            f"on the secret {secret} of {project}",
            f"gcloud secrets add-iam-policy-binding {secret}",
        )
        command += f" --project={project}"
    elif error.type == IMAGE_GRANT:
        return _denied_repository(error, settings, missing, role)
    elif error.type == BUCKET_GRANT and error.inputs.get("bucket") not in (None, settings.bucket):
        bucket = error.inputs["bucket"]
        place, command = (
            f"on the bucket {bucket}",
            f"gcloud storage buckets add-iam-policy-binding gs://{bucket}",
        )
    else:
        place, command = (
            f"in {settings.project}",
            f"gcloud projects add-iam-policy-binding {settings.project}",
        )
    return (
        f"the caller of pulumi lacks {missing} {place}: {error.consequence}.\n"
        f"help: {command} --member=user:YOU@example.com --role={role}; all roles that pulumi up needs: {BOOTSTRAP}"
    )


def _denied_repository(error: ApiError, settings: StackSettings, missing: str, role: str) -> str:
    """Name the grant that the repository's owner can make instead: it may belong to another team."""
    name, location, project = (
        error.inputs.get(key, "") for key in ("repository", "location", "project")
    )
    member, repository = (
        error.inputs.get("member", "MEMBER"),
        f"{name} --location={location} --project={project}",
    )
    command = f"gcloud artifacts repositories add-iam-policy-binding {repository}"
    return (
        f"the caller of pulumi lacks {missing} on the repository {name} of {project}: {error.consequence}, and its "
        "images could not be pulled.\n"
        f"help: {command} --member=user:YOU@example.com --role={role}; or ask its owner to run {command} "
        f"--member={member} --role=roles/artifactregistry.reader, and set environments.{settings.environment}.images "
        "to {grant: false}"
    )


def _secret_of(error: ApiError, settings: StackSettings) -> tuple[str, str]:
    """Return the secret's name and project."""
    name, project = (
        error.inputs.get("secretId") or "SECRET",
        error.inputs.get("project") or settings.project,
    )
    return str(name).rpartition("/")[2], str(project)


def _secret_missing(error: ApiError, settings: StackSettings) -> str:
    secret, project = _secret_of(error, settings)
    return (
        f"the project {project} has no secret {secret}, or the caller of pulumi may not see it: {error.consequence}, "
        "and jobs could not read it.\n"
        f"help: correct its name in the spec, or create it: gcloud secrets create {secret} --project={project} "
        f"--replication-policy=automatic --data-file=FILE; then: {error.retry_command(settings)}"
    )


def _role_exists(error: ApiError, settings: StackSettings) -> str:
    id_ = f"projects/{settings.project}/roles/{settings.deletion_role_id}"
    return (
        f"the custom role {id_} exists but is not part of this stack: it was left behind by an earlier stack, or "
        "created by hand.\n"
        f"help: import it into the stack, which sets its permissions, then: {error.retry_command(settings)}\n"
        f"  {error.import_command(id_, settings)}\n"
        f"or grant it as it is: pulumi config set deletionRole {id_} --stack {settings.environment}"
    )


def _role_reserved(error: ApiError, settings: StackSettings) -> str:
    project, stack = settings.project, settings.environment
    permissions = ",".join(settings.deletion_permissions)
    # A role that was just deleted is undeleted by the provider; this one can no longer be.
    return (
        f"the custom role {settings.deletion_role_id} of {project} was deleted more than 7 days ago: Google reserves "
        f"its id for 30 more days, and {error.consequence}.\n"
        "help: until then, grant a role with another id:\n"
        f"  gcloud iam roles create tpuSliceDeleter --project={project} --permissions={permissions}\n"
        f"  pulumi config set deletionRole projects/{project}/roles/tpuSliceDeleter --stack {stack}\n"
        f"then: {error.retry_command(settings)}"
    )


def _permission(message: str) -> str | None:
    match = re.search(
        r"Permission '?([a-z]+\.[A-Za-z.]+)'? denied|does not have ([a-z]+\.[A-Za-z.]+) access",
        message,
    )
    return (match[1] or match[2]) if match else None


def _no_billing(error: ApiError, settings: StackSettings) -> str:
    return (
        f"the project {settings.project} has no open billing account: {error.consequence}.\n"
        f"help: gcloud billing projects link {settings.project} --billing-account=ACCOUNT_ID; then: "
        f"{error.retry_command(settings)}"
    )


def _account_missing(error: ApiError, settings: StackSettings) -> str:
    match = re.search(r"Service account ([^\s@]+)@(\S+?)\.iam\.gserviceaccount\.com", error.message)
    # Google creates its service agents itself: only waiting helps.
    if match is None or match[1].startswith("service-"):
        account, fix = "a service agent of Google's", "in a minute"
    else:
        account = f"the account {match[1]}@{match[2]}.iam.gserviceaccount.com"
        command = f"gcloud iam service-accounts create {match[1]} --project={match[2]}"
        fix = f"correct its name in the spec, or create it: {command}; then"
    return (
        f"{account} does not exist, or has been invisible to IAM for five minutes: {error.consequence}.\n"
        f"help: {fix}: {error.retry_command(settings)}"
    )


def _no_identity_pool(_: ApiError, settings: StackSettings) -> str:
    return (
        f"the project {settings.project} has no identity pool yet: Google creates it with the first GKE cluster that "
        "has Workload Identity. Until then, no pod can act as the account.\n"
        "help: create or update the cluster: gcloud container clusters update CLUSTER --region "
        f"{settings.region} --workload-pool={settings.project}.svc.id.goog; then: pulumi up --stack "
        f"{settings.environment}"
    )


def _bucket_not_empty(_: ApiError, settings: StackSettings) -> str:
    return (
        "the bucket contains objects: it was not deleted, and is still part of the stack.\n"
        "help: to leave it behind with its objects, set "
        f"environments.{settings.environment}.keep_data: true (the default), run pulumi up, then try again"
    )


_Explanation = Callable[[ApiError, StackSettings], str]

# The first match counts: an organization's policy or a perimeter also arrives as error 400 or 403.
_EXPLANATIONS: Final[tuple[tuple[re.Pattern[str], _Explanation], ...]] = (
    (re.compile(r"Error 409\b.*bucket name is not available", re.DOTALL), _bucket_name_taken),
    (re.compile(r"Error 409\b.*you already own it", re.DOTALL), _bucket_exists),
    (re.compile(r"Error 409\b.*not empty", re.DOTALL), _bucket_not_empty),
    # https://github.com/hashicorp/terraform-provider-google/issues/19112
    (re.compile(r"Error 409\b.*Service account \S+ already exists", re.DOTALL), _account_exists),
    (org_policy.PERIMETER, org_policy.perimeter_help),
    (org_policy.CONSTRAINT, org_policy.constraint_help),
    (re.compile(r"Error 400\b.*location constraint", re.DOTALL), _invalid_location),
    (retry.UNKNOWN_ACCOUNT, _account_missing),
    # The provider's own text: https://github.com/hashicorp/terraform-provider-google/blob/main/google/services/resourcemanager/resource_google_project_iam_custom_role.go
    (re.compile(r"Custom project role \S+ already exists and must be imported"), _role_exists),
    # https://github.com/GoogleCloudPlatform/gke-autoneg-controller/issues/71
    (
        re.compile(r"Error 400\b.*role_id \(\S+\) which has been marked for deletion", re.DOTALL),
        _role_reserved,
    ),
    (re.compile(r"Error 404\b.*\bSecret \[\S+\] not found", re.DOTALL), _secret_missing),
    (
        re.compile(
            r"Error 400\b.*Identity (Pool|Namespace) does not exist", re.DOTALL | re.IGNORECASE
        ),
        _no_identity_pool,
    ),
    (retry.UNUSABLE_API, _api_disabled),
    (re.compile(r"Error 403\b.*billing account", re.DOTALL | re.IGNORECASE), _no_billing),
    (re.compile(r"Error 403\b", re.DOTALL), _permission_denied),
)
