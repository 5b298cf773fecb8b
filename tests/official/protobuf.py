"""Validation of a message by Google's protobuf types."""

from collections.abc import Mapping
from typing import Any

from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import Message

from official.reading import as_data


def refusals(kind: type[Message], config: str | Mapping[str, Any]) -> list[str]:
    """Return the first error of protobuf's JSON parser for the config as a message of this type.

    The parser rejects unknown fields, unknown enum values, wrong types, malformed times, and two fields of
    one `oneof`. It accepts snake_case names, does not know which fields are required, and reads null as "not set".
    """
    try:
        ParseDict(as_data(config), kind(), ignore_unknown_fields=False)
    except (ParseError, TypeError) as refusal:  # TypeError: the config is no mapping
        return [str(refusal)]
    return []
