"""The table of rules about an environment's resources, and those about its data: deletion, recovery, locations.

`tpucfg infra`, reviews and the tests of stacks/ apply them.

The ids in brackets are those of the same rules in Checkov (https://www.checkov.io/5.Policy%20Index/terraform.html) and
Trivy (https://github.com/aquasecurity/trivy-checks/tree/main/checks/cloud/google).
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from tpucfg.findings import Finding, Location, collect
from tpucfg.infra import access_rules
from tpucfg.infra.lifecycle import DELETE, JOBS_PREFIX, describe_reach, lifecycle_rules
from tpucfg.infra.resources import BUCKET, EnvironmentResources, Resource, boolean, input_at, number
from tpucfg.spec.project import Environment, Project

PRODUCTION: Final = ("prod", "production", "live")
"""Names of environments whose data needs protection."""
DEFAULT_SOFT_DELETE_SECONDS: Final = 604_800
"""Seven days, for a bucket without a policy of its own: https://cloud.google.com/storage/docs/soft-delete."""
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


def unprotected_bucket(resource: Resource, environment: Environment, location: Location) -> Iterator[Finding]:
    """Find a production bucket that a single command would delete, or remove from the stack.

    Reads the option `protect`. Checkov and Trivy do not see options of Pulumi; they have the like for databases
    (CKV_GCP_119 to CKV_GCP_122).
    """
    if environment.name in PRODUCTION and resource.type == BUCKET and not resource.protect:
        yield Finding.of(
            "TPU094",
            f"{resource.label} of {environment.name} is not protected: {_destroy_effect(resource)}",
            location,
            help=f"set environments.{environment.name}.protect to true",
        )


def unprefixed_deletion(resource: Resource, environment: Environment, location: Location) -> Iterator[Finding]:
    """Find a lifecycle rule that deletes objects of the whole bucket, data and checkpoints among them.

    Reads `lifecycleRules`: the action Delete without `matchesPrefixes`, or with a prefix that reaches the folders of
    the jobs. Rules for noncurrent versions are no finding. Checkov and Trivy have no counterpart; the closest is that
    versioning has to be enabled (CKV_GCP_78, GCP-0078).
    """
    rules = lifecycle_rules(resource.inputs) if resource.type == BUCKET else ()
    for rule in rules or ():
        if rule.action == DELETE and rule.reaches_jobs:
            template, values = describe_reach(rule)
            yield Finding.of(
                "TPU096",
                f"{resource.label} of {environment.name} deletes {template.format(*values)} (lifecycleRules): "
                f"checkpoints below {JOBS_PREFIX} would be lost",
                location,
                help="give the rule a prefix that contains no data, such as tmp/, as matchesPrefixes in stacks/",
            )


def final_deletion(resource: Resource, environment: Environment, location: Location) -> Iterator[Finding]:
    """Find a production bucket whose objects are deleted for good, or together with the bucket.

    Reads `softDeletePolicy.retentionDurationSeconds` and `forceDestroy`, in environments with a name of production or
    with `protect`. Checkov and Trivy have no counterpart.
    """
    if resource.type != BUCKET or not (environment.name in PRODUCTION or environment.protect):
        return
    if number(input_at(resource.inputs, ("softDeletePolicy", "retentionDurationSeconds"))) == 0:
        yield Finding.of(
            "TPU097",
            f"{resource.label} of {environment.name} keeps no deleted objects (softDeletePolicy): none can be restored",
            location,
            help=f"set softDeletePolicy.retentionDurationSeconds to {DEFAULT_SOFT_DELETE_SECONDS} or more in stacks/",
        )
    # Without protection, TPU094 already states this effect.
    if boolean(resource.inputs.get("forceDestroy")) and resource.protect:
        yield Finding.of(
            "TPU097",
            f"{resource.label} of {environment.name} would be deleted with all its objects (forceDestroy)",
            location,
            help="set forceDestroy to false in stacks/",
        )


def _destroy_effect(resource: Resource) -> str:
    """Return the effect of `pulumi destroy` on an unprotected bucket."""
    if resource.retain:
        return "pulumi destroy would leave it behind with its objects, and remove the jobs' access"
    force = boolean(resource.inputs.get("forceDestroy"))
    return f"pulumi destroy would delete it{' with its objects' if force else ' if empty'}"


def wrong_location(resource: Resource, environment: Environment, location: Location) -> Iterator[Finding]:
    """Find a resource outside the TPUs' region: every step would wait for its data.

    Reads `location` and `region`. Neither Checkov nor Trivy has a counterpart, as neither knows where the TPUs are.
    """
    for key in _REGION_KEYS:
        value = resource.inputs.get(key)
        if isinstance(value, str) and value.lower() not in {environment.region, "global"}:
            yield Finding.of(
                "TPU090",
                f"{resource.label} is in {value}, but the TPUs of {environment.name} are in {environment.region}",
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
            f"{resource.label} of {environment.name} has no {key}: {effect}",
            location,
            help=f"pass {key} in stacks/",
        )


# The table


ResourceRule = Callable[[Resource, Environment, Location], Iterator[Finding]]
"""Yields the findings about one resource of an environment, at a location in the spec."""

RULES: Final[tuple[ResourceRule, ...]] = (
    access_rules.default_account,
    access_rules.personal_member,
    wrong_location,
    access_rules.public_access,
    access_rules.authoritative_binding,
    missing_project,
    unprotected_bucket,
    access_rules.basic_role,
    unprefixed_deletion,
    final_deletion,
    access_rules.powerful_role,
    access_rules.account_key,
)
"""Rules applied to each resource of an environment, in the order of their ids."""


def resource_findings(declared: EnvironmentResources, project: Project) -> tuple[Finding, ...]:
    """Return the findings about an environment's resources, located at the environment's key in the spec."""
    key = project.document.key_location(declared.environment.path)
    findings = (
        finding.allowed_by(project.allow)
        for rule in RULES
        for resource in declared.resources
        for finding in rule(resource, declared.environment, key)
    )
    return collect(findings)
