"""Parts that the generators of the API schemas share: the shape of a schema, and shortening of descriptions."""

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

Schema: TypeAlias = dict[str, Any]
"""A JSON Schema, or a part of one."""

MAX_DESCRIPTION_LENGTH = 150
"""Maximum number of characters. Editors show a description in a pop-up; the API's own page has the rest."""

_MARKERS = re.compile(
    r"^(?:(?:Required|Optional|Immutable|Output only|Deprecated|DEPRECATED)[.:]\s+)+"
)
_DEPRECATED = re.compile(r"^Deprecated|\bDeprecated: |\bDEPRECATED: ")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")
_SENTENCE_END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)\.(?=\s+[A-Z`(])")


def short(description: str) -> str:
    """Return the first sentence of a description, without links and without facts that the schema contains."""
    plain = _LINK.sub(r"\1", _MARKERS.sub("", " ".join(description.split())))
    sentence = _SENTENCE_END.split(plain, maxsplit=1)[0].rstrip(".")
    if len(sentence) <= MAX_DESCRIPTION_LENGTH:
        return sentence and sentence + "."
    return sentence[:MAX_DESCRIPTION_LENGTH].rsplit(" ", 1)[0].rstrip(",;:") + " …"


def described(schema: Schema, description: str) -> Schema:
    """Return the schema with its description, and with `deprecated` if the description contains it."""
    text = short(description)
    marked: Schema = {"deprecated": True} if _DEPRECATED.search(description) else {}
    return {**schema, **marked, **({"description": text} if text else {})}


def closed(properties: Mapping[str, Schema], required: list[str]) -> Schema:
    """Return the closed schema of a message with these fields."""
    schema: Schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": dict(properties),
    }
    return {**schema, "required": sorted(required)} if required else schema


def map_of(values: Schema) -> Schema:
    """Return the schema of a map with free keys, such as labels."""
    return {"type": "object", "additionalProperties": values}
