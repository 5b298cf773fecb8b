"""The meaning of changed inputs and options of resources: one table for the types that the bundled program declares.

Of every other type nothing is known: its creation and its change are cautions, and inputs that are called a protection,
a retention or a deletion are destructive where they get weaker. Grants of access are compared in `grants.py`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tpucfg.catalog.target_facts import TARGET_FACTS
from tpucfg.changes.conditions import Comparison, Condition, added, removed
from tpucfg.changes.facts import ABSENT, Fact, FactChange, Scope, by_name, compare
from tpucfg.changes.meanings import Meaning
from tpucfg.changes.resources import KNOWN_TYPES, REMOVING_OPS, UNKNOWN, Step, holds_data
from tpucfg.changes.statements import Risk, Statement
from tpucfg.infra.grants import is_grant, power_of
from tpucfg.infra.lifecycle import (
    ABORT_UPLOAD,
    DELETE,
    SET_STORAGE_CLASS,
    LifecycleRule,
    covers,
    describe_reach,
    lifecycle_rules,
)
from tpucfg.infra.resource_rules import DEFAULT_SOFT_DELETE_SECONDS
from tpucfg.infra.resources import BUCKET, Resource, boolean
from tpucfg.paths import KeyPath, matches
from tpucfg.redaction import SECRET
from tpucfg.text_format import dotted, format_value, listed

_MAX_RULES: Final = 6
_MAX_ITEMS: Final = 6
_TEMPORARY: Final = "tmp/"
"""The prefix whose objects the bundled stack program deletes."""
_KINDS: Final[Mapping[str, str]] = {
    BUCKET: "bucket",
    "gcp:serviceaccount/account:Account": "account",
    "gcp:projects/service:Service": "service",
    "gcp:projects/serviceIdentity:ServiceIdentity": "identity",
    "gcp:projects/iAMCustomRole:IAMCustomRole": "role",
}
_COMMANDS: Final = ("command:", "pulumi-python:", "pulumi-nodejs:", "terraform:", "docker:", "docker-build:")
"""Starts of the types whose resources run programs where Pulumi runs."""
_DELETION: Final = frozenset(
    permission
    for facts in TARGET_FACTS.values()
    for permission in (*facts.deletion_permissions, *facts.one_host_deletion_permissions)
)
"""The permissions by which slices delete themselves at their deadline and after the program's end."""
_DELETION_ROLE: Final = re.compile(r"^projects/[^/]+/roles/tpu\.[^/]+$")
"""The custom role by which a job deletes its own slice: see `deletion_role_id`."""
_GUARD: Final = re.compile("protect|prevent|retain|retention|recover|backup|versioning|(?-i:Hold)", re.IGNORECASE)
"""Names of inputs that guard data, whatever the type."""
_LOSES: Final = re.compile("delet|destroy|drop|expir|ttl$|overwrite|purge|cleanup|force|lifecycle", re.IGNORECASE)
"""Names of inputs by which data is deleted."""
_ACTIVE_LOSS: Final = re.compile("^(delete|overwrite|purge)[A-Z]")
"""Names of inputs by which a new resource deletes what others hold."""
_SAFE_VALUES: Final = ("PREVENT", "ABANDON", "RETAIN")
_COMPARED_OPTIONS: Final = ("parentAliases", "provider")
_OPERATION, _TYPE = "operation", "type"
"""The names of the facts that a resource exists, in head with its operation, and of its type."""


_HARMLESS: Final = (
    "*.type",
    "bucket.labels.**",
    *(f"account.{name}" for name in ("accountId", "description", "displayName", "project")),
    *(f"role.{name}" for name in ("description", "project", "roleId", "stage", "title")),
    # Compared with the rules of the base, or as grants, or as inputs that replace the bucket.
    *(f"bucket.{name}" for name in ("lifecycleRules", "location", "name", "project")),
    *(f"bucket.{name}" for name in ("publicAccessPrevention", "uniformBucketLevelAccess")),
    *(f"{kind}.**" for kind in ("service", "identity", "grant")),
    *(f"*option.*.{name}" for name in ("parent", "retainOnDelete")),
    *(f"new option.*.{name}" for name in ("additionalSecretOutputs", "replacementTrigger")),
)
"""Patterns of facts whose change has no sentence unless a row has one."""


# Conditions


_Applies = bool | tuple[str, ...]


def turned_on(change: FactChange, _: Comparison) -> bool:
    """Apply to a switch that is on in the head, or has a value that is no switch."""
    return change.after is not ABSENT and boolean(change.after) is not False and boolean(change.before) is not True


def turned_off(change: FactChange, _: Comparison) -> bool:
    """Apply to a switch that was on in the base, or had a value that is no switch."""
    return change.before is not ABSENT and boolean(change.before) is not False and boolean(change.after) is not True


def _not_off(change: FactChange, _: Comparison) -> bool:
    return boolean(change.after) is not False


def _keeps_shorter(change: FactChange, comparison: Comparison) -> _Applies:
    """Apply to the time for which deleted objects are kept, if it gets shorter or cannot be compared."""
    # Only a bucket that is replaced loses its policy where none is declared.
    if change.after is ABSENT and comparison.pair(change.scope, "bucket", _OPERATION)[1] != "replace":
        return False
    before, after = (
        DEFAULT_SOFT_DELETE_SECONDS if value is ABSENT else _seconds(value) for value in (change.before, change.after)
    )
    if before is not None and after is not None and after >= before:
        return False
    return _duration(after), _duration(before)


def _read_costs(change: FactChange, _: Comparison) -> _Applies:
    """Apply to a storage class of which a read has a price."""
    is_free = change.after in (ABSENT, "STANDARD", "REGIONAL", "MULTI_REGIONAL")
    return False if is_free else (str(change.after),)


def _other_key(change: FactChange, _: Comparison) -> _Applies:
    """Apply to another key of Cloud KMS, which can be one that others may destroy."""
    return tuple("Google's own keys" if key is ABSENT else str(key) for key in (change.after, change.before))


def _added_items(change: FactChange, _: Comparison) -> _Applies:
    """Apply to items that the base does not have; permissions to take over accounts come first, as lists are cut."""
    items = [item for item in _items(change.after) if item not in _items(change.before)]
    items.sort(key=lambda item: not power_of(item))
    return (listed(items, _MAX_ITEMS),) if items else False


def _removed_items(change: FactChange, _: Comparison) -> _Applies:
    """Apply to items that only the base has."""
    items = [item for item in _items(change.before) if item not in _items(change.after)]
    return (listed(items, _MAX_ITEMS),) if items else False


def _lost_deletion(change: FactChange, _: Comparison) -> _Applies:
    kept = _items(change.after)
    lost = [name for name in _items(change.before) if name in _DELETION and name not in kept]
    return (listed(lost, _MAX_ITEMS),) if lost else False


def _deleting_member(change: FactChange, comparison: Comparison) -> _Applies:
    """Apply to the member that had the role by which a job deletes its own slice."""
    role, _ = comparison.pair(change.scope, "grant", "role")
    return (str(change.before),) if _DELETION_ROLE.search(str(role)) else False


def _moved(change: FactChange, _: Comparison) -> tuple[str, ...]:
    return tuple("the stack" if parent is ABSENT else str(parent) for parent in (change.before, change.after))


def _operation(*ops: str) -> Condition:
    """Return a condition for a resource with one of these operations."""
    return lambda change, _: change.after in ops or (change.after is ABSENT and "delete" in ops)


def _disables_service(change: FactChange, comparison: Comparison) -> bool:
    """Apply to the removal of a service that is disabled with it."""
    is_kept = boolean(comparison.pair(change.scope, "service", "disableOnDestroy")[0]) is False
    return change.after is ABSENT and not is_kept


def _unknown_type(change: FactChange, comparison: Comparison) -> _Applies:
    """Apply to a created or changed resource of a type that no rule is about."""
    return False if change.after is ABSENT else (str(comparison.pair(change.scope, "unknown", _TYPE)[1]),)


def _command(change: FactChange, comparison: Comparison) -> _Applies:
    type_ = str(comparison.pair(change.scope, "unknown", _TYPE)[1])
    return (type_,) if type_.startswith(_COMMANDS) else False


def _deletes_others(change: FactChange, comparison: Comparison) -> _Applies:
    """Apply to an input by which a new resource deletes what others hold."""
    is_active = bool(_ACTIVE_LOSS.search(str(change.name[-1]))) and boolean(change.after) is not False
    return _described(change) if _is_new(change, comparison) and is_active else False


def _loses_protection(change: FactChange, comparison: Comparison) -> _Applies:
    """Apply to a guard that gets weaker, or to a safe value that is lost."""
    if _is_new(change, comparison):
        return False
    if _has_name(change, _GUARD):
        return _described(change) if _is_weaker(change) else False
    is_lost = change.before in _SAFE_VALUES and change.after not in _SAFE_VALUES
    return _described(change) if _has_name(change, _LOSES) and is_lost else False


def _can_lose(change: FactChange, comparison: Comparison) -> _Applies:
    is_set = change.after is not ABSENT and boolean(change.after) is not False and change.after not in _SAFE_VALUES
    is_loss = _has_name(change, _LOSES) and not _has_name(change, _GUARD)
    return _described(change) if is_loss and is_set and not _is_new(change, comparison) else False


def _described(change: FactChange, _: Comparison | None = None) -> tuple[str, ...]:
    """Return the path of an input, with its value and the previous one."""
    values = (
        "not set" if value is ABSENT else format_value(value, quoted=False, max_length=80)
        for value in (change.after, change.before)
    )
    return (dotted(change.name[1:]), *values)


def _has_name(change: FactChange, names: re.Pattern[str]) -> bool:
    return any(names.search(str(step)) for step in change.name[1:])


def _is_new(change: FactChange, comparison: Comparison) -> bool:
    return comparison.pair(change.scope, str(change.name[0]), _OPERATION)[0] is ABSENT


def _is_weaker(change: FactChange) -> bool:
    """Return True unless a guard is new, switched on, or longer."""
    if change.before is ABSENT or boolean(change.before) is False:
        # Without a value, the service has a default, which may be a protection.
        return change.before is ABSENT and boolean(change.after) is False
    before, after = _seconds(change.before), _seconds(change.after)
    is_longer = before is not None and after is not None and after > before
    # The number 1 is no switch that is on.
    return not (is_longer or str(change.after).lower() == "true" or change.after in _SAFE_VALUES)


# The table


def _input(pattern: str, risk: Risk, when: Condition, sentence: str) -> Meaning:
    """Return a row about an input of a resource that exists before and after."""

    def applies(change: FactChange, comparison: Comparison) -> _Applies:
        operations = comparison.pair(change.scope, str(change.name[0]), _OPERATION)
        return False if ABSENT in operations else when(change, comparison)

    return Meaning(pattern, risk, when=applies, sentence=f"{sentence} ({{}})")


def _option(pattern: str, risk: Risk, sentence: str, when: Condition = _added_items) -> Meaning:
    return Meaning(pattern, risk, when=when, sentence=f"{sentence} ({{}})")


def _event(pattern: str, risk: Risk, when: Condition, sentence: str) -> Meaning:
    """Return a row about a resource, or about what is common to inputs of any type."""
    return Meaning(pattern, risk, when=when, sentence=sentence)


_CAUTION, _ACCESS, _UNKNOWN, _LOSS = Risk.CAUTION, Risk.ACCESS, Risk.UNKNOWN, Risk.DESTRUCTIVE
_NO_DELETION: Final = "running slices can no longer delete themselves; let bounded ones end first"
_NOT_LEFT: Final = "is no longer left behind when it is removed from the stack"
_MOVES: Final = "unless an alias matches its old place, it is deleted and created anew"
_DECIDES: Final = "has {}, which changes what an update does"
MEANINGS: Final = (
    # https://cloud.google.com/storage/docs; inputs that the bundled program never sets have no row.
    _input("bucket.softDeletePolicy.*", _CAUTION, removed, "no longer declares for how long deleted objects are kept"),
    _input("bucket.softDeletePolicy.*", _LOSS, _keeps_shorter, "keeps deleted objects for {}, previously for {}"),
    _input("bucket.storageClass", _CAUTION, _read_costs, "stores new objects as {}: each read has a price"),
    _input("bucket.encryption.*", _CAUTION, _other_key, "encrypts new objects with {}, previously with {}"),
    _input("bucket.forceDestroy", _LOSS, turned_on, "would be deleted together with everything in it"),
    _input("bucket.versioning.*", _LOSS, turned_off, "no longer keeps the versions of its objects"),
    # https://cloud.google.com/iam/docs/service-accounts-delete-undelete
    _event(
        "account.operation",
        _CAUTION,
        _operation(*REMOVING_OPS),
        "is deleted: grants to it end everywhere, and a new account of the same name does not get them back",
    ),
    _input("account.disabled", _CAUTION, turned_on, "is disabled"),
    _input("account.disabled", _ACCESS, turned_off, "can be used again"),
    _event("service.operation", _CAUTION, _disables_service, "is disabled for the whole project (disableOnDestroy)"),
    _input("service.disableOnDestroy", _CAUTION, _not_off, "is disabled for the whole project when it is removed"),
    _input("service.disableDependentServices", _CAUTION, turned_on, "disables services that depend on it too"),
    _input("role.permissions", _ACCESS, _added_items, "gives everyone who has the role {}"),
    _event("role.permissions", _CAUTION, _lost_deletion, f"loses {{}}: {_NO_DELETION}"),
    _input("grant.member", _CAUTION, _deleting_member, f"takes the role from {{}}: {_NO_DELETION}"),
    _event("*.operation", _UNKNOWN, _operation("import"), "takes over what exists in the cloud, with all it contains"),
    _event("unknown.operation", _LOSS, _command, "runs commands on the machine of the update, by its type {}"),
    _event("unknown.operation", _UNKNOWN, _unknown_type, "is of the type {}, about which this review has no rules"),
    # https://www.pulumi.com/docs/iac/concepts/resources/options/
    _option("option.*.aliases", _UNKNOWN, "takes over {}"),
    _option("option.*.additionalSecretOutputs", _CAUTION, "hides {} in previews"),
    _option("option.*.deleteBeforeReplace", _CAUTION, "is deleted before there is a replacement: {}"),
    _option("option.*.hooks", _UNKNOWN, "runs {} during an update, whose effect this review cannot show"),
    _option("option.*.ignoreChanges", _LOSS, "ignores changes of {}: an update keeps old values"),
    _option("option.*.ignoreChanges", _UNKNOWN, "no longer ignores changes of {}", _removed_items),
    _option("option.*.version", _UNKNOWN, "uses version {} of its provider"),
    _option("option.*.importId", _LOSS, "takes over the existing resource {} with all it contains"),
    # Without data, a resource that is deleted and created anew is the same as before.
    _option("option.data.parent", _LOSS, f"moves from {{}} to {{}}: {_MOVES}", _moved),
    _option("option.data.retainOnDelete", _LOSS, f"{_NOT_LEFT}: its data would be deleted", removed),
    _option("option.other.retainOnDelete", _CAUTION, _NOT_LEFT, removed),
    _option("option.grant.retainOnDelete", _CAUTION, _NOT_LEFT, removed),
    _option("*option.grant.retainOnDelete", _ACCESS, "remains when the stack no longer declares it", added),
    _option("old option.grant.retainOnDelete", _ACCESS, "stays in the cloud: the access remains", removed),
    # By these, a new resource takes over another one, or runs other code with the credentials of an update.
    _option("new option.*.envVarMappings", _LOSS, _DECIDES),
    _option("new option.*.importId", _LOSS, _DECIDES),
    _option("new option.*.pluginDownloadURL", _LOSS, _DECIDES),
    _option("new option.*.stateMigrations", _LOSS, _DECIDES),
    *map(Meaning, _HARMLESS),
)
"""By the kind of the resource and the input, or by its group and the option. All rows that apply have a sentence."""
OTHER_MEANINGS: Final = (
    _option("option.**", _LOSS, _DECIDES),
    _option("new option.**", _UNKNOWN, "has {}, whose effect this review cannot show"),
    Meaning("*option.**"),
    _event("**", _LOSS, _deletes_others, "deletes or overwrites data: {} is {}"),
    _event("**", _LOSS, _loses_protection, "loses protection: {} is {}, previously {}"),
    _event("**", _LOSS, _can_lose, "can lose data: {} is {}, previously {}"),
    # The type's own sentence is about all other inputs.
    Meaning("unknown.**"),
    _event("**", _UNKNOWN, _described, "has another {}: {}, previously {}; no rule knows its effect"),
)
"""Rows about what no row above is about, of which the first one that applies has the sentence."""


# Statements


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
        is_kept = ABSENT not in comparison.pair(change.scope, str(change.name[0]), _OPERATION)
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
    guards = _has_name(change, _GUARD) or _has_name(change, _LOSES)
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
    old, new = lifecycle_rules(before) or (), lifecycle_rules(after)
    if new is None:
        yield Statement("sets {} to a value that is not known here", ("lifecycleRules",), Risk.UNKNOWN)
        return
    hidden = [rule for rule in new if not is_new and any(text in str(rule) for text in (SECRET, UNKNOWN))]
    wider = [rule for rule in new if rule in hidden or not any(covers(other, rule) for other in old)]
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
    template, values = describe_reach(rule, known)
    key = ("lifecycleRules",)
    if rule.action == DELETE:
        # In a new bucket, a rule for the whole bucket is a finding, and one for temporary objects is no risk.
        is_temporary = rule.prefixes and all(prefix.startswith(_TEMPORARY) for prefix in rule.prefixes)
        if not (is_new and (rule.reaches_jobs or is_temporary)):
            age = _previous_age(rule, old)
            text = f"deletes {template}{', previously {} days' if age else ''} ({{}})"
            yield Statement(text, (*values, *age, *key), Risk.CAUTION if is_new else Risk.DESTRUCTIVE)
    elif rule.action == SET_STORAGE_CLASS:
        text = f"moves {template} to {{}}, where each read and an early deletion have a price ({{}})"
        yield Statement(text, (*values, rule.storage_class, *key), Risk.CAUTION)
    elif rule.action != ABORT_UPLOAD:
        yield Statement("has a rule with the unknown action {} ({})", (rule.action, *key), Risk.UNKNOWN)


def _previous_age(rule: LifecycleRule, old: Sequence[LifecycleRule]) -> tuple[str, ...]:
    """Return the age at which an otherwise equal rule deleted before; empty if there was none."""
    ages = (
        other.conditions.get("age")
        for other in old
        if other.action == rule.action and {**other.conditions, "age": 0} == {**rule.conditions, "age": 0}
    )
    return tuple(str(age) for age in ages if age)[:1]


# Facts and values


def _facts(kind: str, resource: Resource | None, operation: str) -> Iterator[Fact]:
    """Yield the operation and the inputs of a resource as facts; of an input that is secret, its digest."""
    if resource is None:
        return
    for path, value in _leaves(resource.inputs):
        digest = resource.secrets.get(str(path[0]))
        yield Fact(Scope(), (kind, *path), f"{SECRET} {digest}" if digest and value == SECRET else value)
    # Last, so that no input takes their place.
    yield Fact(Scope(), (kind, _OPERATION), operation)
    yield Fact(Scope(), (kind, _TYPE), resource.type)


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


def _items(value: Any) -> list[str]:
    """Return the values of an option or a list as texts."""
    if value in (None, ABSENT):
        return []
    if isinstance(value, Mapping):
        return [f"{key}={format_value(item, quoted=False)}" for key, item in value.items()]
    return [format_value(_named(item), quoted=False) for item in (value if isinstance(value, list) else [value])]


def _named(item: Any) -> Any:
    """Return the name in an alias, or its other fields if it has none."""
    return item.get("name") or item.get("urn") or item if isinstance(item, Mapping) else item


_DURATION: Final = re.compile(r"([0-9]{1,15})(?:\.[0-9]*)?([smhd]?)")
_UNITS: Final[Mapping[str, int]] = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}


def _seconds(value: Any) -> float | None:
    """Return the seconds of a duration; None if it is not known."""
    match = _DURATION.fullmatch(str(value)) if isinstance(value, int | float | str) else None
    return None if match is None or isinstance(value, bool) else int(match[1]) * float(_UNITS[match[2]])


def _duration(seconds: float | None) -> str:
    """Return a duration in days or hours."""
    if seconds is None:
        return "an unknown time"
    unit, name = (_UNITS["d"], "day") if seconds >= _UNITS["d"] or not seconds else (_UNITS["h"], "hour")
    return f"{seconds / unit:g} {name}{'s' * (seconds != unit)}"
