"""The resources of an environment as plain values, without Pulumi."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tpucfg.spec.project import Environment


# A NamedTuple and not a dataclass: the worker sends `_asdict()` as JSON, and resources sort by type and name.
class Resource(NamedTuple):
    """One resource, as the stack program declares it."""

    type: str
    """Pulumi's type token: `gcp:storage/bucket:Bucket`."""
    name: str
    """The logical name."""
    inputs: Mapping[str, Any]
    """The inputs in Pulumi's spelling: `uniformBucketLevelAccess`."""
    protect: bool = False
    """Pulumi refuses to delete or replace the resource."""
    retain: bool = False
    """Pulumi leaves the resource behind when the stack no longer declares it."""

    @property
    def kind(self) -> str:
        """The short form of the type: `storage.Bucket`."""
        package, _, name = self.type.rpartition(":")
        return f"{package.removeprefix('gcp:').partition('/')[0]}.{name}"


class EnvironmentResources(NamedTuple):
    """All resources and outputs of one environment's stack."""

    environment: Environment
    resources: tuple[Resource, ...]
    """Sorted by type and name."""
    outputs: Mapping[str, Any]
