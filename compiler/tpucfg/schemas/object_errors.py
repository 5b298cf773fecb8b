"""Why the members of an object do not fit: keys that are unknown, missing, misplaced, or that exclude each other."""

import re
from collections.abc import Iterator
from functools import partial

from tpucfg.schemas import Problem
from tpucfg.schemas.error_context import ErrorContext, did_you_mean, matches_pattern, section_of_key
from tpucfg.text_format import corrected, dotted, format_value, listed, nearest, quote_key, sorted_by_similarity


def bad_key(case: ErrorContext) -> Problem:
    """A key of another form than the object's keys have, or too long a one."""
    key = str(case.error.instance)
    said = case.words or f"it is longer than {case.error.validator_value} characters"
    near = corrected(key, partial(matches_pattern, case.error.validator_value), key=True) if case.words else None
    message = f"{format_value(key)} cannot be a {case.ids.noun} of {case.where}: {said}"
    return Problem(case.ids.value, message, (*case.path, key), did_you_mean(near) or case.example_key(), at_key=True)


def unknown(case: ErrorContext) -> Iterator[Problem]:
    """One for each key that the object does not take."""
    known = list(case.error.schema.get("properties", ()))
    misplaced = [key for keys in case.misplaced.values() for key in keys]
    patterns = case.error.schema.get("patternProperties", ())
    for key in case.error.instance:
        if key in known or key in misplaced or any(re.search(pattern, key) for pattern in patterns):
            continue
        name = quote_key(key)
        near, twin = nearest(key, case.absent), nearest(key, known)
        home = None if near or twin else section_of_key(key, case.schema, case.path)
        because = f": {twin} is there already" if twin else ""
        moved = f"{name} belongs {home}: move it there, or delete it" if home else f"delete {name}{because}"
        allowed = f"it takes: {listed(sorted_by_similarity(key, known))}" if known else "it takes none"
        message = f"{case.where} has no {case.ids.noun} {name}"
        yield Problem(
            case.ids.unknown, message, (*case.path, key), did_you_mean(near) or moved, True, (allowed,), near or ""
        )


def missing(case: ErrorContext) -> Iterator[Problem]:
    """One for each key, but none for a key that is only misspelt: its other spelling is the mistake."""
    misspelt, misplaced = case.misspelt, case.misplaced
    for key in case.error.validator_value:
        if key in case.error.instance or key in misspelt:
            continue
        message, path, fix = f"{case.where} needs the {case.ids.noun} {key}", (*case.path, key), case.example_of(key)
        if inner := misplaced.get(key):
            said = f"{message}, and has what belongs below it: {listed(inner)}"
            yield Problem(case.ids.missing, said, (*case.path, inner[0]), f"add {key}: above, and indent these", True)
        else:
            yield Problem(case.ids.missing, message, path, f"add {fix}")


def alternatives(case: ErrorContext) -> Iterator[Problem]:
    """`oneOf` and `anyOf` whose branches only name required keys: which of them is the whole question."""
    branches = [branch.get("required", []) for branch in case.error.validator_value]
    given = case.error.instance
    if not isinstance(given, dict) or case.misspelt & {key for branch in branches for key in branch}:
        return  # another problem says so
    present = [branch for branch in branches if branch and all(key in given for key in branch)]
    if len(present) > 1:
        first, second = present[0][0], present[1][0]
        message = f"{case.where} has both {first} and {second}; they exclude each other"
        yield Problem(case.ids.exclusive, message, (*case.path, second), f"delete {first} or {second}", at_key=True)
        return
    begun: list[str] = next((branch for branch in branches for key in branch if key in given), [])
    lacking = [key for key in begun if key not in given]
    choices = [lacking] if begun else branches
    needs = listed([" and ".join(branch) for branch in choices], last=", or ")
    fix = listed([" and ".join(case.example_of(key) for key in branch) for branch in choices], last=", or ")
    path = (*case.path, next(key for key in begun if key in given)) if begun else (*case.path, choices[0][0])
    beside = f" beside {path[-1]}" if begun else ""
    yield Problem(case.ids.missing, f"{case.where} needs {needs}{beside}", path, f"add {fix}", at_key=bool(begun))


def dependent(case: ErrorContext) -> Iterator[Problem]:
    """A key without another that it needs beside it."""
    for key, needed in case.error.validator_value.items():
        lacking = [name for name in needed if key in case.error.instance and name not in case.error.instance]
        if lacking:
            message = f"{dotted((*case.path, key))} needs {' and '.join(lacking)} beside it"
            fix = f"add {' and '.join(case.example_of(name) for name in lacking)}"
            yield Problem(case.ids.missing, message, (*case.path, key), fix, at_key=True)
