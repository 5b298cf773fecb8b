"""The meaning of changes to what `pulumi up` reads and runs besides resources: settings, config, providers."""

from collections.abc import Iterator
from typing import Final

from tpucfg.changes.conditions import Comparison, always, changed, removed
from tpucfg.changes.facts import ABSENT, FactChange
from tpucfg.changes.meanings import Meaning, loss
from tpucfg.changes.statements import Risk

_SETTINGS: Final = "settings of Pulumi changed"
_CONFIG: Final = "config of providers or of Pulumi changed"
_NO_RULE: Final = "no rule knows its effect"
_SECRETS_KEYS: Final = ("secretsprovider", "encryptionsalt", "encryptedkey")
"""Keys of a stack file that Pulumi itself writes when a stack gets its first secrets provider."""


def _first_secrets(change: FactChange, comparison: Comparison) -> bool:
    """Apply to a stack that gets its first secrets provider."""
    return not any((change.scope, ("setting of the stack", key)) in comparison.before for key in _SECRETS_KEYS)


def _other_spec(change: FactChange, _: Comparison) -> tuple[str, ...]:
    """Return the specs that a stack reads; only another one than the one under review is a fact."""
    own = "the spec under review"
    return tuple(own if spec is ABSENT else str(spec) for spec in (change.after, change.before))


def _unread(change: FactChange, _: Comparison) -> bool | tuple[str, ...]:
    """Return the file and its problem; its name has a digest of its content beside it."""
    return False if change.after is ABSENT else (str(change.name[1]), str(change.after))


def _rows() -> Iterator[Meaning]:
    """Yield the rows by the kind and the name of a fact.

    https://www.pulumi.com/docs/iac/concepts/projects/project-file/,
    https://www.pulumi.com/docs/iac/concepts/config/#pulumi-configuration-options and, where these pages are silent,
    Project in https://github.com/pulumi/pulumi/blob/master/sdk/go/common/workspace/project.go.
    """
    for key in _SECRETS_KEYS:
        yield Meaning(f"setting of the stack.{key}", Risk.NONE, "it encrypts the stack's secrets", _first_secrets)
    yield Meaning("own config.**", consequence="the program reads it", subject="config")
    for pattern, consequence, headline in (
        *((f"setting of Pulumi.{key}", _OTHER_CODE, _SETTINGS) for key in _CODE_SETTINGS),
        *((f"setting of the stack.{key}", _OTHER_KEY, _SETTINGS) for key in ("environment", *_SECRETS_KEYS)),
        ("config.pulumi:autonaming", "Pulumi gives resources other names, which replaces them", _CONFIG),
        ("config.pulumi:disable-default-providers", _PROVIDER, _CONFIG),
        ("config.pulumi:*", "", ""),
        ("config.**", _PROVIDER, _CONFIG),
        *((f"{kind}.**", _NOT_SHOWN, "") for kind in ("transform", "component", "dynamic", "parameters")),
    ):
        if consequence:
            yield Meaning(pattern, Risk.DESTRUCTIVE, consequence, headline=headline)
        else:
            yield Meaning(pattern, Risk.UNKNOWN, _NO_RULE)
    for kind in ("setting of Pulumi", "setting of the stack", "call", "read"):
        yield Meaning(f"{kind}.**", Risk.UNKNOWN, _NO_RULE)
    for kind, headline, when, text in (
        ("encrypted config", "encrypted config changed", always, _ENCRYPTED),
        ("config of a part", _SETTINGS, always, _PART),
        ("unreadable file", _SETTINGS, _unread, "{} cannot be read by this review: {}"),
        ("project file", _SETTINGS, changed, _OTHER_FILE),
        ("stack program", "stack program removed", removed, _NO_PROGRAM),
        ("Pulumi project", "Pulumi project renamed", changed, _RENAMED),
        ("spec of the stack", "stack with another spec", _other_spec, _OTHER_SPEC),
        ("provider", "", always, "{label} of a provider is {after}, previously {before}: updates act through it"),
        ("secret of a provider", "", always, "{label} of a provider is another secret: updates act through it"),
    ):
        yield loss(f"{kind}.**", text, headline, when)
        yield Meaning(f"{kind}.**")


_CODE_SETTINGS: Final = (
    "main",
    "stackConfigDir",
    "backend.**",
    "runtime.name",
    "runtime.options.virtualenv",
    "runtime.options.binary",
    "plugins.**",
    "packages.**",
)
_OTHER_CODE: Final = "Pulumi runs other code, or reads other stack files or another state"
_OTHER_KEY: Final = "another key or service decides the stack's secrets and config"
_PROVIDER: Final = "it decides through which account, project or endpoint an update acts, which this review cannot show"
_NOT_SHOWN: Final = "the engine runs it in an update, and its effect is not shown here"
_ENCRYPTED: Final = "encrypted value of config {label} changed: this review cannot read it"
_PART: Final = "config {label} is {after} instead of {before}: it applies to a part of a value, which is not shown here"
_OTHER_FILE: Final = (
    "Pulumi reads {after} as its project file instead of {before}, and the stack files that end like it"
)
_NO_PROGRAM: Final = (
    "stack program {before} removed: this review used the program bundled with tpucfg instead, and the result of "
    "pulumi up is unknown"
)
_RENAMED: Final = (
    "Pulumi project renamed from {before} to {after}: the next pulumi up starts with an empty stack, and the "
    "resources of the old one remain and conflict with the new ones"
)
_OTHER_SPEC: Final = "stack reads {} instead of {}: this review does not include the effect on its resources"
MEANINGS: Final = (*_rows(),)
"""By the kind and the name of a fact."""
