"""Resources of types about which the review knows nothing, so that their effect is left to the reader."""

from collections.abc import Mapping, Sequence
from typing import Final

from tpucfg.changes.statements import Risk, Statement
from tpucfg.infra.grants import declares_grants
from tpucfg.review.changes.resources.access_changes import judges_access
from tpucfg.review.changes.resources.immutable_inputs import IMMUTABLE_INPUTS
from tpucfg.review.changes.resources.resource_change import STATEFUL_TYPES, Step
from tpucfg.text_format import format_count

_RUN_CODE: Final = frozenset(("gcp:compute/instance:Instance", "gcp:workbench/instance:Instance"))
"""Types that hold data and also run code, which no rule judges."""
_JUDGED: Final = frozenset((*IMMUTABLE_INPUTS, *STATEFUL_TYPES)) - _RUN_CODE
_TEXTS: Final[Mapping[str, str]] = {
    "create": "is new here, as is its type",
    "update": "changes",
    "replace": "is replaced",
}
_NO_RULES: Final = ": this review has no rules about its type"
_MAX_TYPES: Final = 10


def unjudged_statements(steps: Sequence[Step], judged: Sequence[bool]) -> Mapping[int, Statement]:
    """Return a sentence about the first step of each type that no rule judges, by the index of the step.

    Args:
        steps: all steps of an environment.
        judged: True for each step about which there is another sentence.
    """
    existing = {step.before.type for step in steps if step.before}
    indexes: dict[tuple[str, str], list[int]] = {}
    for index, (step, is_judged) in enumerate(zip(steps, judged, strict=True)):
        after = step.after
        if after is None or is_judged or step.op not in _TEXTS or _is_judged(after.type):
            continue
        if step.op != "create" or after.type not in existing:
            indexes.setdefault((after.type, step.op), []).append(index)
    return {own[0]: _statement(op, len(own) - 1) for (_, op), own in [*indexes.items()][:_MAX_TYPES]}


def _statement(op: str, others: int) -> Statement:
    more = f", with {format_count(others, 'other')} of its type" if others else ""
    return Statement(f"{_TEXTS[op]}{more}{_NO_RULES}", (), Risk.CAUTION)


def _is_judged(resource_type: str) -> bool:
    return resource_type in _JUDGED or declares_grants(resource_type) or judges_access(resource_type)
