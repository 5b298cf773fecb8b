"""Changes to `allow`, `allow_drift`, `gate` and `prices`, which no config contains."""

from collections.abc import Iterator, Mapping
from typing import Final, get_args

from tpucfg.changes.revisions import CompiledRevision
from tpucfg.changes.statements import Risk, Statement
from tpucfg.findings import RULES, Finding, errors
from tpucfg.findings.finding import ALLOWED_PREFIX
from tpucfg.spec.project import Gate, Number, Prices, Project
from tpucfg.spec.settings import CapacityKind
from tpucfg.text_format import listed

_LOWER_IS_STRICTER: Final = {"min_scaling_efficiency": False, "max_drop": True}
"""The thresholds of a gate, which can become stricter or less strict."""
_STRICTER: Final = ": the gate is stricter"
_KNOWN_TO_FIT: Final = "a step that is known to fit"
_NO_FIT: Final = ": a rung may run whose step does not fit, or was never compiled"
_UNSET: Final = "none"
_NO_PRICE: Final = "–"
_CAPACITIES: Final[tuple[CapacityKind, ...]] = get_args(CapacityKind)


def allowance_statements(before: CompiledRevision, after: CompiledRevision) -> Iterator[Statement]:
    """Yield the rules that the spec starts or stops allowing: an allowed finding is only hidden, not fixed."""
    if after.project is None:
        return
    old, new = before.project.allow if before.project else {}, after.project.allow
    newly_allowed = _newly_allowed(before, after)
    for rule, reason in new.items():
        if rule in newly_allowed:
            error = ", an error," if RULES[rule].level == "error" else ""
            risk = Risk.CAUTION if error else Risk.NONE
            yield Statement(f"{{}}{error} is now allowed ({{}})", (rule, reason), risk, f"{rule} allowed")
        elif rule in old and old[rule] != reason:
            yield Statement("reason for allowing {} changed from {} to {}", (rule, old[rule], reason))
    for rule in old:
        if rule not in new:
            yield Statement("{} is no longer allowed", (rule,), headline=f"{rule} no longer allowed")


def known_drift_statements(before: Project | None, after: Project) -> Iterator[Statement]:
    """Yield the entries of `allow_drift` that the spec adds, changes or removes: known drift is no caution."""
    old = before.allow_drift if before else {}
    for urn, reason in after.allow_drift.items():
        if urn not in old:
            template = "drift of {} is now allowed ({}): from the next change on, a review lists it without a caution"
            yield Statement(template, (urn, reason), risk=Risk.CAUTION, headline="drift allowed")
        elif old[urn] != reason:
            yield Statement("reason for allowing drift of {} changed from {} to {}", (urn, old[urn], reason))
    for urn in old:
        if urn not in after.allow_drift:
            yield Statement("drift of {} is no longer allowed", (urn,))


def allowed_findings(before: CompiledRevision, after: CompiledRevision) -> Iterator[Finding]:
    """Yield the findings that the change turns into notes, without the reason for allowing them."""
    rules = _newly_allowed(before, after)
    for finding in after.findings:
        if finding.id in rules and finding.details and finding.details[-1].startswith(ALLOWED_PREFIX):
            yield finding._replace(details=finding.details[:-1])


def _newly_allowed(before: CompiledRevision, after: CompiledRevision) -> set[str]:
    """Return the rules that only the head allows; if the base has errors, those of its errors that are now allowed."""
    allow = after.project.allow if after.project else {}
    # A base with errors has no project to read its `allow` from, but an allowed rule would not have been an error.
    if before.is_broken:
        return {*allow} & {finding.id for finding in errors(before.findings)}
    return {rule for rule in allow if before.project is None or rule not in before.project.allow}


def gate_statements(before: Project, after: Project) -> Iterator[Statement]:
    """Yield the changes to the gate between rungs, and to the prices of TPUs."""
    if before.gate and after.gate:
        yield from _gate_changed(before.gate, after.gate)
    elif before.gate:
        fit = f", nor {_KNOWN_TO_FIT}" if before.gate.fit else ""
        text = f"{{}} removed: rungs no longer need a passing result{fit}"
        yield Statement(text, ("gate",), Risk.CAUTION, "gate removed")
    elif after.gate:
        yield _gate_added(after.gate)
    yield from _prices_changed(before.prices, after.prices)


def _gate_added(gate: Gate) -> Statement:
    thresholds = gate._replace(fit=False)._asdict()
    conditions = [f"{key} {value}" for key, value in thresholds.items() if value is not None and value is not False]
    needed = ["a passing result ({})"] * bool(conditions) + [_KNOWN_TO_FIT] * gate.fit
    template = f"{{}} added: rungs now need {' and '.join(needed)}"
    values = ("gate", *([listed(conditions)] if conditions else []))
    return Statement(template, values, headline="gate added")


def _gate_changed(before: Gate, after: Gate) -> Iterator[Statement]:
    for key, old, new in zip(Gate._fields, before, after, strict=True):
        if old == new:
            continue
        values = (f"gate.{key}", *(_value(value) for value in (old, new)))
        strictness = _strictness(key, old, new)
        risk = Risk.NONE if strictness.startswith(_STRICTER) else Risk.CAUTION
        yield Statement(f"{{}} changed from {{}} to {{}}{strictness}", values, risk, "gate changed")


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return _UNSET if value is None else str(value)


def _strictness(key: str, old: object, new: object) -> str:
    if key == "fit":
        return f"{_STRICTER}, as rungs now need {_KNOWN_TO_FIT}" if new else _NO_FIT
    if key not in _LOWER_IS_STRICTER or not isinstance(old, float | int) or not isinstance(new, float | int):
        return ""
    return _STRICTER if (new < old) == _LOWER_IS_STRICTER[key] else ": the gate is less strict"


def _prices_changed(before: Prices, after: Prices) -> Iterator[Statement]:
    pairs = {
        generation: {
            kind: (before.get(generation, {}).get(kind), after.get(generation, {}).get(kind)) for kind in _CAPACITIES
        }
        for generation in {**before, **after}
    }
    if changes := [change for generation, by_kind in pairs.items() for change in _price_changes(generation, by_kind)]:
        # With a lower price, or none, everything looks cheaper.
        known = [pair for by_kind in pairs.values() for pair in by_kind.values()]
        is_lower = any(old and (new is None or new.value < old.value) for old, new in known)
        risk = Risk.CAUTION if is_lower else Risk.NONE
        yield Statement("{} changed: {}", ("prices", listed(changes)), risk, headline="prices changed")


def _price_changes(
    generation: str, by_kind: Mapping[CapacityKind, tuple[Number | None, Number | None]]
) -> Iterator[str]:
    """Yield one text for a generation if all its capacities change equally, and else one for each that changes."""
    if len(set(by_kind.values())) == 1:
        by_name = {generation: next(iter(by_kind.values()))}
    else:
        by_name = {f"{generation} {kind}": pair for kind, pair in by_kind.items()}
    yield from (f"{name} {_price(old)} → {_price(new)}" for name, (old, new) in by_name.items() if old != new)


def _price(price: Number | None) -> str:
    return price.text if price else _NO_PRICE
