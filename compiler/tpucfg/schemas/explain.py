"""Why data does not fit a schema: jsonschema's errors, made into problems that their reader can fix.

A schema's own annotations do the talking: `patternErrorMessage`, which editors show too, says a pattern in words, and
`examples` show how a value looks.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from tpucfg.findings import MAX_FINDINGS
from tpucfg.schemas import Problem, RuleIds, load_schema
from tpucfg.schemas import object_errors as members
from tpucfg.schemas import value_errors as values
from tpucfg.schemas.error_context import ErrorContext, strict_validator
from tpucfg.yamldoc.document import KeyPath


def explain_errors(name: str, data: Any, ids: RuleIds, written: Callable[[KeyPath], str]) -> Sequence[Problem]:
    """Why the data does not fit the schema of that name: of several rules that one value breaks, the first.

    Where there are many reasons, it ends with one more than are listed.
    """
    worst: dict[tuple[KeyPath, bool], tuple[int, Problem]] = {}
    for error in strict_validator(name).iter_errors(data):
        for problem in _problems(ErrorContext(error, load_schema(name), ids, written)):
            key, rank = (problem.path, problem.at_key), _RANKS.get(str(error.validator), len(_RANKS))
            if key not in worst or rank < worst[key][0]:
                worst[key] = (rank, problem)
            if len(worst) > MAX_FINDINGS:
                return [problem for _, problem in worst.values()]
    return [problem for _, problem in worst.values()]


def _problems(case: ErrorContext) -> Iterator[Problem]:
    if "propertyNames" in case.error.absolute_schema_path:
        yield members.bad_key(case)
    else:
        yield from _EXPLAINERS.get(str(case.error.validator), values.bounds)(case)


_EXPLAINERS: Final[Mapping[str, Callable[[ErrorContext], Iterator[Problem]]]] = {
    "additionalProperties": members.unknown,
    "required": members.missing,
    "oneOf": members.alternatives,
    "anyOf": members.alternatives,
    "dependentRequired": members.dependent,
    "type": values.wrong_type,
    "enum": values.unlisted,
    "const": values.other_constant,
    "pattern": values.malformed,
}
"""By the keyword that is broken; every other one is a bound."""
_RANKS: Final = {"type": 0, "enum": 1, "const": 1, "minLength": 2, "pattern": 3}
"""Where one value breaks several rules, the first of these is the mistake and the others follow from it."""
