"""Changed settings of Pulumi projects and stacks, each with its consequence: a review cannot show their effects."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from tpucfg.changes.statements import Risk, Statement
from tpucfg.infra.pulumi_files import PulumiFiles, StackFile
from tpucfg.review.changes.program.setting_values import shown_value

_CHANGED: Final = "settings of Pulumi changed"
"""The headline of settings that can hide a loss."""


class Consequence(NamedTuple):
    """The meaning of a change to a setting."""

    text: str
    risk: Risk = Risk.DESTRUCTIVE
    is_usual: bool = False
    """True if the setting belongs to every new project, so that only a later change is reported."""
    hides_values: bool = False
    """True for values that mean nothing to a reader."""


# The keys are those of https://www.pulumi.com/docs/iac/concepts/projects/project-file/ and, where that page is silent,
# of Project in https://github.com/pulumi/pulumi/blob/master/sdk/go/common/workspace/project.go.
PROJECT_SETTINGS: Final[Mapping[str, Consequence]] = {
    "main": Consequence("Pulumi runs another program", is_usual=True),
    "stackConfigDir": Consequence("Pulumi reads the stack files of another folder", is_usual=True),
    "backend": Consequence(
        "Pulumi reads and writes the state elsewhere: without the old state it creates every resource again, and no "
        "longer manages the existing ones",
        is_usual=True,
    ),
    "runtime.name": Consequence("a program in another language runs, which this review cannot do", is_usual=True),
    "runtime.options.virtualenv": Consequence(
        "the program runs with the Python and the packages of another folder, which this review does not use",
        is_usual=True,
    ),
    "runtime.options.toolchain": Consequence(
        "another tool chooses the program's packages, which this review does not do", Risk.UNKNOWN, is_usual=True
    ),
    "runtime.options.typechecker": Consequence(
        "the program's types are checked in another way before it runs", Risk.CAUTION, is_usual=True
    ),
    "runtime.options.binary": Consequence("Pulumi runs this file instead of the program"),
    "plugins": Consequence("Pulumi runs the code at these paths, with access to the cloud"),
    "packages": Consequence("Pulumi downloads and runs this code, with access to the cloud"),
    "options.refresh": Consequence(
        "set to always, each update first accepts what was changed or deleted in the cloud", Risk.CAUTION, is_usual=True
    ),
    "requiredPulumiVersion": Consequence("other versions of Pulumi may update the stacks", Risk.CAUTION, is_usual=True),
    "template": Consequence("only new projects are made from it", Risk.NONE, is_usual=True, hides_values=True),
}
"""By path or the beginning of a path; `name` and `config` are compared apart."""
_UNKNOWN_SETTING: Final = Consequence("this review does not know the setting", Risk.UNKNOWN)
_WITHOUT_EFFECT: Final = frozenset({"description", "author", "website", "license"})

STACK_SETTINGS: Final[Mapping[str, Consequence]] = {
    "environment": Consequence(
        "Pulumi ESC sets config, environment variables and credentials, which this review cannot read"
    ),
    "secretsprovider": Consequence("another key encrypts the secrets in the state"),
    "encryptionsalt": Consequence("Pulumi cannot decrypt what it encrypted before", hides_values=True),
    "encryptedkey": Consequence("Pulumi cannot decrypt what it encrypted before", hides_values=True),
}
"""Keys of a stack file besides `config`."""
_FIRST_KEYS: Final = frozenset({"secretsprovider", "encryptionsalt", "encryptedkey"})
"""Keys that Pulumi itself writes when a stack gets its first secrets provider."""


def project_setting_statements(before: PulumiFiles, after: PulumiFiles) -> Iterator[Statement]:
    """Yield the changed settings of a project file."""
    if not after.file:
        return
    if before.file and before.file != after.file:
        yield _grave(
            "Pulumi reads {0} as its project file instead of {1}, and the stack files that end like it",
            after.file,
            before.file,
        )
    if after.problem and (after.problem, after.text) != (before.problem, before.text):
        yield _grave("{0} cannot be read by this review: {1}", after.file, after.problem)
    for key in sorted({*before.settings, *after.settings}):
        consequence = _consequence(key, PROJECT_SETTINGS)
        if key in _WITHOUT_EFFECT or (not before.file and consequence.is_usual):
            continue
        yield from _setting_statement(after.file, key, before.settings.get(key), after.settings.get(key), consequence)
    for key in sorted({*before.parts, *after.parts}):
        if before.parts.get(key) != after.parts.get(key):
            old, new = (shown_value(key, parts.get(key)) for parts in (before.parts, after.parts))
            yield _grave(
                "config {0} of {1} is {2} instead of {3}: it applies to a part of a value, which this review "
                "does not show",
                key,
                after.file,
                new,
                old,
            )


def stack_setting_statements(before: StackFile | None, after: StackFile) -> Iterator[Statement]:
    """Yield the changed settings of a stack file, without its config."""
    if after.problem and not (before and (before.problem, before.text) == (after.problem, after.text)):
        yield _grave("{0} cannot be read by this review: {1}", after.name, after.problem)
    old = before.settings if before else {}
    for key in sorted({*old, *after.settings}):
        consequence = _consequence(key, STACK_SETTINGS)
        if key in _FIRST_KEYS and not old.keys() & _FIRST_KEYS:
            consequence = consequence._replace(text="it encrypts the stack's secrets", risk=Risk.NONE)
        yield from _setting_statement(after.name, key, old.get(key), after.settings.get(key), consequence)


def _consequence(key: str, table: Mapping[str, Consequence]) -> Consequence:
    """Return the consequence of the longest beginning of a path that the table has."""
    while key not in table and "." in key:
        key = key.rpartition(".")[0]
    return table.get(key, _UNKNOWN_SETTING)


def _setting_statement(file: str, key: str, old: Any, new: Any, consequence: Consequence) -> Iterator[Statement]:
    if old == new and type(old) is type(new):
        return
    headline = _CHANGED if consequence.risk is Risk.DESTRUCTIVE else ""
    # The texts of the table may have code, so they are part of the template, which has no braces.
    text = consequence.text
    if consequence.hides_values:
        verb = "added to" if old is None else "removed from" if new is None else "changed in"
        yield Statement(f"{{0}} {verb} {{1}}: {text}", (key, file), consequence.risk, headline)
        return
    shown_old, shown_new = shown_value(key, old), shown_value(key, new)
    if old is None:
        yield Statement(f"{{0}} {{1}} added to {{2}}: {text}", (key, shown_new, file), consequence.risk, headline)
    elif new is None:
        yield Statement(f"{{0}} {{1}} removed from {{2}}: {text}", (key, shown_old, file), consequence.risk, headline)
    else:
        template = f"{{0}} of {{1}} is {{2}} instead of {{3}}: {text}"
        yield Statement(template, (key, file, shown_new, shown_old), consequence.risk, headline)


def _grave(template: str, *values: str) -> Statement:
    return Statement(template, values, Risk.DESTRUCTIVE, _CHANGED)
