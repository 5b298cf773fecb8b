"""The resources of an environment as plain values."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tpucfg.spec.project import Environment


class Resource(NamedTuple):
    """One resource, as the program declares it."""

    type: str
    """Pulumi's type token: `gcp:storage/bucket:Bucket`."""
    name: str
    """The logical name."""
    inputs: Mapping[str, Any]
    """In Pulumi's spelling: `uniformBucketLevelAccess`."""
    protect: bool = False
    """Pulumi refuses to delete or replace it."""
    retain: bool = False
    """A resource that the stack no longer wants is left behind."""

    @property
    def kind(self) -> str:
        """The type in short: `storage.Bucket`."""
        package, _, name = self.type.rpartition(":")
        return f"{package.removeprefix('gcp:').partition('/')[0]}.{name}"


class EnvironmentResources(NamedTuple):
    """Everything that one stack would have."""

    environment: Environment
    resources: tuple[Resource, ...]
    """Sorted by type and name."""
    outputs: Mapping[str, Any]
