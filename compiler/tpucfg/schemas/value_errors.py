"""A value of the wrong type: what it is, what is wanted, and the edit that makes the one of the other."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from tpucfg.schemas import Problem
from tpucfg.schemas.error_context import ErrorContext, did_you_mean, matches_pattern
from tpucfg.text_format import corrected, format_value, listed, nearest, sorted_by_similarity

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


def _as_text(value: Any, case: ErrorContext) -> str:
    is_right = matches_pattern(case.error.schema.get("pattern", ""), case.found)
    return f'put it in quotes: "{case.found}"' if isinstance(value, bool | int | float) and is_right else ""


def _as_number(value: Any, _: ErrorContext) -> str:
    plain = re.sub(r"(?<=[0-9])[,_' ](?=[0-9])", "", value.strip()) if isinstance(value, str) else ""
    return f"write {plain}, without quotes or separators" if _NUMBER.fullmatch(plain) else ""


def _as_whole(value: Any, case: ErrorContext) -> str:
    fix = _as_number(value, case)
    return "" if "." in fix else fix


def _as_boolean(value: Any, _: ErrorContext) -> str:
    word = value.lower() if isinstance(value, str) else ""
    meant = _BOOLEANS.get(word, word if word in ("true", "false") else "")
    return f"write {meant}: quoted, or written as {word}, it is text" if meant else ""


def _as_list(value: Any, _: ErrorContext) -> str:
    plain = isinstance(value, str) and re.fullmatch(r"[\w. ,-]+", value)
    return f"write it as a list: [{', '.join(value.replace(',', ' ').split())}]" if plain else ""


def _as_it_is(_: Any, __: ErrorContext) -> str:
    return ""


CONVERSIONS: Final[Mapping[str, Callable[[Any, ErrorContext], str]]] = {
    "string": _as_text,
    "integer": _as_whole,
    "number": _as_number,
    "boolean": _as_boolean,
    "array": _as_list,
    "object": _as_it_is,
    "null": _as_it_is,
}
"""By the type that is wanted: the edit that makes it of a value of another type, where there is one."""


# Why a value does not fit: its type, its place among those that are allowed, its form, its bounds.


_REASONS: Final = {
    "minimum": "{where} is {found}; the least is {rule}",
    "exclusiveMinimum": "{where} is {found}; it must be above {rule}",
    "maximum": "{where} is {found}; the most is {rule}",
    "minLength": "{where} is an empty text",
    "maxLength": "{where} has more than {rule} characters",
    "minItems": "{where} is an empty list",
    "maxItems": "{where} has more than {rule} entries",
    "minProperties": "{where} is empty",
    "maxProperties": "{where} has more than {rule} keys",
    "uniqueItems": "{where} repeats an entry",
}

_EDITS: Final = {
    "minimum": "write {rule} or more",
    "exclusiveMinimum": "write a number above {rule}",
    "maximum": "write {rule} or less",
    "minLength": "write a text, or leave the key out",
    "minItems": "add an entry, or leave the key out",
    "minProperties": "add a key, or leave this out",
    "uniqueItems": "delete what is there twice",
}
"""By the rule that is broken, where the schema has no example."""


def wrong_type(case: ErrorContext) -> Iterator[Problem]:
    """A value of another type, with the edit that makes it one of the right type where there is one."""
    rule, value = case.error.validator_value, case.error.instance
    wanted = rule if isinstance(rule, list) else [rule]
    takes = listed([TYPES[name] for name in wanted], last=" or ")
    if value is None:
        said = "is empty" if not case.written(case.path) else f"is {case.written(case.path)}"
    elif isinstance(value, dict | list):
        said = f"is {kind_of(value)}"
    else:
        said = f"is {case.found}, which is {kind_of(value)}"
    fix = next((fix for name in wanted if (fix := CONVERSIONS[name](value, case))), _plain_advice(case, takes))
    yield Problem(case.ids.type, f"{case.where} {said}; it takes {takes}", case.path, fix)


def _plain_advice(case: ErrorContext, takes: str) -> str:
    if case.path:
        # Of what takes several types an example shows one, and which one is meant nobody knows.
        return ("" if isinstance(case.error.validator_value, list) else case.example()) or f"write {takes}"
    first = next(iter(case.error.schema.get("required") or case.error.schema.get("properties", ())), None)
    return f"begin with {case.example_of(first)}" if first else ""


def unlisted(case: ErrorContext) -> Iterator[Problem]:
    """A value that is none of those allowed."""
    allowed = [str(value) for value in case.error.validator_value if value is not None]
    text = str(case.error.instance)
    near = nearest(text, allowed)
    message = f"{case.where} is {case.found}; it takes {listed(sorted_by_similarity(text, allowed))}"
    yield Problem(case.ids.value, message, case.path, did_you_mean(near) or case.example())


def other_constant(case: ErrorContext) -> Iterator[Problem]:
    """A value where only another one is allowed."""
    wanted = case.error.validator_value
    yield Problem(
        case.ids.value, f"{case.where} is {case.found}; it takes {wanted}", case.path, f"set {case.where} to {wanted}"
    )


def malformed(case: ErrorContext) -> Iterator[Problem]:
    """A text of another form, with the same words in the right one where that can be told."""
    text = case.error.instance
    near = None if "${" in text else corrected(text, partial(matches_pattern, case.error.validator_value))
    long = f"it has {len(text)} characters" if len(text) > 30 else None  # noqa: PLR2004 - fewer can be counted by eye
    filled = "no placeholder is replaced here" if "${" in text and case.ids.noun == "key" else None
    details = tuple(said for said in (long, filled) if said)
    words = case.words or f"it should be: {case.error.schema.get('description', 'of another form')}"
    message = f"{case.where} is {format_value(text) if text else 'an empty text'}: {words}"
    yield Problem(case.ids.value, message, case.path, did_you_mean(near) or case.example(), details=details)


def bounds(case: ErrorContext) -> Iterator[Problem]:
    """A value beyond its bounds, and every other rule that needs no more than its sentence."""
    template = _REASONS.get(str(case.error.validator), "{where} is {found}, which is not allowed here")
    message = template.format(where=case.where, found=case.found, rule=_figure(case.error.validator_value))
    yield Problem(case.ids.value, message, case.path, case.example() or _back_within(case))


def _back_within(case: ErrorContext) -> str:
    """The edit that brings a value back within its bounds."""
    rule, value, keyword = case.error.validator_value, case.error.instance, str(case.error.validator)
    if keyword.startswith("max") and isinstance(value, str | list | dict):
        what = {"maxLength": "characters", "maxItems": "entries"}.get(keyword, "keys")
        return f"leave out {len(value) - rule:,} {what}"
    return _EDITS.get(keyword, "write {rule}").format(rule=_figure(rule))


def _figure(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
