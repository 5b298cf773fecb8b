"""Messages written as tables, for APIs whose definition is in no package."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from apischema import Schema, closed, described, map_of


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message."""

    name: str
    type: str
    """`string`, `integer`, `boolean`, a message's name, a list of one of these as `[…]`, or a map as `{…}`."""
    description: str
    values: str = ""
    """Values of an enum, separated by blanks."""
    required: bool = False


def messages(tables: Mapping[str, Sequence[Field]]) -> dict[str, Schema]:
    """Return the schemas of messages by name."""
    return {
        message: closed(
            {field.name: _field(field) for field in fields}, [f.name for f in fields if f.required]
        )
        for message, fields in tables.items()
    }


def _field(field: Field) -> Schema:
    kind = field.type.strip("[]{}")
    inner: Schema = {"$ref": f"#/$defs/{kind}"} if kind[0].isupper() else {"type": kind}
    if field.values:
        inner["enum"] = field.values.split()
    if field.type.startswith("["):
        inner = {"type": "array", "items": inner}
    return described(map_of(inner) if field.type.startswith("{") else inner, field.description)
