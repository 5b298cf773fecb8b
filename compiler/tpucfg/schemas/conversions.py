"""A value of the wrong type: what it is, what is wanted, and the edit that makes the one of the other."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from tpucfg.schemas.case import Case
from tpucfg.schemas.strict import fits

TYPES: Final = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}
_KINDS: Final = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}
_BOOLEANS: Final = {"yes": "true", "y": "true", "on": "true", "no": "false", "n": "false", "off": "false"}
_NUMBER: Final = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")


def kind_of(value: Any) -> str:
    """What a value is, in words."""
    return TYPES[_KINDS.get(type(value), "null")]


def _as_text(value: Any, case: Case) -> str:
    is_right = fits(case.error.schema.get("pattern", ""), case.found)
    return f'put it in quotes: "{case.found}"' if isinstance(value, bool | int | float) and is_right else ""


def _as_number(value: Any, _: Case) -> str:
    plain = re.sub(r"(?<=[0-9])[,_' ](?=[0-9])", "", value.strip()) if isinstance(value, str) else ""
    return f"write {plain}, without quotes or separators" if _NUMBER.fullmatch(plain) else ""


def _as_whole(value: Any, case: Case) -> str:
    fix = _as_number(value, case)
    return "" if "." in fix else fix


def _as_boolean(value: Any, _: Case) -> str:
    word = value.lower() if isinstance(value, str) else ""
    meant = _BOOLEANS.get(word, word if word in ("true", "false") else "")
    return f"write {meant}: quoted, or written as {word}, it is text" if meant else ""


def _as_list(value: Any, _: Case) -> str:
    plain = isinstance(value, str) and re.fullmatch(r"[\w. ,-]+", value)
    return f"write it as a list: [{', '.join(value.replace(',', ' ').split())}]" if plain else ""


def _as_it_is(_: Any, __: Case) -> str:
    return ""


CONVERSIONS: Final[Mapping[str, Callable[[Any, Case], str]]] = {
    "string": _as_text,
    "integer": _as_whole,
    "number": _as_number,
    "boolean": _as_boolean,
    "array": _as_list,
    "object": _as_it_is,
    "null": _as_it_is,
}
"""By the type that is wanted: the edit that makes it of a value of another type, where there is one."""
