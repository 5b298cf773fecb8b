"""Files that options of `tpucfg review` name as ENV=FILE: what another tool printed about an environment."""

import errno
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Final

from tpucfg.cli.exit_codes import ERRORS, USAGE, CommandExit
from tpucfg.fs import open_regular_file
from tpucfg.git.repository import find_repository
from tpucfg.text_format import printable

# As in the schema of the spec: the name is part of file names and of the comment.
_ENVIRONMENT_NAME: Final = r"[a-z]([-a-z0-9]{0,28}[a-z0-9])?"


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
