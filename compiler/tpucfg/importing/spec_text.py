"""Write a spec: its keys in the order of the schema, numbers in the file's spelling, and a mark at each gap."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tpucfg.importing.program import Number
from tpucfg.paths import KeyPath, matches
from tpucfg.schemas import load_schema, resolve_references
from tpucfg.yamldoc.writer import yaml_entry, yaml_scalar

_SCHEMA_LINE: Final = "# yaml-language-server: $schema=schema/tpucfg.schema.json\n"
_GAPS: Final = (
    "sizes.0",
    "environments.*.project",
    "environments.*.region",
    "trainer.image",
    "training.tuned_on",
    "training.batch_size",
    "training.train_steps",
)
"""The values that every spec needs, and that a file may lack."""
_MAX_WIDTH: Final = 100


def is_gap(path: KeyPath, value: Any) -> bool:
    """Return True for a value of a spec that the reader fills in; any other null is a value."""
    return value is None and any(matches(pattern, path) for pattern in _GAPS)


def spec_text(spec: Mapping[str, Any]) -> str:
    """Return the text of a spec; a required value that is None is marked."""
    ordered = _ordered(spec, load_schema("tpucfg"))
    return _SCHEMA_LINE + "".join(f"{line}\n" for line in _mapping(ordered, ()))


def _mapping(values: Mapping[str, Any], path: KeyPath) -> Iterator[str]:
    indent = "  " * len(path)
    for key, value in values.items():
        place = (*path, key)
        if isinstance(value, dict) and value:
            yield f"{indent}{yaml_scalar(key)}:"
            yield from _mapping(value, place)
        elif is_gap(place, value):
            yield f"{indent}{key}: null  # fill in"
        elif isinstance(value, Number):
            yield f"{indent}{key}: {value}"
        elif isinstance(value, list) and (line := _short_list(value, place)):
            yield f"{indent}{yaml_scalar(key)}: {line}"
        else:
            yield f"{indent}{yaml_entry(key, value, len(indent))}"


def _short_list(values: list[Any], path: KeyPath) -> str | None:
    """Return a list of short scalars as one line; None for any other list."""
    if not all(isinstance(value, str | int | float | None) for value in values):
        return None
    line = f"[{', '.join(map(yaml_scalar, values))}]"
    gap = "  # fill in" if any(is_gap((*path, index), value) for index, value in enumerate(values)) else ""
    return line + gap if len(line) <= _MAX_WIDTH else None


def _ordered(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return a mapping with its keys in the order of the schema, those that it does not list last."""
    if not isinstance(value, dict):
        return value
    schema = resolve_references(load_schema("tpucfg"), schema)
    known, others = schema.get("properties", {}), schema.get("additionalProperties")
    keys = [*(key for key in known if key in value), *(key for key in value if key not in known)]
    return {key: _ordered(value[key], known.get(key, others if isinstance(others, dict) else {})) for key in keys}
