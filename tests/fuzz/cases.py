"""An input: what lies in a folder, and a number for the choices made while it is tried. As JSON, to be tried again."""

import json
import os
import shutil
from pathlib import Path
from typing import Final, Literal, NamedTuple, Self

LARGE: Final = 1 << 29
"""Bytes of a large file; as they are all zero it takes no room, but whoever reads it whole does."""
_DEEP: Final = "1/2/3/4"
"""As many folders as a link or a name of any kind goes up, and one more."""
Sort = Literal["file", "folder", "link", "pipe", "large"]


class Entry(NamedTuple):
    """One thing in a folder."""

    path: str
    sort: Sort
    content: bytes = b""
    """Of a file; of a link, where it leads."""


class Case(NamedTuple):
    """One input."""

    kind: str
    """The name of the kind in `kinds.KINDS`."""
    salt: int
    entries: tuple[Entry, ...]
    words: tuple[str, ...] = ()
    """Arguments of the command, where they are what is tried."""

    def to_json(self) -> str:
        """Bytes as the characters of the same numbers, so that what is plain can be read."""
        entries = [(path, sort, content.decode("latin-1")) for path, sort, content in self.entries]
        return json.dumps(self._asdict() | {"entries": entries}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The input that was written."""
        data = json.loads(text)
        entries = tuple(Entry(path, sort, content.encode("latin-1")) for path, sort, content in data["entries"])
        return cls(data["kind"], data["salt"], entries, tuple(data["words"]))

    def lay_out(self, base: Path) -> Path:
        """The folder that holds this and nothing else, deep in another folder: what leads out of it leads into that.

        An entry behind a link that leads out of both is left out: nothing is made where it leads.
        """
        for old in list(base.iterdir()):
            _remove(old)
        folder = base / _DEEP
        folder.mkdir(parents=True)
        for path, sort, content in self.entries:
            location = folder / path
            try:
                if not location.parent.resolve().is_relative_to(base.resolve()):
                    continue
                location.parent.mkdir(parents=True, exist_ok=True)
                _make(location, sort, content)
            except (OSError, RuntimeError):
                continue  # two entries exclude each other, or the name is none: what was first stays
        return folder


def _make(location: Path, sort: Sort, content: bytes) -> None:
    if sort == "folder":
        location.mkdir(exist_ok=True)
    elif sort == "link":
        location.symlink_to(os.fsdecode(content))
    elif sort == "pipe":
        os.mkfifo(location)
    elif sort == "large":
        with location.open("xb") as file:
            file.truncate(LARGE)
    else:
        with location.open("xb") as file:
            file.write(content)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
