"""The command `tpucfg init`."""

import os
import re
import sys
from pathlib import Path
from shlex import quote
from typing import Annotated, Final

from tpucfg.cli.options import NewTargetOption, argument, choice_option, option
from tpucfg.plan import account_id
from tpucfg.plan.naming import MAX_ACCOUNT_ID_LENGTH
from tpucfg.refusal import RefusalError, UsageError
from tpucfg.render import output_dir
from tpucfg.scaffold import (
    EXAMPLE,
    FORMS,
    IGNORE_FILE,
    TRAINERS,
    UnknownSourceError,
    installed_requirement,
    project_files,
    requirement_of,
    workflow_files,
)
from tpucfg.text_format import printable

_PROJECT_NAME: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_ENVIRONMENT: Final = "prod"
"""The environment of a new project whose names are the longest."""
_MAX_NAME_LENGTH: Final = MAX_ACCOUNT_ID_LENGTH - len(account_id(name="", environment=_ENVIRONMENT))
"""Shorter than the spec allows, because the stack of every environment creates an account with both names."""


def init(
    folder: Annotated[
        Path, argument("[DIR]", "The project's folder. [default: the current one]")
    ] = Path(),
    name: Annotated[
        str | None, option("--name NAME", "The project's name. [default: the folder's]")
    ] = None,
    target: NewTargetOption = None,
    trainer: Annotated[
        str | None,
        choice_option(
            f"--trainer {'|'.join(TRAINERS)}", tuple(TRAINERS), "Add a trainer to start from."
        ),
    ] = None,
    install_from: Annotated[
        str | None,
        option(
            "--install-from ADDRESS",
            "What the workflows install. [default: where tpucfg came from]",
        ),
    ] = None,
    infra: Annotated[
        bool, option("--infra", "Add the Pulumi program and a stack file for each environment.")
    ] = False,
    workflow: Annotated[
        bool, option("--workflow", "Add GitHub workflows for reviews and updates of stacks.")
    ] = False,
    only_workflow: Annotated[
        bool, option("--only-workflow", "Create only the workflows and their actions.")
    ] = False,
) -> None:
    """Create a new project: a spec, and the schema by which an editor completes it; options add the rest.

    The workflows install tpucfg from where it was itself installed, pinned by commit or hash. If that is not known, as
    for a clone, --install-from names an address.

    Example: tpucfg init mnist --target cloud-tpu --trainer jax
    """
    if only_workflow and (name or target or trainer or infra):
        hint = "leave them out, or write --workflow in its place"
        raise UsageError("--only-workflow excludes --name, --target, --trainer and --infra", hint)
    target = target or "gke"
    _check_trainer(trainer, target)
    requirement, reason = _requirement(install_from)
    workflow = workflow or only_workflow or install_from is not None
    if only_workflow and not requirement:
        hint = f"add the commit to install it from: --install-from {EXAMPLE}"
        raise RefusalError(f"the workflows cannot install tpucfg: {reason}", hint)
    files: dict[Path, str] = {}
    if workflow and requirement:
        files |= workflow_files(requirement)
    if not only_workflow:
        name = _project_name(folder, name)
        files |= project_files(
            name=name, target=target, requirement=requirement, trainer=trainer, infra=infra
        )
        if os.path.lexists(folder / IGNORE_FILE):
            files.pop(IGNORE_FILE, None)  # the folder's owner decides what Git ignores there
    for path in _write(folder, files):
        print(f"create {printable(str(folder / path))}", flush=True)
    if workflow:
        _print_workflow_note(folder, reason)
    if infra and not requirement:
        file = folder / "stacks" / "requirements.txt"
        _print_note(f"{file} needs the address to install tpucfg from: {EXAMPLE}")
    if not only_workflow:
        print(f"next: {_cd_command(folder)}tpucfg ladder")


def _print_workflow_note(folder: Path, reason: str) -> None:
    """Print what the workflows of a project lack: `reason` is why they were left out, or empty."""
    if reason:
        _print_note(f"without the workflows, which cannot install tpucfg: {reason}")
        print(f"to add them: {_add_command(folder)}")
    elif root := _repository_above(folder):
        _print_note(
            f"GitHub runs no workflow in {folder / '.github'}: move it to {root / '.github'}, and set its spec input"
        )


def _print_note(text: str) -> None:
    print(f"tpucfg: {printable(text)}", file=sys.stderr)


def _requirement(address: str | None) -> tuple[str, str]:
    """Return what the workflow installs, or an empty text and the reason why that is not known."""
    try:
        return (installed_requirement() if address is None else requirement_of(address)), ""
    except UnknownSourceError as error:
        return "", str(error)
    except ValueError:
        message = f"--install-from {printable(address or '')}: its content could change, or it is no public address"
        raise UsageError(message, f"give one of: {'; '.join(FORMS)}") from None


def _check_trainer(trainer: str | None, target: str) -> None:
    if trainer is not None and target not in TRAINERS[trainer]:
        others = ", ".join(name for name, targets in TRAINERS.items() if target in targets)
        message = f"{target} cannot run the trainer for {trainer}, only that for {others}"
        hint = f"choose --trainer {others}, or one of the targets {', '.join(TRAINERS[trainer])}"
        raise UsageError(message, hint)


def _project_name(folder: Path, given: str | None) -> str:
    """Return the project's name: the given one, or the folder's in lower case with dashes."""
    name = given or re.sub(r"[^a-z0-9]+", "-", _folder_name(folder).lower()).strip("-")
    if not _PROJECT_NAME.fullmatch(name) or len(name) > _MAX_NAME_LENGTH:
        rule = f"a name has 1 to {_MAX_NAME_LENGTH} lower-case letters, digits and dashes, and starts with a letter"
        raise UsageError(f"{name!r} cannot be the project's name: {rule}", "give one with --name")
    return name


def _folder_name(folder: Path) -> str:
    try:
        return folder.absolute().resolve().name
    except (
        OSError,
        RuntimeError,
    ) as error:  # a link to itself, or a current folder that was deleted
        raise RefusalError(f"{folder}: {error}", "choose another folder") from None


def _write(folder: Path, files: dict[Path, str]) -> list[Path]:
    """Write the files that are missing, and return their paths; after an interrupted run, some exist.

    Raises:
        RefusalError: One exists with another content, or cannot be written.
    """
    texts = {path.as_posix(): text for path, text in files.items()}
    changes = output_dir.compare_files(folder, texts)
    if other := [change.path for change in changes if change.kind == "update"]:
        listing = "\n".join(f"  {printable(str(folder / path))}" for path in other)
        raise RefusalError(
            f"these files exist with another content, and nothing was written:\n{listing}",
            "choose another folder",
        )
    output_dir.apply_changes(folder, changes, texts)
    missing = {change.path for change in changes}
    return [path for path in files if path.as_posix() in missing]


def _add_command(folder: Path) -> str:
    """Return the command that adds the workflows to a project."""
    path = "" if folder == Path() else f" {printable(quote(str(folder)))}"
    return f"tpucfg init --only-workflow --install-from {EXAMPLE}{' --' if path.startswith(' -') else ''}{path}"


def _cd_command(folder: Path) -> str:
    """Return the start of a shell command line that changes to the folder."""
    if folder == Path():
        return ""
    path = str(folder)
    return f"cd {printable(quote(f'./{path}' if path.startswith('-') else path))} && "


def _repository_above(folder: Path) -> Path | None:
    """Return the root of the repository that contains the folder; None if there is none, or it is the folder itself."""
    parents = folder.absolute().resolve().parents
    # Git decides what a repository is, but is only started if there is something called .git.
    if not any(os.path.lexists(parent / ".git") for parent in parents):
        return None
    from tpucfg.git.repository import RevisionError, find_repository

    try:
        prefix = find_repository(folder).prefix.parts
    except RevisionError:
        return None
    return Path(os.path.relpath(parents[len(prefix) - 1])) if prefix else None
