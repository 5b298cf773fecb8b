"""Changes to the resources of an environment, from a Pulumi preview or from the stack programs, and added access.

A `Step` is a resource before and after, and a `ResourceChange` is what that means. Access that a change adds are new
and broader grants, basic roles, public members, and opened buckets.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from tpucfg.changes.facts import Change, Risk
from tpucfg.changes.statements import Statement
from tpucfg.infra.grants import (
    BASIC_ROLES,
    BUCKET_GRANT,
    CUSTOM_ROLE,
    IMAGE_GRANT,
    KEY_GRANT,
    Grant,
    GrantedObject,
    grants_of,
    is_powerful,
    permissions_of,
    public_names,
)
from tpucfg.infra.resources import ACCOUNT, BUCKET, Resource
from tpucfg.redaction import SECRET, redact
from tpucfg.text_format import listed

Op = Literal["create", "update", "replace", "delete", "import", "same"]
"""An operation of the engine. `same` is a change of the resource's options only, such as its protection."""
UNKNOWN: Final = "[known after apply]"
"""Placeholder of a value that is known only after the update."""
REMOVING_OPS: Final = ("replace", "delete")
"""The operations that delete the existing resource."""
_GRANT: Final = frozenset(("role", "member", "condition"))
KNOWN_TYPES: Final[Mapping[str, frozenset[str]]] = {
    BUCKET: frozenset(
        (
            "customPlacementConfig",
            "enableObjectRetention",
            "hierarchicalNamespace",
            "location",
            "name",
            "project",
        )
    ),
    BUCKET_GRANT: _GRANT | {"bucket"},
    "gcp:projects/iAMCustomRole:IAMCustomRole": frozenset(("project", "roleId")),
    "gcp:projects/iAMMember:IAMMember": _GRANT | {"project"},
    IMAGE_GRANT: _GRANT | {"project", "location", "repository"},
    KEY_GRANT: _GRANT | {"cryptoKeyId"},
    "gcp:secretmanager/secretIamMember:SecretIamMember": _GRANT | {"project", "secretId"},
    "gcp:serviceaccount/iAMMember:IAMMember": _GRANT | {"serviceAccountId"},
    ACCOUNT: frozenset(("accountId", "project")),
    "gcp:projects/service:Service": frozenset(("project", "service")),
    "gcp:projects/serviceIdentity:ServiceIdentity": frozenset(("project", "service")),
}
"""The types that the bundled program declares, with the inputs that Google cannot change in place (`ForceNew`):
https://github.com/hashicorp/terraform-provider-google-beta/tree/main/google-beta/services. Of all other types, only a
preview knows which changes replace them."""


def holds_data(resource_type: str, *, is_grant: bool) -> bool:
    """Return True for a resource that may hold data: a bucket, and every type that no rule is about."""
    return resource_type == BUCKET or not (is_grant or resource_type in KNOWN_TYPES)


class ResourceStep(NamedTuple):
    """One resource before and after, and the operation between the two."""

    before: Resource | None
    after: Resource | None
    op: str
    """An `Op`; of a step of the engine, any of its operations."""
    because: tuple[str, ...] = ()
    """The inputs that force a replacement."""
    differs: tuple[str, ...] = ()
    """The properties that differ according to the engine."""
    urn: str = ""
    outputs: tuple[Mapping[str, Any], Mapping[str, Any]] = ({}, {})
    """Of a resource that a refresh read: its outputs before and after."""


class ResourceChange(NamedTuple):
    """A change to one resource."""

    environment: str
    op: Op
    type: str
    """Pulumi's type token: `gcp:storage/bucket:Bucket`."""
    name: str
    """The logical name."""
    inputs: tuple[Change, ...] = ()
    """The inputs that differ; of a created or deleted resource, all inputs."""
    because: tuple[str, ...] = ()
    """The inputs that force a replacement, if they are known."""
    hidden: tuple[str, ...] = ()
    """Properties that differ according to the engine although their visible inputs are equal: secrets or drift."""
    protected: bool = False
    """True if the resource was protected before, so that the engine refuses to replace or delete it."""
    protection: Literal["", "lifted", "added"] = ""
    retained: bool = False
    """True if the resource leaves the stack but is not deleted from the cloud."""
    statements: tuple[Statement, ...] = ()
    """Sentences about added access and the meaning of changed inputs and options, without the resource's name."""
    holds_data: bool = True
    """True if data may be lost with the resource: for a bucket, and for a type that no rule is about."""
    only_declared: bool = False
    """True if the stack programs declare the change, or a part of it, and the preview does not contain that."""

    @property
    def kind(self) -> str:
        """The short form of the type: `storage.Bucket`."""
        return Resource(self.type, self.name, {}).kind

    @property
    def loses_data(self) -> bool:
        """True if the change deletes data."""
        return self.op in REMOVING_OPS and self.holds_data and not self.retained

    @property
    def destructive(self) -> bool:
        """True if the change deletes data, or lifts a protection."""
        has_destructive_statement = any(statement.destructive for statement in self.statements)
        return self.loses_data or self.protection == "lifted" or has_destructive_statement

    @property
    def refused(self) -> bool:
        """True if the engine refuses the change until the protection is lifted in an update of its own."""
        return self.op in REMOVING_OPS and self.protected


_COUNTED: Final[Sequence[tuple[str, Callable[[ResourceChange], bool]]]] = (
    ("deleted", lambda change: change.op == "delete"),
    ("replaced", lambda change: change.op == "replace"),
    ("no longer protected", lambda change: change.protection == "lifted"),
    # A deletion rule or a shorter retention is only an update, but the reason to read on.
    (
        "with data at risk",
        lambda change: any(statement.destructive for statement in change.statements),
    ),
    (
        "with wider access",
        lambda change: any(statement.opens for statement in change.statements),
    ),
    ("created", lambda change: change.op == "create"),
    ("imported", lambda change: change.op == "import"),
    ("updated", lambda change: change.op == "update"),
)
"""The counts of changed resources with their words, the risks first; one resource can be in several of them."""


def count_phrases(changes: Collection[ResourceChange]) -> list[tuple[int, str]]:
    """Return the numbers that are not zero, with their words."""
    counts = ((sum(map(is_counted, changes)), phrase) for phrase, is_counted in _COUNTED)
    return [(count, phrase) for count, phrase in counts if count]


# Access


_BARRIERS: Final[Mapping[str, tuple[Any, str]]] = {
    "publicAccessPrevention": ("enforced", "public access to its objects"),
    "uniformBucketLevelAccess": (True, "access lists on single objects"),
}
"""Inputs of a bucket, with the value that closes it, and the access that this prevents:
https://cloud.google.com/storage/docs/public-access-prevention and
https://cloud.google.com/storage/docs/uniform-bucket-level-access."""
_MAX_PERMISSIONS: Final = 6
_MAX_NAMES: Final = 20
"""Limit of inputs that name the public, for one resource."""


class _Context(NamedTuple):
    """Grants and objects of all steps, with which a single grant is compared."""

    held: frozenset[Grant]
    """All grants before the change."""
    unconditioned: frozenset[Grant]
    """All grants before the change, without their conditions."""
    revoked: frozenset[Grant]
    """Those that end, without the names of their objects, which a moved bucket changes."""
    created: frozenset[GrantedObject]
    """The buckets and accounts that the change creates; in a preview, their names can be known after the update."""
    permissions: Mapping[str, tuple[str, ...]]
    """The permissions of each custom role after the change, the powerful ones first, by the role's name in grants."""
    is_new: bool
    """True if no resource existed before."""


def access_statements(steps: Sequence[ResourceStep]) -> list[tuple[Statement, ...]]:
    """Return sentences about the access that each step adds.

    A grant that any resource gave before adds nothing. Nor does one on a bucket that the change creates, if the change
    also revokes an equal grant elsewhere: the grant moves with its data. Nor does one of a new environment on a bucket
    or an account that it creates itself.
    """
    held = {grant for step in steps for grant in grants_of(step.before)}
    given = {grant for step in steps for grant in grants_of(step.after)}
    context = _Context(
        frozenset(held),
        frozenset(grant._replace(condition="") for grant in held),
        frozenset(map(_movable, held - given)),
        frozenset(_created_targets(steps)),
        dict(role for step in steps for role in _custom_roles(step.after)),
        all(step.before is None for step in steps),
    )
    return [
        (
            *_new_grants(step, context),
            *_opened_buckets(step.before, step.after),
            *_public_names(step),
        )
        for step in steps
    ]


def _new_grants(step: ResourceStep, context: _Context) -> Iterator[Statement]:
    for grant in grants_of(step.after):
        # Two hidden values look equal even if they differ.
        is_comparable = step.op == "same" or {SECRET, UNKNOWN}.isdisjoint(
            (*grant[:2], grant.on.name, grant.condition)
        )
        is_held = is_comparable and not context.held.isdisjoint(
            (grant, grant._replace(condition=""))
        )
        if not is_held and not _is_expected(grant, context):
            yield _statement(grant, context)


def _statement(grant: Grant, context: _Context) -> Statement:
    kind = re.sub("[^A-Za-z ]", "", grant.on.kind)
    template, values = (
        f"grants {{}} on the {kind} {{}} to {{}}",
        [grant.role, grant.on.name, grant.member],
    )
    if grant not in context.held and grant._replace(condition="") in context.unconditioned:
        template += (
            " under another condition than before"
            if grant.condition
            else " without the condition that it had"
        )
    if grant.condition:
        template, values = f"{template}, if {{}}", [*values, grant.condition]
    # A custom role's name is chosen freely: only its permissions are the access.
    if permissions := context.permissions.get(grant.role):
        template += f": {listed(['{}'] * len(permissions), _MAX_PERMISSIONS)}"
        values += permissions[:_MAX_PERMISSIONS]
    return Statement(template, tuple(map(redact, values)), Risk.ACCESS)


def _movable(grant: Grant) -> Grant:
    return grant._replace(on=GrantedObject(grant.on.kind, ""))


def _custom_roles(resource: Resource | None) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the name of a custom role as grants write it, and its permissions."""
    if resource and (match := CUSTOM_ROLE.search(resource.type)):
        parent = resource.inputs.get("project" if match[1] == "projects" else "orgId")
        permissions = sorted(permissions_of(resource), key=lambda name: not is_powerful(name))
        yield f"{match[1]}/{parent}/roles/{resource.inputs.get('roleId')}", tuple(permissions)


def _is_expected(grant: Grant, context: _Context) -> bool:
    """Return True for a grant on what the change creates that moves there, or is of a new environment."""
    if grant.on not in context.created:
        return False
    is_own = context.is_new and grant.role not in BASIC_ROLES and not _lends_account(grant)
    return is_own or _movable(grant) in context.revoked


def _lends_account(grant: Grant) -> bool:
    """Return True if the member can act as the account, unless it is a pod of the account's own project."""
    project = grant.on.name.partition("@")[2].removesuffix(".iam.gserviceaccount.com")
    is_pod = grant.member.startswith(f"serviceAccount:{project}.svc.id.goog[")
    return grant.on.kind == "service account" and is_powerful(grant.role) and not is_pod


def _created_targets(steps: Sequence[ResourceStep]) -> Iterator[GrantedObject]:
    existing = {target for step in steps for target in _own_targets(step.before)}
    for target in (target for step in steps for target in _own_targets(step.after)):
        if target not in existing:
            yield from (target, GrantedObject(target.kind, UNKNOWN))


def _own_targets(resource: Resource | None) -> Iterator[GrantedObject]:
    """Yield the object that a resource is, if roles are granted on it by its name."""
    if resource is None:
        return
    name, project, account = (resource.inputs.get(key) for key in ("name", "project", "accountId"))
    if resource.type == BUCKET and isinstance(name, str):
        yield GrantedObject("bucket", name)
    if resource.type == ACCOUNT and isinstance(account, str) and isinstance(project, str):
        # A project of a domain, `example.com:my-project`, is `my-project.example.com` in an address.
        host = ".".join(reversed(project.split(":")))
        yield GrantedObject("service account", f"{account}@{host}.iam.gserviceaccount.com")


def _opened_buckets(before: Resource | None, after: Resource | None) -> Iterator[Statement]:
    if after is None or after.type != BUCKET:
        return
    for key, (closed, barred) in _BARRIERS.items():
        if after.inputs.get(key) != closed and (before is None or before.inputs.get(key) == closed):
            yield Statement(f"no longer prevents {barred}: {{}}", (key,), Risk.ACCESS)


def _public_names(step: ResourceStep) -> Iterator[Statement]:
    """Yield the inputs that name the public, such as a grant, a rule of a federation or of a policy."""
    known = {*public_names(step.before)}
    for name in [name for name in public_names(step.after) if name not in known][:_MAX_NAMES]:
        yield Statement("names everyone, through {}, in {}", name, Risk.PUBLIC)
