"""Inputs that Google Cloud cannot change in place, so that Pulumi replaces the resource."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from tpucfg.changes.facts import Change
from tpucfg.review.changes.resources.resource_change import BUCKET


class ImmutableInputs(NamedTuple):
    """The inputs of a type that cannot be changed in place."""

    inputs: frozenset[str]
    source: str
    """The provider's code, which marks the fields with `ForceNew: true`."""


_PROVIDER: Final = "https://github.com/hashicorp/terraform-provider-google-beta/blob/main/google-beta/"
_SERVICES: Final = f"{_PROVIDER}services/"
_IAM_MEMBER: Final = f"{_PROVIDER}tpgiamresource/resource_iam_member.go"
_GRANT: Final = frozenset(("role", "member", "condition"))
_BUCKET_INPUTS: Final = frozenset(
    ("customPlacementConfig", "enableObjectRetention", "hierarchicalNamespace", "location", "name", "project")
)
IMMUTABLE_INPUTS: Final[Mapping[str, ImmutableInputs]] = {
    BUCKET: ImmutableInputs(_BUCKET_INPUTS, f"{_SERVICES}storage/resource_storage_bucket.go"),
    "gcp:storage/bucketIAMMember:BucketIAMMember": ImmutableInputs(_GRANT | {"bucket"}, _IAM_MEMBER),
    "gcp:projects/iAMCustomRole:IAMCustomRole": ImmutableInputs(
        frozenset(("project", "roleId")), f"{_SERVICES}resourcemanager/resource_google_project_iam_custom_role.go"
    ),
    "gcp:projects/iAMMember:IAMMember": ImmutableInputs(_GRANT | {"project"}, _IAM_MEMBER),
    "gcp:secretmanager/secretIamMember:SecretIamMember": ImmutableInputs(_GRANT | {"project", "secretId"}, _IAM_MEMBER),
    "gcp:serviceaccount/iAMMember:IAMMember": ImmutableInputs(_GRANT | {"serviceAccountId"}, _IAM_MEMBER),
    "gcp:serviceaccount/account:Account": ImmutableInputs(
        frozenset(("accountId", "project")), f"{_SERVICES}resourcemanager/resource_google_service_account.go"
    ),
    "gcp:projects/service:Service": ImmutableInputs(
        frozenset(("project", "service")), f"{_SERVICES}resourcemanager/resource_google_project_service.go"
    ),
    "gcp:projects/serviceIdentity:ServiceIdentity": ImmutableInputs(
        frozenset(("project", "service")), f"{_SERVICES}resourcemanager/resource_project_service_identity.go"
    ),
}
"""By type. Other types are assumed to be updated in place; only a preview knows if they are replaced."""


def forces_replacement(resource_type: str, changes: Iterable[Change]) -> tuple[str, ...]:
    """Return the changed inputs that force a replacement of a resource of this type, in the order of the changes."""
    if resource_type not in IMMUTABLE_INPUTS:
        return ()
    immutable = IMMUTABLE_INPUTS[resource_type].inputs
    changed = dict.fromkeys(str(change.path[0]) for change in changes)
    return tuple(key for key in changed if key in immutable)
