"""The patterns of the API schemas in words and by example: editors show `patternErrorMessage`, and tpucfg does."""

from typing import Any

from apischema import Schema

WORDS = {
    "^-?[0-9]+$": "a whole number is written in digits",
    r"^[0-9]+(\.[0-9]{1,9})?s$": "a duration is a number of seconds and an s: 3600s",
    "datetime": "a time is written as 2026-01-31T08:00:00Z is",
    "quantity": "a quantity is a number, with a unit such as m, k, M, G, Ki, Mi or Gi where it needs one",
    "^[A-Za-z0-9_.~+%-]+$": "an id has letters, digits and any of - . _ ~ + %",
    "^(|Memory|HugePages|HugePages-.+)$": "a medium is Memory, HugePages or HugePages- and a size",
    "^(|BlockDevice|CharDevice|Directory|DirectoryOrCreate|File|FileOrCreate|Socket)$": (
        "a type is BlockDevice, CharDevice, Directory, DirectoryOrCreate, File, FileOrCreate or Socket"
    ),
    r"^SIG[A-Z0-9]+([+-][0-9]+)?$": "a signal is written as SIGTERM is",
}
EXAMPLES = dict(
    zip(WORDS, ("1", "3600s", "2026-01-31T08:00:00Z", "1Gi", "a-1", "Memory", "Directory", "SIGTERM"), strict=True)
)
_LONG = {"^[0-9]{4}-": "datetime", "^[+-]?(": "quantity"}
"""Patterns that are too long to be a key, by how they begin."""


def worded(schema: Any) -> Any:
    """Return the schema with each pattern's words and an example beside it.

    Raises:
        KeyError: A pattern has none.
    """
    if isinstance(schema, list):
        return [worded(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made: Schema = {key: worded(value) for key, value in schema.items()}
    pattern = schema.get("pattern")
    if not isinstance(pattern, str):
        return made
    name = next((name for start, name in _LONG.items() if pattern.startswith(start)), pattern)
    return {**made, "examples": [EXAMPLES[name]], "patternErrorMessage": WORDS[name]}
