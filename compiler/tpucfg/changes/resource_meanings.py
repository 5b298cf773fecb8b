"""The meaning of changed inputs and options of resources: one table for the types that the bundled program declares.

Of every other type nothing is known: its creation and its change are cautions, and inputs that are called a protection,
a retention or a deletion are destructive where they get weaker. Grants of access are compared in `grants.py`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tpucfg.catalog.target_facts import TARGET_FACTS
from tpucfg.changes.facts import ABSENT, Fact, FactChange, Scope, by_name, compare
from tpucfg.changes.meanings import UNKNOWN as NO_RULE
from tpucfg.changes.meanings import Comparison, Condition, Judged, Meaning, always, judged, removed
from tpucfg.changes.resources import KNOWN_TYPES, REMOVING_OPS, UNKNOWN, Op, Step, holds_data
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

_HIDDEN: Final = (SECRET, UNKNOWN)
_MAX_RULES: Final = 6
_MAX_PERMISSIONS: Final = 6
_TEMPORARY: Final = "tmp/"
"""The prefix whose objects the bundled stack program deletes."""
_COMMANDS: Final = ("command:", "pulumi-python:", "pulumi-nodejs:", "terraform:", "docker:", "docker-build:")
"""Starts of the types whose resources run programs where Pulumi runs."""
_GOOGLE: Final = ("gcp:", "pulumi:")
_DELETION: Final = frozenset(
    permission
    for facts in TARGET_FACTS.values()
    for permission in (*facts.deletion_permissions, *facts.one_host_deletion_permissions)
)
"""The permissions by which slices delete themselves at their deadline and after the program's end."""
_DELETION_ROLE: Final = re.compile(r"^projects/[^/]+/roles/tpu\.[^/]+$")
"""The custom role by which a job deletes its own slice: see `deletion_role_id`."""


# Conditions


def turned_on(change: FactChange, _: Comparison) -> bool:
    """Apply to a switch that is on in the head, or has a value that is no switch."""
    return change.after is not ABSENT and boolean(change.after) is not False and boolean(change.before) is not True


def turned_off(change: FactChange, _: Comparison) -> bool:
    """Apply to a switch that was on in the base, or had a value that is no switch."""
    return change.before is not ABSENT and boolean(change.before) is not False and boolean(change.after) is not True


def shorter(default: float) -> Condition:
    """Return a condition for a duration that gets shorter, or that cannot be compared.

    Args:
        default: the seconds without a value.
    """

    def applies(change: FactChange, _: Comparison) -> bool | tuple[str, ...]:
        before, after = (default if value is ABSENT else _seconds(value) for value in (change.before, change.after))
        if before is not None and after is not None and after >= before:
            return False
        return _duration(after), _duration(before)

    return applies


def lost(change: FactChange, _: Comparison) -> bool | tuple[str, ...]:
    """Apply to a value that is gone."""
    return (str(change.before),) if change.after in (ABSENT, "") else False


def changed(change: FactChange, _: Comparison) -> bool | tuple[str, ...]:
    """Apply to a value that is another one than before; the first one restricts nothing that was possible."""
    return False if change.before in (ABSENT, "") else (str(change.after),)


def given(change: FactChange, _: Comparison) -> bool:
    """Apply to a value that the head has."""
    return change.after is not ABSENT


def _added_items(change: FactChange, _: Comparison) -> bool | tuple[str, ...]:
    """Apply to an option with items that the base does not have."""
    items = [item for item in _items(change.after) if item not in _items(change.before)]
    return (listed(items),) if items else False


def _gained_permissions(change: FactChange, _: Comparison) -> bool | tuple[str, ...]:
    gained = [name for name in _items(change.after) if name not in _items(change.before)]
    # A long list is cut, so that permissions to take over accounts come first.
    gained.sort(key=lambda permission: not power_of(permission))
    return (listed(gained, _MAX_PERMISSIONS),) if gained else False


_NO_DATA: Final = "its data would be deleted"
_MANY_READS: Final = (ABSENT, "STANDARD", "REGIONAL", "MULTI_REGIONAL")
"""Storage classes of which a read has no price."""


def _row(pattern: str, risk: Risk, sentence: str, when: Condition = always) -> Meaning:
    return Meaning(pattern, risk, when=when, sentence=sentence)


def _harmless(kind: str, *names: str) -> Iterator[Meaning]:
    return (Meaning(f"{kind}.{name}") for name in names)


def _rows_of_buckets() -> Iterator[Meaning]:
    """Yield the rows about buckets: https://cloud.google.com/storage/docs.

    What the names of inputs tell has no row, such as versioning and the retention of objects.
    """
    duration, kept = "bucket.softDeletePolicy.*", shorter(DEFAULT_SOFT_DELETE_SECONDS)
    yield _row(duration, Risk.CAUTION, "no longer declares how long deleted objects can be restored", removed)
    yield _row(duration, Risk.DESTRUCTIVE, "keeps deleted objects for {}, previously for {}", kept)
    locked = "locks its retention policy, which can never be shortened or removed again"
    yield _row("bucket.retentionPolicy.isLocked", Risk.CAUTION, locked, turned_on)
    yield _row("bucket.defaultEventBasedHold", Risk.DESTRUCTIVE, "no longer holds new objects", turned_off)
    key = "bucket.encryption.defaultKmsKeyName"
    yield _row(key, Risk.ACCESS, "encrypts new objects with Google's keys instead of your own, {}", lost)
    other_key = "encrypts new objects with another key, {}, which Cloud Storage has to be allowed to use"
    yield _row(key, Risk.CAUTION, other_key, changed)
    yield _row("bucket.ipFilter.**", Risk.ACCESS, "is open to other networks than before")
    yield _row("bucket.logging.logBucket", Risk.CAUTION, "no longer logs access to {}", lost)
    yield _row("bucket.logging.logBucket", Risk.CAUTION, "logs access to another bucket, {}", changed)
    yield _row("bucket.storageClass", Risk.CAUTION, "stores new objects as {}: each read has a price", _read_costs)
    destroyed = "would be deleted together with everything in it"
    yield _row("bucket.forceDestroy", Risk.DESTRUCTIVE, destroyed, turned_on)
    refuses = "refuses readers who do not pay for their requests"
    yield _row("bucket.requesterPays", Risk.CAUTION, refuses, turned_on)
    yield _row("bucket.cors", Risk.CAUTION, "can be read by web pages of other origins than before", given)
    yield _row("bucket.website.**", Risk.CAUTION, "serves a web site", given)
    moves = "moves objects between storage classes by other rules than before"
    yield _row("bucket.autoclass.**", Risk.CAUTION, moves, given)
    yield from _harmless("bucket", "softDeletePolicy.*", "defaultEventBasedHold", "encryption.defaultKmsKeyName")
    yield from _harmless(
        "bucket", "logging.**", "storageClass", "requesterPays", "cors", "website.**", "autoclass.**", "forceDestroy"
    )
    # Compared with the rules of the base, or as grants, or as inputs that replace the bucket.
    yield from _harmless("bucket", "labels.**", "lifecycleRules", "location", "name", "project")
    yield from _harmless("bucket", "publicAccessPrevention", "uniformBucketLevelAccess")


def _read_costs(change: FactChange, _: Comparison) -> bool | tuple[str, ...]:
    return False if change.after in _MANY_READS else (str(change.after),)


def _rows_of_access() -> Iterator[Meaning]:
    """Yield the rows about accounts, services, custom roles and grants."""
    # https://cloud.google.com/iam/docs/service-accounts-delete-undelete
    yield _row("account.disabled", Risk.CAUTION, "is disabled", turned_on)
    yield _row("account.disabled", Risk.ACCESS, "can be used again")
    yield from _harmless("account", "accountId", "description", "displayName", "project")
    disabled = "is disabled for the whole project when it is removed"
    yield _row("service.disableOnDestroy", Risk.CAUTION, disabled, lambda change, _: boolean(change.after) is not False)
    dependent = "disables services that depend on it too"
    yield _row("service.disableDependentServices", Risk.CAUTION, dependent, turned_on)
    yield _row("role.permissions", Risk.ACCESS, "gives everyone who has the role {}", _gained_permissions)
    yield from _harmless("role", "permissions", "description", "project", "roleId", "stage", "title")
    yield from (Meaning(f"{kind}.**") for kind in ("service", "identity", "grant"))


def _rows_of_options() -> Iterator[Meaning]:
    """Yield the rows about options: https://www.pulumi.com/docs/iac/concepts/resources/options/."""
    ignores = "ignores changes of {}: an update keeps old values, not those of the program"
    replaces = "has deleteBeforeReplace {}: a replacement deletes it before there is a new one"
    decides = "has {}, which changes what an update does"
    unclear = "has {}, whose effect this review cannot show"
    for name, risk, sentence in (
        ("option.aliases", Risk.UNKNOWN, "takes over {}"),
        ("option.additionalSecretOutputs", Risk.CAUTION, "hides {} in previews"),
        ("option.deleteBeforeReplace", Risk.CAUTION, replaces),
        ("option.hooks", Risk.UNKNOWN, "runs {} during an update, whose effect this review cannot show"),
        ("option.ignoreChanges", Risk.DESTRUCTIVE, ignores),
        ("option.version", Risk.UNKNOWN, "uses version {} of its provider"),
        ("option.importId", Risk.DESTRUCTIVE, "takes over the existing resource {} with all it contains"),
        ("option.*", Risk.DESTRUCTIVE, decides),
        *((f"new option.{name}", Risk.CAUTION, "has {}") for name in _REPLACING_OPTIONS),
        *((f"new option.{name}", Risk.DESTRUCTIVE, decides) for name in _POWERFUL_OPTIONS),
        *((f"new option.{name}", Risk.NONE, "") for name in ("additionalSecretOutputs", "replacementTrigger")),
        ("new option.*", Risk.UNKNOWN, unclear),
    ):
        yield _row(name, risk, sentence, _added_items if risk else always)
    yield Meaning("option.*")


_REPLACING_OPTIONS: Final = ("deleteBeforeReplace", "deletedWith", "replaceOnChanges", "replaceWith")
_POWERFUL_OPTIONS: Final = ("envVarMappings", "importId", "pluginDownloadURL", "stateMigrations")
"""Options by which a new resource takes over another one, or runs other code with the credentials of an update."""
MEANINGS: Final = (*_rows_of_buckets(), *_rows_of_access(), *_rows_of_options())
"""By the kind of the resource and the input, or by the option. Rows without a risk are inputs that are harmless."""
_OF_NEW_BUCKETS: Final = ("bucket.cors", "bucket.website.**", "bucket.autoclass.**", "bucket.ipFilter.**")
"""Rows about a value that means something in a new bucket too."""
_COMPARED_OPTIONS: Final = ("parent", "parentAliases", "provider")
_KINDS: Final[Mapping[str, str]] = {
    BUCKET: "bucket",
    "gcp:serviceaccount/account:Account": "account",
    "gcp:projects/service:Service": "service",
    "gcp:projects/serviceIdentity:ServiceIdentity": "identity",
    "gcp:projects/iAMCustomRole:IAMCustomRole": "role",
}
_GUARD: Final = re.compile("protect|prevent|retain|retention|recover|backup|versioning", re.IGNORECASE)
"""Names of inputs that guard data, whatever the type."""
_LOSS: Final = re.compile("delet|destroy|drop|expir|ttl$|overwrite|purge|cleanup|force|lifecycle", re.IGNORECASE)
"""Names of inputs by which data is deleted."""
_ACTIVE_LOSS: Final = re.compile("^(delete|overwrite|purge)[A-Z]")
"""Names of inputs by which a new resource deletes what others hold."""
_SAFE_VALUES: Final = ("PREVENT", "ABANDON", "RETAIN")


# Statements


def resource_statements(steps: Sequence[Step]) -> list[tuple[Statement, ...]]:
    """Return the sentences about each step, apart from grants."""
    predecessors = _predecessors(steps)
    return [tuple(dict.fromkeys(_statements(step, predecessors.get(index)))) for index, step in enumerate(steps)]


def _predecessors(steps: Sequence[Step]) -> Mapping[int, Resource]:
    """Return the bucket that each created bucket replaces, by the index of its step.

    A bucket that moves to another region is created under another name in the stack, and the old one is removed.
    """
    removed = sorted(
        (step.before for step in steps if step.op == "delete" and step.before and step.before.type == BUCKET),
        key=lambda bucket: bucket.name,
    )
    created = sorted(
        (step.after.name, index)
        for index, step in enumerate(steps)
        if step.op == "create" and step.after and step.after.type == BUCKET
    )
    if not removed:
        return {}
    return {index: removed[min(position, len(removed) - 1)] for position, (_, index) in enumerate(created)}


def _statements(step: Step, predecessor: Resource | None) -> Iterator[Statement]:
    yield from _option_statements(step)
    if predecessor and step.after:
        for name, is_lost in {
            "protect": predecessor.protect and not step.after.protect,
            "retainOnDelete": predecessor.retain and not step.after.retain,
        }.items():
            if is_lost:
                yield Statement("does not have {}, unlike the bucket that it replaces", (name,), Risk.DESTRUCTIVE)
        step = step._replace(before=predecessor)
    resource = step.after or step.before
    if resource is None or step.op == "same":
        return
    kind = _kind(resource)
    if kind == "unknown":
        yield from _unknown_type(step)
    if step.op == "import":
        yield Statement("takes over what exists in the cloud, with all it contains", (), Risk.UNKNOWN)
    if step.after is None or (step.op in REMOVING_OPS and kind == "account"):
        yield from _removed(step, kind)
    if step.after and step.before:
        yield from _input_statements(kind, step.before, step.after, step.op)
        yield from _deletion_statements(kind, step.before, step.after)
    elif step.after and kind == "bucket":
        yield from _input_statements(kind, None, step.after, step.op)


def _kind(resource: Resource) -> str:
    is_known_grant = resource.type in KNOWN_TYPES or is_grant(resource)
    return _KINDS.get(resource.type, "grant" if is_known_grant else "unknown")


def _unknown_type(step: Step) -> Iterator[Statement]:
    """Yield what is known of a type that no rule is about: nothing but what its inputs are called."""
    after = step.after
    if after is None:
        return
    if after.type.startswith(_COMMANDS):
        text = "runs commands on the machine of the update, whose effect is not shown here"
        yield Statement(text, (), Risk.DESTRUCTIVE)
    verb = "is new" if step.before is None else "changes"
    origin = "" if after.type.startswith(_GOOGLE) else ", and which is not Google's"
    text = f"{verb}: its type is {{}}, about which this review has no rules{origin}; its inputs are in the fold"
    yield Statement(text, (after.type,), Risk.UNKNOWN)
    for path, value in _leaves(after.inputs) if step.before is None else ():
        if _ACTIVE_LOSS.search(str(path[-1])) and boolean(value) is not False:
            yield Statement("deletes or overwrites data ({})", (dotted(path),), Risk.DESTRUCTIVE)


def _removed(step: Step, kind: str) -> Iterator[Statement]:
    before = step.before
    if before is None or before.retain:
        return
    if kind == "account":
        text = "is deleted: grants to it end everywhere, and a new account of the same name does not get them back"
        yield Statement(text, (), Risk.CAUTION)
    if kind == "service" and boolean(before.inputs.get("disableOnDestroy")) is not False:
        yield Statement("is disabled for the whole project ({})", ("disableOnDestroy",), Risk.CAUTION)
    if kind == "role" and (permissions := _lost_deletion(before, None)):
        yield _ends_deletion("loses {}", permissions)


def _deletion_statements(kind: str, before: Resource, after: Resource) -> Iterator[Statement]:
    """Yield that running slices lose what they delete themselves by."""
    if kind == "role" and (permissions := _lost_deletion(before, after)):
        yield _ends_deletion("loses {}", permissions)
    member = before.inputs.get("member")
    is_role = bool(_DELETION_ROLE.search(str(before.inputs.get("role"))))
    if kind == "grant" and is_role and member != after.inputs.get("member"):
        yield _ends_deletion("takes the role from {}", str(member))


def _lost_deletion(before: Resource, after: Resource | None) -> str:
    kept = after.inputs.get("permissions") if after else []
    if kept in _HIDDEN:
        return ""
    lost_ones = [name for name in _items(before.inputs.get("permissions")) if name not in _items(kept)]
    return listed([name for name in lost_ones if name in _DELETION], _MAX_PERMISSIONS)


def _ends_deletion(event: str, value: str) -> Statement:
    text = f"{event}: slices that are running can no longer delete themselves; let bounded ones end first"
    return Statement(text, (value,), Risk.CAUTION)


def _input_statements(kind: str, before: Resource | None, after: Resource, op: Op) -> Iterator[Statement]:
    """Yield the sentences about changed inputs."""
    if kind == "bucket":
        yield from _lifecycle_statements(before.inputs if before else {}, after.inputs, is_new=before is None)
    old, new = by_name(_facts(kind, before)), by_name(_facts(kind, after))
    comparison = Comparison(old, new)
    for change in compare(old, new):
        if before is None and not any(matches(pattern, change.name) for pattern in _OF_NEW_BUCKETS):
            continue
        if change.name == ("bucket", "softDeletePolicy", "retentionDurationSeconds") and op == "replace":
            # Only a bucket that is updated keeps its policy where none is declared.
            is_gone = change.after is ABSENT
            yield from _judge(change._replace(after=DEFAULT_SOFT_DELETE_SECONDS) if is_gone else change, comparison)
        else:
            yield from _judge(change, comparison)


def _judge(change: FactChange, comparison: Comparison) -> Iterator[Statement]:
    """Yield the sentence about a changed input, by its row, by its name, or because no rule knows it."""
    if change.name[-1] == SECRET:
        if ABSENT in (change.before, change.after):
            return
        change = change._replace(name=change.name[:-1], after=SECRET)
    key = dotted(change.name[1:])
    if change.after in _HIDDEN:
        rows = [row for row in MEANINGS if matches(row.pattern, change.name)]
        risk = max((row.risk for row in rows), default=Risk.UNKNOWN)
        if not rows and any(pattern.search(str(name)) for name in change.name[1:] for pattern in (_GUARD, _LOSS)):
            risk = Risk.DESTRUCTIVE
        if risk or not rows:
            # A preview has values that only the update knows; a secret hides what its author knows.
            is_secret = change.after == SECRET
            text = "sets {} to a value that is not known here"
            yield Statement(text, (key,), max(Risk.UNKNOWN, risk) if is_secret else Risk.UNKNOWN)
        return
    row = judged(change, MEANINGS, comparison)
    if row.meaning is NO_RULE:
        yield from _by_name(change, key, is_known=change.name[0] != "unknown")
    elif row.meaning.risk:
        yield _statement(row)


def _statement(row: Judged) -> Statement:
    """Return the sentence of a row, with the name of the input or option."""
    values = (*row.values, str(row.change.name[1]))
    return Statement(f"{row.meaning.sentence} ({{}})", values, row.meaning.risk)


def _by_name(change: FactChange, key: str, *, is_known: bool) -> Iterator[Statement]:
    """Yield the sentence about an input that no row knows."""
    names = [str(step) for step in change.name[1:]]
    values = tuple(_shown(value) for value in (change.before, change.after))
    if any(_GUARD.search(name) for name in names):
        if _is_weaker(change):
            yield Statement("loses protection: {} is {}, previously {}", (key, *values[::-1]), Risk.DESTRUCTIVE)
    elif any(_LOSS.search(name) for name in names):
        if change.before in _SAFE_VALUES and change.after not in _SAFE_VALUES:
            yield Statement("loses protection: {} is {}, previously {}", (key, *values[::-1]), Risk.DESTRUCTIVE)
        elif change.after is not ABSENT and boolean(change.after) is not False and change.after not in _SAFE_VALUES:
            yield Statement("can lose data: {} is {}, previously {}", (key, *values[::-1]), Risk.DESTRUCTIVE)
    elif is_known:
        text = "has {} {}, previously {}: no rule knows its effect"
        yield Statement(text, (key, *values[::-1]), Risk.CAUTION)


def _is_weaker(change: FactChange) -> bool:
    """Return True unless a guard is new, switched on, or longer."""
    if change.before is ABSENT or boolean(change.before) is False:
        # Without a value, the service has a default, which may be a protection.
        return change.before is ABSENT and boolean(change.after) is False
    before, after = _seconds(change.before), _seconds(change.after)
    is_longer = before is not None and after is not None and after > before
    # The number 1 is no switch that is on.
    return not (is_longer or str(change.after).lower() == "true" or change.after in _SAFE_VALUES)


def _option_statements(step: Step) -> Iterator[Statement]:
    """Yield the options that are set, extended or given up, with their effect."""
    before, after = step.before, step.after
    grant = after or before
    has_data = grant is not None and holds_data(grant.type, is_grant=is_grant(grant))
    retained = "retainOnDelete"
    if before and after and before.retain and not after.retain:
        effect = f"is no longer left behind when it is removed from the stack{f': {_NO_DATA}' * has_data} ({{}})"
        yield Statement(effect, (retained,), Risk.DESTRUCTIVE if has_data else Risk.CAUTION)
    if grant and is_grant(grant):
        if after is None and grant.retain:
            yield Statement("stays in the cloud ({}): the access remains", (retained,), Risk.ACCESS)
        elif after and after.retain and not (before and before.retain):
            text = "has {}: its access remains when the stack no longer declares it"
            yield Statement(text, (retained,), Risk.ACCESS)
    if after is None:
        return
    kind = "option" if before else "new option"
    old, new = by_name(_options(kind, before)), by_name(_options(kind, after))
    for change in compare(old, new):
        gone = [item for item in _items(change.before) if item not in _items(change.after)]
        if gone and change.name[1] == "ignoreChanges":
            text = "no longer ignores changes of {} ({}): an update writes the program's value"
            yield Statement(text, (listed(gone), "ignoreChanges"), Risk.UNKNOWN)
        row = judged(change, MEANINGS, Comparison(old, new))
        if row.meaning.risk:
            yield _statement(row)
    # Without data, a resource that is deleted and created anew is the same as before.
    if before and before.parent != after.parent and has_data:
        places = tuple(resource.parent or "the stack" for resource in (before, after))
        text = "moves from {} to {}: unless an alias matches its old place, it is deleted and created anew"
        yield Statement(text, places, Risk.DESTRUCTIVE)


# Lifecycle rules


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


def _is_hidden(rule: LifecycleRule) -> bool:
    return any(hidden in str(rule) for hidden in _HIDDEN)


# Facts and values


def _facts(kind: str, resource: Resource | None) -> Iterator[Fact]:
    """Yield the inputs of a resource as facts, and the digests of those that are secret."""
    for path, value in _leaves(resource.inputs if resource else {}):
        yield Fact(Scope(), (kind, *path), value)
    for name, digest in resource.secrets.items() if resource else ():
        yield Fact(Scope(), (kind, name, SECRET), digest)


def _leaves(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Yield the scalars and lists in nested mappings with their paths; nothing for what is not set."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif value is not None and value != []:
        yield path, value


def _options(kind: str, resource: Resource | None) -> Iterator[Fact]:
    for name, value in resource.options.items() if resource else ():
        if name not in _COMPARED_OPTIONS:
            yield Fact(Scope(), (kind, name), value)


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


def _shown(value: Any) -> str:
    return "not set" if value is ABSENT else format_value(value, quoted=False, max_length=80)
