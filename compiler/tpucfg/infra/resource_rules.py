"""The rules about an environment's resources: pure functions, called by `tpucfg infra` and by the tests of stacks/."""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from tpucfg.findings import Finding, Location, collect
from tpucfg.infra.resources import EnvironmentResources, Resource
from tpucfg.spec.project import Environment, Project
from tpucfg.text_format import format_value

PUBLIC: Final = ("allUsers", "allAuthenticatedUsers")
"""Everybody: https://cloud.google.com/iam/docs/principals-overview."""
BASIC_ROLES: Final = ("roles/owner", "roles/editor", "roles/viewer")
"""Thousands of permissions in one role: https://cloud.google.com/iam/docs/roles-overview#basic."""
PRODUCTION: Final = ("prod", "production", "live")
"""What an environment is called whose data must not go by mistake."""

_AUTHORITATIVE: Final = re.compile(r":[A-Za-z]*(IAMBinding|IAMPolicy|AccessControl|ACL)$")
"""Types that own a whole role or policy: https://www.pulumi.com/registry/packages/gcp/api-docs/projects/iammember/."""
_NO_PROJECT: Final = {
    "gcp:storage/bucketIAMMember:BucketIAMMember": "bucket",
    "gcp:serviceaccount/iAMMember:IAMMember": "serviceAccountId",
}
"""Types that have no project of their own and name what they belong to instead."""
_WHERE: Final = ("location", "region")


def resource_findings(made: EnvironmentResources, project: Project) -> tuple[Finding, ...]:
    """What is wrong with the resources of an environment, at the environment's place in the spec."""
    judged = (
        finding.allowed(project.allow[finding.id]) if finding.id in project.allow else finding
        for rule in RULES
        for resource in made.resources
        for finding in rule(resource, made.environment, _place(project, made.environment))
    )
    return collect(judged)


def _place(project: Project, environment: Environment) -> Location:
    return project.document.key_location(environment.path)


def wrong_location(resource: Resource, environment: Environment, location: Location) -> Iterator[Finding]:
    """A location that is not the region of the TPUs: every step would wait for its data."""
    for key in _WHERE:
        value = resource.inputs.get(key)
        if isinstance(value, str) and value.lower() not in {environment.region, "global"}:
            message = f"{_called(resource)} is in {value}, and the TPUs of {environment.name} are in "
            hint = "take the location from the environment's region in stacks/"
            yield Finding.of("TPU090", message + environment.region, location, help=hint)


def public_access(resource: Resource, environment: Environment, location: Location) -> Iterator[Finding]:
    """A grant to everybody, or a bucket that could be given one."""
    for member in _members(resource):
        if member in PUBLIC:
            message = f"{_called(resource)} of {environment.name} gives {resource.inputs.get('role')} to {member}"
            yield Finding.of("TPU091", message, location, help="name the people, groups or accounts that need it")
    if resource.kind != "storage.Bucket":
        return
    wanted = {"publicAccessPrevention": "enforced", "uniformBucketLevelAccess": True}
    for key, value in wanted.items():
        if resource.inputs.get(key) != value:
            found = format_value(resource.inputs.get(key))
            message = f"{_called(resource)} of {environment.name} has {key} {found}: a single object could be opened"
            yield Finding.of("TPU091", message, location, help=f"set {key} to {format_value(value)} in stacks/")


def authoritative_binding(resource: Resource, environment: Environment, location: Location) -> Iterator[Finding]:
    """A type that owns a whole role or policy and removes what others put there."""
    if _AUTHORITATIVE.search(resource.type):
        message = (
            f"{_called(resource)} of {environment.name} is a {resource.kind}, which removes everybody else's access"
        )
        yield Finding.of(
            "TPU092", message, location, help="use the type that adds one member: IAMMember, BucketIAMMember"
        )


def missing_project(resource: Resource, environment: Environment, location: Location) -> Iterator[Finding]:
    """A resource without a project, which would be made in whatever project the caller has set."""
    key = _NO_PROJECT.get(resource.type, "project")
    if not resource.inputs.get(key):
        message = (
            f"{_called(resource)} of {environment.name} has no {key}: it would be made wherever the caller happens"
        )
        yield Finding.of("TPU093", f"{message} to be", location, help=f"pass {key} in stacks/")


def unprotected_bucket(resource: Resource, environment: Environment, location: Location) -> Iterator[Finding]:
    """A bucket of production that one command would delete, or take out of the stack."""
    if environment.name in PRODUCTION and resource.kind == "storage.Bucket" and not resource.protect:
        message = f"{_called(resource)} of {environment.name} is not protected: one pulumi destroy, and "
        hint = f"set environments.{environment.name}.protect: true"
        yield Finding.of("TPU094", message + _end(resource), location, help=hint)


def basic_role(resource: Resource, environment: Environment, location: Location) -> Iterator[Finding]:
    """A role that holds nearly everything."""
    role = resource.inputs.get("role")
    if role in BASIC_ROLES:
        message = f"{_called(resource)} of {environment.name} gives {role}, which holds thousands of permissions"
        yield Finding.of("TPU095", message, location, help="give a role of the one service that is used")


RULES: Final[tuple[Callable[[Resource, Environment, Location], Iterator[Finding]], ...]] = (
    wrong_location,
    public_access,
    authoritative_binding,
    missing_project,
    unprotected_bucket,
    basic_role,
)
"""Each looks at one resource of an environment."""


def _end(resource: Resource) -> str:
    """What destroying the stack does to a bucket that nothing protects."""
    if resource.retain:
        return "the jobs lose it, though it stays behind with its objects"
    return f"it is deleted{' with its objects' if resource.inputs.get('forceDestroy') else ', once it is empty'}"


def _called(resource: Resource) -> str:
    return f"{resource.kind} {resource.name}"


def _members(resource: Resource) -> list[Any]:
    members = resource.inputs.get("members")
    return [resource.inputs.get("member"), *(members if isinstance(members, list) else [])]
