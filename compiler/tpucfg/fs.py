"""What a path leads to. One that cannot be followed, whose name is too long say, leads to nothing."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Final

_DESCRIPTORS: Final = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
"""Where a shell puts the pipe of a program that it has started, so that somebody writes into it."""


def open_regular_file(path: Path) -> BinaryIO:
    """The file, to read from. What is no file, a pipe say, is refused: to open it could wait for ever.

    Raises:
        OSError: It cannot be opened, or is no regular file.
    """
    if str(path).startswith(_DESCRIPTORS):
        return path.open("rb")
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # a folder says itself what it is
        os.close(descriptor)
        raise OSError(0, "it is a pipe or a device, and no file")
    try:
        return os.fdopen(descriptor, "rb")
    except OSError:
        os.close(descriptor)
        raise


def is_file(path: Path) -> bool:
    """Whether there is a file that can be seen."""
    try:
        return path.is_file()
    except OSError:
        return False


def is_directory(path: Path) -> bool:
    """Whether there is a folder that can be seen."""
    try:
        return path.is_dir()
    except OSError:
        return False


def sorted_glob(folder: Path, pattern: str) -> Sequence[Path]:
    """The paths in a folder, by name; none where it cannot be read."""
    try:
        return sorted(folder.glob(pattern))
    except OSError:
        return ()
