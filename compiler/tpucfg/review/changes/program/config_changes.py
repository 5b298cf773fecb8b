"""Changed config of a stack whose effect its resources do not show: of providers, of Pulumi, or encrypted."""

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from tpucfg.changes.statements import Risk, Statement
from tpucfg.infra.pulumi_project import ConfigValue
from tpucfg.infra.stack_files import KEYS, PULUMI_NAMESPACE
from tpucfg.review.changes.program.setting_values import shown_value

_HEADLINE: Final = "config of providers or of Pulumi changed"


class _Meaning(NamedTuple):
    """The meaning of a config key that the stack program does not read."""

    text: str
    risk: Risk


_PULUMI_KEYS: Final[Mapping[str, _Meaning]] = {
    "pulumi:autonaming": _Meaning("Pulumi gives resources other names, which replaces them", Risk.DESTRUCTIVE),
    "pulumi:disable-default-providers": _Meaning(
        "it decides if resources may use a provider that the program does not configure", Risk.DESTRUCTIVE
    ),
    "pulumi:tags": _Meaning("rules of the backend may depend on these tags of the stack", Risk.CAUTION),
}
"""https://www.pulumi.com/docs/iac/concepts/config/#pulumi-configuration-options."""
_OTHER_PULUMI_KEY: Final = _Meaning("this review does not know the key", Risk.UNKNOWN)
_PROVIDER_KEY: Final = _Meaning(
    "it configures a provider, such as its account, project or endpoint, which this review cannot show",
    Risk.DESTRUCTIVE,
)
_OWN_KEY: Final = _Meaning("the program reads it", Risk.NONE)


def config_statements(
    before: Mapping[str, ConfigValue], after: Mapping[str, ConfigValue], namespaces: Collection[str]
) -> Iterator[Statement]:
    """Yield the changes to the effective config of one stack.

    The keys of the stack program are left out unless they are encrypted: their effect is a change of resources.

    Args:
        before: the config of base, by full key.
        after: the config of head, by full key.
        namespaces: the names of the Pulumi project in both revisions.
    """
    own_keys = {f"{namespace}:{key}" for namespace in namespaces for key in KEYS}
    for key in sorted({*before, *after}):
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        if (old and old.is_encrypted) or (new and new.is_encrypted):
            yield _encrypted(key, old, new)
        elif key not in own_keys:
            yield _changed(key, old, new, namespaces)


def _encrypted(key: str, old: ConfigValue | None, new: ConfigValue | None) -> Statement:
    if new is None:
        verb = "removed"
    elif not new.is_encrypted:
        verb = "replaced by one that is not encrypted"
    else:
        verb = "changed" if old and old.is_encrypted else "added"
    template = f"encrypted value of config {{0}} {verb}: this review cannot read it"
    return Statement(template, (key,), Risk.DESTRUCTIVE, "encrypted config changed")


def _changed(key: str, old: ConfigValue | None, new: ConfigValue | None, namespaces: Collection[str]) -> Statement:
    meaning = _meaning(key, namespaces)
    shown_old, shown_new = (shown_value(key, None if value is None else _data(value.text)) for value in (old, new))
    template, values = f"config {{0}} is {{1}} instead of {{2}}: {meaning.text}", (key, shown_new, shown_old)
    return Statement(template, values, meaning.risk, _HEADLINE if meaning.risk is Risk.DESTRUCTIVE else "")


def _meaning(key: str, namespaces: Collection[str]) -> _Meaning:
    owner = key.partition(":")[0]
    if owner == PULUMI_NAMESPACE:
        return _PULUMI_KEYS.get(key, _OTHER_PULUMI_KEY)
    return _OWN_KEY if owner in namespaces else _PROVIDER_KEY


def _data(text: str) -> Any:
    """Return a list or mapping as data, so that names in it are redacted."""
    try:
        return json.loads(text) if text.startswith(("{", "[")) else text
    except (ValueError, RecursionError):
        return text
