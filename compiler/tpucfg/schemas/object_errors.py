"""Explain wrong members of an object: keys that are unknown, missing, misplaced or mutually exclusive."""

import re
from collections.abc import Iterator
from functools import partial

from tpucfg.schemas import SPEC, Problem
from tpucfg.schemas.error_context import ErrorContext, did_you_mean, matches_pattern, section_of_key
from tpucfg.text_format import corrected, dotted, format_value, listed, nearest, quote_key, sorted_by_similarity


def bad_key(context: ErrorContext) -> Problem:
    """Return the problem of a key that is malformed or too long."""
    key = str(context.error.instance)
    reason = context.pattern_message or f"it is longer than {context.error.validator_value} characters"
    near = None
    if context.pattern_message:
        near = corrected(key, partial(matches_pattern, context.error.validator_value), key=True)
    message = f"{format_value(key)} cannot be a {context.ids.noun} of {context.subject}: {reason}"
    hint = did_you_mean(near) or context.example_key()
    return Problem(context.ids.value, message, (*context.path, key), hint, at_key=True)


def unknown_keys(context: ErrorContext) -> Iterator[Problem]:
    """Yield a problem for each key that the schema does not allow."""
    if mapping := mapping_instead_of_value(context):
        yield mapping
        return
    known = list(context.error.schema.get("properties", ()))
    misplaced = [key for keys in context.misplaced_keys.values() for key in keys]
    patterns = context.error.schema.get("patternProperties", ())
    for key in context.error.instance:
        if key in known or key in misplaced or any(re.search(pattern, key) for pattern in patterns):
            continue
        near = context.nearest_key(key, context.absent_keys)
        advice = context.advice(context.path, key, context.error.instance[key])
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


def misplaced_in_override(context: ErrorContext) -> Problem:
    """Return the problem of a key of an override that belongs to another section, with its place."""
    subject, key = dotted(context.path[:-1]), quote_key(str(context.path[-1]))
    message, hint = f"{subject} has no {context.ids.noun} {key}", context.misplaced_in_override
    return Problem(context.ids.unknown, message, context.path, hint, at_key=True)


def mapping_instead_of_value(context: ErrorContext) -> Problem | None:
    """Return the problem of a mapping where the schema takes only a certain one beside plain values, or None."""
    if not (expected := context.error.schema.get("mappingErrorMessage")):
        return None
    message = f"{context.subject} is a mapping; {expected}"
    return Problem(context.ids.type, message, context.path, context.example() or "write a value")


def missing_keys(context: ErrorContext) -> Iterator[Problem]:
    """Yield a problem for each missing key, except misspelt keys, which unknown_keys() reports."""
    if mapping := mapping_instead_of_value(context):
        yield mapping
        return
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


def alternatives(context: ErrorContext) -> Iterator[Problem]:
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


def _no_alternative(context: ErrorContext, branches: list[list[str]], begun_branch: list[str]) -> Problem:
    """Return the problem of an object without any complete branch; it has some keys of `begun_branch`."""
    instance = context.error.instance
    choices = [[key for key in begun_branch if key not in instance]] if begun_branch else branches
    needs = listed([" and ".join(branch) for branch in choices], last=", or ")
    examples = listed([" and ".join(context.example_of(key) for key in branch) for branch in choices], last=", or ")
    key = next(key for key in begun_branch if key in instance) if begun_branch else choices[0][0]
    message = f"{context.subject} needs {needs}" + (f" beside {key}" if begun_branch else "")
    return Problem(context.ids.missing, message, (*context.path, key), f"add {examples}", at_key=bool(begun_branch))


def missing_companions(context: ErrorContext) -> Iterator[Problem]:
    """Yield a problem for each key that requires another one beside it; a misspelled one is a problem of its own."""
    present = {*context.error.instance, *context.intended_keys}
    for key, companions in context.error.validator_value.items():
        missing = [name for name in companions if key in context.error.instance and name not in present]
        if missing:
            message = f"{dotted((*context.path, key))} needs {' and '.join(missing)} beside it"
            hint = f"add {' and '.join(context.example_of(name) for name in missing)}"
            yield Problem(context.ids.missing, message, (*context.path, key), hint, at_key=True)
