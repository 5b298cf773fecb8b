"""Grants of access that resources declare: a role, a member, and the object that the role is granted on.

A grant is known by its shape, whatever the resource's type: a role beside a member, members or an entity, at any depth;
or a policy with bindings as JSON. The public is known by its names, wherever they are.
"""

import json
import re
from collections.abc import Iterator, Mapping
from shlex import quote
from typing import Any, Final, NamedTuple

from tpucfg.infra.resources import Resource
from tpucfg.redaction import redact

_PUBLIC: Final = re.compile(
    r"\b(allUsers|allAuthenticatedUsers|publicRead|publicReadWrite|authenticatedRead)\b(?!@)",
    re.IGNORECASE,
)
"""Members and predefined lists that include the whole internet:
https://cloud.google.com/iam/docs/principals-overview and
https://cloud.google.com/storage/docs/access-control/lists#predefined-acl."""
HIDDEN: Final = "[not a text]"
"""Stands for a role or a member that is not plain text, so that it is shown instead of skipped."""

_MEMBER_KEYS: Final = (
    "member",
    "members",
    "entity",
    "iamMember",
    "specialGroup",
    "userByEmail",
    "groupByEmail",
)
_GRANT_KEYS: Final = frozenset((*_MEMBER_KEYS, "role", "condition", "policyData", "deletionPolicy"))
"""Inputs that describe a grant and not its object."""
_OUTER_KEYS: Final = ("project", "location", "region", "zone")
"""Inputs that contain the object, the widest first."""
_PATH_PREFIX: Final = re.compile(
    r"^(projects/[^/]+/serviceAccounts|projects|folders|organizations|b|gs:/)/"
)
"""The start of an object's name in Google's long form, which the provider accepts too."""


def public_names(resource: Resource | None) -> tuple[tuple[str, str], ...]:
    """Return each name of the public in the inputs of a resource, with the top-level input that has it."""
    inputs = resource.inputs if resource else {}
    names = (
        (name, key)
        for key, value in inputs.items()
        for name in _PUBLIC.findall(json.dumps(value, default=str))
    )
    return tuple(dict.fromkeys(names))


class GrantedObject(NamedTuple):
    """The object that a role is granted on."""

    kind: str
    """`bucket`, `project`, `service account`, `secret`, …: the input that names it."""
    name: str
    """The name, after the names of what contains it."""


class Grant(NamedTuple):
    """A role for one member on one object."""

    role: str
    member: str
    on: GrantedObject
    condition: str = ""
    """The expression of the condition; empty if there is none."""

    @property
    def text(self) -> str:
        """The grant as a message names it; of a person, only the domain."""
        return f"{self.role} on the {self.on.kind} {self.on.name} to {redact(self.member)}"


# Grants that the stacks of this package share: IAM has one entry for a role and a member on an object.

BUCKET_GRANT: Final = "gcp:storage/bucketIAMMember:BucketIAMMember"
IMAGE_GRANT: Final = "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember"
KEY_GRANT: Final = "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember"
OBJECT_USER: Final = "roles/storage.objectUser"
"""Reads, lists, writes and deletes objects, but cannot grant access, unlike objectAdmin.

https://cloud.google.com/storage/docs/access-control/iam-roles
"""
IMAGE_READER: Final = "roles/artifactregistry.reader"
"""Pulls the images of one repository: https://cloud.google.com/artifact-registry/docs/access-control."""
ENCRYPTER: Final = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
"""https://cloud.google.com/storage/docs/encryption/using-customer-managed-keys."""


class _SharedGrant(NamedTuple):
    """A type of grant that every stack with the same object declares."""

    role: str
    ending: str
    """The end of its member."""
    removal: str
    """The command of `gcloud` that takes it away, without member and role."""


_SHARED: Final[Mapping[str, _SharedGrant]] = {
    BUCKET_GRANT: _SharedGrant(
        OBJECT_USER,
        "@cloud-tpu.iam.gserviceaccount.com",
        "storage buckets remove-iam-policy-binding gs://{bucket}",
    ),
    IMAGE_GRANT: _SharedGrant(
        IMAGE_READER,
        ".gserviceaccount.com",
        "artifacts repositories remove-iam-policy-binding {repository} --location={location} "
        "--project={project}",
    ),
    KEY_GRANT: _SharedGrant(
        ENCRYPTER,
        "@gs-project-accounts.iam.gserviceaccount.com",
        "kms keys remove-iam-policy-binding {cryptoKeyId}",
    ),
}


def is_shared(resource: Resource) -> bool:
    """Return True for a grant that every stack with the same bucket, image repository or key declares."""
    shared = _SHARED.get(resource.type)
    if shared is None or resource.inputs.get("role") != shared.role:
        return False
    return str(resource.inputs.get("member")).endswith(shared.ending)


def removal_command(type_: str, inputs: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the parts of the command that takes a grant away; empty for another type, or for unknown values."""
    words = {key: _word(value) for key, value in inputs.items() if isinstance(value, str)}
    try:
        command = _SHARED[type_].removal.format_map(words)
        return f"gcloud {command}", f"--member={words['member']}", f"--role={words['role']}"
    except KeyError:
        return "", "", ""


# Narrower than PROJECT_NUMBER, as a text that it does not match is quoted.
_UNKNOWN_NUMBER: Final = re.compile(r"\[number of [a-z0-9:.-]+\]")


def _word(value: str) -> str:
    """Return a value as one word of a shell command, once the number in it is known."""
    known = _UNKNOWN_NUMBER.sub("0", value)
    return value if quote(known) == known else quote(value)


# Grants of any resource.


def grants_of(resource: Resource | None) -> tuple[Grant, ...]:
    """Return the grants that a resource declares; most resources declare none."""
    if resource is None:
        return ()
    pairs = [pair for mapping in _mappings(resource.inputs) for pair in _pairs(mapping)]
    on = target_of(resource)
    return tuple(
        dict.fromkeys(
            Grant(_text(role), _text(member), on, condition) for role, member, condition in pairs
        )
    )


def is_grant(resource: Resource) -> bool:
    """Return True for a resource that is a grant itself, and does not only contain what looks like one."""
    inputs = resource.inputs
    return "policyData" in inputs or (
        "role" in inputs and any(key in inputs for key in _MEMBER_KEYS)
    )


def target_of(resource: Resource) -> GrantedObject:
    """Return the object on which a resource grants access: itself, unless it is a grant that names another one."""
    others = sorted(resource.inputs.keys() - {*_GRANT_KEYS, *_OUTER_KEYS})
    keys = [key for key in (*_OUTER_KEYS, *others) if resource.inputs.get(key)]
    if not (keys and is_grant(resource)):
        return GrantedObject("resource", resource.name)
    # `cryptoKeyId` is `crypto key`.
    kind = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", keys[-1]).lower().removesuffix(" id")
    return GrantedObject(
        kind, "/".join(_PATH_PREFIX.sub("", _text(resource.inputs[key])) for key in keys)
    )


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
            for member in (
                members if isinstance(members, list) else [] if members is None else [members]
            ):
                yield mapping["role"], member, _expression(mapping.get("condition"))


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
_POWERFUL: Final = re.compile(
    r"roles/iam\.(serviceAccount(Admin|KeyAdmin|\w*TokenCreator|User)|workloadIdentityUser|organizationRoleAdmin|roleAdmin|securityAdmin)"
    r"|roles/(cloudbuild\.builds\.editor|dataflow\.developer|deploymentmanager\.editor|(secretmanager|storage)\.admin)"
    # Roles for Google's own service agents, most of which contain iam.serviceAccounts.getAccessToken.
    r"|roles/(\w+\.\w*[sS]erviceAgent|resourcemanager\.\w+Admin)"
    r"|iam\.(serviceAccounts\.(actAs|get\w+Token|implicitDelegation|sign\w+)|serviceAccountKeys\.create|roles\.update)"
    r"|.*\.setIamPolicy"
)
"""The impersonating roles are Checkov's:
https://github.com/bridgecrewio/checkov/blob/main/checkov/terraform/checks/resource/gcp/AbsGoogleImpersonationRoles.py;
the others contain `setIamPolicy`: https://cloud.google.com/iam/docs/roles-permissions. The permissions:
https://cloud.google.com/iam/docs/service-account-permissions."""


def is_powerful(name: str) -> bool:
    """Return True for a role or a permission that, on a project, lets its holder act as others or grant access."""
    return _POWERFUL.fullmatch(name) is not None


def permissions_of(resource: Resource) -> tuple[str, ...]:
    """Return the permissions of a custom role, as far as they are known; nothing for other resources."""
    permissions = resource.inputs.get("permissions") if CUSTOM_ROLE.search(resource.type) else None
    return (
        tuple(name for name in permissions if isinstance(name, str))
        if isinstance(permissions, list)
        else ()
    )
