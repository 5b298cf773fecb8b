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
from tpucfg.infra.resource_rules import DEFAULT_SOFT_DELETE_SECONDS
from tpucfg.infra.resources import ACCOUNT, BUCKET, Resource
from tpucfg.paths import KeyPath, matches
from tpucfg.redaction import SECRET
from tpucfg.text_format import dotted

_TEMPORARY: Final = "tmp/"
"""The prefix whose objects the bundled stack program deletes."""
_BUCKET_DEFAULTS: Final = {"softDeletePolicy": {"retentionDurationSeconds": DEFAULT_SOFT_DELETE_SECONDS}}
_KINDS: Final[Mapping[str, str]] = {
    BUCKET: "bucket",
    ACCOUNT: "account",
    "gcp:projects/service:Service": "service",
    "gcp:projects/serviceIdentity:ServiceIdentity": "identity",
    "gcp:projects/iAMCustomRole:IAMCustomRole": "role",
}


def resource_statements(steps: Sequence[Step]) -> list[tuple[Statement, ...]]:
    """Return the sentences about each step, apart from grants."""
    return [tuple(dict.fromkeys(_statements(step))) for step in steps]


def _statements(step: Step) -> Iterator[Statement]:
    before, after = step.before, step.after
    # The options that are set, extended or given up.
    kind = "old option" if after is None else "option" if before else "new option"
    yield from _compared(_options(kind, before), _options(kind, after), is_gone=after is None)
    is_left = before is not None and after is None and before.retain
    if (resource := after or before) and step.op != "same" and not is_left:
        kind = _kind(resource)
        if kind == "bucket" and after:
            yield from _lifecycle_statements(before.inputs if before else {}, after.inputs, is_new=before is None)
        yield from _compared(_facts(kind, before, "exists"), _facts(kind, after, step.op), is_gone=after is None)


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
    """Yield what the rules of a bucket do that no rule did before, those that reach the jobs first."""
    old, new = lifecycle.lifecycle_rules(before) or (), lifecycle.lifecycle_rules(after)
    if new is None or (not is_new and (SECRET in str(new) or UNKNOWN in str(new))):
        yield Statement("sets {} to a value that is not known here", ("lifecycleRules",), Risk.DESTRUCTIVE)
    wider = [rule for rule in new or () if not any(lifecycle.covers(other, rule) for other in old)]
    for rule in sorted(wider, key=lambda rule: not rule.reaches_jobs):
        template, values = lifecycle.describe_reach(rule, [prefix for other in old for prefix in other.prefixes])
        # In a new bucket, a rule for the whole bucket is a finding, and one for temporary objects is no risk.
        is_temporary = rule.prefixes and all(prefix.startswith(_TEMPORARY) for prefix in rule.prefixes)
        is_known = is_new and rule.action == lifecycle.DELETE and (rule.reaches_jobs or is_temporary)
        if rule.action != lifecycle.ABORT_UPLOAD and not is_known:
            risk = Risk.CAUTION if is_new or rule.storage_class else Risk.DESTRUCTIVE
            is_deletion, action = rule.action == lifecycle.DELETE, f"{rule.action} {rule.storage_class}".strip()
            text = f"deletes {template} ({{}})" if is_deletion else f"has the rule {{}} for {template} ({{}})"
            yield Statement(text, (*(() if is_deletion else (action,)), *values, "lifecycleRules"), risk)


# Facts


def _facts(kind: str, resource: Resource | None, operation: str) -> Iterator[Fact]:
    """Yield the operation and the inputs of a resource as facts; of an input that is secret, its digest."""
    if resource is None:
        return
    defaults = _BUCKET_DEFAULTS if kind == "bucket" else {}
    for path, value in _leaves({**defaults, **resource.inputs}):
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
        if name != "parentAliases":
            yield Fact(Scope(), (kind, group, name), value)
