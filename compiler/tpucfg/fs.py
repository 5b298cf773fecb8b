"""Files: checks that treat unreadable paths as missing, opening without waiting for a pipe, and atomic replacement.

A file is replaced by staging its new content beside it and moving that to its path. The module does not use `tempfile`,
for three reasons: the path of a staged file must be known before it exists, so that Ctrl-C leaves no file behind; it
needs the mode of an ordinary file, not 0600; and importing `tempfile` takes 10 ms, a tenth of the time of a render.
"""

import errno
import os
import re
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import BinaryIO, Final

_DESCRIPTOR_PATHS: Final = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
"""Paths of open descriptors, such as a shell's process substitution: such a pipe already has a writer."""
_STAGED: Final = ".tpucfg-staged"
_LEFTOVER: Final = rf"\..+{re.escape(_STAGED)}-[0-9]+-[0-9]+"
"""The name of a staged file. If no run has the lock, the run that wrote the file was killed."""
_SERIAL: Final = count()
_HELP: Final = (
    "check the free space, its permissions, and that it is a file in a folder, without links"
)


def open_regular_file(path: Path, *, follow_links: bool = True) -> BinaryIO:
    """Open a file for reading, and refuse a pipe or a device, which could block or have no end.

    Args:
        path: the file.
        follow_links: False to refuse a path that is a symbolic link; links among its folders are followed.

    Raises:
        OSError: It cannot be opened, or is no regular file.
    """
    if str(path).startswith(_DESCRIPTOR_PATHS):
        return path.open("rb")
    # Without O_NONBLOCK, opening a pipe waits for its writer before the type can be checked.
    descriptor = os.open(
        path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow_links else os.O_NOFOLLOW)
    )
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(
        mode
    ):  # fdopen raises an exact error for a folder
        os.close(descriptor)
        raise OSError(0, "it is a pipe or a device, not a file")
    try:
        return os.fdopen(descriptor, "rb")
    except OSError:
        os.close(descriptor)
        raise


def read_result_file(path: Path, max_bytes: int) -> bytes:
    """Return the bytes of a file in a spec's folder of results, up to one more than a limit.

    A link in a checkout could lead anywhere on the machine: neither the file nor its folder may be one.

    Raises:
        OSError: It is missing, or cannot be read.
    """
    refuse_links(path)
    with open_regular_file(path, follow_links=False) as file:
        return file.read(max_bytes + 1)


def refuse_links(path: Path) -> None:
    """Raise OSError if a file or its folder is a symbolic link; only the spec's own folder may be one."""
    if path.is_symlink() or path.parent.is_symlink():
        raise OSError(errno.ELOOP, "it or its folder is a symbolic link, which is not followed")


def explain_error(error: OSError) -> tuple[str, str]:
    """Return the cause of an error about a file in the system's words, and a help line."""
    reason = error.strerror or str(error)
    return f"{reason[:1].lower()}{reason[1:]}", _HELP


def is_file(path: Path) -> bool:
    """Return True if the path is a file; False also if the path cannot be followed."""
    return os.path.isfile(path)  # a path's own method raises an error before Python 3.14


def is_directory(path: Path) -> bool:
    """Return True if the path is a folder; False also if the path cannot be followed."""
    return os.path.isdir(path)  # a path's own method raises an error before Python 3.14


def sorted_glob(folder: Path, pattern: str) -> Sequence[Path]:
    """Return the matching paths below a folder, sorted; none if the folder cannot be read."""
    try:
        return sorted(folder.glob(pattern))
    except OSError:
        return ()


def walk_files(folder: str, suffixes: tuple[str, ...]) -> Iterator[str]:
    """Yield the paths of files below a folder, relative to it: sorted, the files of a folder before its subfolders.

    Symbolic links, hidden files and hidden folders are skipped, so no file outside the folder is found.

    Raises:
        OSError: A folder cannot be read; its `filename` is the folder.
    """
    pending = [""]
    while pending:
        prefix = pending.pop()
        folders, files = [], []
        # Entries know their type, so that a tree of thousands of files needs no further call for each of them.
        with os.scandir(f"{folder}/{prefix}") as entries:
            for entry in entries:
                name = entry.name
                if name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append(f"{prefix}{name}/")
                elif name.endswith(suffixes) and not entry.is_symlink():
                    files.append(f"{prefix}{name}")
        yield from sorted(files)
        pending += sorted(folders, reverse=True)


def has_equal_bytes(path: str, other: str, max_bytes: int) -> bool:
    """Return True if two regular files have equal bytes; False also if one cannot be read or is too large."""
    try:
        first = _whole_bytes(path, max_bytes)
        return first is not None and first == _whole_bytes(other, max_bytes)
    except OSError:
        return False


def _whole_bytes(path: str, max_bytes: int) -> bytes | None:
    """Return the bytes of a regular file; None for a larger or another one, or if it changes while it is read."""
    # A comparison of large trees mostly opens files: a Python file object would take twice the time.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > max_bytes:
            return None
        data = os.read(descriptor, status.st_size + 1)
        return data if len(data) == status.st_size else None
    finally:
        os.close(descriptor)


@contextmanager
def output_lock(out: Path, folders: Collection[str]) -> Iterator[None]:
    """Hold the lock on an output folder while files below it are written, and create the folders that are missing.

    Files that killed runs staged in the folders are removed: no other run has the lock, and with it a staged file.

    Args:
        out: The output folder.
        folders: The folders below it that files are written to, as paths that start with `out`.

    Raises:
        OSError: A folder cannot be created or opened.
    """
    import fcntl  # most commands write nothing

    existing = {folder for folder in folders if os.path.isdir(folder)}
    for folder in (str(out), *folders):
        if folder not in existing:
            os.makedirs(folder, exist_ok=True)
    descriptor = os.open(out, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # the file system has no locks: no leftover is removed
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            for folder in existing:
                for name in os.listdir(folder):
                    if re.fullmatch(_LEFTOVER, name):
                        os.unlink(f"{folder}/{name}")
        yield
    finally:
        os.close(descriptor)


@contextmanager
def staged_files() -> Iterator[Callable[[str], BinaryIO]]:
    """Yield a function that opens a new file beside a path; when the block ends, all files are moved to their paths.

    All files are staged before the first is moved. If the block raises, even on Ctrl-C, the staged files are removed.
    """
    paths: dict[str, str] = {}

    def stage(path: str) -> BinaryIO:
        staged = _staging_path(path)
        paths[staged] = path  # added before the file exists, as Ctrl-C may arrive in between
        return open(staged, "xb")

    try:
        yield stage
        for staged in list(paths):
            os.replace(staged, paths[staged])
            del paths[staged]
    finally:
        for staged in paths:
            with suppress(FileNotFoundError):
                os.unlink(staged)


def _staging_path(path: str) -> str:
    """Return a path in the same folder that no other process and no other call uses."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}{_STAGED}-{os.getpid()}-{next(_SERIAL)}"
