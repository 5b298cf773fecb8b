"""The meaning of changes to what `pulumi up` reads and runs besides resources: settings, config, providers."""

from collections.abc import Iterator
from typing import Final

from tpucfg.changes.conditions import Comparison, always, changed, removed
from tpucfg.changes.facts import ABSENT, FactChange
from tpucfg.changes.meanings import Meaning, loss, sentence
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


def _row(pattern: str, risk: Risk, consequence: str, headline: str = "") -> Meaning:
    return Meaning(pattern, risk, consequence, headline=headline if risk is Risk.DESTRUCTIVE else "")


def _rows_of_project_files() -> Iterator[Meaning]:
    """Yield the rows about settings of a project file.

    https://www.pulumi.com/docs/iac/concepts/projects/project-file/ and, where that page is silent, Project in
    https://github.com/pulumi/pulumi/blob/master/sdk/go/common/workspace/project.go.
    """
    lost_state = "without the old state Pulumi creates every resource again, and no longer manages the existing ones"
    for pattern, risk, consequence in (
        ("main", Risk.DESTRUCTIVE, "Pulumi runs another program"),
        ("stackConfigDir", Risk.DESTRUCTIVE, "Pulumi reads the stack files of another folder"),
        ("backend.**", Risk.DESTRUCTIVE, lost_state),
        ("runtime.name", Risk.DESTRUCTIVE, "a program in another language runs, which this review cannot do"),
        ("runtime.options.virtualenv", Risk.DESTRUCTIVE, "the program runs with the packages of another folder"),
        ("runtime.options.binary", Risk.DESTRUCTIVE, "Pulumi runs this file instead of the program"),
        ("plugins.**", Risk.DESTRUCTIVE, "Pulumi runs the code at these paths, with access to the cloud"),
        ("packages.**", Risk.DESTRUCTIVE, "Pulumi downloads and runs this code, with access to the cloud"),
        ("runtime.options.typechecker", Risk.CAUTION, "the program's types are checked in another way"),
        ("options.refresh", Risk.CAUTION, "always makes each update accept first what was changed in the cloud"),
        ("requiredPulumiVersion", Risk.CAUTION, "other versions of Pulumi may update the stacks"),
        ("**", Risk.UNKNOWN, _NO_RULE),
    ):
        yield _row(f"setting of Pulumi.{pattern}", risk, consequence, _SETTINGS)


def _rows_of_stack_files() -> Iterator[Meaning]:
    """Yield the rows about settings and config of a stack.

    https://www.pulumi.com/docs/iac/concepts/config/#pulumi-configuration-options
    """
    stack, pulumi = "setting of the stack", "config.pulumi:"
    yield _row(f"{stack}.environment", Risk.DESTRUCTIVE, "Pulumi ESC sets config and credentials", _SETTINGS)
    for key in _SECRETS_KEYS:
        yield sentence(f"{stack}.{key}", f"{key} added: it encrypts the stack's secrets", _first_secrets)
    other_key = "another key encrypts the secrets in the state"
    yield _row(f"{stack}.secretsprovider", Risk.DESTRUCTIVE, other_key, _SETTINGS)
    for key in _SECRETS_KEYS[1:]:
        undecipherable = f"{key} of the stack changed: Pulumi cannot decrypt what it encrypted before"
        yield loss(f"{stack}.{key}", undecipherable, _SETTINGS)
    yield _row(f"{stack}.**", Risk.UNKNOWN, _NO_RULE)
    yield Meaning("own config.**", consequence="the program reads it", subject="config")
    encrypted = "encrypted value of config {label} changed: this review cannot read it"
    yield loss("encrypted config.**", encrypted, "encrypted config changed")
    yield _row(f"{pulumi}tags", Risk.CAUTION, "rules of the backend may depend on these tags of the stack")
    other_names = "Pulumi gives resources other names, which replaces them"
    yield _row(f"{pulumi}autonaming", Risk.DESTRUCTIVE, other_names, _CONFIG)
    defaults = "it decides if resources may use a provider that the program does not configure"
    yield _row(f"{pulumi}disable-default-providers", Risk.DESTRUCTIVE, defaults, _CONFIG)
    yield _row(f"{pulumi}*", Risk.UNKNOWN, _NO_RULE)
    provider = "it configures a provider, such as its account, project or endpoint, which this review cannot show"
    yield _row("config.**", Risk.DESTRUCTIVE, provider, _CONFIG)


def _rows_of_programs() -> Iterator[Meaning]:
    """Yield the rows about the project as a whole, and about what programs declare besides resources."""
    for kind, headline, when, text in (
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
    for kind, risk, text in (
        ("transform", Risk.DESTRUCTIVE, "the program changes inputs in the engine, which is not shown here, of"),
        ("component", Risk.DESTRUCTIVE, "the program uses a component of another package, which is not shown here"),
        ("dynamic", Risk.DESTRUCTIVE, "the program runs code of its own as a provider"),
        ("parameters", Risk.DESTRUCTIVE, "the program describes a package by parameters, whose code is not shown"),
        ("call", Risk.UNKNOWN, "the program looks up what this review does not know"),
        ("read", Risk.UNKNOWN, "the program reads what this review does not know"),
    ):
        yield sentence(f"{kind}.*", f"{text}: {{label}}", always, risk)


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
MEANINGS: Final = (*_rows_of_project_files(), *_rows_of_stack_files(), *_rows_of_programs())
"""By the kind and the name of a fact."""
