"""Messages and examples for the patterns of the API schemas; editors and tpucfg show `patternErrorMessage`."""

from typing import Any

from apischema import Schema

MESSAGES = {
    "^-?[0-9]+$": "a whole number is written in digits",
    r"^[0-9]+(\.[0-9]{1,9})?s$": "a duration is a number of seconds and an s: 3600s",
    "datetime": "a time has the form 2026-01-31T08:00:00Z",
    "quantity": "a quantity is a number, with a unit such as m, k, M, G, Ki, Mi or Gi where it needs one",
    "^[A-Za-z0-9_.~+%-]+$": "an id has letters, digits and any of - . _ ~ + %",
    "^(|Memory|HugePages|HugePages-.+)$": "a medium is Memory, HugePages or HugePages- and a size",
    "^(|BlockDevice|CharDevice|Directory|DirectoryOrCreate|File|FileOrCreate|Socket)$": (
        "a type is BlockDevice, CharDevice, Directory, DirectoryOrCreate, File, FileOrCreate or Socket"
    ),
    r"^SIG[A-Z0-9]+([+-][0-9]+)?$": "a signal has a name such as SIGTERM",
}
EXAMPLES = dict(
    zip(
        MESSAGES,
        ("1", "3600s", "2026-01-31T08:00:00Z", "1Gi", "a-1", "Memory", "Directory", "SIGTERM"),
        strict=True,
    )
)
_LONG = {"^[0-9]{4}-": "datetime", "^[+-]?(": "quantity"}
"""Patterns that are too long for a key, by their start."""


def with_messages(schema: Any) -> Any:
    """Return the schema with a message and an example beside each pattern.

    Raises:
        KeyError: A pattern has no message.
    """
    if isinstance(schema, list):
        return [with_messages(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result: Schema = {key: with_messages(value) for key, value in schema.items()}
    pattern = schema.get("pattern")
    if not isinstance(pattern, str):
        return result
    name = next((name for start, name in _LONG.items() if pattern.startswith(start)), pattern)
    return {**result, "examples": [EXAMPLES[name]], "patternErrorMessage": MESSAGES[name]}
