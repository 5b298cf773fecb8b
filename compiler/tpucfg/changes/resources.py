"""Changes to the resources of an environment, read from a Pulumi preview or from the stack programs.

A `Step` is a resource before and after, and a `ResourceChange` is what that means.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Final, Literal, NamedTuple

from tpucfg.changes.facts import Change
from tpucfg.changes.statements import Statement
from tpucfg.infra.resources import ACCOUNT, BUCKET, Resource

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
    op: Op
    because: tuple[str, ...] = ()
    """The inputs that force a replacement."""
    differs: tuple[str, ...] = ()
    """The properties that differ according to the engine."""


Reason = Literal["new", "public", "condition", "unconditional", "own", "names", "opens", "policy"]
"""The kind of access that a change adds.

`new`: a grant that did not exist; `public`: a grant to everyone; `condition`, `unconditional`: a grant under another
condition than before, or under none; `own`: a grant of a new environment on a bucket or an account that the same change
creates; `names`: an input that names everyone; `opens`: a barrier removed; `policy`: a whole policy replaced.
"""


# The field names of the next two classes are keys of `tpucfg review --format json`.
class Widening(NamedTuple):
    """Access that a change adds."""

    what: str
    """The role, or the input that opens the resource."""
    who: str
    """The member; empty if an input opens the resource."""
    why: Reason
    on_kind: str = ""
    """The kind of the object on which a role is granted: `bucket`, `project`, `account`; empty without a role."""
    on: str = ""
    """The name of that object."""
    permissions: tuple[str, ...] = ()
    """The permissions of a custom role that the same program declares."""
    condition: str = ""
    """The expression that limits the grant; empty if nothing does."""


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
    widened: tuple[Widening, ...] = ()
    statements: tuple[Statement, ...] = ()
    """Sentences about the meaning of changed inputs and options, without the resource's name."""
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


_COUNTED: Final[Mapping[str, Callable[[ResourceChange], bool]]] = {
    "delete": lambda change: change.op == "delete",
    "replace": lambda change: change.op == "replace",
    "lifted": lambda change: change.protection == "lifted",
    "at_risk": lambda change: any(statement.destructive for statement in change.statements),
    "widened": lambda change: bool(change.widened),
    "create": lambda change: change.op == "create",
    "imported": lambda change: change.op == "import",
    "update": lambda change: change.op == "update",
}
"""The counts of changed resources; one can be in several of them."""


def count_resources(changes: Collection[ResourceChange]) -> dict[str, int]:
    """Return the numbers of resources by operation, lifted protection, data at risk and widened access."""
    return {name: sum(map(is_counted, changes)) for name, is_counted in _COUNTED.items()}
