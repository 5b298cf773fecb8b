"""What a plain scalar means: the core schema of YAML 1.2 (https://yaml.org/spec/1.2.2/#103-core-schema).

YAML 1.1, which PyYAML's own loaders follow, reads `no` as false, `12:30` as 750 and `1e-3` as text; a spec means none
of these.
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
_MAY_BE_MORE: Final = frozenset("-+.0123456789")
_INTEGER: Final = re.compile(r"[-+]?[0-9]+")
_BASED: Final = r"0o[0-7]+|0x[0-9a-fA-F]+"
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE: Final = r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"

MAX_NUMBER_LENGTH: Final = 40
"""Digits of the longest number that is read: more than any count, rate or 64-bit identifier has."""

_TEXT: Final = "if it is text, put it in quotes"


class NumberRefusedError(ValueError):
    """A number that no figure of a spec can be: infinite, not a number, or longer than LONGEST_NUMBER."""

    def __init__(self, message: str, help: str) -> None:
        super().__init__(message)
        self.help = help


def resolve_scalar(text: str) -> Scalar:
    """The value of a plain scalar.

    Raises:
        NumberRefusedError: It reads as a number, but as none that a JSON document could hold.
    """
    if text in _WORDS:
        return _WORDS[text]
    return _number(text) if text[0] in _MAY_BE_MORE else text


@lru_cache(maxsize=1024)
def _number(text: str) -> Scalar:
    kind = int if _INTEGER.fullmatch(text) else float if _FLOAT.fullmatch(text) else None
    if kind is None and not re.fullmatch(_BASED, text):
        if re.fullmatch(_NOT_FINITE, text):
            raise NumberRefusedError(f"{text} is not a finite number", f'write a number, or "{text}" if it is text')
        return text
    if len(text) > MAX_NUMBER_LENGTH:
        message = f"the number has {len(text)} characters, and at most {MAX_NUMBER_LENGTH} are read"
        raise NumberRefusedError(message, f"write fewer digits; {_TEXT}")
    if kind is None:
        return int(text, 0)
    value = kind(text)
    if value in (float("inf"), float("-inf")):
        message = f"{text} is beyond the range of a 64-bit floating-point number"
        raise NumberRefusedError(message, f"write a number below 1e308; {_TEXT}")
    if value == 0 and re.search("[1-9]", text.lower().partition("e")[0]):
        message = f"{text} is too small for a 64-bit floating-point number"
        raise NumberRefusedError(message, f"write a number above 1e-308; {_TEXT}")
    return value
