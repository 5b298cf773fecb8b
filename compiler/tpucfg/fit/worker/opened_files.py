"""The files below the spec's folder that the user's program opens for reading, such as the JSON of a model's shape."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Any, Final

from step_error import relative

MAX_FILES: Final = 1000
"""A program that reads more is reading data."""
MAX_FILE_BYTES: Final = 4 << 20
"""The largest file that tpucfg hashes."""
_MAX_SEEN: Final = 100_000
"""Files of which the first opening is remembered."""
MAX_TOTAL_BYTES: Final = 64 << 20
"""Each command that reads a result hashes all of its files."""
_RESULTS: Final = "results"
_WRITES: Final = os.O_TRUNC | os.O_APPEND


class OpenedFiles:
    """Records files by an audit hook, which sees each `open` of Python, and none of native code or other processes.

    The first opening of a file decides: one that the program has written itself is no input of it.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._environment = environment_prefix(folder)
        self._remaining_files = MAX_FILES
        self._remaining_bytes = MAX_TOTAL_BYTES
        self._is_input: dict[str, bool] = {}
        self._is_recording = True
        sys.addaudithook(self._hook)

    def stop(self) -> list[str]:
        """Record no more, and return the files that were read, relative to the folder, in the order of opening."""
        self._is_recording = False
        return [name for name, is_input in self._is_input.items() if is_input]

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if event != "open" or not self._is_recording or len(self._is_input) >= _MAX_SEEN:
            return
        with contextlib.suppress(Exception):  # it would be an error of the user's `open`
            self._record(os.path.abspath(os.fsdecode(args[0])), args[2])

    def _record(self, path: str, flags: int) -> None:
        is_written = bool(flags & _WRITES) or flags & os.O_ACCMODE == os.O_WRONLY
        if not is_written and not Path(path).is_file():
            return
        # A link and its target are two files: either may change.
        for file in dict.fromkeys((path, os.path.realpath(path))):
            name = relative(file, self._folder)
            if name and name not in self._is_input and self._is_programs(file, name):
                self._is_input[name] = not is_written and self._is_affordable(file)

    def _is_programs(self, path: str, name: str) -> bool:
        """Return false for a file of the virtual environment, of the results, in a cache, or hidden.

        A hidden file such as .env may have a secret, of which a committed hash would be a hint.
        """
        if self._environment and path.startswith(self._environment):
            return False
        first, *others = parts = name.split("/")
        is_result = bool(others) and first == _RESULTS
        return not is_result and not any(part.startswith(".") or part == "__pycache__" for part in parts)

    def _is_affordable(self, path: str) -> bool:
        size = os.lstat(path).st_size
        if not self._remaining_files or size > min(MAX_FILE_BYTES, self._remaining_bytes):
            return False
        self._remaining_files -= 1
        self._remaining_bytes -= size
        return True


def environment_prefix(folder: str) -> str | None:
    """Return the start of the paths of a virtual environment below the folder; None if it is elsewhere."""
    prefix = os.path.abspath(sys.prefix)
    return prefix + os.sep if relative(prefix, folder) not in (None, ".") else None
