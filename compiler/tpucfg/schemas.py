"""JSON Schemas: the quick yes of a fast validator, and for a no the reasons, each as a finding with its place.

jsonschema-rs answers in microseconds and jsonschema explains; tests hold that both say the same. jsonschema is imported
only where there is something to explain, because it takes longer to import than most commands take to run.
"""

import difflib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from tpucfg.findings import Finding, Place
from tpucfg.resources import folder
from tpucfg.spec.document import Document, Path


class Ids(NamedTuple):
    """The ids under which one family of schemas reports: a spec's keys and a config's fields are other rules."""

    unknown: str
    missing: str
    type: str
    value: str
    exclusive: str
    noun: str
    """What a member of an object is called: `key` or `field`."""


SPEC: Final = Ids("TPU004", "TPU005", "TPU006", "TPU007", "TPU008", "key")
CONFIG: Final = Ids("TPU070", "TPU071", "TPU072", "TPU073", "TPU073", "field")


class Problem(NamedTuple):
    """One finding before it has a place."""

    id: str
    message: str
    path: Path
    help: str = ""
    at_key: bool = False
    details: tuple[str, ...] = ()

    def found_in(self, document: Document) -> Finding:
        """The finding, at its place in the document."""
        return self.found_at(document.key(self.path) if self.at_key else document.value(self.path))

    def found_at(self, place: Place) -> Finding:
        """The finding, at another place: a field of a rendered config, say, at the line of the spec it came from."""
        return Finding.of(self.id, self.message, place, help=self.help, details=self.details)


@cache
def load(name: str) -> dict[str, Any]:
    """The schema of that name, from schema/<name>.schema.json."""
    schema: dict[str, Any] = json.loads((folder("schema") / f"{name}.schema.json").read_bytes())
    return schema


@cache
def _quick(name: str) -> Any:
    import jsonschema_rs

    return jsonschema_rs.validator_for(load(name), validate_formats=False)


def valid(name: str, data: Any) -> bool:
    """Whether the data fits the schema."""
    try:
        return bool(_quick(name).is_valid(data))
    except ValueError:  # a text with a lone surrogate: jsonschema-rs cannot take it in, jsonschema says what is wrong
        return False


def explain(name: str, document: Document, ids: Ids) -> Iterator[Finding]:
    """Why the document does not fit the schema: one finding for one mistake, none where it fits."""
    return (problem.found_in(document) for problem in problems(name, document.data, ids))


def problems(name: str, data: Any, ids: Ids) -> Sequence[Problem]:
    """The same for data that is no document."""
    if valid(name, data):
        return ()
    worst: dict[tuple[Path, bool], tuple[int, Problem]] = {}
    for error in _explainer(name).iter_errors(data):
        for problem in _problems(error, ids):
            key, rank = (problem.path, problem.at_key), _RANK.get(str(error.validator), 9)
            if key not in worst or rank < worst[key][0]:
                worst[key] = (rank, problem)
    return [problem for _, problem in worst.values()]


@cache
def _explainer(name: str) -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError
    from jsonschema.validators import extend

    def whole(_: Any, pattern: str, instance: Any, __: Any) -> Iterator[Any]:
        # `$` of Python also matches before a last line break; that of JSON Schema's regular expressions does not.
        if isinstance(instance, str) and not re.search(re.sub(r"\$$", r"\\Z", pattern), instance):
            yield ValidationError(f"{instance!r} does not match {pattern!r}")

    strict: Any = extend(Draft202012Validator, {"pattern": whole})  # type: ignore[no-untyped-call]  # as the stubs have it
    return strict(load(name))


def _problems(error: Any, ids: Ids) -> Iterator[Problem]:
    path = tuple(error.absolute_path)
    if "propertyNames" in error.absolute_schema_path:
        message = f"{shown(error.instance)} cannot be a {ids.noun} of {dotted(path)}: {_reason(error)}"
        yield Problem(ids.value, message, (*path, str(error.instance)), at_key=True)
    elif (explainer := _EXPLAINERS.get(str(error.validator))) is not None:
        yield from explainer(error, path, ids)
    else:
        yield Problem(ids.value, f"{dotted(path)}: {_reason(error)}", path, help=_about(error.schema))


def _unknown(error: Any, path: Path, ids: Ids) -> Iterator[Problem]:
    known = list(error.schema.get("properties", ()))
    for key in error.instance:
        if key in known:
            continue
        near = nearest(key, known)
        fix = f"did you mean {near}?" if near else ""
        message = f"{dotted(path)} has no {ids.noun} {shown(key, quoted=False)}"
        allowed = f"it takes: {listed(known)}" if known else "it takes none"
        yield Problem(ids.unknown, message, (*path, key), fix, at_key=True, details=(allowed,))


def _missing(error: Any, path: Path, ids: Ids) -> Iterator[Problem]:
    for key in error.validator_value:
        if key not in error.instance:
            about = error.schema.get("properties", {}).get(key, {})
            yield Problem(ids.missing, f"{dotted(path)} needs the {ids.noun} {key}", (*path, key), _add(key, about))


def _type(error: Any, path: Path, ids: Ids) -> Iterator[Problem]:
    wanted = error.validator_value if isinstance(error.validator_value, list) else [error.validator_value]
    names = " or ".join(_TYPES[name] for name in wanted)
    message = f"{dotted(path)} is {shown(error.instance)}, which is {_kind(error.instance)}; it takes {names}"
    quoted = f'put it in quotes: "{error.instance}"' if "string" in wanted and _is_scalar(error.instance) else ""
    yield Problem(ids.type, message, path, quoted or _about(error.schema))


def _enum(error: Any, path: Path, ids: Ids) -> Iterator[Problem]:
    allowed = [str(value) for value in error.validator_value if value is not None]
    near = nearest(str(error.instance), allowed)
    fix = f"did you mean {near}?" if near else ""
    message = f"{dotted(path)} is {shown(error.instance)}; it takes {listed(allowed)}"
    yield Problem(ids.value, message, path, fix)


def _alternatives(error: Any, path: Path, ids: Ids) -> Iterator[Problem]:
    """`oneOf` and `anyOf` whose branches only name required keys: which of them is the whole question."""
    if not isinstance(error.instance, dict):
        return  # what is no mapping meets every branch, and its type is a finding of its own
    branches = [branch.get("required", []) for branch in error.validator_value]
    choices = " or ".join(" and ".join(branch) for branch in branches)
    present = [branch for branch in branches if branch and all(key in error.instance for key in branch)]
    if len(present) > 1:
        first, second = present[0][0], present[1][0]
        message = f"{dotted(path)} has both {first} and {second}; they exclude each other"
        yield Problem(ids.exclusive, message, (*path, second), f"delete {first} or {second}", at_key=True)
    else:
        begun = next((key for branch in branches for key in branch if key in error.instance), None)
        place = (*path, begun) if begun else (*path, "?")
        yield Problem(ids.missing, f"{dotted(path)} needs {choices}", place, at_key=bool(begun))


def _dependent(error: Any, path: Path, ids: Ids) -> Iterator[Problem]:
    for key, needed in error.validator_value.items():
        missing = [name for name in needed if key in error.instance and name not in error.instance]
        if missing:
            message = f"{dotted((*path, key))} needs {' and '.join(missing)} beside it"
            yield Problem(ids.missing, message, (*path, key), at_key=True)


_EXPLAINERS: Final[Mapping[str, Callable[[Any, Path, Ids], Iterator[Problem]]]] = {
    "additionalProperties": _unknown,
    "required": _missing,
    "type": _type,
    "enum": _enum,
    "oneOf": _alternatives,
    "anyOf": _alternatives,
    "dependentRequired": _dependent,
}
_RANK: Final = {"type": 0, "enum": 1, "const": 1, "pattern": 2}
"""Where one value breaks several rules, the first of these is the mistake and the others follow from it."""

_TYPES: Final = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}
_REASONS: Final[Mapping[str, str]] = {
    "const": "it must be {0}",
    "minimum": "{1} is below {0}",
    "exclusiveMinimum": "{1} is not above {0}",
    "maximum": "{1} is above {0}",
    "pattern": "{1} does not have the form {0}",
    "minLength": "it is empty",
    "maxLength": "it is longer than {0} characters",
    "minItems": "the list is empty",
    "maxItems": "the list has more than {0} entries",
    "minProperties": "the mapping is empty",
    "maxProperties": "the mapping has more than {0} keys",
    "not": "it is not allowed here",
    "uniqueItems": "the list repeats an entry",
}


def _reason(error: Any) -> str:
    template = _REASONS.get(str(error.validator))
    return template.format(error.validator_value, shown(error.instance)) if template else shown(error.message)


def _kind(value: Any) -> str:
    names = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}
    return _TYPES[names.get(type(value), "null")]


def _is_scalar(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _about(schema: Mapping[str, Any]) -> str:
    """What the schema says of the value, and how one looks."""
    examples = schema.get("examples", [])
    example = f" For example: {_example(examples[0])}" if examples else ""
    return f"{schema.get('description', '')}{example}".strip()


def _add(key: str, schema: Mapping[str, Any]) -> str:
    examples = schema.get("examples", [])
    return f"add {key}: {_example(examples[0])}" if examples else f"add {key}:"


def _example(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_LONGEST_PATH: Final = 80


def dotted(path: Sequence[str | int]) -> str:
    """A path as people write it: `environments.dev.sizes[1]`; a long one begins with `…`; the root is `the file`."""
    steps = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in path]
    if not steps:
        return "the file"
    # The end names the field, and the finding's place says where that is, so the beginning is what can go.
    start = next((at for at in range(len(steps)) if sum(map(len, steps[at:])) < _LONGEST_PATH), len(steps) - 1)
    text = "".join(steps[start:]).removeprefix(".")
    return shown(f"…{text}" if start else text, quoted=False, longest=_LONGEST_PATH)


def shown(value: Any, *, quoted: bool = True, longest: int = 60) -> str:
    """A value as a message can hold it: one line, at most `longest` characters."""
    text = json.dumps(value, ensure_ascii=False, default=str) if quoted or not isinstance(value, str) else value
    text = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def listed(names: Sequence[str], most: int = 8) -> str:
    """A list of names for a message, cut where it grows long."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def nearest(text: str, names: Sequence[str]) -> str | None:
    """The name that was most likely meant: the same word otherwise written, or one that differs by a letter or two."""
    plain = {re.sub(r"[^a-z0-9]", "", name.lower()): name for name in names}
    same = plain.get(re.sub(r"[^a-z0-9]", "", text.lower()))
    close = difflib.get_close_matches(text[:100], names, n=1, cutoff=0.7)
    return same or (close[0] if close else None)
