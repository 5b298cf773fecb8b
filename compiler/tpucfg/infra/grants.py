"""Grants of access that resources declare: a role, a member, and the object that the role is granted on.

A grant is known by its shape, whatever the resource's type: a role beside a member, members or an entity, at any depth;
a policy with bindings as JSON; or a predefined list that includes the public.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from tpucfg.infra.resources import Resource
from tpucfg.redaction import redact

PUBLIC: Final = ("allUsers", "allAuthenticatedUsers")
"""Members that include the whole internet: https://cloud.google.com/iam/docs/principals-overview."""
_PUBLIC_FOLDED: Final = frozenset(member.casefold() for member in PUBLIC)
HIDDEN: Final = "[not a text]"
"""Stands for a role or a member that is not plain text, so that it is shown instead of skipped."""

_IAM_TYPE: Final = re.compile(r"/[A-Za-z]*?:([A-Za-z]*?)I[Aa][Mm](Member|Binding|Policy)$")
"""The types of the provider that grant roles: `gcp:secretmanager/secretIamMember:SecretIamMember`."""
_KINDS: Final[Mapping[str, str]] = {
    "projects": "project",
    "organizations": "organization",
    "serviceaccount": "account",
    "billing": "billing account",
}
"""The kind of object by module, for types that do not contain the kind in their name."""
_MEMBER_KEYS: Final = ("member", "members", "entity", "iamMember", "specialGroup", "userByEmail", "groupByEmail")
_LISTS: Final = ("predefinedAcl", "defaultAcl")
"""Inputs with the name of a predefined list."""
_GRANT_KEYS: Final = frozenset(
    (*_MEMBER_KEYS, *_LISTS, "role", "roleEntities", "condition", "policyData", "deletionPolicy")
)
"""Inputs that describe a grant and not its object."""
_OUTER_KEYS: Final = ("project", "location", "region", "zone")
"""Inputs that contain the object, the widest first."""
_PATH_PREFIX: Final = re.compile(r"^(projects/[^/]+/serviceAccounts|projects|folders|organizations|b|gs:/)/")
"""The start of an object's name in Google's long form."""
_PUBLIC_ACLS: Final[Mapping[str, tuple[str, str]]] = {
    "publicRead": ("READER", "allUsers"),
    "publicReadWrite": ("WRITER", "allUsers"),
    "authenticatedRead": ("READER", "allAuthenticatedUsers"),
}
"""Predefined lists that include the public: https://cloud.google.com/storage/docs/access-control/lists#predefined-acl."""


def is_public(member: str) -> bool:
    """Return True for a member that includes the whole internet, however its name is written."""
    return member.strip().casefold() in _PUBLIC_FOLDED


class Target(NamedTuple):
    """The object that a role is granted on."""

    kind: str
    """`bucket`, `project`, `account`, `secret`, …; empty for a resource that grants nothing."""
    name: str
    """The name, after the names of what contains it; empty if the resource does not name it."""

    @property
    def text(self) -> str:
        """The object as a message names it: `bucket acme-data`."""
        return f"{self.kind} {self.name}" if self.name else f"a {self.kind} without a name"


class Grant(NamedTuple):
    """A role for one member on one object."""

    role: str
    member: str
    on: Target
    condition: str = ""
    """The expression of the condition; empty if there is none."""

    @property
    def text(self) -> str:
        """The grant as a message names it; of a person, only the domain."""
        return f"{self.role} on the {self.on.text} to {redact(self.member)}"


def grants_of(resource: Resource | None) -> tuple[Grant, ...]:
    """Return the grants that a resource declares; most resources declare none."""
    if resource is None:
        return ()
    pairs = [pair for mapping in _mappings(resource.inputs) for pair in _pairs(mapping)]
    on = target_of(resource)
    return tuple(dict.fromkeys(Grant(_text(role), _text(member), on, condition) for role, member, condition in pairs))


def is_grant(resource: Resource) -> bool:
    """Return True for a resource that is a grant itself, and does not only contain what looks like one."""
    inputs = resource.inputs
    return "policyData" in inputs or ("role" in inputs and any(key in inputs for key in _MEMBER_KEYS))


def target_of(resource: Resource) -> Target:
    """Return the object on which a resource grants access."""
    module = resource.type.partition(":")[2].partition("/")[0].casefold()
    match = _IAM_TYPE.search(resource.type)
    # `CryptoKey` is `crypto key`.
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", match[1]).lower() if match else ""
    others = sorted(resource.inputs.keys() - {*_GRANT_KEYS, *_OUTER_KEYS})
    values = (resource.inputs.get(key) for key in (*_OUTER_KEYS, *others))
    name = "/".join(short_name(_text(value)) for value in values if value not in (None, ""))
    return Target(words or _KINDS.get(module, module) or "object", name)


def short_name(name: str) -> str:
    """Return the name of an object without the start of Google's long form, which the provider accepts too."""
    return _PATH_PREFIX.sub("", name)


def unparsed_policy(resource: Resource | None) -> str | None:
    """Return the text of a policy that replaces all others on its object; None if the resource is no policy."""
    policy = resource.inputs.get("policyData") if resource else None
    return None if policy is None else _text(policy)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else HIDDEN


_Pair = tuple[Any, Any, str]
"""A role, a member and the condition's expression."""


def _mappings(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield each mapping in a value, the value itself and the content of a policy among them."""
    if isinstance(value, Mapping):
        yield value
        for item in (*value.values(), _policy(value)):
            yield from _mappings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _mappings(item)


def _policy(inputs: Mapping[str, Any]) -> Any:
    """Return the content of a whole policy, which is JSON in an input; None if there is none."""
    policy = inputs.get("policyData")
    try:
        return json.loads(policy) if isinstance(policy, str) else None
    except (ValueError, RecursionError):
        return None


def _pairs(mapping: Mapping[str, Any]) -> Iterator[_Pair]:
    """Yield the pairs of a mapping that has the shape of a grant."""
    if "role" in mapping:
        for key in _MEMBER_KEYS:
            members = mapping.get(key)
            # A list that is not known yet is one hidden member.
            for member in members if isinstance(members, list) else [] if members is None else [members]:
                yield mapping["role"], member, _expression(mapping.get("condition"))
    for key in _LISTS:
        if pair := _PUBLIC_ACLS.get(_text(mapping.get(key))):
            yield (*pair, "")


def _expression(condition: Any) -> str:
    """Return the expression of a condition; its title and description restrict nothing."""
    if condition in (None, {}, []):
        return ""
    expression = condition.get("expression") if isinstance(condition, dict) else condition
    return expression if isinstance(expression, str) else HIDDEN


# What a role or a permission lets its holder do


BASIC_ROLES: Final = ("roles/owner", "roles/editor", "roles/viewer")
"""Roles with thousands of permissions: https://cloud.google.com/iam/docs/roles-overview#basic."""
CUSTOM_ROLE: Final = re.compile(r"^gcp:(projects|organizations)/iAMCustomRole:")
"""Types that define a role by its permissions."""
IMPERSONATING: Final = "act as every service account in it"
GRANTING: Final = "grant access in it to anyone"
_POWERS: Final = (
    (r"roles/iam\.serviceAccount(Admin|KeyAdmin|OpenIdTokenCreator|TokenCreator|User)", IMPERSONATING),
    (r"roles/iam\.workloadIdentityUser", IMPERSONATING),
    (r"roles/(cloudbuild\.builds\.editor|dataflow\.developer|deploymentmanager\.editor)", IMPERSONATING),
    # Roles for Google's own service agents, most of which contain iam.serviceAccounts.getAccessToken.
    (r"roles/[A-Za-z]+\.[A-Za-z]*[sS]erviceAgent", IMPERSONATING),
    (r"roles/iam\.(organizationRoleAdmin|roleAdmin|securityAdmin)", GRANTING),
    (r"roles/resourcemanager\.(folderAdmin|folderIamAdmin|organizationAdmin|projectIamAdmin)", GRANTING),
    (r"roles/(secretmanager|storage)\.admin", GRANTING),
    (r"iam\.serviceAccounts\.(actAs|getAccessToken|getOpenIdToken)", IMPERSONATING),
    (r"iam\.serviceAccounts\.(implicitDelegation|signBlob|signJwt)", IMPERSONATING),
    (r"iam\.serviceAccountKeys\.create", IMPERSONATING),
    (r"iam\.roles\.update|.*\.setIamPolicy", GRANTING),
)
"""Patterns of roles and of permissions, with the power that they give on a project, a folder or an organization.

The impersonating roles are Checkov's:
https://github.com/bridgecrewio/checkov/blob/main/checkov/terraform/checks/resource/gcp/AbsGoogleImpersonationRoles.py;
the others contain `setIamPolicy`: https://cloud.google.com/iam/docs/roles-permissions. The permissions:
https://cloud.google.com/iam/docs/service-account-permissions."""


def power_of(name: str) -> str:
    """Return what a role or a permission on a project lets its holder do beyond one service; empty for others."""
    return next((power for pattern, power in _POWERS if re.fullmatch(pattern, name, re.DOTALL)), "")
