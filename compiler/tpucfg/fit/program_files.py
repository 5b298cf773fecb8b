"""Hashes of the program's own files, by which a reader sees that a result is of another version of the program."""

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from tpucfg.fs import open_regular_file

MAX_FILE_BYTES: Final = 4 << 20
"""The limit for one file; source code is far smaller."""
_MAX_TOTAL_BYTES: Final = 256 << 20
"""The limit for all files of a folder: a written file of results could name one large file by thousands of paths."""
_DIGITS: Final = 16
"""Hexadecimal digits of a hash in the file of results."""


class ProgramFiles:
    """The files below a spec's folder, each hashed at most once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._hashes: dict[str, str | None] = {}
        self._remaining_bytes = _MAX_TOTAL_BYTES

    def hashes(self, paths: Iterable[str]) -> Mapping[str, str]:
        """Return the hashes of the files that can be read, by path relative to the folder."""
        hashes = {path: self.hash(path) for path in paths}
        return {path: value for path, value in hashes.items() if value}

    def hash(self, path: str) -> str | None:
        """Return the hash of one file; None if it cannot be read, or is too large for a program's file."""
        if path not in self._hashes:
            content = _content(self._folder / path) if self._remaining_bytes > 0 else None
            self._remaining_bytes -= len(content or b"")
            self._hashes[path] = None if content is None else content_hash(content)
        return self._hashes[path]


def _content(path: Path) -> bytes | None:
    """Return the content of a file, or the target of a link; a result has the target's file as well."""
    try:
        if path.is_symlink():
            return os.fsencode(path.readlink())
        with open_regular_file(path, follow_links=False) as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError:
        return None
    return None if len(content) > MAX_FILE_BYTES else content


def content_hash(content: bytes) -> str:
    """Return the hash of a file's content, as the file of results has it."""
    return hashlib.sha256(content).hexdigest()[:_DIGITS]
