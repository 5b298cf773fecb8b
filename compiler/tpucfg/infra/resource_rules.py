"""Rules about an environment's resources: pure functions, used by `tpucfg infra` and by the tests of stacks/."""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from tpucfg.findings import Finding, Location, collect
from tpucfg.infra.resources import EnvironmentResources, Resource
from tpucfg.spec.project import Environment, Project
from tpucfg.text_format import format_value

PUBLIC: Final = ("allUsers", "allAuthenticatedUsers")
"""Members that include the whole internet: https://cloud.google.com/iam/docs/principals-overview."""
BASIC_ROLES: Final = ("roles/owner", "roles/editor", "roles/viewer")
"""Roles with thousands of permissions: https://cloud.google.com/iam/docs/roles-overview#basic."""
PRODUCTION: Final = ("prod", "production", "live")
"""Names of environments whose data needs protection."""

_AUTHORITATIVE_TYPE: Final = re.compile(r":[A-Za-z]*(IAMBinding|IAMPolicy|AccessControl|ACL)$")
"""Types that own a whole role or policy: https://www.pulumi.com/registry/packages/gcp/api-docs/projects/iammember/."""
_PARENT_KEY: Final = {
    "gcp:storage/bucketIAMMember:BucketIAMMember": "bucket",
    "gcp:serviceaccount/iAMMember:IAMMember": "serviceAccountId",
}
"""Types without a `project` input, with the input that names their parent resource instead."""
_REGION_KEYS: Final = ("location", "region")


def resource_findings(declared: EnvironmentResources, project: Project) -> tuple[Finding, ...]:
    """Return the findings about an environment's resources, located at the environment's key in the spec."""
    location = project.document.key_location(declared.environment.path)
    findings = (
        finding.allowed(project.allow[finding.id]) if finding.id in project.allow else finding
        for rule in RULES
        for resource in declared.resources
        for finding in rule(resource, declared.environment, location)
    )
    return collect(findings)


def wrong_location(resource: Resource, environment: Environment, location: Location) -> Iterator[Finding]:
    """Find a resource outside the TPUs' region: every step would wait for its data."""
    for key in _REGION_KEYS:
        value = resource.inputs.get(key)
        if isinstance(value, str) and value.lower() not in {environment.region, "global"}:
            yield Finding.of(
                "TPU090",
                f"{_label(resource)} is in {value}, but the TPUs of {environment.name} are in {environment.region}",
                location,
                help="take the location from the environment's region in stacks/",
            )


def public_access(resource: Resource, environment: Environment, location: Location) -> Iterator[Finding]:
    """Find a grant to the public, or a bucket on which such a grant is possible."""
    for member in _members(resource):
        if member in PUBLIC:
            message = f"{_label(resource)} of {environment.name} grants {resource.inputs.get('role')} to {member}"
            yield Finding.of("TPU091", message, location, help="name the people, groups or accounts that need it")
    if resource.kind != "storage.Bucket":
        return
    required = {"publicAccessPrevention": "enforced", "uniformBucketLevelAccess": True}
    for key, value in required.items():
        if resource.inputs.get(key) != value:
            actual = format_value(resource.inputs.get(key))
            message = f"{_label(resource)} of {environment.name} has {key} {actual}: objects could be made public"
            yield Finding.of("TPU091", message, location, help=f"set {key} to {format_value(value)} in stacks/")


def authoritative_binding(resource: Resource, environment: Environment, location: Location) -> Iterator[Finding]:
    """Find a type that owns a whole role or policy, and removes members granted elsewhere."""
    if _AUTHORITATIVE_TYPE.search(resource.type):
        yield Finding.of(
            "TPU092",
            f"{_label(resource)} of {environment.name} is authoritative: it removes every member that it does not list",
            location,
            help="use the type that adds one member: IAMMember, BucketIAMMember",
        )


def missing_project(resource: Resource, environment: Environment, location: Location) -> Iterator[Finding]:
    """Find a resource without a project, which the provider would create in the caller's default project."""
    key = _PARENT_KEY.get(resource.type, "project")
    if not resource.inputs.get(key):
        created = "it would be created in the caller's default project"
        effect = created if key == "project" else "its parent is undefined"
        yield Finding.of(
            "TPU093",
            f"{_label(resource)} of {environment.name} has no {key}: {effect}",
            location,
            help=f"pass {key} in stacks/",
        )


def unprotected_bucket(resource: Resource, environment: Environment, location: Location) -> Iterator[Finding]:
    """Find a production bucket that a single command would delete, or remove from the stack."""
    if environment.name in PRODUCTION and resource.kind == "storage.Bucket" and not resource.protect:
        yield Finding.of(
            "TPU094",
            f"{_label(resource)} of {environment.name} is not protected: {_destroy_effect(resource)}",
            location,
            help=f"set environments.{environment.name}.protect to true",
        )


def basic_role(resource: Resource, environment: Environment, location: Location) -> Iterator[Finding]:
    """Find a grant of a basic role."""
    role = resource.inputs.get("role")
    if role in BASIC_ROLES:
        message = f"{_label(resource)} of {environment.name} grants {role}, which has thousands of permissions"
        yield Finding.of("TPU095", message, location, help="grant a role of the one service that is used")


RULES: Final[tuple[Callable[[Resource, Environment, Location], Iterator[Finding]], ...]] = (
    wrong_location,
    public_access,
    authoritative_binding,
    missing_project,
    unprotected_bucket,
    basic_role,
)
"""Rules applied to each resource of an environment."""


def _destroy_effect(resource: Resource) -> str:
    """Return the effect of `pulumi destroy` on an unprotected bucket."""
    if resource.retain:
        return "pulumi destroy would leave it behind with its objects, and remove the jobs' access"
    return (
        f"pulumi destroy would delete it{' with its objects' if resource.inputs.get('forceDestroy') else ' if empty'}"
    )


def _label(resource: Resource) -> str:
    return f"{resource.kind} {resource.name}"


def _members(resource: Resource) -> list[Any]:
    members = resource.inputs.get("members")
    return [resource.inputs.get("member"), *(members if isinstance(members, list) else [])]
