"""Resolve plain scalars by the core schema of YAML 1.2 (https://yaml.org/spec/1.2.2/#103-core-schema).

PyYAML's own loaders follow YAML 1.1, which reads `no` as false, `12:30` as 750 and `1e-3` as text. In a spec, all
three would be wrong.
"""

import re
from functools import lru_cache
from typing import Final

Scalar = str | int | float | bool | None

_WORDS: Final[dict[str, Scalar]] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NUMBER_STARTS: Final = frozenset("-+.0123456789")
_DECIMAL_INTEGER: Final = re.compile(r"[-+]?[0-9]+")
_OCTAL_OR_HEXADECIMAL: Final = r"0o[0-7]+|0x[0-9a-fA-F]+"
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE: Final = r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"

MAX_NUMBER_LENGTH: Final = 40
"""Maximum characters of a number: more than any count, rate or 64-bit identifier needs."""

_QUOTE_TEXT: Final = "if it is text, put it in quotes"


class NumberRefusedError(ValueError):
    """A number that no spec can use: infinite, not a number, out of range, or longer than MAX_NUMBER_LENGTH."""

    def __init__(self, message: str, help: str) -> None:
        super().__init__(message)
        self.help = help


def resolve_scalar(text: str) -> Scalar:
    """Return the value of a plain scalar.

    Raises:
        NumberRefusedError: The text is a number that a JSON document cannot contain.
    """
    if text in _WORDS:
        return _WORDS[text]
    return _number(text) if text[0] in _NUMBER_STARTS else text


# Cached because a ladder of configs repeats its numbers: each is read once per spec and once per rendered text.
@lru_cache(maxsize=1024)
def _number(text: str) -> Scalar:
    number_type = int if _DECIMAL_INTEGER.fullmatch(text) else float if _FLOAT.fullmatch(text) else None
    if number_type is None and not re.fullmatch(_OCTAL_OR_HEXADECIMAL, text):
        if re.fullmatch(_NOT_FINITE, text):
            raise NumberRefusedError(f"{text} is not a finite number", f'write a number, or "{text}" if it is text')
        return text
    # Checked before the conversion, whose time is quadratic in the number of digits.
    if len(text) > MAX_NUMBER_LENGTH:
        message = f"the number has {len(text)} characters; the maximum is {MAX_NUMBER_LENGTH}"
        raise NumberRefusedError(message, f"write fewer digits; {_QUOTE_TEXT}")
    if number_type is None:
        return int(text, 0)
    value = number_type(text)
    if value in (float("inf"), float("-inf")):
        message = f"{text} is beyond the range of a 64-bit floating-point number"
        raise NumberRefusedError(message, f"write a number below 1e308; {_QUOTE_TEXT}")
    # A mantissa with a digit other than 0 that becomes 0 has underflowed.
    if value == 0 and re.search("[1-9]", text.lower().partition("e")[0]):
        message = f"{text} is too small for a 64-bit floating-point number"
        raise NumberRefusedError(message, f"write a number above 1e-308; {_QUOTE_TEXT}")
    return value
