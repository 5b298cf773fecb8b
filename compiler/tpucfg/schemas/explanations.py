"""Why data does not fit a schema: jsonschema's errors, made into problems that their reader can fix.

A schema's own annotations do the talking: `patternErrorMessage`, which editors show too, says a pattern in words, and
`examples` show how a value looks.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from tpucfg.findings import MOST
from tpucfg.schemas import Ids, Problem, load
from tpucfg.schemas.case import Case, home_of
from tpucfg.spec.document import Path
from tpucfg.wording import by_nearness, dotted, listed, named, nearest, repaired, shown


def explained(name: str, data: Any, ids: Ids, written: Callable[[Path], str]) -> Sequence[Problem]:
    """Why the data does not fit the schema of that name: of several rules that one value breaks, the first.

    Where there are many reasons, it ends with one more than are listed.
    """
    worst: dict[tuple[Path, bool], tuple[int, Problem]] = {}
    for error in validator(name).iter_errors(data):
        for problem in _problems(Case(error, load(name), ids, written)):
            key, rank = (problem.path, problem.at_key), _RANKS.get(str(error.validator), len(_RANKS))
            if key not in worst or rank < worst[key][0]:
                worst[key] = (rank, problem)
            if len(worst) > MOST:
                return [problem for _, problem in worst.values()]
    return [problem for _, problem in worst.values()]


@cache
def validator(name: str) -> Any:
    """The validator of jsonschema that explains; it says yes exactly where the quick one does."""

    def whole(_: Any, pattern: str, instance: Any, __: Any) -> Iterator[Any]:
        if isinstance(instance, str) and not _fits(pattern, instance):
            yield ValidationError(f"{instance!r} does not match {pattern!r}")

    def unique(_: Any, wanted: bool, instance: Any, __: Any) -> Iterator[Any]:
        # Of texts alone, as the items of all such lists are: the library's own takes the square of their number.
        texts = [item for item in instance if isinstance(item, str)] if isinstance(instance, list) else []
        if wanted and len(set(texts)) < len(texts):
            yield ValidationError("an item is there twice")

    rules = {"pattern": whole, "uniqueItems": unique}
    strict: Any = extend(Draft202012Validator, rules)  # type: ignore[no-untyped-call]  # as the stubs have it
    return strict(load(name))


def _fits(pattern: str, text: str) -> bool:
    """`$` of Python also matches before a last line break; that of JSON Schema's regular expressions does not."""
    return re.search(re.sub(r"\$$", r"\\Z", pattern), text) is not None


def _problems(case: Case) -> Iterator[Problem]:
    keyword = str(case.error.validator)
    if "propertyNames" in case.error.absolute_schema_path:
        yield _key(case)
    elif keyword in _EXPLAINERS:
        yield from _EXPLAINERS[keyword](case)
    else:
        template = _REASONS.get(keyword, "{where} is {found}, which is not allowed here")
        message = template.format(where=case.where, found=case.found, rule=_figure(case.error.validator_value))
        yield Problem(case.ids.value, message, case.path, case.example() or _bounded(case))


def _bounded(case: Case) -> str:
    """The edit that brings a value back within its bounds."""
    rule, value, keyword = case.error.validator_value, case.error.instance, str(case.error.validator)
    if keyword.startswith("max") and isinstance(value, str | list | dict):
        what = {"maxLength": "characters", "maxItems": "entries"}.get(keyword, "keys")
        return f"leave out {len(value) - rule:,} {what}"
    return _EDITS.get(keyword, "write {rule}").format(rule=_figure(rule))


def _key(case: Case) -> Problem:
    key = str(case.error.instance)
    said = case.words or f"it is longer than {case.error.validator_value} characters"
    near = repaired(key, partial(_fits, case.error.validator_value), key=True) if case.words else None
    message = f"{shown(key)} cannot be a {case.ids.noun} of {case.where}: {said}"
    return Problem(case.ids.value, message, (*case.path, key), _meant(near) or case.example_key(), at_key=True)


def _unknown(case: Case) -> Iterator[Problem]:
    known = list(case.error.schema.get("properties", ()))
    misplaced = [key for keys in case.misplaced.values() for key in keys]
    patterns = case.error.schema.get("patternProperties", ())
    for key in case.error.instance:
        if key in known or key in misplaced or any(re.search(pattern, key) for pattern in patterns):
            continue
        name = named(key)
        near, twin = nearest(key, case.absent), nearest(key, known)
        home = None if near or twin else home_of(key, case.schema, case.path)
        because = f": {twin} is there already" if twin else ""
        moved = f"{name} belongs {home}: move it there, or delete it" if home else f"delete {name}{because}"
        allowed = f"it takes: {listed(by_nearness(key, known))}" if known else "it takes none"
        message = f"{case.where} has no {case.ids.noun} {name}"
        yield Problem(case.ids.unknown, message, (*case.path, key), _meant(near) or moved, True, (allowed,), near or "")


def _missing(case: Case) -> Iterator[Problem]:
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


def _type(case: Case) -> Iterator[Problem]:
    rule, value = case.error.validator_value, case.error.instance
    wanted = rule if isinstance(rule, list) else [rule]
    takes = listed([_TYPES[name] for name in wanted], last=" or ")
    if value is None:
        said = "is empty" if not case.written(case.path) else f"is {case.written(case.path)}"
    elif isinstance(value, dict | list):
        said = f"is {_kind(value)}"
    else:
        said = f"is {case.found}, which is {_kind(value)}"
    fix = next((fix for name in wanted if (fix := _CONVERSIONS[name](value, case))), _plain_advice(case, takes))
    yield Problem(case.ids.type, f"{case.where} {said}; it takes {takes}", case.path, fix)


def _plain_advice(case: Case, takes: str) -> str:
    if case.path:
        # Of what takes several types an example shows one, and which one is meant nobody knows.
        return ("" if isinstance(case.error.validator_value, list) else case.example()) or f"write {takes}"
    first = next(iter(case.error.schema.get("required") or case.error.schema.get("properties", ())), None)
    return f"begin with {case.example_of(first)}" if first else ""


def _enum(case: Case) -> Iterator[Problem]:
    allowed = [str(value) for value in case.error.validator_value if value is not None]
    text = str(case.error.instance)
    near = nearest(text, allowed)
    message = f"{case.where} is {case.found}; it takes {listed(by_nearness(text, allowed))}"
    yield Problem(case.ids.value, message, case.path, _meant(near) or case.example())


def _const(case: Case) -> Iterator[Problem]:
    wanted = case.error.validator_value
    yield Problem(
        case.ids.value, f"{case.where} is {case.found}; it takes {wanted}", case.path, f"set {case.where} to {wanted}"
    )


def _pattern(case: Case) -> Iterator[Problem]:
    text = case.error.instance
    near = None if "${" in text else repaired(text, partial(_fits, case.error.validator_value))
    long = f"it has {len(text)} characters" if len(text) > 30 else None  # noqa: PLR2004 - fewer can be counted by eye
    filled = "no placeholder is replaced here" if "${" in text and case.ids.noun == "key" else None
    details = tuple(said for said in (long, filled) if said)
    words = case.words or f"it should be: {case.error.schema.get('description', 'of another form')}"
    message = f"{case.where} is {shown(text) if text else 'an empty text'}: {words}"
    yield Problem(case.ids.value, message, case.path, _meant(near) or case.example(), details=details)


def _alternatives(case: Case) -> Iterator[Problem]:
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


def _dependent(case: Case) -> Iterator[Problem]:
    for key, needed in case.error.validator_value.items():
        missing = [name for name in needed if key in case.error.instance and name not in case.error.instance]
        if missing:
            message = f"{dotted((*case.path, key))} needs {' and '.join(missing)} beside it"
            fix = f"add {' and '.join(case.example_of(name) for name in missing)}"
            yield Problem(case.ids.missing, message, (*case.path, key), fix, at_key=True)


_EXPLAINERS: Final[Mapping[str, Callable[[Case], Iterator[Problem]]]] = {
    "additionalProperties": _unknown,
    "required": _missing,
    "type": _type,
    "enum": _enum,
    "const": _const,
    "pattern": _pattern,
    "oneOf": _alternatives,
    "anyOf": _alternatives,
    "dependentRequired": _dependent,
}
_RANKS: Final = {"type": 0, "enum": 1, "const": 1, "minLength": 2, "pattern": 3}
"""Where one value breaks several rules, the first of these is the mistake and the others follow from it."""

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

_TYPES: Final = {
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


def _kind(value: Any) -> str:
    return _TYPES[_KINDS.get(type(value), "null")]


def _figure(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _meant(near: str | None) -> str:
    return f"did you mean {near}?" if near else ""


def _as_text(value: Any, case: Case) -> str:
    fits = _fits(case.error.schema.get("pattern", ""), case.found)
    return f'put it in quotes: "{case.found}"' if isinstance(value, bool | int | float) and fits else ""


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


_CONVERSIONS: Final[Mapping[str, Callable[[Any, Case], str]]] = {
    "string": _as_text,
    "integer": _as_whole,
    "number": _as_number,
    "boolean": _as_boolean,
    "array": _as_list,
    "object": _as_it_is,
    "null": _as_it_is,
}
"""By the type that is wanted: the edit that makes it of a value of another type, where there is one."""
