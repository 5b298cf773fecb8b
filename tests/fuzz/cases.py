"""Fuzzing inputs: the contents of a folder, and a seed for random choices. Stored as JSON for replays."""

import json
import os
import shutil
from pathlib import Path
from typing import Final, Literal, NamedTuple, Self

LARGE_FILE_BYTES: Final = 1 << 29
"""Size of a large file in bytes. The file is sparse and takes no disk space, but reading it completely takes memory."""
_NESTED_FOLDER: Final = "1/2/3/4"
"""Deeper than any `..` in a link or path of an input leads up."""
EntryType = Literal["file", "folder", "link", "pipe", "large"]


class Entry(NamedTuple):
    """One entry of a folder."""

    path: str
    sort: EntryType
    content: bytes = b""
    """Content of a file, or target of a link."""


class Case(NamedTuple):
    """One input."""

    kind: str
    """The name of the kind in `kinds.KINDS`."""
    seed: int
    entries: tuple[Entry, ...]
    words: tuple[str, ...] = ()
    """Arguments of the command, if they are the input."""

    def to_json(self) -> str:
        """Return the input as JSON, with bytes as Latin-1 characters, so that text stays readable."""
        entries = [
            (path, type_, content.decode("latin-1")) for path, type_, content in self.entries
        ]
        return json.dumps(self._asdict() | {"entries": entries}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the input from its JSON."""
        data = json.loads(text)
        entries = tuple(
            Entry(path, type_, content.encode("latin-1"))
            for path, type_, content in data["entries"]
        )
        return cls(data["kind"], data["seed"], entries, tuple(data["words"]))

    def lay_out(self, base: Path) -> Path:
        """Write the entries into a folder deep in `base`, so that links out of it stay in `base`; return the folder.

        Skip entries behind a link that leads out of `base`: no file is created outside of it.
        """
        for old in list(base.iterdir()):
            _remove(old)
        folder = base / _NESTED_FOLDER
        folder.mkdir(parents=True)
        for path, type_, content in self.entries:
            location = folder / path
            try:
                if not location.parent.resolve().is_relative_to(base.resolve()):
                    continue
                location.parent.mkdir(parents=True, exist_ok=True)
                _make(location, type_, content)
            except (OSError, RuntimeError):
                continue  # the entry conflicts with an earlier one, or its name is invalid
        return folder


def _make(location: Path, type_: EntryType, content: bytes) -> None:
    if type_ == "folder":
        location.mkdir(exist_ok=True)
    elif type_ == "link":
        location.symlink_to(os.fsdecode(content))
    elif type_ == "pipe":
        os.mkfifo(location)
    elif type_ == "large":
        with location.open("xb") as file:
            file.truncate(LARGE_FILE_BYTES)
    else:
        with location.open("xb") as file:
            file.write(content)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
