"""Hashes of the program's own files, by which a reader sees that a result is of another version of the program."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from tpucfg.fs import open_regular_file

_MAX_FILE_BYTES: Final = 4 << 20
_DIGITS: Final = 16
"""Hexadecimal digits of a hash in the file of results."""


class ProgramFiles:
    """The files below a spec's folder, each hashed at most once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._hashes: dict[str, str | None] = {}

    def hashes(self, paths: Iterable[str]) -> Mapping[str, str]:
        """Return the hashes of the files that can be read, by path relative to the folder."""
        hashes = {path: self.hash(path) for path in paths}
        return {path: value for path, value in hashes.items() if value}

    def hash(self, path: str) -> str | None:
        """Return the hash of one file; None if it cannot be read, or is too large for a program's file."""
        if path not in self._hashes:
            self._hashes[path] = _hash(self._folder / path)
        return self._hashes[path]


def _hash(path: Path) -> str | None:
    try:
        with open_regular_file(path, follow_links=False) as file:
            content = file.read(_MAX_FILE_BYTES + 1)
    except OSError:
        return None
    if len(content) > _MAX_FILE_BYTES:
        return None
    return hashlib.sha256(content).hexdigest()[:_DIGITS]
