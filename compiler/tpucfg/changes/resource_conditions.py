"""Conditions under which a changed input or option of a resource has a meaning."""

import re
from collections.abc import Mapping
from typing import Any, Final

from tpucfg.catalog.target_facts import TARGET_FACTS
from tpucfg.changes.conditions import Comparison, Condition
from tpucfg.changes.facts import ABSENT, FactChange
from tpucfg.infra.grants import power_of
from tpucfg.infra.resources import boolean
from tpucfg.text_format import dotted, format_value, listed

_MAX_ITEMS: Final = 6
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
GUARDS: Final = re.compile("protect|prevent|retain|retention|recover|backup|versioning|(?-i:Hold)", re.IGNORECASE)
"""Names of inputs that guard data, whatever the type."""
LOSSES: Final = re.compile("delet|destroy|drop|expir|ttl$|overwrite|purge|cleanup|force|lifecycle", re.IGNORECASE)
"""Names of inputs by which data is deleted."""
_ACTIVE_LOSS: Final = re.compile("^(delete|overwrite|purge)[A-Z]")
"""Names of inputs by which a new resource deletes what others hold."""
_SAFE_VALUES: Final = ("PREVENT", "ABANDON", "RETAIN")
OPERATION, TYPE = "operation", "type"
"""The names of the facts that a resource exists, in head with its operation, and of its type."""
_Applies = bool | tuple[str, ...]


def not_off(change: FactChange, _: Comparison) -> bool:
    """Apply to a switch that is on in the head, has a value that is no switch, or is not set."""
    return boolean(change.after) is not False


def differs(absent: str) -> Condition:
    """Return a condition for another value, which names both, and a text for a value that is not set."""
    return lambda change, _: tuple(absent if value is ABSENT else str(value) for value in (change.after, change.before))


def added_items(change: FactChange, _: Comparison) -> _Applies:
    """Apply to items that the base does not have; permissions to take over accounts come first, as lists are cut."""
    items = [item for item in _items(change.after) if item not in _items(change.before)]
    items.sort(key=lambda item: not power_of(item))
    return (listed(items, _MAX_ITEMS),) if items else False


def other_items(change: FactChange, comparison: Comparison) -> _Applies:
    """Apply to items that the base does not have, or else to those that only the base has."""
    return added_items(change, comparison) or added_items(
        change._replace(before=change.after, after=change.before), comparison
    )


def lost_deletion(change: FactChange, _: Comparison) -> _Applies:
    """Apply to a role that loses permissions by which slices delete themselves."""
    kept = _items(change.after)
    lost = [name for name in _items(change.before) if name in _DELETION and name not in kept]
    return (listed(lost, _MAX_ITEMS),) if lost else False


def loses_deletion_role(change: FactChange, comparison: Comparison) -> _Applies:
    """Apply to the member that had the role by which a job deletes its own slice."""
    role, _ = comparison.pair(change.scope, "grant", "role")
    return (str(change.before),) if _DELETION_ROLE.search(str(role)) else False


def operation(*ops: str) -> Condition:
    """Return a condition for a resource with one of these operations."""
    return lambda change, _: change.after in ops or (change.after is ABSENT and "delete" in ops)


def disables_service(change: FactChange, comparison: Comparison) -> bool:
    """Apply to the removal of a service that is disabled with it."""
    is_kept = boolean(comparison.pair(change.scope, "service", "disableOnDestroy")[0]) is False
    return change.after is ABSENT and not is_kept


def unknown_type(change: FactChange, comparison: Comparison) -> _Applies:
    """Apply to a created or changed resource of a type that no rule is about."""
    return False if change.after is ABSENT else (str(comparison.pair(change.scope, "unknown", TYPE)[1]),)


def command(change: FactChange, comparison: Comparison) -> _Applies:
    """Apply to a type whose resources run programs."""
    type_ = str(comparison.pair(change.scope, "unknown", TYPE)[1])
    return (type_,) if type_.startswith(_COMMANDS) else False


def deletes_others(change: FactChange, comparison: Comparison) -> _Applies:
    """Apply to an input by which a new resource deletes what others hold."""
    is_active = bool(_ACTIVE_LOSS.search(str(change.name[-1]))) and boolean(change.after) is not False
    return described(change) if _is_new(change, comparison) and is_active else False


def loses_protection(change: FactChange, comparison: Comparison) -> _Applies:
    """Apply to a guard that gets weaker, or to a safe value that is lost."""
    if _is_new(change, comparison):
        return False
    if has_name(change, GUARDS):
        return described(change) if _is_weaker(change) else False
    is_lost = change.before in _SAFE_VALUES and change.after not in _SAFE_VALUES
    return described(change) if has_name(change, LOSSES) and is_lost else False


def can_lose(change: FactChange, comparison: Comparison) -> _Applies:
    """Apply to an input by which data is deleted."""
    is_set = change.after is not ABSENT and boolean(change.after) is not False and change.after not in _SAFE_VALUES
    is_loss = has_name(change, LOSSES) and not has_name(change, GUARDS)
    return described(change) if is_loss and is_set and not _is_new(change, comparison) else False


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


# Values


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
