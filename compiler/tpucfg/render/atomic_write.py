"""Files that are written whole beside their places before they are moved there, and what a killed run left of them."""

import fcntl
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final

_STAGED: Final = ".tpucfg-staged"
_LEFT: Final = re.compile(rf"\..+{re.escape(_STAGED)}-[0-9]+-[0-9]+")
"""The name of a staged file: one that nobody is about to move was left by a run that was killed."""
_SERIAL: Final = count()


@contextmanager
def output_lock(out: Path, folders: Collection[str]) -> Iterator[None]:
    """Whoever writes below a folder shares a lock on it; who finds nobody else there tidies up where it writes first.

    Where something goes wrong, the folders that were made here are taken away again, if they are empty.

    Args:
        out: the folder.
        folders: those below it that files are written to, from where `out` is seen; made where they are missing.

    Raises:
        OSError: A folder cannot be made or opened.
    """
    if not folders:
        yield
        return
    made: set[str] = set()
    with _taken_away(made):
        _make(str(out), made)
        folder = os.open(out, os.O_RDONLY | os.O_DIRECTORY)
        try:
            alone = _locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for place in folders:
                if not _make(place, made) and alone:
                    _tidy(place)
            _locked(folder, fcntl.LOCK_SH)
            yield
        finally:
            os.close(folder)


def staging_path(place: str) -> str:
    """Where a file is written before it is moved into its place: a path that nobody else makes."""
    folder, _, name = place.rpartition("/")
    return f"{folder}/.{name}{_STAGED}-{os.getpid()}-{next(_SERIAL)}"


def write_new_file(path: str, text: str) -> None:
    """A new file with all of the text.

    Raises:
        OSError: It cannot be written; a part of it may be there.
    """
    with open(path, "xb") as file:
        file.write(text.encode())


@contextmanager
def _taken_away(made: Collection[str]) -> Iterator[None]:
    """Of the folders that were made, those that are empty, unless all went well."""
    try:
        yield
    except BaseException:
        for folder in sorted(made, key=len, reverse=True):
            with suppress(OSError):
                os.rmdir(folder)
        raise


def _make(folder: str, made: set[str]) -> bool:
    """Makes the folder, with those above it; whether it was missing. To try costs less than to look first."""
    made.add(folder)  # before it is there, as Ctrl-C may come in between
    try:
        try:
            os.mkdir(folder)
        except FileNotFoundError:
            if not (above := os.path.dirname(folder)):
                raise
            _make(above, made)
            os.mkdir(folder)
    except FileExistsError:
        made.discard(folder)
        return False
    return True


def _locked(folder: int, how: int) -> bool:
    try:
        fcntl.flock(folder, how)
    except OSError:  # others are at work; or the file system has no locks, and then nothing is tidied up
        return False
    return True


def _tidy(folder: str) -> None:
    """Takes away what a run that was killed had staged in a folder."""
    try:
        left = [name for name in os.listdir(folder) if _LEFT.fullmatch(name)]
    except NotADirectoryError:  # to be refused by whoever writes into it
        return
    for name in left:
        Path(folder, name).unlink(missing_ok=True)
