"""Roles that give more than access to one service: basic roles, and roles that take over accounts or grant access."""

import re
from collections.abc import Mapping
from typing import Final

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


def power_of(role: str) -> str:
    """Return what a role on a project lets its member do beyond one service; empty for other roles."""
    return _POWERS.get(role, IMPERSONATING if _SERVICE_AGENT_ROLE.fullmatch(role) else "")


def power_of_permission(permission: str) -> str:
    """Return what a permission lets its holder do beyond one service; empty for other permissions."""
    return POWERFUL_PERMISSIONS.get(permission, GRANTING if permission.endswith(".setIamPolicy") else "")
