"""Rules about the place of a resource: its region, and its project."""

from collections.abc import Iterator, Mapping
from typing import Final

from tpucfg.findings import Finding, Location
from tpucfg.infra.resources import Resource
from tpucfg.infra.rules.common import label
from tpucfg.spec.project import Environment

_REGION_KEYS: Final = ("location", "region")
_PARENT_KEYS: Final[Mapping[str, str]] = {
    "gcp:storage/bucketIAMMember:BucketIAMMember": "bucket",
    "gcp:storage/bucketACL:BucketACL": "bucket",
    "gcp:storage/bucketAccessControl:BucketAccessControl": "bucket",
    "gcp:storage/bucketObject:BucketObject": "bucket",
    "gcp:storage/defaultObjectACL:DefaultObjectACL": "bucket",
    "gcp:storage/managedFolder:ManagedFolder": "bucket",
    "gcp:serviceaccount/iAMMember:IAMMember": "serviceAccountId",
    "gcp:serviceaccount/key:Key": "serviceAccountId",
    "gcp:folder/iAMMember:IAMMember": "folder",
    "gcp:organizations/iAMMember:IAMMember": "orgId",
    "gcp:organizations/iAMCustomRole:IAMCustomRole": "orgId",
    "gcp:billing/accountIamMember:AccountIamMember": "billingAccountId",
    "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember": "cryptoKeyId",
    "gcp:iam/denyPolicy:DenyPolicy": "parent",
    "gcp:orgpolicy/policy:Policy": "parent",
}
"""Types without a `project` input, with the input that names their parent resource instead."""


def wrong_location(resource: Resource, environment: Environment, location: Location) -> Iterator[Finding]:
    """Find a resource outside the TPUs' region: every step would wait for its data.

    Reads `location` and `region`. Neither Checkov nor Trivy has a counterpart, as neither knows where the TPUs are.
    """
    for key in _REGION_KEYS:
        value = resource.inputs.get(key)
        if isinstance(value, str) and value.lower() not in {environment.region, "global"}:
            yield Finding.of(
                "TPU090",
                f"{label(resource)} is in {value}, but the TPUs of {environment.name} are in {environment.region}",
                location,
                help="take the location from the environment's region in stacks/",
            )


def missing_project(resource: Resource, environment: Environment, location: Location) -> Iterator[Finding]:
    """Find a resource without a project, which the provider would create in the caller's default project.

    Reads `project`, or the input that names the parent. Neither Checkov nor Trivy has a counterpart.
    """
    # Only the types of Google's provider have a project.
    key = _PARENT_KEYS.get(resource.type, "project")
    if resource.type.startswith("gcp:") and not resource.inputs.get(key):
        created = "it would be created in the caller's default project"
        effect = created if key == "project" else "its parent is undefined"
        yield Finding.of(
            "TPU093",
            f"{label(resource)} of {environment.name} has no {key}: {effect}",
            location,
            help=f"pass {key} in stacks/",
        )
