"""Options of a resource, read from the request that Pulumi's library sends to the engine.

Mocks receive a resource's inputs, but none of its options: https://www.pulumi.com/docs/iac/concepts/resources/options/.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

_EXPLAINING_HOOK: Final = ("on_error", "on-refusal")
"""The hook of the bundled program, which explains an error after it has happened."""


class Ancestors(NamedTuple):
    """The parents of a resource."""

    types: str = ""
    """Their types from the outermost, as they stand in the resource's URN; empty below the stack itself."""
    aliases: tuple[Mapping[str, str], ...] = ()
    """Their aliases, which the engine applies to all resources below."""

    def below(self, request: Any) -> "Ancestors":
        """Return the ancestors of the children of a resource."""
        types = f"{self.types}${request.type}" if self.types else request.type
        return Ancestors(types, (*self.aliases, *_aliases(request)))


def request_options(request: Any, ancestors: Ancestors, *, default_version: str) -> dict[str, Any]:
    """Return the options that differ from their default, as plain data, in the order of their names."""
    options = {name: read(request) for name, read in _READERS.items()}
    options["version"] = request.version if request.version != default_version else ""
    if ancestors.types:
        options["parent"] = ancestors.types
    if ancestors.aliases:
        options["parentAliases"] = [*ancestors.aliases]
    return {name: value for name, value in sorted(options.items()) if value not in _UNSET}


def urn_name(urn: str) -> str:
    """Return the logical name in a URN, or in a reference to a provider, which has an id after it."""
    return (*urn.split("::", 4), "", "", "", "")[3]


def _aliases(request: Any) -> list[Mapping[str, str]]:
    return [fields for alias in getattr(request, "aliases", ()) if (fields := _alias(alias))]


def _alias(alias: Any) -> Mapping[str, str]:
    """Return an alias as the part of a URN that it names; empty for another type only, as providers rename types."""
    if alias.urn:
        return {"urn": alias.urn}
    spec = alias.spec
    fields = {"name": spec.name, "parent": spec.parentUrn, "stack": spec.stack, "project": spec.project}
    changed = {key: value for key, value in fields.items() if value}
    if spec.noParent:
        changed["parent"] = ""
    return changed | ({"type": spec.type} if changed and spec.type else {})


def _hooks(request: Any) -> list[str]:
    """Return the hooks as `stage: name`."""
    binding = getattr(request, "hooks", None)
    stages = ((field.name, [*value]) for field, value in binding.ListFields()) if binding is not None else ()
    return [f"{stage}: {name}" for stage, names in stages for name in names if (stage, name) != _EXPLAINING_HOOK]


def _digest(value: Any) -> str:
    """Return a short digest of a protobuf value: its text may be a secret; empty without a value."""
    if value is None or not value.WhichOneof("kind") or value.WhichOneof("kind") == "null_value":
        return ""
    return hashlib.sha256(json.dumps(str(value)).encode()).hexdigest()[:12]


def _texts(name: str) -> Callable[[Any], list[str]]:
    return lambda request: sorted(map(str, getattr(request, name, ())))


_UNSET: Final[tuple[Any, ...]] = (None, "", [], {})
# An older version of Pulumi's library does not have the newer fields.
_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "additionalSecretOutputs": _texts("additionalSecretOutputs"),
    "aliases": lambda request: sorted(_aliases(request), key=str),
    "deleteBeforeReplace": lambda request: request.deleteBeforeReplace if request.deleteBeforeReplaceDefined else None,
    "deletedWith": lambda request: urn_name(request.deletedWith),
    "envVarMappings": lambda request: dict(sorted(getattr(request, "envVarMappings", {}).items())),
    "hideDiffs": _texts("hideDiffs"),
    "hooks": _hooks,
    "ignoreChanges": _texts("ignoreChanges"),
    "importId": lambda request: request.importId,
    "pluginDownloadURL": lambda request: request.pluginDownloadURL,
    "provider": lambda request: urn_name(request.provider),
    "replaceOnChanges": _texts("replaceOnChanges"),
    "replaceWith": lambda request: sorted(map(urn_name, getattr(request, "replace_with", ()))),
    "replacementTrigger": lambda request: _digest(getattr(request, "replacement_trigger", None)),
    "stateMigrations": lambda request: len(getattr(request, "state_migrations", ())) or None,
}
"""Functions that read an option from a request."""
