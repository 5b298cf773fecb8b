"""JSON that every parser reads in the same way: unique keys, finite numbers and bounded nesting."""

import json
from collections.abc import Callable
from math import isfinite
from typing import Any, Final

from tpucfg.text_format import format_value, quote_key

_MAX_DIGITS: Final = 25
"""Digits of the largest integer that any schema accepts: a step of a whole slice may have 1e20 FLOPs."""


class AmbiguousJsonError(ValueError):
    """JSON that parsers disagree about: duplicate keys, NaN, numbers beyond their range, unbounded nesting."""


def finite_float(text: str) -> float:
    """Return the float that a number's text denotes.

    Raises:
        AmbiguousJsonError: It is not finite.
    """
    value = float(text)
    if not isfinite(value):
        raise AmbiguousJsonError(f"{format_value(text, quoted=False)} is not a finite number")
    return value


def small_integer(text: str) -> int:
    """Return the integer that a text denotes.

    Raises:
        AmbiguousJsonError: It has more digits than any count needs.
    """
    if len(text.removeprefix("-")) > _MAX_DIGITS:
        raise AmbiguousJsonError(f"{format_value(text, quoted=False)} is too large a number")
    return int(text)


def parse_strict_json(text: str, parse_int: Callable[[str], float]) -> Any:
    """Parse JSON.

    Args:
        text: The JSON text.
        parse_int: The reader of a number without a fraction.

    Raises:
        AmbiguousJsonError: A number is out of range, a key occurs twice, or the nesting is too deep.
        json.JSONDecodeError: The text is not JSON.
    """
    try:
        return strict_decoder(parse_int).decode(text)
    except RecursionError:
        raise AmbiguousJsonError("the JSON is nested too deeply") from None


def strict_decoder(parse_int: Callable[[str], float]) -> json.JSONDecoder:
    """Return a decoder that refuses ambiguous JSON, and raises RecursionError where it is nested too deeply.

    Args:
        parse_int: The reader of a number without a fraction.
    """
    return json.JSONDecoder(
        parse_int=parse_int,
        parse_float=finite_float,
        parse_constant=finite_float,
        object_pairs_hook=_object_with_unique_keys,
    )


def _object_with_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # json keeps the last of two equal keys, and other parsers the first.
    members: dict[str, Any] = {}
    for key, value in pairs:
        if key in members:
            raise AmbiguousJsonError(f"the key {quote_key(key)} occurs twice")
        members[key] = value
    return members
