"""Sentences about changed resources, apart from grants: their options, their inputs, and rules that delete objects."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tpucfg.changes.conditions import Comparison
from tpucfg.changes.facts import ABSENT, Fact, FactChange, Scope, by_name, compare
from tpucfg.changes.meanings import Meaning
from tpucfg.changes.resource_conditions import GUARDS, LOSSES, OPERATION, TYPE, has_name
from tpucfg.changes.resource_meanings import MEANINGS, OTHER_MEANINGS
from tpucfg.changes.resources import KNOWN_TYPES, UNKNOWN, Step, holds_data
from tpucfg.changes.statements import Risk, Statement
from tpucfg.infra import lifecycle
from tpucfg.infra.grants import is_grant
from tpucfg.infra.lifecycle import LifecycleRule
from tpucfg.infra.resources import ACCOUNT, BUCKET, Resource
from tpucfg.paths import KeyPath, matches
from tpucfg.redaction import SECRET
from tpucfg.text_format import dotted

_MAX_RULES: Final = 6
_TEMPORARY: Final = "tmp/"
"""The prefix whose objects the bundled stack program deletes."""
_KINDS: Final[Mapping[str, str]] = {
    BUCKET: "bucket",
    ACCOUNT: "account",
    "gcp:projects/service:Service": "service",
    "gcp:projects/serviceIdentity:ServiceIdentity": "identity",
    "gcp:projects/iAMCustomRole:IAMCustomRole": "role",
}
_COMPARED_OPTIONS: Final = ("parentAliases", "provider")


def resource_statements(steps: Sequence[Step]) -> list[tuple[Statement, ...]]:
    """Return the sentences about each step, apart from grants."""
    predecessors = _predecessors(steps)
    return [tuple(dict.fromkeys(_statements(step, predecessors.get(index)))) for index, step in enumerate(steps)]


def _predecessors(steps: Sequence[Step]) -> Mapping[int, Resource]:
    """Return the bucket that each created bucket replaces, by the index of its step.

    A bucket that moves to another region is created under another name in the stack, and the old one is removed.
    """
    removed = [step.before for step in steps if step.op == "delete" and step.before and step.before.type == BUCKET]
    removed.sort(key=lambda bucket: bucket.name)
    created = [
        (step.after.name, index)
        for index, step in enumerate(steps)
        if step.op == "create" and step.after and step.after.type == BUCKET
    ]
    pairs = ((index, min(position, len(removed) - 1)) for position, (_, index) in enumerate(sorted(created)))
    return {index: removed[position] for index, position in pairs if removed}


def _statements(step: Step, predecessor: Resource | None) -> Iterator[Statement]:
    yield from _option_statements(step.before, step.after)
    if predecessor and step.after:
        for name, is_lost in {
            "protect": predecessor.protect and not step.after.protect,
            "retainOnDelete": predecessor.retain and not step.after.retain,
        }.items():
            if is_lost:
                yield Statement("does not have {}, unlike the bucket that it replaces", (name,), Risk.DESTRUCTIVE)
        step = step._replace(before=predecessor)
    before, after = step.before, step.after
    is_left = before is not None and after is None and before.retain
    if (resource := after or before) and step.op != "same" and not is_left:
        kind = _kind(resource)
        if kind == "bucket" and after:
            yield from _lifecycle_statements(before.inputs if before else {}, after.inputs, is_new=before is None)
        yield from _compared(_facts(kind, before, "exists"), _facts(kind, after, step.op), is_gone=after is None)


def _option_statements(before: Resource | None, after: Resource | None) -> Iterator[Statement]:
    """Yield the options that are set, extended or given up, with their effect."""
    kind = "old option" if after is None else "option" if before else "new option"
    yield from _compared(_options(kind, before), _options(kind, after), is_gone=after is None)


def _compared(before: Iterator[Fact], after: Iterator[Fact], *, is_gone: bool) -> Iterator[Statement]:
    """Yield the sentences about the facts that differ."""
    comparison = Comparison(by_name(before), by_name(after))
    for change in compare(comparison.before, comparison.after):
        rows = [row for row in MEANINGS if matches(row.pattern, change.name)]
        is_kept = ABSENT not in comparison.pair(change.scope, str(change.name[0]), OPERATION)
        if is_kept and _is_hidden(change.after):
            yield from _hidden_value(change, rows)
        elif rows or not is_gone:
            others = [] if rows else [row for row in OTHER_MEANINGS if matches(row.pattern, change.name)]
            applying = [(row, values) for row in rows or others if (values := row.when(change, comparison))]
            for row, values in applying if rows else applying[:1]:
                if row.risk:
                    own = values if isinstance(values, tuple) else ()
                    yield Statement(row.sentence, (*own, _property(change)), row.risk)


def _hidden_value(change: FactChange, rows: Sequence[Meaning]) -> Iterator[Statement]:
    """Yield that a value is not known: a preview has values that only the update knows; a secret hides another one."""
    guards = has_name(change, GUARDS) or has_name(change, LOSSES)
    unknown = Risk.DESTRUCTIVE if guards else Risk.UNKNOWN
    risk = max((row.risk for row in rows), default=unknown)
    if risk:
        is_secret = change.after != UNKNOWN
        text = "sets {} to a value that is not known here"
        yield Statement(text, (dotted(change.name[1:]),), max(Risk.UNKNOWN, risk) if is_secret else Risk.UNKNOWN)


def _property(change: FactChange) -> str:
    """Return the name of an option or of an input, without what is nested in it."""
    return str(change.name[2 if str(change.name[0]).endswith("option") else 1])


def _is_hidden(value: Any) -> bool:
    return isinstance(value, str) and value.startswith((SECRET, UNKNOWN))


def _kind(resource: Resource) -> str:
    is_known_grant = resource.type in KNOWN_TYPES or is_grant(resource)
    return _KINDS.get(resource.type, "grant" if is_known_grant else "unknown")


# Lifecycle rules


def _lifecycle_statements(before: Mapping[str, Any], after: Mapping[str, Any], *, is_new: bool) -> Iterator[Statement]:
    old, new = lifecycle.lifecycle_rules(before) or (), lifecycle.lifecycle_rules(after)
    if new is None:
        yield Statement("sets {} to a value that is not known here", ("lifecycleRules",), Risk.UNKNOWN)
        return
    hidden = [rule for rule in new if not is_new and any(text in str(rule) for text in (SECRET, UNKNOWN))]
    wider = [rule for rule in new if rule in hidden or not any(lifecycle.covers(other, rule) for other in old)]
    # Those that reach the jobs come first, so that a long list does not hide them.
    wider.sort(key=lambda rule: not rule.reaches_jobs)
    for rule in wider[:_MAX_RULES]:
        yield from _reach_statements(rule, old, is_new=is_new)
    if (more := len(wider) - _MAX_RULES) > 0:
        risk = Risk.CAUTION if is_new else Risk.DESTRUCTIVE
        yield Statement(f"has {more:,} more such rules ({{}})", ("lifecycleRules",), risk)


def _reach_statements(rule: LifecycleRule, old: Sequence[LifecycleRule], *, is_new: bool) -> Iterator[Statement]:
    """Yield what a rule does that no rule did before."""
    known = [prefix for other in old if other.action == rule.action for prefix in other.prefixes]
    template, values = lifecycle.describe_reach(rule, known)
    key = ("lifecycleRules",)
    if rule.action == lifecycle.DELETE:
        # In a new bucket, a rule for the whole bucket is a finding, and one for temporary objects is no risk.
        is_temporary = rule.prefixes and all(prefix.startswith(_TEMPORARY) for prefix in rule.prefixes)
        if not (is_new and (rule.reaches_jobs or is_temporary)):
            age = _previous_age(rule, old)
            text = f"deletes {template}{', previously {} days' if age else ''} ({{}})"
            yield Statement(text, (*values, *age, *key), Risk.CAUTION if is_new else Risk.DESTRUCTIVE)
    elif rule.action == lifecycle.SET_STORAGE_CLASS:
        text = f"moves {template} to {{}}, where each read and an early deletion have a price ({{}})"
        yield Statement(text, (*values, rule.storage_class, *key), Risk.CAUTION)
    elif rule.action != lifecycle.ABORT_UPLOAD:
        yield Statement("has a rule with the unknown action {} ({})", (rule.action, *key), Risk.UNKNOWN)


def _previous_age(rule: LifecycleRule, old: Sequence[LifecycleRule]) -> tuple[str, ...]:
    """Return the age at which an otherwise equal rule deleted before; empty if there was none."""
    ages = (
        other.conditions.get("age")
        for other in old
        if other.action == rule.action and {**other.conditions, "age": 0} == {**rule.conditions, "age": 0}
    )
    return tuple(str(age) for age in ages if age)[:1]


# Facts


def _facts(kind: str, resource: Resource | None, operation: str) -> Iterator[Fact]:
    """Yield the operation and the inputs of a resource as facts; of an input that is secret, its digest."""
    if resource is None:
        return
    for path, value in _leaves(resource.inputs):
        digest = resource.secrets.get(str(path[0]))
        yield Fact(Scope(), (kind, *path), f"{SECRET} {digest}" if digest and value == SECRET else value)
    # Last, so that no input takes their place.
    yield Fact(Scope(), (kind, OPERATION), operation)
    yield Fact(Scope(), (kind, TYPE), resource.type)


def _leaves(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Yield the scalars and lists in nested mappings with their paths; nothing for what is not set."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif value is not None and value != []:
        yield path, value


def _options(kind: str, resource: Resource | None) -> Iterator[Fact]:
    """Yield the options of a resource as facts, in a group by what an option can lose."""
    if resource is None:
        return
    is_access = is_grant(resource)
    group = "grant" if is_access else "data" if holds_data(resource.type, is_grant=is_access) else "other"
    for name, value in {**resource.options, **({"retainOnDelete": True} if resource.retain else {})}.items():
        if name not in _COMPARED_OPTIONS:
            yield Fact(Scope(), (kind, group, name), value)
