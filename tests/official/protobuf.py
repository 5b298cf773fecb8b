"""The check that Google's protobuf types make of a message."""

from collections.abc import Mapping
from typing import Any

from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import Message

from official.reading import as_data


def refusals(kind: type[Message], config: str | Mapping[str, Any]) -> list[str]:
    """Return what protobuf's JSON reader has against the config as a message of this kind, the first fault only.

    It refuses unknown fields, unknown enum values, wrong types and malformed durations and times, and two fields of one
    `oneof`. It takes snake_case names, does not know which fields are required, and reads null as "not set".
    """
    try:
        ParseDict(as_data(config), kind(), ignore_unknown_fields=False)
    except (ParseError, TypeError) as refusal:  # TypeError: the config is no mapping
        return [str(refusal)]
    return []
