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
