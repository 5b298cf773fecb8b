"""The resources of an environment as plain values, without Pulumi."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from tpucfg.redaction import SECRET
from tpucfg.spec.project import Environment

_GRANT_KEYS: Final = ("role", "member", "members")
"""Inputs of a grant. No resource of another kind has both a role and a member."""
_CONDITION: Final = "condition"
PROJECT_NUMBER: Final = re.compile(r"\[number of [^\]]{1,200}\]")
"""The mocks' placeholder of a project's number, which only Google knows."""


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
    secrets: tuple[str, ...] = ()
    """The inputs that the program wraps as secrets. `inputs` has their values, which rules judge and nothing prints."""

    @property
    def parent(self) -> str:
        """The types of its parents, which identify a resource in its stack together with its own type and name."""
        return str(self.options.get("parent", ""))

    @property
    def is_grant(self) -> bool:
        """True for a resource that grants a role to members."""
        role, *members = _GRANT_KEYS
        return role in self.inputs and any(key in self.inputs for key in members)

    @property
    def hidden_inputs(self) -> frozenset[str]:
        """The inputs whose values must not be printed: who may do what is no secret."""
        return frozenset(key for key in self.secrets if not self.is_grant or key == _CONDITION)

    @property
    def shown_inputs(self) -> dict[str, Any]:
        """The inputs as they may be printed."""
        hidden = self.hidden_inputs
        return {key: SECRET if key in hidden else value for key, value in self.inputs.items()}

    def hide_secrets(self, text: str) -> str:
        """Return a text about the resource with a mark for each word of it that is a hidden value."""
        hidden_texts = {*_texts([self.inputs.get(key) for key in self.hidden_inputs])}
        # The longest first, as one can contain another.
        for hidden in sorted(hidden_texts, key=len, reverse=True):
            text = re.sub(rf"(?<!\w){re.escape(hidden)}(?!\w)", SECRET, text)
        return text

    @property
    def kind(self) -> str:
        """The short form of the type: `storage.Bucket`."""
        package, _, name = self.type.rpartition(":")
        return f"{package.removeprefix('gcp:').partition('/')[0]}.{name}"


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts and the numbers in a value, as texts."""
    if isinstance(value, str | int | float) and value and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(item)


def sort_resources(resources: Iterable[Resource]) -> tuple[Resource, ...]:
    """Return the resources by type and name alone: options and inputs of equal names need not be comparable."""
    return tuple(sorted(resources, key=lambda resource: (resource.type, resource.name)))


class Unseen(NamedTuple):
    """A feature of Pulumi whose effect on resources is not known without an engine."""

    kind: str
    """A key of the table in `review/changes/program/unseen_changes.py`."""
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
