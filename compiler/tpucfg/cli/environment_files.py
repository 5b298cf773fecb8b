"""Files that options of `tpucfg review` name: previews as ENV=FILE, and results of the same run as [FOLDER=]FILE."""

import errno
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

from tpucfg.cli.exit_codes import ERRORS, USAGE, CommandExit
from tpucfg.fs import open_regular_file
from tpucfg.git.repository import find_repository
from tpucfg.text_format import printable

if TYPE_CHECKING:
    from tpucfg.changes.revision_fits import RunFits

# As in the schema of the spec: the name is part of file names and of the comment.
_ENVIRONMENT_NAME: Final = r"[a-z]([-a-z0-9]{0,28}[a-z0-9])?"

ONLY: Final = ""
"""The name of a file without a folder: it belongs to the only spec, or to the one at the root."""


def parse_environment_files(options: Sequence[str], option: str) -> dict[str, Path]:
    """Return the files from the values of an option, by environment, or by `FOLDER/ENV` for a spec in a folder.

    Raises:
        CommandExit: A value has another form, or an environment has two files.
    """
    files: dict[str, Path] = {}
    for value in options:
        name, _, file = value.partition("=")
        if not name or not file:
            raise CommandExit(USAGE, f"{option} {value}: it takes ENV=FILE", f"for example: {option} dev=dev.jsonl")
        folder, _, environment = name.rpartition("/")
        if not re.fullmatch(_ENVIRONMENT_NAME, environment) or ".." in folder.split("/"):
            raise CommandExit(USAGE, f"{option} {name}=…: {name} is not a valid name of an environment")
        if name in files:
            raise CommandExit(USAGE, f"{option} {name}=… is given twice")
        files[name] = Path(file)
    return files


def read_environment_files(files: Mapping[str, Path], max_bytes: int, command: str) -> dict[str, bytes]:
    """Return at most `max_bytes` of each file, under the names of `files`.

    Args:
        files: the file of each environment.
        max_bytes: the limit for the content of one file.
        command: a command that writes such a file, for messages.

    Raises:
        CommandExit: A file cannot be read, or is a link.
    """
    contents = {}
    for environment, path in files.items():
        try:
            with open_regular_file(path, follow_links=False) as file:
                contents[environment] = file.read(max_bytes)
        except OSError as error:
            raise CommandExit(ERRORS, _reason(path, error), f"write it with: {command}") from None
    return contents


def require_independent_files(files: Mapping[str, Path], folder: Path, head: str | None) -> None:
    """Refuse files that are part of the change under review: its author decides what they contain.

    Args:
        files: the file of each environment.
        folder: a folder of the repository under review.
        head: the revision under review; None for the working tree.

    Raises:
        CommandExit: A file is part of the change.
        RevisionError: The repository or the revision cannot be read.
    """
    repository = find_repository(folder)
    for path in files.values():
        if repository.tracks(path, head):
            message = f"{path} is part of the change under review, so it proves nothing about that change"
            command = f"git rm --cached {quote(printable(str(path)))}"
            raise CommandExit(ERRORS, message, f"write it to a file that is not committed, or remove it: {command}")


def _reason(path: Path, error: OSError) -> str:
    if error.errno == errno.ELOOP and path.is_symlink():
        return f"{path} is a symbolic link, through which the comment could show any file of this machine"
    return f"{path}: {error.strerror or error}"


def read_run_fits(options: Sequence[str], folder: Path, head: str | None) -> "Mapping[str, RunFits]":
    """Return the results by the folder of their spec, each read within its limits before any program runs.

    A file that is missing or cannot be read is no error here: the job that writes it runs the change, and may fail.

    Args:
        options: The values of the option, `[FOLDER=]FILE`.
        folder: A folder of the repository under review.
        head: The revision under review; None for the working tree.

    Raises:
        CommandExit: A value has another form, or its file is part of the change.
        RevisionError: The repository or the revision cannot be read.
    """
    files = _parse_fit_files(options)
    require_independent_files(files, folder, head)
    return {name: _read_fits(path) for name, path in files.items()}


def _parse_fit_files(options: Sequence[str]) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for value in options:
        given, separator, file = value.partition("=")
        if not separator:
            given, file = "", value
        if not file or (separator and not given):
            message = f"--fit {printable(value)}: it takes FILE or FOLDER=FILE"
            raise CommandExit(USAGE, message, "for example: --fit projects/mnist=fit.json")
        if given.startswith("/") or ".." in given.split("/"):
            raise CommandExit(USAGE, f"--fit {printable(given)}=…: a folder is relative to the root of the repository")
        name = os.path.normpath(given) if separator else ONLY
        if name in files:
            raise CommandExit(USAGE, f"--fit {printable(value)}: this folder has another file already", "give one file")
        files[name] = Path(file)
    return files


def _read_fits(path: Path) -> "RunFits":
    from tpucfg.changes.revision_fits import RunFits
    from tpucfg.fit.fit_file import read_fit_file

    file = read_fit_file(path, is_trusted=True)
    if file.findings:
        return RunFits(file, file.findings[0].message)
    # Only the file's name: its folder differs between machines, but equal reviews must have equal text.
    return RunFits(file, "" if os.path.lexists(path) else f"its job has left no {path.name}")
