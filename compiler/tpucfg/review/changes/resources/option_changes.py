"""Changed options of a resource: https://www.pulumi.com/docs/iac/concepts/resources/options/."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from tpucfg.changes.statements import Risk, Statement
from tpucfg.infra.grants import grants_of
from tpucfg.infra.resources import Resource
from tpucfg.review.changes.resources.resource_change import STATEFUL_TYPES
from tpucfg.text_format import format_value, listed


class _OptionRule(NamedTuple):
    """The meaning of an option that is set or extended."""

    effect: str
    """A sentence in which `{1}` is the option's name, and `{0}` its value."""
    changed: Risk = Risk.DESTRUCTIVE
    """The risk for a resource that exists already."""
    new: Risk = Risk.UNKNOWN
    """The risk for a new resource."""
    needs_data: bool = False
    """True if more than a caution takes a resource that holds data."""


_RULES: Final[Mapping[str, _OptionRule]] = {
    "aliases": _OptionRule("takes over {0} by {1}", changed=Risk.UNKNOWN),
    "additionalSecretOutputs": _OptionRule("hides {0} in previews ({1})", Risk.CAUTION, Risk.NONE),
    "deleteBeforeReplace": _OptionRule(
        "has {1} {0}: a replacement deletes it before there is a new one", Risk.CAUTION, Risk.CAUTION
    ),
    "deletedWith": _OptionRule("is never deleted itself if {0} is ({1})", new=Risk.CAUTION),
    "envVarMappings": _OptionRule("passes other variables to its provider: {0} ({1})", new=Risk.DESTRUCTIVE),
    "hideDiffs": _OptionRule("hides changes of {0} in previews ({1})"),
    "hooks": _OptionRule("runs {0} during an update ({1}), whose effect this review cannot show", Risk.UNKNOWN),
    "ignoreChanges": _OptionRule("ignores changes of {0} ({1}): an update keeps old values, not those of the program"),
    "importId": _OptionRule("takes over the existing resource {0} with all it contains ({1})", new=Risk.DESTRUCTIVE),
    "pluginDownloadURL": _OptionRule(
        "downloads its provider from {0} ({1}): other code runs with the credentials of an update",
        new=Risk.DESTRUCTIVE,
    ),
    "replaceOnChanges": _OptionRule("is replaced if {0} changes ({1})", new=Risk.CAUTION, needs_data=True),
    "replaceWith": _OptionRule("is replaced whenever {0} is ({1})", new=Risk.CAUTION, needs_data=True),
    "replacementTrigger": _OptionRule("is replaced if its {1} changes, as here", new=Risk.NONE, needs_data=True),
    "stateMigrations": _OptionRule("rewrites its state during an update ({1})", new=Risk.DESTRUCTIVE),
    "version": _OptionRule("uses version {0} of its provider ({1})", Risk.UNKNOWN),
}
"""Options without an entry have no effect on an update, or are compared elsewhere."""
_REMOVED: Final = Statement(
    "no longer ignores changes of {0} ({1}): an update writes the program's value", (), Risk.UNKNOWN
)
_MOVED: Final = "moves from {0} to {1}: unless an alias matches its old place, it is deleted and created anew"
"""The parent is part of the identity by which the engine finds a resource."""
_COMMANDS: Final = (
    "command:",
    "pulumi-python:dynamic",
    "pulumi-nodejs:dynamic",
    "terraform:",
    "docker:",
    "docker-build:",
)
"""Starts of the types whose resources run programs where Pulumi runs."""
_RUNS: Final = Statement(
    "runs commands on the machine of the update, whose effect is not shown here", (), Risk.DESTRUCTIVE
)
_RETAIN: Final = "retainOnDelete"


def option_statements(before: Resource | None, after: Resource | None) -> Iterator[Statement]:
    """Yield the options that are set, extended or given up, with their effect."""
    yield from _retention_statements(before, after)
    if after is None:
        return
    if after.type.startswith(_COMMANDS) and (before is None or before.inputs != after.inputs):
        yield _RUNS
    old = before.options if before else {}
    for name, rule in _RULES.items():
        added = [item for item in _items(after.options.get(name)) if item not in _items(old.get(name))]
        risk = _risk(rule, before, after)
        if added and risk:
            yield Statement(rule.effect, (listed(added), name), risk)
    ignored = "ignoreChanges"
    if removed := [item for item in _items(old.get(ignored)) if item not in _items(after.options.get(ignored))]:
        yield _REMOVED._replace(values=(listed(removed), ignored))
    # Without data, a resource that is deleted and created anew is the same as before.
    if before and before.parent != after.parent and after.type in STATEFUL_TYPES:
        yield Statement(_MOVED, tuple(resource.parent or "the stack" for resource in (before, after)), Risk.DESTRUCTIVE)


def _risk(rule: _OptionRule, before: Resource | None, after: Resource) -> Risk:
    risk = rule.changed if before else rule.new
    return min(risk, Risk.CAUTION) if rule.needs_data and after.type not in STATEFUL_TYPES else risk


def _retention_statements(before: Resource | None, after: Resource | None) -> Iterator[Statement]:
    if before and after and before.retain and not after.retain:
        has_data = after.type in STATEFUL_TYPES
        effect = "is no longer left behind when it is removed from the stack"
        effect += ": its data would be deleted ({})" if has_data else " ({})"
        yield Statement(effect, (_RETAIN,), Risk.DESTRUCTIVE if has_data else Risk.CAUTION)
    grant = after or before
    if grant is None or not grants_of(grant):
        return
    if after is None and grant.retain:
        yield Statement("stays in the cloud ({}): the access remains", (_RETAIN,), Risk.ACCESS)
    elif after and after.retain and not (before and before.retain):
        yield Statement("has {}: its access remains when the stack no longer declares it", (_RETAIN,), Risk.ACCESS)


def _items(value: Any) -> list[str]:
    """Return the values of an option as texts."""
    if value is None:
        return []
    if isinstance(value, Mapping):
        return [f"{key}={format_value(item, quoted=False)}" for key, item in value.items()]
    items = value if isinstance(value, list) else [value]
    return [format_value(_readable(item), quoted=False) for item in items]


def _readable(item: Any) -> Any:
    """Return the name in an alias, or its other fields if it has none."""
    return item.get("name") or item.get("urn") or item if isinstance(item, Mapping) else item
