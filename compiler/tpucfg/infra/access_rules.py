"""Rules about access: to whom, with which role, on which object; and the roles that give more than one service.

The ids in brackets are those of the same rules in Checkov (https://www.checkov.io/5.Policy%20Index/terraform.html) and
Trivy (https://github.com/aquasecurity/trivy-checks/tree/main/checks/cloud/google).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tpucfg.catalog.target_facts import TARGET_FACTS
from tpucfg.findings import Finding, Location
from tpucfg.infra.grants import grants_of, is_public, short_name, target_of
from tpucfg.infra.resources import BUCKET, Resource
from tpucfg.spec.project import Environment
from tpucfg.text_format import format_value, listed

BASIC_ROLES: Final = ("roles/owner", "roles/editor", "roles/viewer")
"""Roles with thousands of permissions: https://cloud.google.com/iam/docs/roles-overview#basic."""
IMPERSONATING: Final = "act as every service account in it"
GRANTING: Final = "grant access in it to anyone"
EXCEPTION: Final = "roles/ml.serviceAgent"
"""The one role for service agents that the stack grants, on the target ai-platform only, whose guide requires it:
docs/bootstrap.md lists what it allows. The review still shows the grant."""

_POWERS: Final[Mapping[str, str]] = {
    "roles/cloudbuild.builds.editor": IMPERSONATING,
    "roles/dataflow.developer": IMPERSONATING,
    "roles/deploymentmanager.editor": IMPERSONATING,
    "roles/iam.serviceAccountAdmin": IMPERSONATING,
    "roles/iam.serviceAccountKeyAdmin": IMPERSONATING,
    "roles/iam.serviceAccountOpenIdTokenCreator": IMPERSONATING,
    "roles/iam.serviceAccountTokenCreator": IMPERSONATING,
    "roles/iam.serviceAccountUser": IMPERSONATING,
    "roles/iam.workloadIdentityUser": IMPERSONATING,
    "roles/iam.organizationRoleAdmin": GRANTING,
    "roles/iam.roleAdmin": GRANTING,
    "roles/iam.securityAdmin": GRANTING,
    "roles/resourcemanager.folderAdmin": GRANTING,
    "roles/resourcemanager.folderIamAdmin": GRANTING,
    "roles/resourcemanager.organizationAdmin": GRANTING,
    "roles/resourcemanager.projectIamAdmin": GRANTING,
    "roles/secretmanager.admin": GRANTING,
    "roles/storage.admin": GRANTING,
}
"""The power that a role gives its member on a project, a folder or an organization.

The impersonating roles are Checkov's:
https://github.com/bridgecrewio/checkov/blob/main/checkov/terraform/checks/resource/gcp/AbsGoogleImpersonationRoles.py;
the others contain `setIamPolicy`: https://cloud.google.com/iam/docs/roles-permissions."""
_SERVICE_AGENT_ROLE: Final = re.compile(r"roles/[A-Za-z]+\.[A-Za-z]*[sS]erviceAgent")
"""Roles for Google's own service agents, most of which contain `iam.serviceAccounts.getAccessToken`."""
POWERFUL_PERMISSIONS: Final[Mapping[str, str]] = {
    "iam.serviceAccountKeys.create": IMPERSONATING,
    "iam.serviceAccounts.actAs": IMPERSONATING,
    "iam.serviceAccounts.getAccessToken": IMPERSONATING,
    "iam.serviceAccounts.getOpenIdToken": IMPERSONATING,
    "iam.serviceAccounts.implicitDelegation": IMPERSONATING,
    "iam.serviceAccounts.signBlob": IMPERSONATING,
    "iam.serviceAccounts.signJwt": IMPERSONATING,
    "iam.roles.update": GRANTING,
}
"""Permissions of custom roles: https://cloud.google.com/iam/docs/service-account-permissions."""
WIDE_TARGETS: Final = ("project", "folder", "organization")
"""Objects that contain every bucket and account of a project."""
ACCOUNT_KEY: Final = "gcp:serviceaccount/key:Key"
HMAC_KEY: Final = "gcp:storage/hmacKey:HmacKey"
CUSTOM_ROLE: Final = re.compile(r"^gcp:(projects|organizations)/iAMCustomRole:")
PERSONAL_DOMAINS: Final = re.compile(
    r"(aol|gmail|googlemail|gmx|hotmail|icloud|live|mail|me|outlook|proton|protonmail|qq|web|yahoo|yandex|zoho)"
    r"(\.[a-z]{2,3}){1,2}"
)
"""Domains whose addresses belong to people and not to an organization: those of Trivy's rule, and more."""

_AUTHORITATIVE_TYPE: Final = re.compile(r":[A-Za-z]*(I[Aa][Mm]Binding|I[Aa][Mm]Policy|AccessControl|ACL)$")
"""Types that own a whole role or policy: https://www.pulumi.com/registry/packages/gcp/api-docs/projects/iammember/."""
_DEFAULT_ACCOUNT: Final = re.compile(
    r"serviceAccount:.*(-compute@developer|@appspot|@cloudbuild|@cloudservices)\.gserviceaccount\.com"
)
"""Accounts that Google creates in a project and that everything without its own account runs as:
https://cloud.google.com/iam/docs/service-account-types#default."""


def public_access(resource: Resource, environment: Environment, location: Location) -> Iterator[Finding]:
    """Find a grant to the public, or a bucket on which such a grant is possible.

    Reads the members of grants and access lists, `publicAccessPrevention` and `uniformBucketLevelAccess` (CKV_GCP_28,
    CKV_GCP_29, CKV_GCP_114; GCP-0001, GCP-0002).
    """
    for grant in grants_of(resource):
        if is_public(grant.member):
            message = f"{resource.label} of {environment.name} grants {grant.text}"
            yield Finding.of("TPU091", message, location, help="name the people, groups or accounts that need it")
    if resource.type != BUCKET:
        return
    required = {"publicAccessPrevention": "enforced", "uniformBucketLevelAccess": True}
    for key, value in required.items():
        if resource.inputs.get(key) != value:
            actual = format_value(resource.inputs.get(key))
            message = f"{resource.label} of {environment.name} has {key} {actual}: objects could be made public"
            yield Finding.of("TPU091", message, location, help=f"set {key} to {format_value(value)} in stacks/")


def authoritative_binding(resource: Resource, environment: Environment, location: Location) -> Iterator[Finding]:
    """Find a type that owns a whole role or policy, and removes members granted elsewhere.

    Reads the type alone. Checkov and Trivy have no counterpart.
    """
    if _AUTHORITATIVE_TYPE.search(resource.type):
        yield Finding.of(
            "TPU092",
            f"{resource.label} of {environment.name} is authoritative: it removes every member that it does not list",
            location,
            help="use the type that adds one member: IAMMember, BucketIAMMember",
        )


def basic_role(resource: Resource, environment: Environment, location: Location) -> Iterator[Finding]:
    """Find a grant of a basic role.

    Reads the roles of grants, on any object (CKV_GCP_115 to CKV_GCP_117; GCP-0007).
    """
    for role in _roles(resource):
        if role in BASIC_ROLES:
            granted = f"{role} on the {target_of(resource).text}"
            message = f"{resource.label} of {environment.name} grants {granted}: it has thousands of permissions"
            yield Finding.of("TPU095", message, location, help="grant a role of the one service that is used")


def powerful_role(resource: Resource, environment: Environment, location: Location) -> Iterator[Finding]:
    """Find a role that takes over the service accounts of a project, or that can grant itself any other role.

    Reads the roles of grants on a project, a folder or an organization, and the permissions of custom roles
    (CKV_GCP_41, CKV_GCP_42, CKV_GCP_44, CKV_GCP_45, CKV_GCP_49; GCP-0005, GCP-0007, GCP-0009, GCP-0011).
    """
    for grant in grants_of(resource):
        is_exception = grant.role == EXCEPTION and TARGET_FACTS[environment.target].has_tenant_project
        if grant.on.kind in WIDE_TARGETS and power_of(grant.role) and not is_exception:
            yield Finding.of(
                "TPU098",
                f"{resource.label} of {environment.name} grants {grant.text}, who can then {power_of(grant.role)}",
                location,
                help="grant the role on the one account or bucket that is used, or a narrower role",
            )
    if CUSTOM_ROLE.search(resource.type):
        yield from _powerful_permissions(resource, environment, location)


def account_key(resource: Resource, environment: Environment, location: Location) -> Iterator[Finding]:
    """Find a key of a service account: a file that works everywhere, until it is deleted.

    Reads the type alone; keys for the interoperable API of Cloud Storage count too. Checkov and Trivy judge the age of
    such keys in a project and not in a program; CIS Google Cloud 1.4 requires that there are none.
    """
    if resource.type in (ACCOUNT_KEY, HMAC_KEY):
        account = resource.inputs.get("serviceAccountId") or resource.inputs.get("serviceAccountEmail")
        yield Finding.of(
            "TPU099",
            f"{resource.label} of {environment.name} is a key of {short_name(str(account))}: a copy of it "
            "acts as the account, from anywhere",
            location,
            help="delete it from stacks/: jobs run as the account without a key, and people can impersonate it",
        )


def default_account(resource: Resource, environment: Environment, location: Location) -> Iterator[Finding]:
    """Find a grant to an account that Google created for a whole service of the project.

    Reads the members of grants on any object (CKV_GCP_46 to CKV_GCP_48; GCP-0004, GCP-0006, GCP-0008).
    """
    for grant in grants_of(resource):
        if _DEFAULT_ACCOUNT.fullmatch(grant.member):
            yield Finding.of(
                "TPU088",
                f"{resource.label} of {environment.name} grants {grant.text}, a default account that "
                "everything without an account of its own runs as",
                location,
                help="grant it to an account that only these jobs run as",
            )


def personal_member(resource: Resource, environment: Environment, location: Location) -> Iterator[Finding]:
    """Find a grant to a person instead of a group, and above all to a private address.

    Reads the members of grants on any object (GCP-0003, GCP-0069; Checkov has no counterpart).
    """
    for grant in grants_of(resource):
        kind, _, address = grant.member.partition(":")
        if kind.lower() != "user":
            continue
        domain = address.rpartition("@")[2].lower()
        is_private = bool(PERSONAL_DOMAINS.fullmatch(domain))
        reason = "a private address that no organization can revoke" if is_private else "a person and not a group"
        yield Finding.of(
            "TPU089",
            f"{resource.label} of {environment.name} grants {grant.text}, {reason}",
            location,
            help="grant it to a group, so that access ends with the membership",
        )


def _roles(resource: Resource) -> tuple[str, ...]:
    """Return the roles that a resource grants; one without members grants its role as soon as it has some."""
    declared = resource.inputs.get("role")
    return tuple(dict.fromkeys([*_texts(declared), *(grant.role for grant in grants_of(resource))]))


def _powerful_permissions(resource: Resource, environment: Environment, location: Location) -> Iterator[Finding]:
    permissions = resource.inputs.get("permissions")
    by_power: dict[str, list[str]] = {}
    for permission in _texts(*permissions) if isinstance(permissions, list) else ():
        by_power.setdefault(power_of_permission(permission), []).append(permission)
    for power, names in by_power.items():
        if power:
            yield Finding.of(
                "TPU098",
                f"{resource.label} of {environment.name} has {listed(names)}: a member with the role on a "
                f"project can {power}",
                location,
                help="leave the permission out of the role",
            )


def _texts(*values: Any) -> tuple[str, ...]:
    return tuple(value for value in values if isinstance(value, str))


def power_of(role: str) -> str:
    """Return what a role on a project lets its member do beyond one service; empty for other roles."""
    return _POWERS.get(role, IMPERSONATING if _SERVICE_AGENT_ROLE.fullmatch(role) else "")


def power_of_permission(permission: str) -> str:
    """Return what a permission lets its holder do beyond one service; empty for other permissions."""
    return POWERFUL_PERMISSIONS.get(permission, GRANTING if permission.endswith(".setIamPolicy") else "")
