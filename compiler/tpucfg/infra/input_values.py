"""Inputs of resources, read as the provider reads them: it accepts texts in place of numbers and booleans."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

_NUMBER: Final = re.compile(r"-?[0-9]{1,15}(\.0*)?")
_BOOLEANS: Final[Mapping[str, bool]] = {"true": True, "1": True, "false": False, "0": False}


def input_at(inputs: Mapping[str, Any], path: Iterable[str]) -> Any:
    """Return the value at a path; None if there is none, and the mark of a secret or unknown value on the way."""
    value: Any = inputs
    for key in path:
        # The provider's schema has lists of one item where Pulumi has objects.
        value = value[0] if isinstance(value, list) and len(value) == 1 else value
        if isinstance(value, str):
            return value
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def boolean(value: Any) -> bool | None:
    """Return a boolean; None if the value is none."""
    if isinstance(value, bool):
        return value
    return _BOOLEANS.get(str(value).casefold()) if isinstance(value, int | str) else None


def number(value: Any) -> Any:
    """Return a whole number if the value is one, also as a text; any other value as it is."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return int(value.partition(".")[0])
    return int(value) if isinstance(value, float) and value.is_integer() else value
