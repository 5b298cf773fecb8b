"""The files of a commit into a folder: regular files alone, bounded in size and number, none above the folder."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from tpucfg.git.repository import GitError, Repository, RevisionError, split_nul

MAX_FILE_BYTES: Final = 1 << 20
"""Bytes, as for a spec; a program's own source is far smaller."""
MAX_EXPORT_BYTES: Final = 1 << 26
"""Bytes of all files together."""
MAX_FILES: Final = 5_000
_REGULAR: Final = (b"100644", b"100755")
"""Modes; a symbolic link is 120000 and a submodule 160000."""


class TreeEntry(NamedTuple):
    """A file of a commit."""

    path: PurePosixPath
    """As seen from the repository's root."""
    regular: bool
    id: str
    size: int


def list_entries(
    repository: Repository, commit: str, paths: Sequence[PurePosixPath], *, below: bool
) -> Iterator[TreeEntry]:
    """The files at these paths, and, where asked for, in the folders below them.

    Raises:
        GitError: The commit cannot be read.
    """
    asked = [f"{path}" if path.parts else "." for path in paths]
    listing = repository.git(
        "ls-tree",
        *(["-r"] if below else []),
        "-l",
        "-z",
        "--full-tree",
        commit,
        "--",
        *(it for it in asked if it != "."),
    )
    for line in split_nul(listing):
        described, _, name = line.partition(b"\t")
        mode, kind, id_, size = described.split()
        path = PurePosixPath(os.fsdecode(name))
        if kind == b"blob" and _is_inside(path):
            yield TreeEntry(path, mode in _REGULAR, id_.decode(), int(size))


def export_files(repository: Repository, found: Iterable[TreeEntry], folder: Path) -> int:
    """Writes the regular files below the folder, and says how many of them were too many or too large.

    Raises:
        RevisionError: They cannot be read or written.
    """
    chosen: list[TreeEntry] = []
    room = MAX_EXPORT_BYTES
    left_out = 0
    for entry in found:
        if entry.regular:
            fits = entry.size <= MAX_FILE_BYTES and entry.size <= room and len(chosen) < MAX_FILES
            left_out += not fits
            chosen += [entry] if fits else []
            room -= entry.size if fits else 0
    if chosen:
        contents = _contents(repository, chosen)
        for entry, content in zip(chosen, contents, strict=True):
            _write(folder / entry.path, content)
    return left_out


def _contents(repository: Repository, chosen: Sequence[TreeEntry]) -> Iterator[bytes]:
    """The contents in order; git writes each behind a line that ends in its size, and a line break after it."""
    output = repository.git("cat-file", "--batch", given="".join(f"{entry.id}\n" for entry in chosen).encode())
    at = 0
    for entry in chosen:
        start = output.find(b"\n", at) + 1
        header = output[at:start].split()
        if len(header) != 3 or int(header[2]) != entry.size:  # noqa: PLR2004 - id, type, size
            raise GitError(f"git cat-file: {entry.path} is missing from this clone")
        yield output[start : start + entry.size]
        at = start + entry.size + 1


def _write(place: Path, content: bytes) -> None:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("xb") as file:
            file.write(content)
    except FileExistsError:
        return  # the second of two paths that lead to one file
    except OSError as error:
        raise RevisionError(f"{place.name} cannot be copied to compare it: {error.strerror or error}") from None


def _is_inside(path: PurePosixPath) -> bool:
    """Whether a path stays below the folder: git refuses to make another, and a hostile repository may hold one."""
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts and "\\" not in path.name
