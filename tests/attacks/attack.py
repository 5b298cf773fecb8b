"""Dangerous changes of a project, with the cautions that the review of each must have."""

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from repositories import DEPLOY, Repository

Edit = Callable[[Repository], None]
"""An edit of the files of a repository."""
MAIN: Final = "stacks/__main__.py"
"""The stack program of a project."""
BUCKET: Final = "gcp:storage/bucket:Bucket"
"""The type of the environment's bucket."""
_SETTINGS: Final = """
import json

import pulumi
import pulumi_gcp as gcp
from pulumi import ResourceOptions
from tpucfg.stack.settings import read_settings

settings = read_settings()
"""
_TRANSFORMATION: Final = """
import pulumi

def change(args):
    inputs, options = args.props, args.opts
    if args.type_ == "TYPE":
        STATEMENTS
    return pulumi.ResourceTransformationResult(inputs, options)

pulumi.runtime.register_stack_transformation(change)
"""
_OTHER_SETTINGS: Final = """
import dataclasses

import pulumi
from tpucfg.stack import component
from tpucfg.stack.settings import read_settings

def other_settings():
    settings = read_settings()
    return dataclasses.replace(settings, ARGUMENTS)

component.read_settings = other_settings
"""


class Attack(NamedTuple):
    """A change that makes something worse, as a pull request on a project that `tpucfg init` has written."""

    id: str
    """The name of the test."""
    edit: Edit
    cautions: tuple[str, ...]
    """Texts that the comment must contain above its first fold."""
    status: int = 3
    """The exit status of `tpucfg review --fail-on destructive`."""
    base: Edit | None = None
    """An edit of the base, which is committed before the attack."""
    arguments: tuple[str, ...] = ()
    """Further arguments of `tpucfg review`. The current folder is the repository."""
    absent: tuple[str, ...] = ()
    """Texts that the comment must not contain anywhere, such as secrets."""


def edit(file: str, *replaced: tuple[str, str]) -> Edit:
    """Replace texts in a file; each has to be in it."""
    return lambda repository: repository.edit(*replaced, file=file)


def write(file: str, text: str) -> Edit:
    """Write a file."""

    def apply(repository: Repository) -> None:
        path = repository.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return apply


def write_ignored(file: str, text: str) -> Edit:
    """Write a file that .gitignore names, and add it to the index, as a pull request can."""

    def apply(repository: Repository) -> None:
        write(file, text)(repository)
        repository.git("add", "--force", file)

    return apply


def append(file: str, text: str) -> Edit:
    """Append a text to a file."""
    return lambda repository: write(file, (repository.folder / file).read_text() + text)(repository)


def delete(file: str) -> Edit:
    """Delete a file."""
    return lambda repository: (repository.folder / file).unlink()


def link(file: str, to: str) -> Edit:
    """Replace a file by a symbolic link, or create one."""

    def apply(repository: Repository) -> None:
        path = repository.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to(Path(to))

    return apply


def together(*edits: Edit) -> Edit:
    """Apply several edits, in order."""

    def apply(repository: Repository) -> None:
        for change in edits:
            change(repository)

    return apply


def before_deploy(code: str) -> Edit:
    """Run statements before everything else in the program."""
    return edit(MAIN, (DEPLOY, f"{code}\n{DEPLOY}"))


def declare(code: str) -> Edit:
    """Run statements after all others in the program, such as declarations of further resources."""
    return append(MAIN, f"{_SETTINGS}\n{code}\n")


def transform(type_: str, *statements: str) -> Edit:
    """Change `inputs` and `options` of each resource of a type that the library declares."""
    lines = "\n        ".join(statements)
    return before_deploy(_TRANSFORMATION.replace("TYPE", type_).replace("STATEMENTS", lines))


def other_settings(arguments: str) -> Edit:
    """Replace fields of the `settings` by which the library declares the resources."""
    return before_deploy(_OTHER_SETTINGS.replace("ARGUMENTS", arguments))
