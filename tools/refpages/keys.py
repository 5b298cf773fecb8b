"""Keys that a schema allows, in its order, each with its resolved schema."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

Schema: TypeAlias = Mapping[str, Any]

PLACEHOLDER_NAMES: Final = {
    "environments": "env",
    "overrides": "size",
    "zones": "size",
    "prices": "generation",
    "allow": "id",
    "allow_drift": "urn",
    "labels": "label",
    "args": "flag",
    "env": "variable",
    "steps": "figure",
    "flags": "figure",
    "<size>": "figure",
}
"""By mapping, the placeholder for keys that the user chooses."""


class Key(NamedTuple):
    """One key of the file."""

    path: tuple[str, ...]
    """Path from the top; a placeholder is in angle brackets."""
    schema: Schema
    """The schema with its reference resolved."""
    required: bool
    instances: tuple[str, ...]
    """The path with an example instead of each placeholder."""

    @property
    def dotted(self) -> str:
        """The path in dotted form: `environments.<env>.region`."""
        return ".".join(self.path)

    @property
    def anchor(self) -> str:
        """The anchor that both renderers of the page derive from the heading, without punctuation."""
        return "".join(step.strip("<>") for step in self.path)


def keys(schema: Schema) -> Iterator[Key]:
    """Yield every key that the schema allows, from the top down."""
    yield from _below(schema, schema.get("$defs", {}), (), ())


def _below(schema: Schema, defs: Schema, path: tuple[str, ...], instances: tuple[str, ...]) -> Iterator[Key]:
    for name, value_schema in schema.get("properties", {}).items():
        key = Key((*path, name), _resolved(value_schema, defs), name in schema.get("required", ()), (*instances, name))
        yield key
        yield from _below(key.schema, defs, key.path, key.instances)
    value_schema = schema.get("additionalProperties")
    if isinstance(value_schema, dict):
        example = schema["propertyNames"]["examples"][0]
        key = Key(
            (*path, f"<{PLACEHOLDER_NAMES[path[-1]]}>"), _resolved(value_schema, defs), False, (*instances, example)
        )
        yield key
        yield from _below(key.schema, defs, key.path, key.instances)


def _resolved(schema: Schema, defs: Schema) -> Schema:
    """Return the schema with its reference resolved; keywords beside the reference take precedence."""
    if "$ref" not in schema:
        return schema
    return {**defs[schema["$ref"].rpartition("/")[2]], **schema}
