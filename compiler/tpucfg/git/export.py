"""Export files of a commit to a folder: regular files only, limited in size and number, never outside the folder."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from tpucfg.git.repository import GitError, Repository, RevisionError, split_nul

MAX_FILE_BYTES: Final = 1 << 20
"""The limit that a spec has too; source files of a stack program are far smaller."""
MAX_EXPORT_BYTES: Final = 1 << 26
"""The limit for all files together."""
MAX_FILES: Final = 5_000
_REGULAR_MODES: Final = (b"100644", b"100755")
"""A symbolic link has the mode 120000, a submodule 160000."""


class TreeEntry(NamedTuple):
    """A file of a commit."""

    path: PurePosixPath
    """Relative to the root of the repository."""
    is_regular: bool
    id: str
    size: int


def list_entries(
    repository: Repository, commit: str, paths: Sequence[PurePosixPath], *, recursive: bool
) -> Iterator[TreeEntry]:
    """Yield the files of a commit at the given paths; with `recursive`, also the files below those that are folders.

    Raises:
        GitError: The commit cannot be read.
    """
    # The root of the repository has no path in ls-tree: it is listed when no path is given.
    pathspecs = [str(path) for path in paths if path.parts]
    options = ["-r"] if recursive else []
    listing = repository.git("ls-tree", *options, "-l", "-z", "--full-tree", commit, "--", *pathspecs)
    for line in split_nul(listing):
        description, _, name = line.partition(b"\t")
        mode, kind, id_, size = description.split()
        path = PurePosixPath(os.fsdecode(name))
        if kind == b"blob" and _is_inside(path):
            yield TreeEntry(path, mode in _REGULAR_MODES, id_.decode(), int(size))


def export_files(repository: Repository, entries: Iterable[TreeEntry], folder: Path) -> int:
    """Write the regular files below the folder; return how many were skipped because of a limit.

    Raises:
        RevisionError: A file cannot be read or written.
    """
    chosen: list[TreeEntry] = []
    remaining_bytes = MAX_EXPORT_BYTES
    skipped = 0
    for entry in entries:
        if not entry.is_regular:
            continue
        if entry.size > min(MAX_FILE_BYTES, remaining_bytes) or len(chosen) >= MAX_FILES:
            skipped += 1
            continue
        chosen.append(entry)
        remaining_bytes -= entry.size
    if chosen:
        for entry, content in zip(chosen, _read_contents(repository, chosen), strict=True):
            _write_new_file(folder / entry.path, content)
    return skipped


def _read_contents(repository: Repository, entries: Sequence[TreeEntry]) -> Iterator[bytes]:
    """Yield the contents of the entries, in order, from one git process.

    `git cat-file --batch` prints for each file a line `ID TYPE SIZE`, the content, and a line break.
    """
    ids = "".join(f"{entry.id}\n" for entry in entries)
    output = repository.git("cat-file", "--batch", stdin=ids.encode())
    position = 0
    for entry in entries:
        start = output.find(b"\n", position) + 1
        header = output[position:start].split()
        if len(header) != 3 or int(header[2]) != entry.size:  # noqa: PLR2004 - id, type, size
            raise GitError(f"git cat-file: {entry.path} is missing from this clone")
        yield output[start : start + entry.size]
        position = start + entry.size + 1


def _write_new_file(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Mode x never follows or overwrites an existing file.
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError:
        return  # two paths that are one for this file system, or a file that is exported twice
    except OSError as error:
        raise RevisionError(f"{path.name} cannot be exported: {error.strerror or error}") from None


def _is_inside(path: PurePosixPath) -> bool:
    """Return True if a path stays inside the folder it is exported to.

    Git refuses to create such a tree, but a hostile repository can contain one.
    """
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts and "\\" not in path.name
