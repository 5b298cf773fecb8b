"""What happens to the resources of an environment, whoever says so: the program's two sides, or Pulumi's preview."""

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from tpucfg.diff.change import Change
from tpucfg.infra.resources import Resource

Op = Literal["create", "update", "replace", "delete", "import", "same"]
"""`same`: only what surrounds the resource changes, as its protection does."""
UNKNOWN: Final = "[known after apply]"
"""In the place of a value that only the update will know."""
REMOVING_OPS: Final = ("replace", "delete")
"""The operations after which the resource that was there is there no more."""
BUCKET: Final = "gcp:storage/bucket:Bucket"
HOLDS_DATA: Final = frozenset(
    (
        "gcp:storage/bucket:Bucket",
        "gcp:storage/bucketObject:BucketObject",
        "gcp:storage/managedFolder:ManagedFolder",
        "gcp:artifactregistry/repository:Repository",
        "gcp:alloydb/cluster:Cluster",
        "gcp:bigquery/dataset:Dataset",
        "gcp:bigquery/table:Table",
        "gcp:bigtable/instance:Instance",
        "gcp:bigtable/table:Table",
        "gcp:compute/disk:Disk",
        "gcp:compute/image:Image",
        "gcp:compute/regionDisk:RegionDisk",
        "gcp:compute/snapshot:Snapshot",
        "gcp:filestore/instance:Instance",
        "gcp:firestore/database:Database",
        "gcp:kms/cryptoKey:CryptoKey",
        "gcp:parallelstore/instance:Instance",
        "gcp:pubsub/topic:Topic",
        "gcp:redis/instance:Instance",
        "gcp:secretmanager/secret:Secret",
        "gcp:secretmanager/secretVersion:SecretVersion",
        "gcp:spanner/database:Database",
        "gcp:spanner/instance:Instance",
        "gcp:sql/database:Database",
        "gcp:sql/databaseInstance:DatabaseInstance",
    )
)
"""Types whose end is the end of what people put there: https://www.pulumi.com/registry/packages/gcp/api-docs/."""


class Widening(NamedTuple):
    """Access that somebody has after the change and did not have before it."""

    what: str
    """The role, or the field that opens the resource."""
    who: str
    """The member; empty where a field opens it."""
    why: Literal["new", "broader", "basic", "public", "opens", "policy"]
    """A new grant; more of the same; a basic role; everybody; a barrier taken away; a whole policy written anew."""


class ResourceChange(NamedTuple):
    """One resource that is not afterwards what it was before."""

    environment: str
    op: Op
    type: str
    """Pulumi's type token: `gcp:storage/bucket:Bucket`."""
    name: str
    """The logical name."""
    inputs: tuple[Change, ...] = ()
    """By input; of what comes or goes, every input."""
    because: tuple[str, ...] = ()
    """The inputs that cannot be changed in place; of a replacement only, where they are known."""
    hidden: tuple[str, ...] = ()
    """Properties that the engine says differ while their inputs, as far as they are shown, do not: secrets, drift."""
    protected: bool = False
    """Whether it was protected before: then the engine refuses to replace or delete it."""
    protection: Literal["", "lifted", "added"] = ""
    retained: bool = False
    """What goes is left behind where it is, and only the stack forgets it."""
    widened: tuple[Widening, ...] = ()

    @property
    def kind(self) -> str:
        """The type in short: `storage.Bucket`."""
        return Resource(self.type, self.name, {}).kind

    @property
    def loses_data(self) -> bool:
        """What people put there goes with it."""
        return self.op in REMOVING_OPS and self.type in HOLDS_DATA and not self.retained

    @property
    def destructive(self) -> bool:
        """It loses data, or gives up what keeps data from being lost."""
        return self.loses_data or self.protection == "lifted"

    @property
    def refused(self) -> bool:
        """The engine will not do it: the protection has to be lifted first, in an update of its own."""
        return self.op in REMOVING_OPS and self.protected


class Counts(NamedTuple):
    """How many resources of one environment; a resource may count in several columns."""

    create: int = 0
    update: int = 0
    replace: int = 0
    delete: int = 0
    imported: int = 0
    lifted: int = 0
    """Protection lifted."""
    widened: int = 0
    """Access widened."""


def count_resources(changes: Iterable[ResourceChange]) -> Counts:
    """The row of an environment in the summary."""
    listed = tuple(changes)
    ops = [change.op for change in listed]
    return Counts(
        create=ops.count("create"),
        update=ops.count("update"),
        replace=ops.count("replace"),
        delete=ops.count("delete"),
        imported=ops.count("import"),
        lifted=sum(change.protection == "lifted" for change in listed),
        widened=sum(bool(change.widened) for change in listed),
    )
