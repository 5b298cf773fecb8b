"""File checks that treat unreadable paths as missing, and opening files without waiting for a pipe's writer."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Final

_DESCRIPTOR_PATHS: Final = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
"""Paths of open descriptors, such as a shell's process substitution: such a pipe already has a writer."""


def open_regular_file(path: Path) -> BinaryIO:
    """Open a file for reading, and refuse a pipe or a device, which could block or have no end.

    Raises:
        OSError: It cannot be opened, or is no regular file.
    """
    if str(path).startswith(_DESCRIPTOR_PATHS):
        return path.open("rb")
    # Without O_NONBLOCK, opening a pipe waits for its writer before the type can be checked.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
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
