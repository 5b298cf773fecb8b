"""Files of a repository whose content differs between two revisions."""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from tpucfg.git.export import MAX_FILE_BYTES
from tpucfg.git.objects import TreeEntry, list_entries, list_staged, read_contents
from tpucfg.git.repository import Repository

_MAX_FILES: Final = 500
"""Limit for the changed files that are read; of the others, only the names are known."""


class ChangedFile(NamedTuple):
    """A file that differs, was added, or was removed."""

    path: PurePosixPath
    """Relative to the root of the repository."""
    before: bytes | None
    """None if the revision has no such file; empty if it is a link, is too large, or is one of too many."""
    after: bytes | None

    @property
    def is_unreadable(self) -> bool:
        """True if the content of a revision is not known."""
        return b"" in (self.before, self.after)


def changed_files(
    repository: Repository, base: str, head: str | None, paths: Sequence[PurePosixPath]
) -> tuple[ChangedFile, ...]:
    """Return the files at or below the given paths that differ, sorted by path.

    Args:
        repository: the repository of both revisions.
        base: a commit.
        head: a commit; None for what is staged in the working tree.
        paths: files and folders, relative to the root of the repository.

    Raises:
        GitError: A revision cannot be read.
    """
    old = {entry.path: entry for entry in list_entries(repository, base, paths, recursive=True)}
    entries = list_entries(repository, head, paths, recursive=True) if head else _staged_entries(repository, paths)
    new = {entry.path: entry for entry in entries}
    names = sorted(path for path in {*old, *new} if old.get(path) != new.get(path))
    before, after = _contents(repository, old, names), _contents(repository, new, names)
    return tuple(ChangedFile(path, before.get(path), after.get(path)) for path in names)


def _contents(
    repository: Repository, entries: Mapping[PurePosixPath, TreeEntry], names: Sequence[PurePosixPath]
) -> dict[PurePosixPath, bytes]:
    present = [entries[path] for path in names if path in entries]
    readable = [entry for entry in present if entry.is_regular and entry.size <= MAX_FILE_BYTES][:_MAX_FILES]
    contents = zip(readable, read_contents(repository, readable), strict=True)
    return {entry.path: b"" for entry in present} | {entry.path: content for entry, content in contents}


def _staged_entries(repository: Repository, paths: Sequence[PurePosixPath]) -> list[TreeEntry]:
    """Return the files of the index; a file that is only in the working tree is in no commit either."""
    root = repository.at_root()
    entries = [*list_staged(root, [*map(str, paths)])]
    request = "".join(f"{entry.id}\n" for entry in entries).encode()
    sizes = root.git("cat-file", "--batch-check=%(objectsize)", stdin=request).decode().splitlines() if entries else []
    return [
        entry._replace(size=int(size) if size.isdecimal() else 0)  # a submodule has no size
        for entry, size in zip(entries, sizes, strict=True)
    ]
