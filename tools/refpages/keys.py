"""Keys that a schema allows, in its order, each with its resolved schema."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from tpucfg.schemas import resolve_references
from tpucfg.spec.layers import LAYERED

Schema: TypeAlias = Mapping[str, Any]

PLACEHOLDER_NAMES: Final = {
    "environments": "env",
    "overrides": "size",
    "zones": "size",
    "prices": "generation",
    "allow": "id",
    "labels": "label",
    "args": "flag",
    "env": "variable",
    "secrets": "variable",
    "mounts": "folder",
    "reads": "bucket",
    "xla_flags": "generation",
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
        """The anchor that both renderers of the page derive from a heading, without punctuation."""
        return "".join(step.strip("<>") for step in self.path)


def keys(schema: Schema) -> Iterator[Key]:
    """Yield every key that the schema allows, from the top down; those below a layered key at the top only."""
    yield from _below(schema, schema, (), ())


def _below(
    schema: Schema, root: Schema, path: tuple[str, ...], instances: tuple[str, ...]
) -> Iterator[Key]:
    for name, reference in schema.get("properties", {}).items():
        value_schema = resolve_references(root, reference)
        key = Key(
            (*path, name), value_schema, name in schema.get("required", ()), (*instances, name)
        )
        yield key
        if not path or name not in LAYERED:
            yield from _below(key.schema, root, key.path, key.instances)
    if isinstance(schema.get("additionalProperties"), dict):
        value_schema = resolve_references(root, schema["additionalProperties"])
        example = schema["propertyNames"]["examples"][0]
        key = Key(
            (*path, f"<{PLACEHOLDER_NAMES[path[-1]]}>"), value_schema, False, (*instances, example)
        )
        yield key
        yield from _below(key.schema, root, key.path, key.instances)
