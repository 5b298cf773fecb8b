"""`tpucfg init`."""

import os
import re
import sys
from pathlib import Path
from shlex import quote
from typing import Annotated, Final

import typer

from tpucfg.cli.exit_codes import ERRORS, USAGE, CommandExit
from tpucfg.cli.options import NewTargetOption
from tpucfg.render import output_dir as tree
from tpucfg.scaffold import TRAINERS, files
from tpucfg.text_format import printable

_NAME: Final = re.compile(r"[a-z]([-a-z0-9]{0,28}[a-z0-9])?")


def _trainer(value: str | None) -> str | None:
    if value is not None and value not in TRAINERS:
        raise typer.BadParameter(f"there is no trainer for {value}; there are: {', '.join(TRAINERS)}")
    return value


def init(
    folder_: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="The project's folder.", show_default=False)
    ] = Path(),
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="The project's name. [default: the folder's]")
    ] = None,
    target: NewTargetOption = None,
    trainer: Annotated[
        str | None,
        typer.Option(
            "--trainer",
            metavar="FRAMEWORK",
            help=f"Begin with a trainer for MNIST, in trainer/: {' or '.join(TRAINERS)}.",
            callback=_trainer,
            autocompletion=lambda: list(TRAINERS),
        ),
    ] = None,
) -> None:
    """Write a new project: its spec, its Pulumi program and stacks, schemas for the editor, a workflow that checks it.

    Example: tpucfg init mnist --target cloud-tpu --trainer jax
    """
    target = target or "vertex-ai"
    _runs(trainer, target)
    made = dict(files(name=_name(folder_, name), target=target, trainer=trainer))
    there = [path for path in made if os.path.lexists(folder_ / path)]
    if there:
        listed = "\n".join(f"  {printable(str(folder_ / path))}" for path in there)
        raise CommandExit(ERRORS, f"these files exist, and nothing was written:\n{listed}", "choose another folder")
    try:
        texts = {path.as_posix(): text for path, text in made.items()}
        tree.apply_changes(folder_, tree.compare_files(folder_, texts), texts)
    except tree.OutputError as error:
        raise CommandExit(ERRORS, str(error), error.help) from None
    for path in made:
        print(f"create {printable(str(folder_ / path))}", flush=True)
    if above := _repository_above(folder_):
        said = f"GitHub runs no workflow in {folder_ / '.github'}: move it to {above / '.github'}, and give it the spec"
        print(f"tpucfg: {printable(said)}", file=sys.stderr)
    print(f"next: {_enter(folder_)}tpucfg ladder")


def _enter(folder_: Path) -> str:
    """The beginning of a command line that goes there first, for whoever pastes it."""
    if folder_ == Path():
        return ""
    there = str(folder_)
    return f"cd {printable(quote(f'./{there}' if there.startswith('-') else there))} && "


def _repository_above(folder_: Path) -> Path | None:
    """The root of the repository that the folder is a part of; None where it is none, or the root itself.

    Git says what is a repository: something called .git is soon there that is none. It is asked where there is one.
    """
    above = folder_.absolute().resolve().parents
    if not any(os.path.lexists(folder / ".git") for folder in above):
        return None
    from tpucfg.git.repository import RevisionError, find_repository

    try:
        below = find_repository(folder_).prefix.parts
    except RevisionError:
        return None
    return Path(os.path.relpath(above[len(below) - 1])) if below else None


def _runs(trainer: str | None, target: str) -> None:
    if trainer is not None and target not in TRAINERS[trainer]:
        others = ", ".join(name for name, targets in TRAINERS.items() if target in targets)
        message = f"{target} does not run the trainer for {trainer}, but that for {others}"
        raise CommandExit(
            USAGE, message, f"choose --trainer {others}, or one of the targets {', '.join(TRAINERS[trainer])}"
        )


def _name(folder_: Path, given: str | None) -> str:
    name = given or re.sub(r"[^a-z0-9]+", "-", _called(folder_).lower()).strip("-")
    if not _NAME.fullmatch(name):
        rule = "a name has 1 to 30 lower-case letters, digits and dashes, and starts with a letter"
        raise CommandExit(USAGE, f"{name!r} cannot be the project's name: {rule}", "give one with --name")
    return name


def _called(folder_: Path) -> str:
    try:
        return folder_.absolute().resolve().name
    except (OSError, RuntimeError) as error:  # of a link that leads to itself, and where the current folder is gone
        raise CommandExit(ERRORS, f"{folder_}: {error}", "choose another folder") from None
