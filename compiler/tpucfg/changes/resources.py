"""Changes to the resources of an environment, from a Pulumi preview or from the stack programs, and added access.

A `Step` is a resource before and after, and a `ResourceChange` is what that means. Access that a change adds are new
and broader grants, basic roles, public members, and opened buckets.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, Literal, NamedTuple

from tpucfg.changes.facts import Change, Risk
from tpucfg.changes.statements import Statement
from tpucfg.infra.grants import (
    BASIC_ROLES,
    CUSTOM_ROLE,
    PUBLIC,
    Grant,
    Target,
    grants_of,
    is_public,
    power_of,
    target_of,
    unparsed_policy,
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
        ("customPlacementConfig", "enableObjectRetention", "hierarchicalNamespace", "location", "name", "project")
    ),
    "gcp:storage/bucketIAMMember:BucketIAMMember": _GRANT | {"bucket"},
    "gcp:projects/iAMCustomRole:IAMCustomRole": frozenset(("project", "roleId")),
    "gcp:projects/iAMMember:IAMMember": _GRANT | {"project"},
    "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember": _GRANT | {"project", "location", "repository"},
    "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember": _GRANT | {"cryptoKeyId"},
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


class Step(NamedTuple):
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


# The field names are keys of `tpucfg review --format json`.
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


_COUNTED: Final[Mapping[str, tuple[str, Callable[[ResourceChange], bool]]]] = {
    "delete": ("deleted", lambda change: change.op == "delete"),
    "replace": ("replaced", lambda change: change.op == "replace"),
    "lifted": ("no longer protected", lambda change: change.protection == "lifted"),
    # A deletion rule or a shorter retention is only an update, but the reason to read on.
    "at_risk": ("with data at risk", lambda change: any(statement.destructive for statement in change.statements)),
    "widened": ("with wider access", lambda change: any(statement.opens for statement in change.statements)),
    "create": ("created", lambda change: change.op == "create"),
    "imported": ("imported", lambda change: change.op == "import"),
    "update": ("updated", lambda change: change.op == "update"),
}
"""The counts of changed resources with their words, the risks first; one resource can be in several of them."""


def count_resources(changes: Collection[ResourceChange]) -> dict[str, int]:
    """Return the numbers of resources by operation, lifted protection, data at risk and widened access."""
    return {name: sum(map(is_counted, changes)) for name, (_, is_counted) in _COUNTED.items()}


def count_phrases(changes: Collection[ResourceChange]) -> list[tuple[int, str]]:
    """Return the numbers that are not zero, with their words."""
    return [(count, _COUNTED[name][0]) for name, count in count_resources(changes).items() if count]


# Access


_BARRIERS: Final[Mapping[str, tuple[Any, str]]] = {
    "publicAccessPrevention": ("enforced", "public access to its objects"),
    "uniformBucketLevelAccess": (True, "access lists on single objects"),
}
"""Inputs of a bucket, with the value that closes it, and the access that this prevents:
https://cloud.google.com/storage/docs/public-access-prevention and
https://cloud.google.com/storage/docs/uniform-bucket-level-access."""
_NARROW_TO_BROAD: Final = (
    ("roles/storage.objectViewer", "roles/storage.objectUser", "roles/storage.objectAdmin", "roles/storage.admin"),
    ("roles/viewer", "roles/editor", "roles/owner"),
)
"""Roles of which each includes the permissions of those before it:
https://cloud.google.com/storage/docs/access-control/iam-roles and
https://cloud.google.com/iam/docs/roles-overview#basic."""
_MAX_MENTIONS: Final = 20
"""Limit of places outside grants that name the public, for one resource."""
_MAX_PERMISSIONS: Final = 6
_UNKNOWN_ROLE: Final = re.compile(r"(projects|organizations)/[^/]+/roles/")
_UNNAMED: Final = "without a name"
_UNKNOWN_PERMISSIONS: Final = "its permissions are unknown, as no stack program declares this custom role"


_Roles = Mapping[str, AbstractSet[str]]
"""The conditions under which a member has each role."""


class _Context(NamedTuple):
    """Grants and objects of all steps, with which a single grant is compared."""

    held: Mapping[tuple[str, Target], _Roles]
    """All grants before the change, by member and object."""
    created: frozenset[Target]
    """The buckets and accounts that the change creates."""
    revoked: "Counter[Grant]"
    """Grants that end, each of which excuses an equal one on a created object."""
    permissions: Mapping[str, tuple[str, ...]]
    """The permissions of each custom role after the change, by the role's name in grants."""
    is_new: bool
    """True if no resource existed before."""


def access_statements(steps: Sequence[Step]) -> list[tuple[Statement, ...]]:
    """Return sentences about the access that each step adds.

    A grant that any resource gave before adds nothing. Nor does one on a bucket that the change creates, if the change
    also revokes an equal grant elsewhere: the grant moves with its data. Nor does one whose role becomes narrower, or
    one of a new environment on a bucket or an account that it creates itself.
    """
    held = {grant for step in steps for grant in grants_of(step.before)}
    given = {grant for step in steps for grant in grants_of(step.after)}
    context = _Context(
        _by_member(held),
        frozenset(_created_targets(steps)),
        Counter(map(_movable, held - given)),
        dict(role for step in steps for role in _custom_roles(step.after)),
        all(step.before is None for step in steps),
    )
    return [
        (
            *_new_grants(step, context),
            *_opened_buckets(step.before, step.after),
            *_replaced_policies(step),
            *_public_mentions(step.before, step.after),
        )
        for step in steps
    ]


def _by_member(grants: Iterable[Grant]) -> Mapping[tuple[str, Target], _Roles]:
    grouped: dict[tuple[str, Target], dict[str, set[str]]] = {}
    for grant in grants:
        roles = grouped.setdefault((grant.member, grant.on), {})
        roles.setdefault(grant.role, set()).add(grant.condition)
    return grouped


def _new_grants(step: Step, context: _Context) -> Iterator[Statement]:
    for grant in grants_of(step.after):
        # Two hidden values look equal even if they differ.
        is_comparable = step.op == "same" or not _is_hidden(grant)
        previous = context.held.get((grant.member, grant.on), {}) if is_comparable else {}
        if _is_contained(grant, previous):
            continue
        movable = _movable(grant)
        # Each revoked grant excuses one new grant only: two would give access to a second bucket.
        if _is_created(grant.on, context) and context.revoked[movable] > 0:
            context.revoked[movable] -= 1
        elif is_public(grant.member) or not _is_own(grant, previous, context):
            yield _statement(grant, previous, context.permissions.get(grant.role, ()))


def _statement(grant: Grant, previous: _Roles, permissions: Sequence[str]) -> Statement:
    kind = re.sub("[^A-Za-z ]", "", grant.on.kind)
    template, values = f"grants {{}} on the {kind} {{}} to {{}}", [grant.role, grant.on.name or _UNNAMED, grant.member]
    risk = Risk.PUBLIC if is_public(grant.member) else Risk.ACCESS
    if risk is Risk.PUBLIC:
        template = f"grants {{}} on the {kind} {{}} to everyone, through {{}}"
    elif grant.role in previous:
        template += " under another condition than before" if grant.condition else " without the condition that it had"
    if grant.condition:
        template, values = f"{template}, if {{}}", [*values, grant.condition]
    # A custom role's name is chosen freely: only its permissions are the access.
    if permissions:
        ordered = sorted(permissions, key=lambda permission: not power_of(permission))
        reach = "in" if grant.condition else "for everything in"
        template += f": {listed(['{}'] * len(ordered), _MAX_PERMISSIONS)} {reach} that {kind}"
        values += ordered[:_MAX_PERMISSIONS]
    elif _UNKNOWN_ROLE.match(grant.role):
        template += f": {_UNKNOWN_PERMISSIONS}"
    return Statement(template, tuple(map(redact, values)), risk)


def _movable(grant: Grant) -> Grant:
    """Return a grant without the name of its object, which a moved bucket changes."""
    return grant._replace(on=Target(grant.on.kind, ""))


def _custom_roles(resource: Resource | None) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the name of a custom role as grants write it, and its permissions."""
    match = CUSTOM_ROLE.search(resource.type) if resource else None
    if resource is None or match is None:
        return
    parent = resource.inputs.get("project" if match[1] == "projects" else "orgId")
    permissions = resource.inputs.get("permissions")
    if isinstance(permissions, list):
        texts = tuple(permission for permission in permissions if isinstance(permission, str))
        yield f"{match[1]}/{parent}/roles/{resource.inputs.get('roleId')}", texts


def _is_own(grant: Grant, previous: _Roles, context: _Context) -> bool:
    """Return True for a grant of a new environment on what it creates, which holds no data yet."""
    is_new = context.is_new and grant.role not in previous
    return is_new and _is_created(grant.on, context) and grant.role not in BASIC_ROLES and not _lends_account(grant)


def _lends_account(grant: Grant) -> bool:
    """Return True if the member can act as the account, unless it is a pod of the account's own project."""
    if grant.on.kind != "account" or not power_of(grant.role):
        return False
    project = grant.on.name.partition("@")[2].removesuffix(".iam.gserviceaccount.com")
    return not grant.member.startswith(f"serviceAccount:{project}.svc.id.goog[")


def _is_hidden(grant: Grant) -> bool:
    return bool({SECRET, UNKNOWN} & {grant.role, grant.member, grant.condition, grant.on.name})


def _is_contained(grant: Grant, previous: _Roles) -> bool:
    """Return True if the member had the role or a broader one, under an equal condition or none."""
    return any({"", grant.condition} & previous.get(role, frozenset()) for role in (grant.role, *_broader(grant.role)))


def _broader(role: str) -> tuple[str, ...]:
    return next((row[row.index(role) + 1 :] for row in _NARROW_TO_BROAD if role in row), ())


def _is_created(target: Target, context: _Context) -> bool:
    """Return True if the change creates the object; in a preview, its name can be known only after the update."""
    return target in context.created or (
        target.name == UNKNOWN and any(created.kind == target.kind for created in context.created)
    )


def _created_targets(steps: Sequence[Step]) -> Iterator[Target]:
    existing = {target for step in steps for target in _own_targets(step.before)}
    for step in steps:
        yield from (target for target in _own_targets(step.after) if target not in existing)


def _own_targets(resource: Resource | None) -> Iterator[Target]:
    """Yield the object that a resource is, if roles are granted on it by its name."""
    if resource is None:
        return
    name, project, account = (resource.inputs.get(key) for key in ("name", "project", "accountId"))
    if resource.type == BUCKET and isinstance(name, str):
        yield Target("bucket", name)
    if resource.type == ACCOUNT and isinstance(account, str) and isinstance(project, str):
        # A project of a domain, `example.com:my-project`, is `my-project.example.com` in an address.
        host = ".".join(reversed(project.split(":")))
        yield Target("account", f"{account}@{host}.iam.gserviceaccount.com")


def _opened_buckets(before: Resource | None, after: Resource | None) -> Iterator[Statement]:
    if after is None or after.type != BUCKET:
        return
    for key, (closed, barred) in _BARRIERS.items():
        if after.inputs.get(key) != closed and (before is None or before.inputs.get(key) == closed):
            yield Statement(f"no longer prevents {barred}: {{}}", (key,), Risk.ACCESS)


def _replaced_policies(step: Step) -> Iterator[Statement]:
    # A policy replaces all grants at once, also those that were never declared.
    policy = unparsed_policy(step.after)
    if step.after is None or policy is None or step.op == "same":
        return
    # Two secrets look equal even if they differ.
    if policy != unparsed_policy(step.before) or policy in (SECRET, UNKNOWN):
        yield Statement(
            "replaces the whole IAM policy of {}: {}", (target_of(step.after).text, "policyData"), Risk.ACCESS
        )


def _public_mentions(before: Resource | None, after: Resource | None) -> Iterator[Statement]:
    """Yield the inputs outside grants that name the public, such as a rule of a federation or of a policy."""
    if after is None or any(is_public(grant.member) for grant in grants_of(after)):
        return
    known = {*_mentions(before.inputs if before else {})}
    new = [mention for mention in dict.fromkeys(_mentions(after.inputs)) if mention not in known]
    for key, member in new[:_MAX_MENTIONS]:
        yield Statement("names everyone, through {}, in {}", (member, key), Risk.PUBLIC)


def _mentions(inputs: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the top-level input and the public member for each text that contains one."""
    for key, value in inputs.items():
        stack = [value]
        while stack:
            item = stack.pop()
            if isinstance(item, Mapping):
                stack += [*item.keys(), *item.values()]
            elif isinstance(item, list):
                stack += item
            elif isinstance(item, str):
                yield from ((key, member) for member in PUBLIC if member in item)
