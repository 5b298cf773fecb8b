"""Atomic writes: stage each file beside its path, so that it can be moved there, and remove leftovers of killed runs.

The module does not use `tempfile`, for three reasons: the path of a staged file must be known before it exists, so that
Ctrl-C leaves no file behind; the file needs the mode of an ordinary file, not 0600; and importing `tempfile` takes
10 ms, a tenth of the time of a render.
"""

import fcntl
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final

_STAGED: Final = ".tpucfg-staged"
_LEFTOVER: Final = re.compile(rf"\..+{re.escape(_STAGED)}-[0-9]+-[0-9]+")
"""The name of a staged file. If no run has the lock, the run that wrote the file was killed."""
_SERIAL: Final = count()


@contextmanager
def output_lock(out: Path, folders: Collection[str]) -> Iterator[None]:
    """Hold a shared lock on an output folder while files below it are written.

    If no other run has the lock, files that killed runs staged in the folders are removed. If the block raises, folders
    that were created here are removed again if they are empty.

    Args:
        out: The output folder.
        folders: The folders below it that files are written to, as paths that start with `out`; missing ones are
            created.

    Raises:
        OSError: A folder cannot be created or opened.
    """
    if not folders:
        yield
        return
    created: set[str] = set()
    with _removing_on_error(created):
        _create(str(out), created)
        descriptor = os.open(out, os.O_RDONLY | os.O_DIRECTORY)
        try:
            # Only an exclusive lock shows that no other run is about to move its staged files.
            is_alone = _try_lock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for folder in folders:
                if not _create(folder, created) and is_alone:
                    _remove_leftovers(folder)
            _try_lock(descriptor, fcntl.LOCK_SH)
            yield
        finally:
            os.close(descriptor)


def staging_path(path: str) -> str:
    """Return a path in the same folder that no other process and no other call uses."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/{staging_name(name)}"


def staging_name(name: str) -> str:
    """Return a name to stage a file of that name with, which no other process and no other call uses."""
    return f".{name}{_STAGED}-{os.getpid()}-{next(_SERIAL)}"


def write_new_file(path: str, text: str) -> None:
    """Create a file with the text, as UTF-8.

    Raises:
        OSError: It cannot be written; a part of it may exist.
    """
    with open(path, "xb") as file:
        file.write(text.encode())


@contextmanager
def _removing_on_error(created: Collection[str]) -> Iterator[None]:
    """Remove the folders that are empty if the block raises, even on Ctrl-C."""
    try:
        yield
    except BaseException:
        for folder in sorted(created, key=len, reverse=True):
            with suppress(OSError):
                os.rmdir(folder)
        raise


def _create(folder: str, created: set[str]) -> bool:
    """Create a folder and its missing parents, and add them to `created`; return False if it exists."""
    # Creating it is cheaper than checking first. It is added before it exists, as Ctrl-C may arrive in between.
    created.add(folder)
    try:
        try:
            os.mkdir(folder)
        except FileNotFoundError:
            if not (parent := os.path.dirname(folder)):
                raise
            _create(parent, created)
            os.mkdir(folder)
    except FileExistsError:
        created.discard(folder)
        return False
    return True


def _try_lock(descriptor: int, operation: int) -> bool:
    try:
        fcntl.flock(descriptor, operation)
    except OSError:  # another run has the lock, or the file system has no locks: no leftover is removed
        return False
    return True


def _remove_leftovers(folder: str) -> None:
    """Remove the files that killed runs staged in a folder."""
    try:
        leftovers = [name for name in os.listdir(folder) if _LEFTOVER.fullmatch(name)]
    except NotADirectoryError:  # the first write into it raises an error with its name
        return
    for name in leftovers:
        Path(folder, name).unlink(missing_ok=True)
