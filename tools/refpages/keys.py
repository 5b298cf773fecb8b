"""The keys that a schema lets somebody write, in its order, each with all that the schema says of it."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

Schema: TypeAlias = Mapping[str, Any]

CHOSEN: Final = {
    "environments": "env",
    "overrides": "size",
    "zones": "size",
    "prices": "generation",
    "allow": "id",
    "labels": "label",
    "args": "flag",
    "env": "variable",
    "steps": "figure",
    "flags": "figure",
    "<size>": "figure",
}
"""Below a mapping whose keys the writer chooses: what such a key is called here."""


class Key(NamedTuple):
    """One key of the file."""

    path: tuple[str, ...]
    """From the top; a key that the writer chooses stands in angle brackets."""
    schema: Schema
    """With what it refers to."""
    required: bool
    instances: tuple[str, ...]
    """The path with an example in place of each chosen key."""

    @property
    def dotted(self) -> str:
        """As people write it: `environments.<env>.region`."""
        return ".".join(self.path)

    @property
    def anchor(self) -> str:
        """What both readers of the page make of its heading: the letters without what stands between them."""
        return "".join(step.strip("<>") for step in self.path)


def keys(schema: Schema) -> Iterator[Key]:
    """Every key that the schema allows, from the top down."""
    yield from _below(schema, schema.get("$defs", {}), (), ())


def _below(schema: Schema, defs: Schema, path: tuple[str, ...], instances: tuple[str, ...]) -> Iterator[Key]:
    for name, below in schema.get("properties", {}).items():
        key = Key((*path, name), _whole(below, defs), name in schema.get("required", ()), (*instances, name))
        yield key
        yield from _below(key.schema, defs, key.path, key.instances)
    below = schema.get("additionalProperties")
    if isinstance(below, dict):
        example = schema["propertyNames"]["examples"][0]
        key = Key((*path, f"<{CHOSEN[path[-1]]}>"), _whole(below, defs), False, (*instances, example))
        yield key
        yield from _below(key.schema, defs, key.path, key.instances)


def _whole(schema: Schema, defs: Schema) -> Schema:
    """The schema with what it refers to; what stands beside the reference counts."""
    if "$ref" not in schema:
        return schema
    return {**defs[schema["$ref"].rpartition("/")[2]], **schema}
