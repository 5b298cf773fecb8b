"""Rules about the resources of an environment: access, deletion, recovery, locations.

`tpucfg infra`, reviews and the tests of stacks/ apply them. The ids in brackets are those of the same rules in Checkov
(https://www.checkov.io/5.Policy%20Index/terraform.html) and Trivy
(https://github.com/aquasecurity/trivy-checks/tree/main/checks/cloud/google); a rule without one has no counterpart.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from tpucfg.catalog import TARGET_FACTS
from tpucfg.findings import Finding, collect
from tpucfg.infra.grants import (
    BASIC_ROLES,
    CUSTOM_ROLE,
    GRANTING,
    IMPERSONATING,
    Grant,
    grants_of,
    is_grant,
    is_public,
    power_of,
    short_name,
)
from tpucfg.infra.lifecycle import DELETE, JOBS_PREFIX, describe_reach, lifecycle_rules
from tpucfg.infra.resources import BUCKET, EnvironmentResources, Resource, boolean, input_at, number
from tpucfg.spec import Environment, Project
from tpucfg.text_format import format_value, listed

PRODUCTION: Final = ("prod", "production", "live")
"""Names of environments whose data needs protection."""
DEFAULT_SOFT_DELETE_SECONDS: Final = 604_800
"""Seven days, for a bucket without a policy of its own: https://cloud.google.com/storage/docs/soft-delete."""
_EXCEPTION: Final = "roles/ml.serviceAgent"
"""The one role for service agents that the stack grants, on the target ai-platform only, whose guide requires it:
docs/bootstrap.md lists what it allows. The review still shows the grant."""
_WIDE_TARGETS: Final = ("project", "folder", "organization")
"""Objects that contain every bucket and account of a project."""
_KEY_TYPES: Final = ("gcp:serviceaccount/key:Key", "gcp:storage/hmacKey:HmacKey")
_PERSONAL_DOMAINS: Final = re.compile(
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
_PARENT_KEYS: Final = (
    "project",
    "bucket",
    "serviceAccountId",
    "folder",
    "orgId",
    "billingAccountId",
    "cryptoKeyId",
    "parent",
)
"""Inputs that name the project or another parent; each type of Google's provider has one of them."""


class Violation(NamedTuple):
    """A rule that a resource breaks."""

    id: str
    text: str
    """The effect of the resource, after its name."""
    help: str


def resource_findings(declared: EnvironmentResources, project: Project) -> tuple[Finding, ...]:
    """Return the findings about an environment's resources, located at the environment's key in the spec."""
    environment = declared.environment
    key = project.document.key_location(environment.path)
    return collect(
        Finding.of(id_, f"{resource.label} of {environment.name} {text}", key, help=help_).allowed_by(project.allow)
        for resource in declared.resources
        for rules in _RULES
        for id_, text, help_ in rules(resource, environment)
    )


# Grants


def _grant_violations(resource: Resource, environment: Environment) -> Iterator[Violation]:
    for grant in grants_of(resource):
        for id_, reason, help_ in _grant_problems(grant, environment):
            yield Violation(id_, f"grants {grant.text}{reason}", help_)


def _grant_problems(grant: Grant, environment: Environment) -> Iterator[tuple[str, str, str]]:
    """Yield the id of each rule that a grant breaks, the reason and the edit."""
    if is_public(grant.member):  # CKV_GCP_28; GCP-0001
        yield "TPU091", "", "name the people, groups or accounts that need it"
    if _DEFAULT_ACCOUNT.fullmatch(grant.member):  # CKV_GCP_46 to CKV_GCP_48; GCP-0004, GCP-0006, GCP-0008
        reason = ", a default account that everything without an account of its own runs as"
        yield "TPU088", reason, "grant it to an account that only these jobs run as"
    if grant.member.casefold().startswith("user:"):  # GCP-0003, GCP-0069
        is_private = _PERSONAL_DOMAINS.fullmatch(grant.member.rpartition("@")[2].lower())
        reason = "a private address that no organization can revoke" if is_private else "a person and not a group"
        yield "TPU089", f", {reason}", "grant it to a group, so that access ends with the membership"
    if grant.role in BASIC_ROLES:  # CKV_GCP_115 to CKV_GCP_117; GCP-0007
        yield "TPU095", ": the role has thousands of permissions", "grant a role of the one service that is used"
    # CKV_GCP_41, CKV_GCP_42, CKV_GCP_44, CKV_GCP_45, CKV_GCP_49; GCP-0005, GCP-0007, GCP-0009, GCP-0011
    is_exception = grant.role == _EXCEPTION and TARGET_FACTS[environment.target].has_tenant_project
    if grant.on.kind in _WIDE_TARGETS and power_of(grant.role) and not is_exception:
        fix = "grant the role on the one account or bucket that is used, or a narrower role"
        yield "TPU098", f", who can then {power_of(grant.role)}", fix


# Types


def _type_violations(resource: Resource, _: Environment) -> Iterator[Violation]:
    if _AUTHORITATIVE_TYPE.search(resource.type):
        text = "is authoritative: it removes every member that it does not list"
        yield Violation("TPU092", text, "use the type that adds one member: IAMMember, BucketIAMMember")
    # CIS Google Cloud 1.4
    if resource.type in _KEY_TYPES:
        account = resource.inputs.get("serviceAccountId") or resource.inputs.get("serviceAccountEmail")
        text = f"is a key of {short_name(str(account))}: a copy of it acts as the account, from anywhere"
        fix = "delete it from stacks/: jobs run as the account without a key, and people can impersonate it"
        yield Violation("TPU099", text, fix)
    permissions = resource.inputs.get("permissions") if CUSTOM_ROLE.search(resource.type) else None
    for power in (IMPERSONATING, GRANTING):
        listed_permissions = permissions if isinstance(permissions, list) else []
        names = [name for name in listed_permissions if isinstance(name, str) and power_of(name) == power]
        if names:
            text = f"has {listed(names)}: a member with the role on a project can {power}"
            yield Violation("TPU098", text, "leave the permission out of the role")


def _location_violations(resource: Resource, environment: Environment) -> Iterator[Violation]:
    # A repository of images may be elsewhere, such as in `us`: each host pulls once.
    for key in () if is_grant(resource) else ("location", "region"):
        value = resource.inputs.get(key)
        if isinstance(value, str) and value.lower() not in {environment.region, "global"}:
            text = f"is in {value}, but the TPUs are in {environment.region}"
            yield Violation("TPU090", text, "take the location from the environment's region in stacks/")
    if resource.type.startswith("gcp:") and not any(resource.inputs.get(key) for key in _PARENT_KEYS):
        text = "has no project: it would be created in the caller's default project"
        yield Violation("TPU093", text, "pass project in stacks/")


# Buckets


def _bucket_violations(resource: Resource, environment: Environment) -> Iterator[Violation]:
    if resource.type != BUCKET:
        return
    # CKV_GCP_29, CKV_GCP_114; GCP-0002
    for key, value in (("publicAccessPrevention", "enforced"), ("uniformBucketLevelAccess", True)):
        if resource.inputs.get(key) != value:
            text = f"has {key} {format_value(resource.inputs.get(key))}: objects could be made public"
            yield Violation("TPU091", text, f"set {key} to {format_value(value)} in stacks/")
    for rule in lifecycle_rules(resource.inputs) or ():
        if rule.action == DELETE and rule.reaches_jobs:
            template, values = describe_reach(rule)
            reach = template.format(*values)
            text = f"deletes {reach} (lifecycleRules): checkpoints below {JOBS_PREFIX} would be lost"
            fix = "give the rule a prefix that contains no data, such as tmp/, as matchesPrefixes in stacks/"
            yield Violation("TPU096", text, fix)
    is_production = environment.name in PRODUCTION
    if is_production and not resource.protect:
        fix = f"set environments.{environment.name}.protect to true"
        yield Violation("TPU094", f"is not protected: {_destroy_effect(resource)}", fix)
    if is_production or environment.protect:
        yield from _final_deletions(resource)


def _final_deletions(resource: Resource) -> Iterator[Violation]:
    if number(input_at(resource.inputs, ("softDeletePolicy", "retentionDurationSeconds"))) == 0:
        fix = f"set softDeletePolicy.retentionDurationSeconds to {DEFAULT_SOFT_DELETE_SECONDS} or more in stacks/"
        yield Violation("TPU097", "keeps no deleted objects (softDeletePolicy): none can be restored", fix)
    # Without protection, TPU094 already states this effect.
    if boolean(resource.inputs.get("forceDestroy")) and resource.protect:
        text = "would be deleted with all its objects (forceDestroy)"
        yield Violation("TPU097", text, "set forceDestroy to false in stacks/")


def _destroy_effect(resource: Resource) -> str:
    """Return the effect of `pulumi destroy` on an unprotected bucket."""
    if resource.retain:
        return "pulumi destroy would leave it behind with its objects, and remove the jobs' access"
    force = boolean(resource.inputs.get("forceDestroy"))
    return f"pulumi destroy would delete it{' with its objects' if force else ' if empty'}"


_RULES: Final = (_grant_violations, _type_violations, _location_violations, _bucket_violations)
