"""Turn jsonschema's errors into problems with messages and help lines, the edits that correct them.

The texts come from the schema's own annotations: `patternErrorMessage`, which editors show too, describes a pattern in
words, and `examples` show a valid value.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from tpucfg.findings import MAX_FINDINGS
from tpucfg.schemas import SPEC, Problem, RuleIds, sections_of_key
from tpucfg.schemas.error_context import ErrorContext, did_you_mean, strict_validator
from tpucfg.schemas.spec_keys import where
from tpucfg.text_format import (
    dotted,
    format_count,
    format_value,
    listed,
    nearest,
    printable,
    quote_key,
    yaml_example,
)
from tpucfg.yamldoc import KeyPath
from tpucfg.yamldoc.parser import NumberRefusedError, resolve_scalar


def explain_errors(
    name: str, data: Any, ids: RuleIds, source_text: Callable[[KeyPath], str]
) -> Sequence[Problem]:
    """Return the problems of invalid data, one for each value or key, even if it breaks several rules.

    The search stops after MAX_FINDINGS + 1 problems, so that the caller can report that some are left out.
    """
    most_important: dict[tuple[KeyPath, bool], tuple[int, Problem]] = {}
    for error in strict_validator(name).iter_errors(data):
        for problem in _problems(ErrorContext(error, name, ids, source_text, data)):
            key, rank = (
                (problem.path, problem.at_key),
                _RANKS.get(str(error.validator), len(_RANKS)),
            )
            if key not in most_important or rank < most_important[key][0]:
                most_important[key] = (rank, problem)
            if len(most_important) > MAX_FINDINGS:
                return [problem for _, problem in most_important.values()]
    return [problem for _, problem in most_important.values()]


def _problems(context: ErrorContext) -> Iterator[Problem]:
    if "propertyNames" in context.error.absolute_schema_path:
        yield _bad_key(context)
    elif hint := context.misplaced_in_override:
        subject, key = dotted(context.path[:-1]), quote_key(str(context.path[-1]))
        message = f"{subject} has no {context.ids.noun} {key}"
        yield Problem(context.ids.unknown, message, context.path, hint, at_key=True)
    elif context.error.validator in ("additionalProperties", "required") and (
        expected := context.error.schema.get("mappingErrorMessage")
    ):
        # The schema takes only a certain mapping beside plain values.
        message = f"{context.subject} is a mapping; {expected}"
        yield Problem(context.ids.type, message, context.path, context.example() or "write a value")
    else:
        yield from _EXPLAINERS.get(str(context.error.validator), _wrong_value)(context)


# Wrong members of an object: keys that are unknown, missing, misplaced or mutually exclusive.


def _bad_key(context: ErrorContext) -> Problem:
    """Return the problem of a key that is malformed or too long."""
    key = str(context.error.instance)
    reason = (
        context.pattern_message or f"it is longer than {context.error.validator_value} characters"
    )
    near = next(filter(context.takes, spellings(key.lstrip("-"))), None)
    message = f"{format_value(key)} cannot be a {context.ids.noun} of {context.subject}: {reason}"
    hint = did_you_mean(near) or context.example(key=True)
    return Problem(context.ids.value, message, (*context.path, key), hint, at_key=True)


def _unknown_keys(context: ErrorContext) -> Iterator[Problem]:
    """Yield a problem for each key that the schema does not allow."""
    known = list(context.error.schema.get("properties", ()))
    misplaced = [key for keys in context.misplaced_keys.values() for key in keys]
    patterns = context.error.schema.get("patternProperties", ())
    for key in context.error.instance:
        if key in known or key in misplaced or any(re.search(pattern, key) for pattern in patterns):
            continue
        near = context.nearest_key(key, context.absent_keys)
        advice = _missing_space(key, near) or context.advice(
            context.path, key, context.error.instance[key]
        )
        allowed = f"it takes: {listed(known)}" if known else "it takes none"
        yield Problem(
            context.ids.unknown,
            f"{context.subject} has no {context.ids.noun} {quote_key(key)}",
            (*context.path, key),
            advice or did_you_mean(near) or _move_or_delete(context, key, known),
            at_key=True,
            details=(allowed,),
            meant=near or "",
        )


def _missing_space(key: str, near: str | None) -> str:
    """Return the edit for a key that has its value in it, as YAML reads `gate:{fit: true}`, or an empty text."""
    name, colon, value = key.partition(":")
    return printable(f"write {name}: {value}") if colon and name == near else ""


def _move_or_delete(context: ErrorContext, key: str, known: list[str]) -> str:
    """Return the edit for a key that is not a misspelling of an absent key."""
    name = quote_key(key)
    if existing := nearest(key, known):
        return f"delete {name}: {existing} is already set"
    # The advice on a spec has the sections of its layers.
    section = None if context.ids == SPEC else next(sections_of_key(context.name, key), None)
    return (
        f"delete {name}"
        if section is None
        else f"{name} belongs {where(section)}: move it there, or delete it"
    )


def _missing_keys(context: ErrorContext) -> Iterator[Problem]:
    """Yield a problem for each missing key, except misspelt keys, which unknown_keys() reports."""
    misspelt, misplaced = context.intended_keys, context.misplaced_keys
    for key in context.error.validator_value:
        if key in context.error.instance or key in misspelt:
            continue
        message = f"{context.subject} needs the {context.ids.noun} {key}"
        if members := misplaced.get(key):
            message = f"{message}, and has keys that belong below it: {listed(members)}"
            hint = f"add {key}: above, and indent these"
            yield Problem(
                context.ids.missing, message, (*context.path, members[0]), hint, at_key=True
            )
        else:
            yield Problem(
                context.ids.missing, message, (*context.path, key), f"add {context.example_of(key)}"
            )


def _alternatives(context: ErrorContext) -> Iterator[Problem]:
    """Yield the problem of a `oneOf` or `anyOf` of required keys, or of a `not` of two keys."""
    rule, instance = context.error.validator_value, context.error.instance
    each = [{"required": [key]} for key in rule["required"]] if isinstance(rule, dict) else rule
    branches = [branch.get("required", []) for branch in each]
    # Data of another type, or a misspelt key, is reported as another problem.
    if not isinstance(instance, dict) or context.intended_keys & {
        key for branch in branches for key in branch
    }:
        return
    complete = [
        branch[0] for branch in branches if branch and all(key in instance for key in branch)
    ]
    if len(complete) > 1:
        first, second, *_ = complete
        message = f"{context.subject} has both {first} and {second}; they exclude each other"
        path, hint = (*context.path, second), f"delete {first} or {second}"
        yield Problem(context.ids.exclusive, message, path, hint, at_key=True)
    else:
        begun_branch: list[str] = next(
            (branch for branch in branches for key in branch if key in instance), []
        )
        yield _no_alternative(context, branches, begun_branch)


def _no_alternative(
    context: ErrorContext, branches: list[list[str]], begun_branch: list[str]
) -> Problem:
    """Return the problem of an object without any complete branch; it has some keys of `begun_branch`."""
    instance = context.error.instance
    choices = [[key for key in begun_branch if key not in instance]] if begun_branch else branches
    needs = listed([" and ".join(branch) for branch in choices], last=", or ")
    examples = listed(
        [" and ".join(context.example_of(key) for key in branch) for branch in choices],
        last=", or ",
    )
    key = next(key for key in begun_branch if key in instance) if begun_branch else choices[0][0]
    message = f"{context.subject} needs {needs}" + (f" beside {key}" if begun_branch else "")
    return Problem(
        context.ids.missing,
        message,
        (*context.path, key),
        f"add {examples}",
        at_key=bool(begun_branch),
    )


def _missing_companions(context: ErrorContext) -> Iterator[Problem]:
    """Yield a problem for each key that requires another one beside it; a misspelled one is a problem of its own."""
    present = {*context.error.instance, *context.intended_keys}
    for key, companions in context.error.validator_value.items():
        missing = [
            name for name in companions if key in context.error.instance and name not in present
        ]
        if missing:
            message = f"{dotted((*context.path, key))} needs {' and '.join(missing)} beside it"
            hint = f"add {' and '.join(context.example_of(name) for name in missing)}"
            yield Problem(context.ids.missing, message, (*context.path, key), hint, at_key=True)


# Wrong values: what a value is, what is taken instead, and the nearest form that the schema accepts.

_TYPE_NAMES: Final = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}
_SCHEMA_TYPES: Final = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
}
_UNITS: Final[Mapping[type, str]] = {dict: "key", list: "item", str: "character"}
_BOUNDS: Final = {
    "min": "the minimum is",
    "max": "the maximum is",
    "exclusiveMin": "it must be above",
    "uniqueItems": "no two may be equal",
}
"""By the start of a keyword: what it asks for."""
_BOOLEANS: Final = {True: ("yes", "y", "on"), False: ("no", "n", "off")}
"""Words that YAML 1.1 read as true or false."""
_WORDS: Final = r"[A-Za-z0-9][\sA-Za-z0-9_.-]*"
_SEPARATORS: Final = r"[\s_.-]+"


def _wrong_value(context: ErrorContext) -> Iterator[Problem]:
    """Yield the problem of a value that a keyword refuses, with a form that the schema accepts or an example."""
    value, expected = context.error.instance, _expected(context)
    form = next(filter(context.takes, _other_forms(context)), None)
    hint = ""
    if form is not None:
        is_text = isinstance(value, str) and isinstance(form, str)
        hint = did_you_mean(form) if is_text else f"write {yaml_example(form)}"
    hint = context.advice_on_value or hint or context.example() or f"give another value: {expected}"
    id_ = context.ids.type if context.error.validator == "type" else context.ids.value
    yield Problem(id_, f"{context.subject} {_actual(context)}; {expected}", context.path, hint)


def _actual(context: ErrorContext) -> str:
    """Return what a value is, or what it has of what a keyword counts."""
    value, keyword = context.error.instance, str(context.error.validator)
    if keyword.endswith(("Length", "Items", "Properties")):
        return f"has {format_count(len(value), _UNITS[type(value)])}"
    if value is None:
        return f"is {context.source_text(context.path) or 'empty'}"
    name = _TYPE_NAMES[_SCHEMA_TYPES[type(value)]]
    if isinstance(value, dict | list):
        return f"is {name}"
    return (
        f"is {context.value_text}, which is {name}"
        if keyword == "type"
        else f"is {context.value_text}"
    )


def _expected(context: ErrorContext) -> str:
    """Return what a keyword asks for."""
    keyword, bound = str(context.error.validator), context.error.validator_value
    if keyword == "pattern":
        return (
            context.pattern_message
            or f"it should be: {context.error.schema.get('description', 'of another form')}"
        )
    bounds = bound if isinstance(bound, list) else [bound]
    if keyword == "type":
        return f"it takes {listed([_TYPE_NAMES[name] for name in bounds], last=' or ')}"
    words = next(
        (words for start, words in _BOUNDS.items() if keyword.startswith(start)), "it takes"
    )
    texts = [f"{each:,}" if type(each) is int else str(each) for each in bounds if each is not None]
    return words if keyword == "uniqueItems" else f"{words} {listed(texts)}"


def _other_forms(context: ErrorContext) -> Iterator[Any]:
    """Yield what a value may stand for: text without quotes, a number with separators, words in place of a list."""
    value, schema = context.error.instance, context.error.schema
    yield schema.get("const")
    if isinstance(value, bool | int | float):
        yield context.value_text
    if isinstance(value, str):
        yield from spellings(value)
        yield from (literal for literal, words in _BOOLEANS.items() if value.lower() in words)
        with suppress(NumberRefusedError):
            yield resolve_scalar(
                re.sub(r"(?<=[0-9])[,_' ](?=[0-9]{3}(?![0-9]))", "", value.strip())
            )
        # TPU_V6E is no misspelling of TPU_V3: a name with other numbers is another thing.
        names = filter(None, schema.get("enum", ()))
        yield nearest(
            value,
            [name for name in names if re.findall("[0-9]+", name) == re.findall("[0-9]+", value)],
        )
        if not re.search(r"[\"'\\;|&<>]", value):
            yield re.split(r"\s+" if "=" in value else r"[,\s]+", value.strip())


def spellings(text: str) -> Iterator[str]:
    """Yield a text in other cases and with other separators, without gcloud's prefix, and a zone as its region."""
    text = text.strip()
    yield text
    if re.fullmatch(_WORDS, text):
        lower = text.lower()
        yield from (lower, text.upper(), lower.removeprefix("tpu-"), re.sub(r"-[a-z]$", "", lower))
        for separator in "-_":
            joined = re.sub(_SEPARATORS, separator, text).strip(separator)
            yield from (joined, joined.lower())


_EXPLAINERS: Final[Mapping[str, Callable[[ErrorContext], Iterator[Problem]]]] = {
    "additionalProperties": _unknown_keys,
    "required": _missing_keys,
    "oneOf": _alternatives,
    "anyOf": _alternatives,
    "not": _alternatives,
    "dependentRequired": _missing_companions,
}
"""The function that explains each keyword about members; every other keyword is about a value."""
_RANKS: Final = {"type": 0, "enum": 1, "const": 1, "minLength": 2, "pattern": 3}
"""If a value breaks several rules, the error of the lowest rank is reported: the others follow from it."""
