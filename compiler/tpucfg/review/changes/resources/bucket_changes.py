"""Changes of a bucket's inputs that delete objects, make deletions final, open the bucket, or raise its cost."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tpucfg.changes.statements import Risk, Statement
from tpucfg.infra.lifecycle import (
    ABORT_UPLOAD,
    DELETE,
    SET_STORAGE_CLASS,
    LifecycleRule,
    covers,
    describe_reach,
    lifecycle_rules,
)
from tpucfg.infra.resources import input_at
from tpucfg.infra.rules.data_loss import DEFAULT_SOFT_DELETE_SECONDS
from tpucfg.redaction import SECRET
from tpucfg.review.changes.resources.guards import (
    Guard,
    format_duration,
    is_false,
    is_set,
    is_true,
    one_of,
    seconds,
    weakened_guards,
)
from tpucfg.review.changes.resources.resource_change import BUCKET, UNKNOWN, Op, Step

_MAX_RULES: Final = 6
_TEMPORARY: Final = "tmp/"
"""The prefix whose objects the bundled stack program deletes."""
_SOFT_DELETE: Final = ("softDeletePolicy", "retentionDurationSeconds")
_CLASSES: Final = one_of(("ARCHIVE",), ("COLDLINE",), ("NEARLINE",), (None, "STANDARD", "REGIONAL", "MULTI_REGIONAL"))
"""Storage classes, those with a price for each read first: https://cloud.google.com/storage/docs/storage-classes."""
_GUARDS: Final = (
    Guard(
        _SOFT_DELETE,
        seconds(DEFAULT_SOFT_DELETE_SECONDS),
        "keeps deleted objects for {2}, previously for {1}",
        Risk.DESTRUCTIVE,
        lambda value: format_duration(DEFAULT_SOFT_DELETE_SECONDS if value is None else value),
    ),
    Guard(("versioning", "enabled"), is_true(), "no longer keeps old versions of its objects", Risk.DESTRUCTIVE),
    Guard(
        ("retentionPolicy", "retentionPeriod"),
        seconds(),
        "forbids the deletion of objects for {2}, previously for {1}",
        Risk.DESTRUCTIVE,
        lambda value: format_duration(value or 0),
    ),
    Guard(
        ("retentionPolicy", "isLocked"),
        is_false(),
        "locks its retention policy, which can never be shortened or removed again",
        Risk.CAUTION,
    ),
    Guard(("defaultEventBasedHold",), is_true(), "no longer holds new objects", Risk.DESTRUCTIVE),
    Guard(("enableObjectRetention",), is_true(), "no longer retains single objects", Risk.DESTRUCTIVE),
    Guard(
        ("encryption", "defaultKmsKeyName"),
        is_set,
        "encrypts new objects with Google's keys instead of your own, {1}",
        Risk.ACCESS,
    ),
    Guard(("ipFilter", "mode"), one_of((None, "Disabled"), ("Enabled",)), "is open to every network", Risk.ACCESS),
    Guard(("ipFilter", "allowAllServiceAgentAccess"), is_false(), "is open to all service agents", Risk.ACCESS),
    Guard(("ipFilter", "allowCrossOrgVpcs"), is_false(), "is open to networks of other organizations", Risk.ACCESS),
    Guard(("logging", "logBucket"), is_set, "no longer logs access to {1}", Risk.CAUTION),
    Guard(("requesterPays",), is_false(), "refuses readers who do not pay for their requests", Risk.CAUTION),
    Guard(("storageClass",), _CLASSES, "stores new objects as {2}: each read has a price", Risk.CAUTION),
    Guard(("rpo",), one_of((None, "DEFAULT"), ("ASYNC_TURBO",)), "replicates new objects later", Risk.CAUTION),
)
_CHANGED: Final[Mapping[tuple[str, ...], tuple[str, Risk]]] = {
    ("encryption", "defaultKmsKeyName"): (
        "encrypts new objects with another key, {1}, which Cloud Storage has to be allowed to use",
        Risk.CAUTION,
    ),
    ("logging", "logBucket"): ("logs access to another bucket, {1}", Risk.CAUTION),
    ("ipFilter", "publicNetworkSource"): ("is open to other addresses than before", Risk.ACCESS),
    ("ipFilter", "vpcNetworkSources"): ("is open to other networks than before", Risk.ACCESS),
    ("cors",): ("can be read by web pages of other origins than before", Risk.CAUTION),
    ("website",): ("serves a web site", Risk.CAUTION),
    ("autoclass",): ("moves objects between storage classes by other rules than before", Risk.CAUTION),
}
"""Inputs of which each new value is worth a look; `{1}` is the value."""


def bucket_statements(step: Step) -> Iterator[Statement]:
    """Yield what a change of a bucket means. A bucket that replaces another is compared with it."""
    after = step.after
    if after is None or after.type != BUCKET or step.op == "same":
        return
    before: Mapping[str, Any] = step.before.inputs if step.before else {}
    if step.before:
        yield from weakened_guards(_GUARDS, before, _with_kept_inputs(step.op, before, after.inputs))
        yield from _undeclared_soft_delete(step.op, before, after.inputs)
    yield from _changed_inputs(before, after.inputs)
    yield from _lifecycle_statements(before, after.inputs, is_new=step.before is None)


def _undeclared_soft_delete(op: Op, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Statement]:
    if _with_kept_inputs(op, before, after) is not after:
        text = "no longer declares how long deleted objects can be restored ({})"
        yield Statement(text, (_SOFT_DELETE[0],), Risk.CAUTION)


def _with_kept_inputs(op: Op, before: Mapping[str, Any], after: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the inputs with the policy of soft delete that an updated bucket keeps if it is no longer declared."""
    is_dropped = input_at(before, _SOFT_DELETE) is not None and input_at(after, _SOFT_DELETE) is None
    return {**after, _SOFT_DELETE[0]: before[_SOFT_DELETE[0]]} if is_dropped and op == "update" else after


def _changed_inputs(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Statement]:
    for path, (template, risk) in _CHANGED.items():
        old, new = input_at(before, path), input_at(after, path)
        # The first key or log bucket restricts nothing that was possible before.
        if new in (None, "", [], {}) or old == new or (old is None and "{1}" in template):
            continue
        yield Statement(f"{template} ({{0}})", (path[0], str(new)), risk)


def _lifecycle_statements(before: Mapping[str, Any], after: Mapping[str, Any], *, is_new: bool) -> Iterator[Statement]:
    old, new = lifecycle_rules(before) or (), lifecycle_rules(after)
    if new is None:
        yield Statement("sets {} to a value that is not known here", ("lifecycleRules",), Risk.UNKNOWN)
        return
    wider = [rule for rule in new if not any(covers(other, rule) for other in old) or (not is_new and _is_hidden(rule))]
    # Those that reach the jobs come first, so that a long list does not hide them.
    wider.sort(key=lambda rule: not rule.reaches_jobs)
    for rule in wider[:_MAX_RULES]:
        yield from _reach_statements(rule, old, is_new=is_new)
    if (more := len(wider) - _MAX_RULES) > 0:
        risk = Risk.CAUTION if is_new else Risk.DESTRUCTIVE
        yield Statement(f"has {more:,} more such rules ({{}})", ("lifecycleRules",), risk)


def _reach_statements(rule: LifecycleRule, old: tuple[LifecycleRule, ...], *, is_new: bool) -> Iterator[Statement]:
    """Yield what a rule does that no rule did before."""
    known = [prefix for other in old if other.action == rule.action for prefix in other.prefixes]
    template, values = describe_reach(rule, known)
    key = ("lifecycleRules",)
    if rule.action == DELETE:
        # In a new bucket, a rule for the whole bucket is a finding, and one for temporary objects is no risk.
        if is_new and (rule.reaches_jobs or (rule.prefixes and all(map(_is_temporary, rule.prefixes)))):
            return
        risk = Risk.CAUTION if is_new else Risk.DESTRUCTIVE
        age = _previous_age(rule, old)
        previously = ", previously {} days" if age else ""
        yield Statement(f"deletes {template}{previously} ({{}})", (*values, *age, *key), risk)
    elif rule.action == SET_STORAGE_CLASS:
        text = f"moves {template} to {{}}, where each read and an early deletion have a price ({{}})"
        yield Statement(text, (*values, rule.storage_class, *key), Risk.CAUTION)
    elif rule.action != ABORT_UPLOAD:
        yield Statement("has a rule with the unknown action {} ({})", (rule.action, *key), Risk.UNKNOWN)


def _previous_age(rule: LifecycleRule, old: tuple[LifecycleRule, ...]) -> tuple[str, ...]:
    """Return the age at which an otherwise equal rule deleted before; empty if there was none."""
    ages = (
        other.conditions.get("age")
        for other in old
        if other.action == rule.action and {**other.conditions, "age": 0} == {**rule.conditions, "age": 0}
    )
    return tuple(str(age) for age in ages if age)[:1]


def _is_temporary(prefix: str) -> bool:
    return prefix.startswith(_TEMPORARY)


def _is_hidden(rule: LifecycleRule) -> bool:
    return any(hidden in str(rule) for hidden in (SECRET, UNKNOWN))
