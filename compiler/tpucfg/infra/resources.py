"""The resources of an environment as plain values, without Pulumi."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from tpucfg.spec import Environment

PROJECT_NUMBER: Final = re.compile(r"\[number of [^\]]{1,200}\]")
"""The mocks' placeholder of a project's number, which only Google knows."""
ACCOUNT: Final = "gcp:serviceaccount/account:Account"
BUCKET: Final = "gcp:storage/bucket:Bucket"
_NUMBER: Final = re.compile(r"-?[0-9]{1,15}(\.0*)?")
_BOOLEANS: Final[Mapping[str, bool]] = {"true": True, "1": True, "false": False, "0": False}


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
    options: Mapping[str, Any] = {}
    """Other options that differ from their default, as plain data: `ignoreChanges`, `importId`, `provider`."""
    secrets: Mapping[str, str] = {}
    """A digest of each input that the program wraps as a secret: `inputs` has only a mark of it."""

    @property
    def key(self) -> tuple[str, str, str]:
        """The identity of the resource in its stack: the types of its parents, its own type, and its name."""
        return str(self.options.get("parent", "")), self.type, self.name

    @property
    def kind(self) -> str:
        """The short form of the type: `storage.Bucket`."""
        package, _, name = self.type.rpartition(":")
        return f"{package.removeprefix('gcp:').partition('/')[0]}.{name}"

    @property
    def label(self) -> str:
        """The resource as a message names it."""
        return f"{self.kind} {self.name}"


def urn_name(urn: str) -> str:
    """Return the logical name in a URN, or in a reference to a provider, which has an id after it."""
    return (*urn.split("::", 4), "", "", "", "")[3]


def sort_resources(resources: Iterable[Resource]) -> tuple[Resource, ...]:
    """Return the resources by type and name alone: options and inputs of equal names need not be comparable."""
    return tuple(sorted(resources, key=lambda resource: (resource.type, resource.name)))


class Unseen(NamedTuple):
    """A feature of Pulumi whose effect on resources is not known without an engine."""

    kind: str
    """`call`, `component`, `dynamic`, `parameters`, `read` or `transform`."""
    name: str = ""
    """The resource that it is applied to, or its own name."""


class EnvironmentResources(NamedTuple):
    """All resources and outputs of one environment's stack."""

    environment: Environment
    resources: tuple[Resource, ...]
    """Sorted by type and name."""
    outputs: Mapping[str, Any]
    """Without the values that are wrapped as secrets."""
    providers: tuple[Resource, ...] = ()
    """The providers that the program configures itself, sorted like the resources."""
    unseen: tuple[Unseen, ...] = ()
    """Features that the program uses and only an engine with its plugins can carry out, sorted."""


# Inputs, read as the provider reads them: it accepts texts in place of numbers and booleans.


def input_at(inputs: Mapping[str, Any], path: Iterable[str]) -> Any:
    """Return the value at a path; None if there is none, and the mark of a secret or unknown value on the way."""
    value: Any = inputs
    for key in path:
        # The provider's schema has lists of one item where Pulumi has objects.
        value = value[0] if isinstance(value, list) and len(value) == 1 else value
        if isinstance(value, str):
            return value
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def boolean(value: Any) -> bool | None:
    """Return a boolean; None if the value is none."""
    if isinstance(value, bool):
        return value
    return _BOOLEANS.get(str(value).casefold()) if isinstance(value, int | str) else None


def number(value: Any) -> Any:
    """Return a whole number if the value is one, also as a text; any other value as it is."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return int(value.partition(".")[0])
    return int(value) if isinstance(value, float) and value.is_integer() else value
