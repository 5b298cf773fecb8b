"""Description of a JSON Schema's values in prose: type, form and bounds."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from refpages.keys import Schema

_TYPES: Final = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "`true` or `false`",
    "null": "`null`",
    "array": "list",
    "object": "mapping",
}

_BOUNDS: Final[dict[str, Callable[[Any], str]]] = {
    "minimum": lambda value: f"at least {value:,}",
    "exclusiveMinimum": lambda value: f"above {value:,}",
    "maximum": lambda value: f"at most {value:,}",
    "maxLength": lambda value: f"up to {value:,} characters",
    "minItems": lambda value: f"at least {_count(value, 'entry', 'entries')}",
    "maxItems": lambda value: f"up to {_count(value, 'entry', 'entries')}",
    "minProperties": lambda value: f"at least {_count(value, 'key', 'keys')}",
    "maxProperties": lambda value: f"up to {_count(value, 'key', 'keys')}",
}
"""Bounds and their descriptions. Without `minLength`, as every text with one has a pattern that rejects empty texts."""


def type_of(schema: Schema) -> str:
    """Return the type of the value, as a noun."""
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return f"one of {', '.join(f'`{_yaml_scalar(value)}`' for value in schema['enum'])}"
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    names = [_TYPES[name] for name in types]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def form_of(schema: Schema) -> Iterator[str]:
    """Yield each further requirement of a value, as a clause."""
    if has_form := "patternErrorMessage" in schema:
        yield schema["patternErrorMessage"]
    if "patternErrorMessage" in schema.get("propertyNames", {}):
        yield schema["propertyNames"]["patternErrorMessage"]
    # Where a matching text could be too long, the message of the pattern states the maximum length.
    bounds = {
        name: describe
        for name, describe in _BOUNDS.items()
        if not (has_form and name == "maxLength")
    }
    yield from (describe(schema[name]) for name, describe in bounds.items() if name in schema)
    for alternative, word in (("anyOf", "at least one of"), ("oneOf", "exactly one of")):
        if alternative in schema:
            choices = [
                " and ".join(f"`{name}`" for name in option["required"])
                for option in schema[alternative]
            ]
            yield f"{word}: {', '.join(choices)}"
    for key, needed in schema.get("dependentRequired", {}).items():
        yield f"`{key}` requires {' and '.join(f'`{name}`' for name in needed)}"


def _count(count: int, singular: str, plural: str) -> str:
    return f"{count:,} {singular if count == 1 else plural}"


def _yaml_scalar(value: object) -> str:
    return "null" if value is None else str(value)
