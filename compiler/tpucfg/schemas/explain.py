"""Turn jsonschema's errors into problems with messages and help lines, the edits that correct them.

The texts come from the schema's own annotations: `patternErrorMessage`, which editors show too, describes a pattern in
words, and `examples` show a valid value.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from tpucfg.findings import MAX_FINDINGS
from tpucfg.paths import value_at
from tpucfg.schemas import SPEC, Problem, RuleIds, load_schema
from tpucfg.schemas.error_context import ErrorContext, did_you_mean, matches_pattern, section_of_key, strict_validator
from tpucfg.text_format import (
    corrected,
    dotted,
    format_value,
    listed,
    nearest,
    printable,
    quote_key,
    sorted_by_similarity,
    yaml_example,
)
from tpucfg.yamldoc import KeyPath


def explain_errors(name: str, data: Any, ids: RuleIds, source_text: Callable[[KeyPath], str]) -> Sequence[Problem]:
    """Return the problems of invalid data, one for each value or key, even if it breaks several rules.

    The search stops after MAX_FINDINGS + 1 problems, so that the caller can report that some are left out.
    """
    most_important: dict[tuple[KeyPath, bool], tuple[int, Problem]] = {}
    for error in strict_validator(name).iter_errors(data):
        for problem in _problems(ErrorContext(error, load_schema(name), ids, source_text, data)):
            key, rank = (problem.path, problem.at_key), _RANKS.get(str(error.validator), len(_RANKS))
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
        yield from _EXPLAINERS.get(str(context.error.validator), _out_of_bounds)(context)


# Wrong members of an object: keys that are unknown, missing, misplaced or mutually exclusive.


def _bad_key(context: ErrorContext) -> Problem:
    """Return the problem of a key that is malformed or too long."""
    key = str(context.error.instance)
    reason = context.pattern_message or f"it is longer than {context.error.validator_value} characters"
    near = None
    if context.pattern_message:
        near = corrected(key, partial(matches_pattern, context.error.validator_value), key=True)
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
        advice = _missing_space(key, near) or context.advice(context.path, key, context.error.instance[key])
        allowed = f"it takes: {listed(sorted_by_similarity(key, known))}" if known else "it takes none"
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
    if context.ids == SPEC and context.path[-2:-1] == ("targets",):
        return f"delete {name}"  # another target's key of this name would have no effect
    if section := section_of_key(key, context.schema, context.path):
        return f"{name} belongs {section}: move it there, or delete it"
    return f"delete {name}"


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
            yield Problem(context.ids.missing, message, (*context.path, members[0]), hint, at_key=True)
        else:
            yield Problem(context.ids.missing, message, (*context.path, key), f"add {context.example_of(key)}")


def _alternatives(context: ErrorContext) -> Iterator[Problem]:
    """Yield the problem of a `oneOf` or `anyOf` whose branches only name required keys."""
    branches = [branch.get("required", []) for branch in context.error.validator_value]
    instance = context.error.instance
    # Data of another type, or a misspelt key, is reported as another problem.
    if not isinstance(instance, dict) or context.intended_keys & {key for branch in branches for key in branch}:
        return
    complete_branches = [branch for branch in branches if branch and all(key in instance for key in branch)]
    if len(complete_branches) > 1:
        yield _both_alternatives(context, complete_branches[0][0], complete_branches[1][0])
    else:
        begun_branch: list[str] = next((branch for branch in branches for key in branch if key in instance), [])
        yield _no_alternative(context, branches, begun_branch)


def _both_alternatives(context: ErrorContext, first: str, second: str) -> Problem:
    message = f"{context.subject} has both {first} and {second}; they exclude each other"
    hint = f"delete {first} or {second}"
    return Problem(context.ids.exclusive, message, (*context.path, second), hint, at_key=True)


def _excluded(context: ErrorContext) -> Iterator[Problem]:
    """Yield the problem of a `not` that names two keys, which exclude each other."""
    first, second = context.error.validator_value["required"]
    if isinstance(context.error.instance, dict):
        yield _both_alternatives(context, first, second)


def _no_alternative(context: ErrorContext, branches: list[list[str]], begun_branch: list[str]) -> Problem:
    """Return the problem of an object without any complete branch; it has some keys of `begun_branch`."""
    instance = context.error.instance
    choices = [[key for key in begun_branch if key not in instance]] if begun_branch else branches
    needs = listed([" and ".join(branch) for branch in choices], last=", or ")
    examples = listed([" and ".join(context.example_of(key) for key in branch) for branch in choices], last=", or ")
    key = next(key for key in begun_branch if key in instance) if begun_branch else choices[0][0]
    message = f"{context.subject} needs {needs}" + (f" beside {key}" if begun_branch else "")
    return Problem(context.ids.missing, message, (*context.path, key), f"add {examples}", at_key=bool(begun_branch))


def _missing_companions(context: ErrorContext) -> Iterator[Problem]:
    """Yield a problem for each key that requires another one beside it; a misspelled one is a problem of its own."""
    present = {*context.error.instance, *context.intended_keys}
    for key, companions in context.error.validator_value.items():
        missing = [name for name in companions if key in context.error.instance and name not in present]
        if missing:
            message = f"{dotted((*context.path, key))} needs {' and '.join(missing)} beside it"
            hint = f"add {' and '.join(context.example_of(name) for name in missing)}"
            yield Problem(context.ids.missing, message, (*context.path, key), hint, at_key=True)


# Wrong values: types, closed lists, patterns, bounds.

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


def _wrong_type(context: ErrorContext) -> Iterator[Problem]:
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
    fixes = (_TYPE_FIXES[name](value, context) for name in type_names if name in _TYPE_FIXES)
    hint = context.advice_on_value or next(filter(None, fixes), "")
    message = f"{context.subject} {actual}; it takes {expected}"
    yield Problem(context.ids.type, message, context.path, hint or _general_hint(context, expected))


def _type_name(value: Any) -> str:
    return _TYPE_NAMES[_SCHEMA_TYPES.get(type(value), "null")]


def _general_hint(context: ErrorContext, expected: str) -> str:
    if context.path:
        # An example has only one type: if several types are allowed, it could be misleading.
        types = context.error.validator_value
        scalars = {types} if isinstance(types, str) else {*types} - {"null", "object"}
        example = context.example() if len(scalars) < 2 else ""  # noqa: PLR2004 - one type, or a mapping
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
    reason = f"{word} is text" if literal != word else "in quotes, it is text"
    return f"write {literal}: {reason}" if literal else ""


def _to_list(value: Any, _: ErrorContext) -> str:
    if not isinstance(value, str):
        return ""
    if re.fullmatch(r"[\w. ,-]+", value) and not value.startswith("--"):
        return f"write it as a list: [{', '.join(value.replace(',', ' ').split())}]"
    is_words = re.fullmatch(r"[\w./:=${}, +-]+", value) and ("=" in value or value.startswith("--"))
    return f"write it as a list: {yaml_example(value.split())}" if is_words else ""


def _to_mapping(value: Any, context: ErrorContext) -> str:
    """Return the edit for a list in place of lists by generation: the flags of XLA."""
    if not isinstance(value, list) or context.path[-1:] != ("xla_flags",):
        return ""
    tuned_on = str(value_at(context.data, ("training", "tuned_on"), "v5e"))
    generation = tuned_on.partition("-")[0].replace("litepod", "e")
    return f"set {context.subject} to {yaml_example({generation: value})}"


_TYPE_FIXES: Final[Mapping[str, Callable[[Any, ErrorContext], str]]] = {
    "string": _to_text,
    "integer": _to_whole_number,
    "number": _to_number,
    "boolean": _to_boolean,
    "array": _to_list,
    "object": _to_mapping,
}
"""By type: returns the edit that converts a value to it, or an empty text."""


def _not_in_enum(context: ErrorContext) -> Iterator[Problem]:
    """Yield the problem of a value that is not in a closed list."""
    allowed = [str(value) for value in context.error.validator_value if value is not None]
    text = str(context.error.instance)
    message = f"{context.subject} is {context.value_text}; it takes {listed(sorted_by_similarity(text, allowed))}"
    # TPU_V6E is no misspelling of TPU_V3: a name with other numbers is another thing.
    near = nearest(text, [name for name in allowed if re.findall("[0-9]+", name) == re.findall("[0-9]+", text)])
    hint = context.advice_on_value or did_you_mean(near) or context.example()
    yield Problem(context.ids.value, message, context.path, hint)


def _not_the_constant(context: ErrorContext) -> Iterator[Problem]:
    """Yield the problem of a value that differs from the only allowed one."""
    constant = context.error.validator_value
    message = f"{context.subject} is {context.value_text}; it takes {constant}"
    yield Problem(context.ids.value, message, context.path, f"set {context.subject} to {constant}")


def _pattern_mismatch(context: ErrorContext) -> Iterator[Problem]:
    """Yield the problem of a malformed text, with a corrected spelling if there is one."""
    text = context.error.instance
    has_placeholder = "${" in text
    near = None if has_placeholder else corrected(text, partial(matches_pattern, context.error.validator_value))
    details = []
    # A shorter text can be counted by eye, and in one with a character that is not allowed, the length is no reason.
    short_texts = (f"{text[:5]}{char}{text[:5]}" for char in dict.fromkeys(text))
    if len(text) > 30 and all(map(partial(matches_pattern, context.error.validator_value), short_texts)):  # noqa: PLR2004
        details.append(f"it has {len(text)} characters")
    if has_placeholder and context.ids.noun == "key":
        details.append("no placeholder is replaced here")
    rule = context.pattern_message or f"it should be: {context.error.schema.get('description', 'of another form')}"
    message = f"{context.subject} is {format_value(text) if text else 'an empty string'}: {rule}"
    hint = context.advice_on_value or did_you_mean(near) or context.example()
    yield Problem(context.ids.value, message, context.path, hint, details=tuple(details))


_BOUNDS: Final = {
    "minimum": ("{subject} is {value}; the minimum is {bound}", "write {bound} or more"),
    "exclusiveMinimum": ("{subject} is {value}; it must be above {bound}", "write a number above {bound}"),
    "maximum": ("{subject} is {value}; the maximum is {bound}", "write {bound} or less"),
    "minLength": ("{subject} is an empty string", "write a text, or leave the key out"),
    "maxLength": ("{subject} has more than {bound} characters", "leave out {excess} characters"),
    "minItems": ("{subject} is an empty list", "add an entry, or leave the key out"),
    "maxItems": ("{subject} has more than {bound} entries", "leave out {excess} entries"),
    "minProperties": ("{subject} is empty", "add a key, or leave this out"),
    "maxProperties": ("{subject} has more than {bound} keys", "leave out {excess} keys"),
    "uniqueItems": ("{subject} repeats an entry", "delete the repeated entry"),
}
"""By keyword: the message, and the edit for a value whose schema has no example."""
_ANOTHER_KEYWORD: Final = ("{subject} is {value}, which is not allowed here", "write {bound}")


def _out_of_bounds(context: ErrorContext) -> Iterator[Problem]:
    """Yield the problem of a value beyond a bound, or that violates any other keyword."""
    value, bound = context.error.instance, context.error.validator_value
    message, hint = _BOUNDS.get(str(context.error.validator), _ANOTHER_KEYWORD)
    has_length = isinstance(value, str | list | dict) and isinstance(bound, int)
    texts = {
        "subject": context.subject,
        "value": context.value_text,
        "bound": f"{bound:,}" if isinstance(bound, int) else str(bound),
        "excess": f"{len(value) - bound:,}" if has_length else "",
    }
    yield Problem(context.ids.value, message.format(**texts), context.path, context.example() or hint.format(**texts))


_EXPLAINERS: Final[Mapping[str, Callable[[ErrorContext], Iterator[Problem]]]] = {
    "additionalProperties": _unknown_keys,
    "required": _missing_keys,
    "oneOf": _alternatives,
    "anyOf": _alternatives,
    "not": _excluded,
    "dependentRequired": _missing_companions,
    "type": _wrong_type,
    "enum": _not_in_enum,
    "const": _not_the_constant,
    "pattern": _pattern_mismatch,
}
"""The function that explains each keyword; every other keyword is a bound."""
_RANKS: Final = {"type": 0, "enum": 1, "const": 1, "minLength": 2, "pattern": 3}
"""If a value breaks several rules, the error of the lowest rank is reported: the others follow from it."""
