"""The meaning of changed inputs and options of resources: one table for the types that the bundled program declares.

Of every other type nothing is known: its creation and its change are cautions, and inputs that are called a protection,
a retention or a deletion are destructive where they get weaker. Grants of access are compared in `grants.py`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tpucfg.changes.facts import (
    ABSENT,
    Comparison,
    Condition,
    Fact,
    FactChange,
    Meaning,
    Risk,
    Scope,
    added,
    by_name,
    compare,
    fill,
    judge,
    loss,
    removed,
    sentence,
    worse,
)
from tpucfg.changes.resources import KNOWN_TYPES, REMOVING_OPS, UNKNOWN, ResourceStep, holds_data
from tpucfg.changes.statements import Statement
from tpucfg.infra import resource_rules
from tpucfg.infra.grants import (
    IMAGE_GRANT,
    KEY_GRANT,
    grants_of,
    is_grant,
    is_powerful,
    is_shared,
    removal_command,
    target_of,
)
from tpucfg.infra.resource_rules import DEFAULT_SOFT_DELETE_SECONDS, LifecycleRule, lifecycle_rules
from tpucfg.infra.resources import ACCOUNT, BUCKET, Resource, boolean
from tpucfg.paths import KeyPath, matches
from tpucfg.redaction import SECRET, redact
from tpucfg.text_format import dotted, format_value, listed

_MAX_ITEMS: Final = 6
GUARDS: Final = re.compile(
    "protect|prevent|retain|retention|recover|backup|versioning|(?-i:Hold)", re.IGNORECASE
)
"""Names of inputs that guard data, whatever the type."""
LOSSES: Final = re.compile(
    "delet|destroy|drop|expir|ttl$|overwrite|purge|cleanup|force|lifecycle", re.IGNORECASE
)
"""Names of inputs by which data is deleted."""
_SAFE_VALUES: Final = ("PREVENT", "ABANDON", "RETAIN")
OPERATION, TYPE = "operation", "type"
"""The names of the facts that a resource exists, in head with its operation, and of its type."""
_Applies = bool | tuple[str, ...]


# Conditions


def not_off(change: FactChange, _: Comparison) -> bool:
    """Apply to a switch that is on in the head, has a value that is no switch, or is not set."""
    return boolean(change.after) is not False


def differs(absent: str) -> Condition:
    """Return a condition for another value, which names both, and a text for a value that is not set."""
    return lambda change, _: tuple(
        absent if value is ABSENT else str(value) for value in (change.after, change.before)
    )


def added_items(change: FactChange, _: Comparison) -> _Applies:
    """Apply to items that the base does not have; permissions to take over accounts come first, as lists are cut."""
    known = {*_items(change.before)}
    items = [item for item in _items(change.after) if item not in known]
    items.sort(key=lambda item: not is_powerful(item))
    return (listed(items, _MAX_ITEMS),) if items else False


def lost_items(change: FactChange, comparison: Comparison) -> _Applies:
    """Apply to items that only the base has."""
    return added_items(change._replace(before=change.after, after=change.before), comparison)


def other_items(change: FactChange, comparison: Comparison) -> _Applies:
    """Apply to items that the base does not have, or else to those that only the base has."""
    return added_items(change, comparison) or lost_items(change, comparison)


def exchanged_items(change: FactChange, comparison: Comparison) -> _Applies:
    """Apply to a list that has items that the base does not have, and lacks some that only the base has."""
    gained, lost = added_items(change, comparison), lost_items(change, comparison)
    return (*gained, *lost) if isinstance(gained, tuple) and isinstance(lost, tuple) else False


def operation(*ops: str) -> Condition:
    """Return a condition for a resource with one of these operations."""
    return lambda change, _: change.after in ops or (change.after is ABSENT and "delete" in ops)


def disables_service(change: FactChange, comparison: Comparison) -> bool:
    """Apply to the removal of a service that is disabled with it."""
    is_kept = boolean(comparison.pair(change.scope, "service", "disableOnDestroy")[0]) is False
    return change.after is ABSENT and not is_kept


def unknown_type(change: FactChange, comparison: Comparison) -> _Applies:
    """Apply to a created or changed resource of a type that no rule is about."""
    _, name = comparison.pair(change.scope, "unknown", TYPE)
    return change.after is not ABSENT and (str(name),)


def unknown_import(change: FactChange, comparison: Comparison) -> _Applies:
    """Apply to an imported resource of a type that no rule is about."""
    return change.after == "import" and unknown_type(change, comparison)


def can_lose(change: FactChange, comparison: Comparison) -> _Applies:
    """Apply to a guard of data that gets weaker, and to an input by which data is deleted."""
    if _is_new(change, comparison):
        return False
    is_harm = (
        _is_weaker(change)
        if has_name(change, GUARDS)
        else has_name(change, LOSSES) and _deletes(change)
    )
    return described(change) if is_harm else False


def has_row(change: FactChange, _: Comparison) -> bool:
    """Apply to a change that a row of its own is about."""
    return bool(_rows_about(change))


def is_gone(change: FactChange, comparison: Comparison) -> bool:
    """Apply to the inputs of a resource that head does not have."""
    return comparison.pair(change.scope, str(change.name[0]), OPERATION)[1] is ABSENT


def described(change: FactChange, _: Comparison | None = None) -> tuple[str, ...]:
    """Return the path of an input, with its value and the previous one."""
    values = (
        "not set" if value is ABSENT else format_value(value, quoted=False, max_length=80)
        for value in (change.after, change.before)
    )
    return (dotted(change.name[1:]), *values)


def has_name(change: FactChange, names: re.Pattern[str]) -> bool:
    """Return True if a step of an input's path has one of these names."""
    return any(names.search(str(step)) for step in change.name[1:])


def _is_new(change: FactChange, comparison: Comparison) -> bool:
    return comparison.pair(change.scope, str(change.name[0]), OPERATION)[0] is ABSENT


def _is_weaker(change: FactChange) -> bool:
    """Return True unless a guard is new, switched on, or longer."""
    if change.before is ABSENT or boolean(change.before) is False:
        # Without a value, the service has a default, which may be a protection.
        return change.before is ABSENT and boolean(change.after) is False
    before, after = _seconds(change.before), _seconds(change.after)
    is_longer = before is not None and after is not None and after > before
    # The number 1 is no switch that is on.
    return not (is_longer or str(change.after).lower() == "true" or change.after in _SAFE_VALUES)


def _deletes(change: FactChange) -> bool:
    is_set = change.after is not ABSENT and boolean(change.after) is not False
    return change.after not in _SAFE_VALUES and (is_set or change.before in _SAFE_VALUES)


# Values


def _items(value: Any) -> list[str]:
    """Return the values of an option or a list as texts."""
    if value in (None, ABSENT):
        return []
    if isinstance(value, Mapping):
        return [f"{key}={format_value(item, quoted=False)}" for key, item in value.items()]
    return [
        format_value(_named(item), quoted=False)
        for item in (value if isinstance(value, list) else [value])
    ]


def _named(item: Any) -> Any:
    """Return the name in an alias, or its other fields if it has none."""
    return item.get("name") or item.get("urn") or item if isinstance(item, Mapping) else item


_SECONDS: Final = re.compile(r"([0-9]{1,15})(?:\.[0-9]*)?s?")


def _seconds(value: Any) -> int | None:
    """Return the seconds of a duration as Google writes it; None if it is not known."""
    match = _SECONDS.fullmatch(str(value))
    return int(match[1]) if match else None


_HARMLESS: Final = (
    "*.type",
    "bucket.labels.**",
    *(f"account.{name}" for name in ("accountId", "description", "displayName", "project")),
    *(f"role.{name}" for name in ("description", "project", "roleId", "stage", "title")),
    # Compared with the rules of the base, or as grants, or as inputs that replace the bucket.
    *(f"bucket.{name}" for name in ("lifecycleRules", "location", "name", "project")),
    *(f"bucket.{name}" for name in ("publicAccessPrevention", "uniformBucketLevelAccess")),
    *(
        f"{kind}.{name}"
        for kind in ("service", "identity")
        for name in ("operation", "project", "service")
    ),
    "grant.**",
    *(f"*option.*.{name}" for name in ("parent", "provider", "retainOnDelete")),
    *(f"new option.*.{name}" for name in ("additionalSecretOutputs", "replacementTrigger")),
)
"""Patterns of facts whose change has no sentence unless a row has one."""


# The table


def _input(pattern: str, risk: Risk, condition: Condition, text: str) -> Meaning:
    """Return a row about an input of a resource that exists before and after."""

    def applies(change: FactChange, comparison: Comparison) -> _Applies:
        operations = comparison.pair(change.scope, str(change.name[0]), OPERATION)
        return False if ABSENT in operations else condition(change, comparison)

    return Meaning(pattern, risk, when=applies, sentence=f"{text} ({{input}})")


def _option(pattern: str, risk: Risk, text: str, condition: Condition = added_items) -> Meaning:
    return Meaning(pattern, risk, when=condition, sentence=f"{text} ({{input}})")


_CAUTION, _ACCESS, _UNKNOWN, _LOSS = Risk.CAUTION, Risk.ACCESS, Risk.UNKNOWN, Risk.DESTRUCTIVE
_NOT_LEFT: Final = (
    "is no longer left behind when it is removed from the stack: what it holds would be deleted"
)
_WITHOUT: Final = (
    "let running slices end first, as they may then fail to write, or to delete themselves"
)
_MOVES: Final = "unless an alias matches its old place, it is deleted and created anew"
_DECIDES: Final = "has {}, which changes what an update does"
_WITHOUT_LOSS: Final = ("additionalSecretOutputs", "deleteBeforeReplace", "hooks", "version")
_BY_DEFAULT: Final = differs("the default one")
_LOSES: Final = "can lose data: {} is {}, previously {}"
_ROWS: Final = (
    # https://cloud.google.com/storage/docs
    *(
        _input(f"bucket.{key}", _LOSS, can_lose, _LOSES)
        for key in ("softDeletePolicy.*", "versioning.*", "forceDestroy")
    ),
    _input(
        "bucket.storageClass",
        _CAUTION,
        differs("STANDARD"),
        "stores new objects as {}, previously as {}",
    ),
    _input(
        "bucket.encryption.*",
        _CAUTION,
        differs("Google's own keys"),
        "encrypts new objects with {}, previously with {}",
    ),
    # https://cloud.google.com/iam/docs/service-accounts-delete-undelete
    worse(
        "account.operation",
        "is deleted: grants to it end everywhere, and a new account of the same name does not get them back",
        operation(*REMOVING_OPS),
    ),
    worse(
        "service.operation",
        "is disabled for the whole project (disableOnDestroy)",
        disables_service,
    ),
    _input(
        "service.disableOnDestroy",
        _CAUTION,
        not_off,
        "is disabled for the whole project when it is removed",
    ),
    sentence(
        "role.permissions",
        f"gives everyone who has the role {{}}, and no longer {{}} ({{input}}): {_WITHOUT}",
        exchanged_items,
        _ACCESS,
    ),
    _input("role.permissions", _ACCESS, added_items, "gives everyone who has the role {}"),
    worse("role.permissions", f"loses {{}}: {_WITHOUT}", lost_items),
    _input(
        "grant.member",
        _CAUTION,
        differs("none"),
        f"has the member {{}} instead of {{}}: {_WITHOUT}",
    ),
    sentence(
        "unknown.operation",
        "takes over what exists in the cloud, and is of the type {}, about which this review has no rules",
        unknown_import,
        _UNKNOWN,
    ),
    sentence(
        "*.operation",
        "takes over what exists in the cloud, with all it contains",
        operation("import"),
        _UNKNOWN,
    ),
    sentence(
        "unknown.operation",
        "is of the type {}, about which this review has no rules",
        unknown_type,
        _UNKNOWN,
    ),
    # https://www.pulumi.com/docs/iac/concepts/resources/options/
    _option("option.*.aliases", _UNKNOWN, "takes over {}"),
    _option(
        "option.*.provider",
        _LOSS,
        "gets the provider {} instead of {}, and with it other credentials",
        _BY_DEFAULT,
    ),
    _option("option.*.ignoreChanges", _LOSS, _DECIDES, other_items),
    *(_option(f"option.*.{name}", _UNKNOWN, _DECIDES) for name in _WITHOUT_LOSS),
    # Without data, a resource that is deleted and created anew is the same as before.
    _option(
        "option.data.parent", _LOSS, f"moves to {{}} from {{}}: {_MOVES}", differs("the stack")
    ),
    _option("option.*.retainOnDelete", _LOSS, _NOT_LEFT, removed),
    _option(
        "*option.grant.retainOnDelete",
        _ACCESS,
        "remains when the stack no longer declares it",
        added,
    ),
    *map(Meaning, _HARMLESS),
)
"""By the kind of the resource and the input, or by its group and the option."""
MEANINGS: Final = (
    *_ROWS,
    Meaning("**", when=has_row),
    _option("option.**", _LOSS, _DECIDES),
    _option("new option.**", _UNKNOWN, "has {}, whose effect this review cannot show"),
    Meaning("*option.**"),
    Meaning("**", when=is_gone),
    loss("**", _LOSES, when=can_lose),
    # The type's own sentence is about all other inputs.
    Meaning("unknown.**"),
    sentence(
        "**", "has another {}: {}, previously {}; no rule knows its effect", described, _UNKNOWN
    ),
)
"""All rows about resources; the first one that matches and applies decides."""


# Sentences about changed resources, apart from grants: their options, their inputs, and rules that delete objects.


_USUAL_RULES: Final = (LifecycleRule("Delete", {"matchesPrefixes": ["tmp/"]}),)
"""The deletions of the bundled stack program, at any age."""
_BUCKET_DEFAULTS: Final = {
    "softDeletePolicy": {"retentionDurationSeconds": DEFAULT_SOFT_DELETE_SECONDS}
}
_KINDS: Final[Mapping[str, str]] = {
    BUCKET: "bucket",
    ACCOUNT: "account",
    "gcp:projects/service:Service": "service",
    "gcp:projects/serviceIdentity:ServiceIdentity": "identity",
    "gcp:projects/iAMCustomRole:IAMCustomRole": "role",
}


def resource_statements(steps: Sequence[ResourceStep]) -> list[tuple[Statement, ...]]:
    """Return the sentences about each step, apart from grants."""
    return [tuple(dict.fromkeys(_statements(step))) for step in steps]


def _statements(step: ResourceStep) -> Iterator[Statement]:
    before, after = step.before, step.after
    # The options that are set, extended or given up.
    kind = "old option" if after is None else "option" if before else "new option"
    yield from _compared(_options(kind, before), _options(kind, after))
    is_left = before is not None and after is None and before.retain
    if before and is_grant(before):
        yield from [_left_access(before)] if is_left else _revocations(before, after)
    resource = after or before
    if resource and _OWNERS.search(resource.type):
        yield from _removed_members(resource, before, after)
    if resource and step.op != "same" and not is_left:
        kind = _KINDS.get(resource.type, "grant" if resource.type in KNOWN_TYPES else "unknown")
        if kind == "bucket" and after:
            yield from _lifecycle_statements(before, after)
        yield from _compared(_facts(kind, before, "exists"), _facts(kind, after, step.op))


def _compared(before: Iterator[Fact], after: Iterator[Fact]) -> Iterator[Statement]:
    """Yield the sentences about the facts that differ."""
    comparison = Comparison(by_name(before), by_name(after))
    for change in compare(comparison.before, comparison.after):
        is_kept = ABSENT not in comparison.pair(change.scope, str(change.name[0]), OPERATION)
        if is_kept and _is_hidden(change.after):
            yield from _hidden_value(change)
            continue
        row, values = judge(change, MEANINGS, comparison)
        if row.risk:
            yield Statement(*fill(row.sentence, {"input": _property(change)}, values), row.risk)


def _hidden_value(change: FactChange) -> Iterator[Statement]:
    """Yield that a value is not known: a preview has values that only the update knows; a secret hides another one."""
    guards = has_name(change, GUARDS) or has_name(change, LOSSES)
    unknown = Risk.DESTRUCTIVE if guards else Risk.UNKNOWN
    # Without the value, no condition can be decided: any row about it could apply.
    risk = max((row.risk for row in _rows_about(change)), default=unknown)
    if risk:
        is_secret = change.after != UNKNOWN
        text = "sets {} to a value that is not known here"
        yield Statement(
            text, (dotted(change.name[1:]),), max(Risk.UNKNOWN, risk) if is_secret else Risk.UNKNOWN
        )


def _rows_about(change: FactChange) -> list[Meaning]:
    """Return the rows of the table, but for the general ones, that match a change."""
    return [row for row in _ROWS if matches(row.pattern, change.name)]


def _property(change: FactChange) -> str:
    """Return the name of an option or of an input, without what is nested in it."""
    return str(change.name[2 if str(change.name[0]).endswith("option") else 1])


def _is_hidden(value: Any) -> bool:
    return isinstance(value, str) and (SECRET in value or UNKNOWN in value)


# Lifecycle rules


def _lifecycle_statements(before: Resource | None, after: Resource) -> Iterator[Statement]:
    """Yield the rules of a bucket that it did not have; a new one may delete its temporary objects."""
    old, new = (
        lifecycle_rules(before.inputs) if before else _USUAL_RULES,
        lifecycle_rules(after.inputs),
    )
    if new is None:
        yield Statement(
            "sets {} to a value that is not known here", ("lifecycleRules",), Risk.DESTRUCTIVE
        )
    for rule in new or ():
        is_known = any(
            resource_rules.covers(other, rule) for other in old or ()
        ) and not _is_hidden(rule.text)
        if rule.action != resource_rules.ABORT_UPLOAD and not is_known:
            risk = (
                Risk.CAUTION
                if before is None or rule.action.startswith("SetStorageClass")
                else Risk.DESTRUCTIVE
            )
            yield Statement(
                "has another lifecycle rule, {} ({})", (rule.text, "lifecycleRules"), risk
            )


# Facts


def _facts(kind: str, resource: Resource | None, operation: str) -> Iterator[Fact]:
    """Yield the operation and the inputs of a resource as facts; of an input that is secret, its digest."""
    if resource is None:
        return
    defaults = _BUCKET_DEFAULTS if kind == "bucket" else {}
    for path, value in _leaves({**defaults, **resource.inputs}):
        digest = resource.secrets.get(str(path[0]))
        yield Fact(
            Scope(), (kind, *path), f"{SECRET} {digest}" if digest and value == SECRET else value
        )
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


_OWNERS: Final = re.compile(r"I[aA][mM](Binding|Policy)$")
"""Types that own a role, or all roles, of an object: https://cloud.google.com/iam/docs/policies#structure."""
_TAKES_FROM_OTHERS: Final = (
    "takes {} on the {} {} from every member that it does not list, whoever granted it"
)
_TAKES_FROM_ALL: Final = "takes {} on the {} {} from every member, whoever granted it"


def _removed_members(
    owner: Resource, before: Resource | None, after: Resource | None
) -> Iterator[Statement]:
    """Yield what a resource that owns roles does to members that others have granted."""
    if before and after and before.inputs == after.inputs:
        return
    if owner.type.endswith("Binding"):
        roles = listed([*dict.fromkeys(grant.role for grant in grants_of(owner))], _MAX_ITEMS)
    else:
        roles = "all roles"
    on = target_of(owner)
    text = _TAKES_FROM_OTHERS if after else _TAKES_FROM_ALL
    yield Statement(text, tuple(map(redact, (roles, on.kind, on.name))), _LOSS)


def _revocations(before: Resource, after: Resource | None) -> Iterator[Statement]:
    """Yield who else loses access with a grant that several stacks can declare, now or with a later update."""
    is_gone = grants_of(before) != grants_of(after)
    if is_gone and before.type == KEY_GRANT:
        yield Statement("can make objects unreadable: those that the key encrypted", (), _LOSS)
    elif is_gone and before.type == IMAGE_GRANT and is_shared(before):
        yield Statement("is taken from every stack that declares it", (), _CAUTION)
    elif after and before.retain and not after.retain and is_shared(after):
        text = "is taken from every stack that declares it, once this one no longer does"
        yield Statement(text, (), _CAUTION)


def _left_access(grant: Resource) -> Statement:
    risk = _CAUTION if is_shared(grant) else _ACCESS
    if grant.type == KEY_GRANT:
        text = "stays in the cloud: objects that the key encrypted cannot be read without it"
        return Statement(text, (), risk)
    command = removal_command(grant.type, grant.inputs)
    if any(command):
        return Statement("stays in the cloud; this takes the access away: {} {} {}", command, risk)
    return Statement("stays in the cloud: the access remains", (), risk)


def _options(kind: str, resource: Resource | None) -> Iterator[Fact]:
    """Yield the options of a resource as facts, in a group by what an option can lose."""
    if resource is None:
        return
    is_access = is_grant(resource)
    group = (
        "grant"
        if is_access
        else "data"
        if holds_data(resource.type, is_grant=is_access)
        else "other"
    )
    stays = resource.retain and not (is_access and is_shared(resource))
    for name, value in {
        **resource.options,
        **({"retainOnDelete": True} if stays else {}),
    }.items():
        if name == "aliases" and isinstance(value, list):
            # The comparison pairs a resource with what had another name, so that the change itself is shown.
            value = [alias for alias in value if not _is_former_name(alias)]  # noqa: PLW2901
        if name != "parentAliases" and value != []:
            yield Fact(Scope(), (kind, group, name), value)


def _is_former_name(alias: Any) -> bool:
    return isinstance(alias, Mapping) and {*alias} == {"name"}
