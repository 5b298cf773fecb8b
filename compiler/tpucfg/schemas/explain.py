"""Turn jsonschema's errors into problems with messages and help lines.

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
        yield object_errors.bad_key(context)
    elif context.misplaced_in_override:
        yield object_errors.misplaced_in_override(context)
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
"""If a value breaks several rules, the error of the lowest rank is reported: the others follow from it."""
