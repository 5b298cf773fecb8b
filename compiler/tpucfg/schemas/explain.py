"""Turn jsonschema's errors into problems that their reader can fix.

The texts come from the schema's own annotations: `patternErrorMessage`, which editors show too, describes a pattern in
words, and `examples` show a valid value.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from tpucfg.findings import MAX_FINDINGS
from tpucfg.schemas import Problem, RuleIds, load_schema, object_errors, value_errors
from tpucfg.schemas.error_context import ErrorContext, strict_validator
from tpucfg.yamldoc.document import KeyPath


def explain_errors(name: str, data: Any, ids: RuleIds, source_text: Callable[[KeyPath], str]) -> Sequence[Problem]:
    """Return the problems of invalid data, one for each value or key: of several broken rules, the first in rank.

    It stops at MAX_FINDINGS + 1 problems, so that the caller sees that there are more than it lists.
    """
    first_of_each: dict[tuple[KeyPath, bool], tuple[int, Problem]] = {}
    for error in strict_validator(name).iter_errors(data):
        for problem in _problems(ErrorContext(error, load_schema(name), ids, source_text)):
            key, rank = (problem.path, problem.at_key), _RANKS.get(str(error.validator), len(_RANKS))
            if key not in first_of_each or rank < first_of_each[key][0]:
                first_of_each[key] = (rank, problem)
            if len(first_of_each) > MAX_FINDINGS:
                return [problem for _, problem in first_of_each.values()]
    return [problem for _, problem in first_of_each.values()]


def _problems(context: ErrorContext) -> Iterator[Problem]:
    if "propertyNames" in context.error.absolute_schema_path:
        yield object_errors.bad_key(context)
    else:
        yield from _EXPLAINERS.get(str(context.error.validator), value_errors.out_of_bounds)(context)


_EXPLAINERS: Final[Mapping[str, Callable[[ErrorContext], Iterator[Problem]]]] = {
    "additionalProperties": object_errors.unknown_keys,
    "required": object_errors.missing_keys,
    "oneOf": object_errors.alternatives,
    "anyOf": object_errors.alternatives,
    "dependentRequired": object_errors.missing_companions,
    "type": value_errors.wrong_type,
    "enum": value_errors.not_in_enum,
    "const": value_errors.not_the_constant,
    "pattern": value_errors.pattern_mismatch,
}
"""The function that explains each keyword; every other keyword is a bound."""
_RANKS: Final = {"type": 0, "enum": 1, "const": 1, "minLength": 2, "pattern": 3}
"""If one value breaks several rules, the one of the lowest rank is the mistake, and the others follow from it."""
