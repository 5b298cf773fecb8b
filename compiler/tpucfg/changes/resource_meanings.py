"""The meaning of changed inputs and options of resources: one table for the types that the bundled program declares.

Of every other type nothing is known: its creation and its change are cautions, and inputs that are called a protection,
a retention or a deletion are destructive where they get weaker. Grants of access are compared in `grants.py`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tpucfg.changes import resource_conditions as when
from tpucfg.changes.conditions import Comparison, Condition, added, removed
from tpucfg.changes.facts import ABSENT, Fact, FactChange, Scope, by_name, compare
from tpucfg.changes.meanings import Meaning
from tpucfg.changes.resource_conditions import GUARDS, LOSSES, OPERATION, TYPE, has_name
from tpucfg.changes.resources import KNOWN_TYPES, REMOVING_OPS, UNKNOWN, Step, holds_data
from tpucfg.changes.statements import Risk, Statement
from tpucfg.infra import resource_rules
from tpucfg.infra.grants import is_grant
from tpucfg.infra.resource_rules import DEFAULT_SOFT_DELETE_SECONDS
from tpucfg.infra.resources import ACCOUNT, BUCKET, Resource
from tpucfg.paths import KeyPath, matches
from tpucfg.redaction import SECRET
from tpucfg.text_format import dotted

_HARMLESS: Final = (
    "*.type",
    "bucket.labels.**",
    *(f"account.{name}" for name in ("accountId", "description", "displayName", "project")),
    *(f"role.{name}" for name in ("description", "project", "roleId", "stage", "title")),
    # Compared with the rules of the base, or as grants, or as inputs that replace the bucket.
    *(f"bucket.{name}" for name in ("lifecycleRules", "location", "name", "project")),
    *(f"bucket.{name}" for name in ("publicAccessPrevention", "uniformBucketLevelAccess")),
    *(f"{kind}.{name}" for kind in ("service", "identity") for name in ("operation", "project", "service")),
    "grant.**",
    *(f"*option.*.{name}" for name in ("parent", "provider", "retainOnDelete")),
    *(f"new option.*.{name}" for name in ("additionalSecretOutputs", "replacementTrigger")),
)
"""Patterns of facts whose change has no sentence unless a row has one."""


# The table


def _input(pattern: str, risk: Risk, condition: Condition, sentence: str) -> Meaning:
    """Return a row about an input of a resource that exists before and after."""

    def applies(change: FactChange, comparison: Comparison) -> bool | tuple[str, ...]:
        operations = comparison.pair(change.scope, str(change.name[0]), when.OPERATION)
        return False if ABSENT in operations else condition(change, comparison)

    return Meaning(pattern, risk, when=applies, sentence=f"{sentence} ({{}})")


def _option(pattern: str, risk: Risk, sentence: str, condition: Condition = when.added_items) -> Meaning:
    return Meaning(pattern, risk, when=condition, sentence=f"{sentence} ({{}})")


def _event(pattern: str, risk: Risk, condition: Condition, sentence: str) -> Meaning:
    """Return a row about a resource, or about what is common to inputs of any type."""
    return Meaning(pattern, risk, when=condition, sentence=sentence)


_CAUTION, _ACCESS, _UNKNOWN, _LOSS = Risk.CAUTION, Risk.ACCESS, Risk.UNKNOWN, Risk.DESTRUCTIVE
_NO_DELETION: Final = "running slices can no longer delete themselves; let bounded ones end first"
_NOT_LEFT: Final = "is no longer left behind when it is removed from the stack"
_MOVES: Final = "unless an alias matches its old place, it is deleted and created anew"
_DECIDES: Final = "has {}, which changes what an update does"
_WITHOUT_LOSS: Final = ("additionalSecretOutputs", "deleteBeforeReplace", "hooks", "version")
_TAKING_OVER: Final = ("envVarMappings", "importId", "pluginDownloadURL", "stateMigrations")
_BY_DEFAULT: Final = when.differs("the default one")
_LESS: Final = "loses protection: {} is {}, previously {}"
_LOSES: Final = "can lose data: {} is {}, previously {}"
MEANINGS: Final = (
    # https://cloud.google.com/storage/docs
    *(_input(f"bucket.{key}.*", _LOSS, when.loses_protection, _LESS) for key in ("softDeletePolicy", "versioning")),
    _input("bucket.storageClass", _CAUTION, when.differs("STANDARD"), "stores new objects as {}, previously as {}"),
    _input("bucket.forceDestroy", _LOSS, when.can_lose, _LOSES),
    _input(
        "bucket.encryption.*",
        _CAUTION,
        when.differs("Google's own keys"),
        "encrypts new objects with {}, previously with {}",
    ),
    # https://cloud.google.com/iam/docs/service-accounts-delete-undelete
    _event(
        "account.operation",
        _CAUTION,
        when.operation(*REMOVING_OPS),
        "is deleted: grants to it end everywhere, and a new account of the same name does not get them back",
    ),
    _event(
        "service.operation", _CAUTION, when.disables_service, "is disabled for the whole project (disableOnDestroy)"
    ),
    _input("service.disableOnDestroy", _CAUTION, when.not_off, "is disabled for the whole project when it is removed"),
    _input("role.permissions", _ACCESS, when.added_items, "gives everyone who has the role {}"),
    _event("role.permissions", _CAUTION, when.lost_deletion, f"loses {{}}: {_NO_DELETION}"),
    _input("grant.member", _CAUTION, when.loses_deletion_role, f"takes the role from {{}}: {_NO_DELETION}"),
    _event(
        "*.operation", _UNKNOWN, when.operation("import"), "takes over what exists in the cloud, with all it contains"
    ),
    _event("unknown.operation", _LOSS, when.command, "runs commands on the machine of the update, by its type {}"),
    _event("unknown.operation", _UNKNOWN, when.unknown_type, "is of the type {}, about which this review has no rules"),
    # https://www.pulumi.com/docs/iac/concepts/resources/options/
    _option("option.*.aliases", _UNKNOWN, "takes over {}"),
    _option(
        "option.*.provider", _LOSS, "gets the provider {} instead of {}, and with it other credentials", _BY_DEFAULT
    ),
    _option("option.*.ignoreChanges", _LOSS, _DECIDES, when.other_items),
    *(_option(f"option.*.{name}", _UNKNOWN, _DECIDES) for name in _WITHOUT_LOSS),
    # Without data, a resource that is deleted and created anew is the same as before.
    _option("option.data.parent", _LOSS, f"moves to {{}} from {{}}: {_MOVES}", when.differs("the stack")),
    _option("option.data.retainOnDelete", _LOSS, f"{_NOT_LEFT}: its data would be deleted", removed),
    *(_option(f"option.{group}.retainOnDelete", _CAUTION, _NOT_LEFT, removed) for group in ("other", "grant")),
    _option("*option.grant.retainOnDelete", _ACCESS, "remains when the stack no longer declares it", added),
    _option("old option.grant.retainOnDelete", _ACCESS, "stays in the cloud: the access remains", removed),
    # By these, a new resource takes over another one, or runs other code with the credentials of an update.
    *(_option(f"new option.*.{name}", _LOSS, _DECIDES) for name in _TAKING_OVER),
    *map(Meaning, _HARMLESS),
)
"""By the kind of the resource and the input, or by its group and the option. All rows that apply have a sentence."""
OTHER_MEANINGS: Final = (
    _option("option.**", _LOSS, _DECIDES),
    _option("new option.**", _UNKNOWN, "has {}, whose effect this review cannot show"),
    Meaning("*option.**"),
    _event("**", _LOSS, when.deletes_others, "deletes or overwrites data: {} is {}"),
    _event("**", _LOSS, when.loses_protection, _LESS),
    _event("**", _LOSS, when.can_lose, _LOSES),
    # The type's own sentence is about all other inputs.
    Meaning("unknown.**"),
    _event("**", _UNKNOWN, when.described, "has another {}: {}, previously {}; no rule knows its effect"),
)
"""Rows for changes that no row above matches; the first row that applies supplies the sentence."""


# Sentences about changed resources, apart from grants: their options, their inputs, and rules that delete objects.


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
    old, new = resource_rules.lifecycle_rules(before) or (), resource_rules.lifecycle_rules(after)
    if new is None or (not is_new and (SECRET in str(new) or UNKNOWN in str(new))):
        yield Statement("sets {} to a value that is not known here", ("lifecycleRules",), Risk.DESTRUCTIVE)
    wider = [rule for rule in new or () if not any(resource_rules.covers(other, rule) for other in old)]
    for rule in sorted(wider, key=lambda rule: not rule.reaches_jobs):
        template, values = resource_rules.describe_reach(rule, [prefix for other in old for prefix in other.prefixes])
        # In a new bucket, a rule for the whole bucket is a finding, and one for temporary objects is no risk.
        is_temporary = rule.prefixes and all(prefix.startswith(_TEMPORARY) for prefix in rule.prefixes)
        is_known = is_new and rule.action == resource_rules.DELETE and (rule.reaches_jobs or is_temporary)
        if rule.action != resource_rules.ABORT_UPLOAD and not is_known:
            risk = Risk.CAUTION if is_new or rule.storage_class else Risk.DESTRUCTIVE
            is_deletion, action = rule.action == resource_rules.DELETE, f"{rule.action} {rule.storage_class}".strip()
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
