"""Explain wrong values, with the edit that corrects each: types, closed lists, patterns, bounds."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from tpucfg.schemas import Problem
from tpucfg.schemas.error_context import ErrorContext, did_you_mean, matches_pattern
from tpucfg.text_format import corrected, format_value, listed, nearest, sorted_by_similarity

_TYPE_NAMES: Final = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}
_SCHEMA_TYPES: Final = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}
_BOOLEANS: Final = {"yes": "true", "y": "true", "on": "true", "no": "false", "n": "false", "off": "false"}
_NUMBER: Final = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")


def wrong_type(context: ErrorContext) -> Iterator[Problem]:
    """Yield the problem of a value of a wrong type, with the edit that converts it if there is one."""
    type_rule, value = context.error.validator_value, context.error.instance
    type_names = type_rule if isinstance(type_rule, list) else [type_rule]
    expected = listed([_TYPE_NAMES[name] for name in type_names], last=" or ")
    if value is None:
        text = context.source_text(context.path)
        actual = f"is {text}" if text else "is empty"
    elif isinstance(value, dict | list):
        actual = f"is {_type_name(value)}"
    else:
        actual = f"is {context.value_text}, which is {_type_name(value)}"
    hint = next((fix for name in type_names if (fix := _TYPE_FIXES[name](value, context))), "")
    message = f"{context.subject} {actual}; it takes {expected}"
    yield Problem(context.ids.type, message, context.path, hint or _general_hint(context, expected))


def _type_name(value: Any) -> str:
    return _TYPE_NAMES[_SCHEMA_TYPES.get(type(value), "null")]


def _general_hint(context: ErrorContext, expected: str) -> str:
    if context.path:
        # An example has only one type: if several types are allowed, it could be misleading.
        types = context.error.validator_value
        scalars = {types} if isinstance(types, str) else {*types} - {"null", "object"}
        example = context.example() if len(scalars) == 1 else ""
        return example or f"write {expected}"
    first_key = next(iter(context.error.schema.get("required") or context.error.schema.get("properties", ())), None)
    return f"begin with {context.example_of(first_key)}" if first_key else ""


def _to_text(value: Any, context: ErrorContext) -> str:
    is_valid = matches_pattern(context.error.schema.get("pattern", ""), context.value_text)
    return f'put it in quotes: "{context.value_text}"' if isinstance(value, bool | int | float) and is_valid else ""


def _to_number(value: Any, _: ErrorContext) -> str:
    digits = re.sub(r"(?<=[0-9])[,_' ](?=[0-9])", "", value.strip()) if isinstance(value, str) else ""
    return f"write {digits}, without quotes or separators" if _NUMBER.fullmatch(digits) else ""


def _to_whole_number(value: Any, context: ErrorContext) -> str:
    fix = _to_number(value, context)
    return "" if "." in fix else fix


def _to_boolean(value: Any, _: ErrorContext) -> str:
    word = value.lower() if isinstance(value, str) else ""
    literal = _BOOLEANS.get(word, word if word in ("true", "false") else "")
    return f"write {literal}: quoted, or written as {word}, it is text" if literal else ""


def _to_list(value: Any, _: ErrorContext) -> str:
    is_plain = isinstance(value, str) and re.fullmatch(r"[\w. ,-]+", value)
    return f"write it as a list: [{', '.join(value.replace(',', ' ').split())}]" if is_plain else ""


def _no_fix(_: Any, __: ErrorContext) -> str:
    return ""


_TYPE_FIXES: Final[Mapping[str, Callable[[Any, ErrorContext], str]]] = {
    "string": _to_text,
    "integer": _to_whole_number,
    "number": _to_number,
    "boolean": _to_boolean,
    "array": _to_list,
    "object": _no_fix,
    "null": _no_fix,
}
"""By type, the function that returns the edit that converts a value to it; an empty text if there is none."""


def not_in_enum(context: ErrorContext) -> Iterator[Problem]:
    """Yield the problem of a value that is not in a closed list."""
    allowed = [str(value) for value in context.error.validator_value if value is not None]
    text = str(context.error.instance)
    near = nearest(text, allowed) or _abbreviation(text, allowed)
    message = f"{context.subject} is {context.value_text}; it takes {listed(sorted_by_similarity(text, allowed))}"
    hint = context.advice_on_value or did_you_mean(near) or context.example()
    yield Problem(context.ids.value, message, context.path, hint)


def _abbreviation(text: str, allowed: Sequence[str]) -> str | None:
    """Return the only allowed value that abbreviates a text: `min` for minimum, `sqrt` for squareroot."""

    def abbreviates(value: str) -> bool:
        # Each search consumes the iterator up to its letter, so the letters have to occur in order.
        letters = iter(text.lower())
        return text.lower().startswith(value[:1]) and all(letter in letters for letter in value)

    short = [value for value in allowed if value and abbreviates(value)]
    return short[0] if len(short) == 1 else None


def not_the_constant(context: ErrorContext) -> Iterator[Problem]:
    """Yield the problem of a value that differs from the only allowed one."""
    constant = context.error.validator_value
    message = f"{context.subject} is {context.value_text}; it takes {constant}"
    yield Problem(context.ids.value, message, context.path, f"set {context.subject} to {constant}")


def pattern_mismatch(context: ErrorContext) -> Iterator[Problem]:
    """Yield the problem of a malformed text, with a corrected spelling if there is one."""
    text = context.error.instance
    has_placeholder = "${" in text
    near = None if has_placeholder else corrected(text, partial(matches_pattern, context.error.validator_value))
    details = []
    if len(text) > 30:  # noqa: PLR2004 - a shorter text can be counted by eye
        details.append(f"it has {len(text)} characters")
    if has_placeholder and context.ids.noun == "key":
        details.append("no placeholder is replaced here")
    rule = context.pattern_message or f"it should be: {context.error.schema.get('description', 'of another form')}"
    message = f"{context.subject} is {format_value(text) if text else 'an empty string'}: {rule}"
    hint = context.advice_on_value or did_you_mean(near) or context.example()
    yield Problem(context.ids.value, message, context.path, hint, details=tuple(details))


_BOUND_MESSAGES: Final = {
    "minimum": "{subject} is {value}; the minimum is {bound}",
    "exclusiveMinimum": "{subject} is {value}; it must be above {bound}",
    "maximum": "{subject} is {value}; the maximum is {bound}",
    "minLength": "{subject} is an empty string",
    "maxLength": "{subject} has more than {bound} characters",
    "minItems": "{subject} is an empty list",
    "maxItems": "{subject} has more than {bound} entries",
    "minProperties": "{subject} is empty",
    "maxProperties": "{subject} has more than {bound} keys",
    "uniqueItems": "{subject} repeats an entry",
}
_BOUND_HINTS: Final = {
    "minimum": "write {bound} or more",
    "exclusiveMinimum": "write a number above {bound}",
    "maximum": "write {bound} or less",
    "minLength": "write a text, or leave the key out",
    "minItems": "add an entry, or leave the key out",
    "minProperties": "add a key, or leave this out",
    "uniqueItems": "delete the repeated entry",
}
"""The edits for values whose schema has no example."""


def out_of_bounds(context: ErrorContext) -> Iterator[Problem]:
    """Yield the problem of a value beyond a bound, or that violates any other keyword."""
    template = _BOUND_MESSAGES.get(str(context.error.validator), "{subject} is {value}, which is not allowed here")
    bound = _format_bound(context.error.validator_value)
    message = template.format(subject=context.subject, value=context.value_text, bound=bound)
    yield Problem(context.ids.value, message, context.path, context.example() or _bound_hint(context))


def _bound_hint(context: ErrorContext) -> str:
    bound, value, keyword = context.error.validator_value, context.error.instance, str(context.error.validator)
    if keyword.startswith("max") and isinstance(value, str | list | dict):
        unit = {"maxLength": "characters", "maxItems": "entries"}.get(keyword, "keys")
        return f"leave out {len(value) - bound:,} {unit}"
    return _BOUND_HINTS.get(keyword, "write {bound}").format(bound=_format_bound(bound))


def _format_bound(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
