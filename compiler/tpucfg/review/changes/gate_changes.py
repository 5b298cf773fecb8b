"""What a change does to the terms of a project: what it allows, when its ladders are climbed, what it reckons with."""

from collections.abc import Iterator
from typing import Final

from tpucfg.diff.compiled_revisions import CompiledRevision
from tpucfg.findings import RULES, Finding, errors
from tpucfg.findings.finding import ALLOWED_PREFIX
from tpucfg.review.changes.statements import Statement
from tpucfg.spec.project import Gate, Number, Project
from tpucfg.text_format import listed

_LOWER_IS_WEAKER: Final = {"min_scaling_efficiency": True, "max_drop": False}
"""The figures of a gate that have an order."""


def allowance_statements(before: CompiledRevision, after: CompiledRevision) -> Iterator[Statement]:
    """What the spec allows from now on, and what no longer; a finding that is allowed is not solved."""
    if after.project is None:
        return
    old, new = before.project.allow if before.project else {}, after.project.allow
    for rule, reason in new.items():
        if rule in _newly(before, after):
            error = ", although it is an error" if RULES[rule].level == "error" else ""
            yield Statement(f"now allowed{error}: {{}} ({{}})", (rule, reason), headline=f"{rule} allowed")
        elif rule in old and old[rule] != reason:
            yield Statement("{} is allowed for another reason: {} instead of {}", (rule, reason, old[rule]))
    for rule in old:
        if rule not in new:
            yield Statement("no longer allowed: {}", (rule,), headline=f"{rule} no longer allowed")


def allowed_findings(before: CompiledRevision, after: CompiledRevision) -> Iterator[Finding]:
    """What is there, and only told as a note from now on."""
    ids = _newly(before, after)
    notes = (it for it in after.findings if it.details and it.details[-1].startswith(ALLOWED_PREFIX))
    return (it._replace(details=it.details[:-1]) for it in notes if it.id in ids)


def _newly(before: CompiledRevision, after: CompiledRevision) -> set[str]:
    """The rules that only this side allows; of a side before that did not hold, those that it broke."""
    allow = after.project.allow if after.project else {}
    if before.is_broken:
        return {*allow} & {it.id for it in errors(before.findings)}
    return {rule for rule in allow if before.project is None or rule not in before.project.allow}


def gate_statements(before: Project, after: Project) -> Iterator[Statement]:
    """What becomes of the gate between two rungs, and of the prices that costs are reckoned with."""
    yield from _gate(before.gate, after.gate)
    old, new = before.prices, after.prices
    told = [
        f"{name} {_price(old.get(name))} → {_price(new.get(name))}"
        for name in {**old, **new}
        if old.get(name) != new.get(name)
    ]
    if told:
        yield Statement("the prices change: {}", (listed(told),), headline="prices changed")


def _price(of: Number | None) -> str:
    return of.text if of else "–"


def _gate(before: Gate | None, after: Gate | None) -> Iterator[Statement]:
    if before and after:
        for key, old, new in zip(Gate._fields, before, after, strict=True):
            if old != new:
                how = _strength(key, old, new)
                values = (key, *("none" if it is None else str(it) for it in (old, new)))
                yield Statement(
                    f"the gate's {{}} goes from {{}} to {{}}{how and f': it is {how}'}", values, headline="gate changed"
                )
    elif before:
        said = "the gate falls away: a rung is climbed whatever was measured on the one below"
        yield Statement(said, headline="the gate falls away")
    elif after:
        asked = [f"{key} {it}" for key, it in zip(Gate._fields, after, strict=True) if it is not None]
        yield Statement("a gate stands between the rungs from now on: {}", (listed(asked),), headline="a gate added")


def _strength(key: str, old: object, new: object) -> str:
    if key not in _LOWER_IS_WEAKER or not isinstance(old, float | int) or not isinstance(new, float | int):
        return ""
    return "weaker" if (new < old) == _LOWER_IS_WEAKER[key] else "stronger"
