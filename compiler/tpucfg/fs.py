"""File checks that treat unreadable paths as missing, and opening files without waiting for a pipe's writer."""

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

_DESCRIPTOR_PATHS: Final = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
"""Paths of open descriptors, such as a shell's process substitution: such a pipe already has a writer."""


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
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow_links else os.O_NOFOLLOW))
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # fdopen raises an exact error for a folder
        os.close(descriptor)
        raise OSError(0, "it is a pipe or a device, not a file")
    try:
        return os.fdopen(descriptor, "rb")
    except OSError:
        os.close(descriptor)
        raise


def is_file(path: Path) -> bool:
    """Return True if the path is a file; False also if the path cannot be followed."""
    try:
        return path.is_file()
    except OSError:
        return False


def is_directory(path: Path) -> bool:
    """Return True if the path is a folder; False also if the path cannot be followed."""
    try:
        return path.is_dir()
    except OSError:
        return False


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
        content = _small_content(path, max_bytes)
        return content is not None and content == _small_content(other, max_bytes)
    except OSError:
        return False


def _small_content(path: str, max_bytes: int) -> bytes | None:
    """Return the bytes of a regular file; None if it is none, or is larger, or changes while it is read."""
    # Without file objects, comparing two trees of thousands of files takes half the time.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > max_bytes:
            return None
        content = os.read(descriptor, status.st_size + 1)
        return content if len(content) == status.st_size else None
    finally:
        os.close(descriptor)
