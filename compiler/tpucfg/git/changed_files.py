"""Paths and files that differ between two revisions, and names that collide because of it."""

import os
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from tpucfg.git.repository import (
    MAX_FILE_BYTES,
    Repository,
    TreeEntry,
    list_entries,
    list_staged,
    read_contents,
    split_nul,
)
from tpucfg.infra.pulumi_project import PROJECT_FILES, project_of
from tpucfg.yamldoc.reader import read_bytes


class TreeChange(NamedTuple):
    """The files of two revisions, relative to the repository's root."""

    repository: Repository
    base: str | None
    """A commit; None for nothing."""
    head: str | None
    """A commit; None for the working tree."""
    before: frozenset[PurePosixPath]
    after: frozenset[PurePosixPath]
    changed: frozenset[PurePosixPath]
    """The paths that differ; a renamed file has both."""


def read_tree_change(repository: Repository, base: str | None, head: str | None) -> TreeChange:
    """List the files of both revisions.

    Raises:
        GitError: A revision cannot be read.
    """
    before = _revision_files(repository, base) if base else frozenset()
    after = _revision_files(repository, head) if head else _working_files(repository)
    changed = _changed_paths(repository, base, head) if base else after
    return TreeChange(repository, base, head, before, after, changed)


def _revision_files(repository: Repository, commit: str) -> frozenset[PurePosixPath]:
    listing = repository.git("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit)
    return _paths(listing)


def _working_files(repository: Repository) -> frozenset[PurePosixPath]:
    """Return the files of the working tree: tracked ones, and new ones that are not ignored."""
    root = repository.at_root()
    listing = root.git("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return frozenset(path for path in _paths(listing) if os.path.lexists(root.folder / path))


def _changed_paths(repository: Repository, base: str, head: str | None) -> frozenset[PurePosixPath]:
    options = ["-z", "--name-only", "--no-renames"]
    if head is not None:
        return _paths(repository.git("diff-tree", "-r", *options, base, head))
    root = repository.at_root()
    new = root.git("ls-files", "-z", "--others", "--exclude-standard")
    return _paths(root.git("diff-index", *options, base)) | _paths(new)


def _paths(listing: bytes) -> frozenset[PurePosixPath]:
    return frozenset(PurePosixPath(os.fsdecode(name)) for name in split_nul(listing))


# Files


_MAX_FILES: Final = 500
"""Limit for the changed files that are read; of the others, only the names are known."""


class ChangedFile(NamedTuple):
    """A file that differs, was added, or was removed."""

    path: PurePosixPath
    """Relative to the root of the repository."""
    before: bytes | None
    """None if the revision has no such file; empty if it is a link, is too large, or is one of too many."""
    after: bytes | None


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


# Names that are the same as others where a file system ignores case


_INVISIBLE: Final = "Cf"


class NameCollision(NamedTuple):
    """Two files or folders of one name, for a file system that ignores case."""

    added: PurePosixPath
    other: PurePosixPath


def name_collisions(tree: TreeChange) -> tuple[NameCollision, ...]:
    """Return the files and folders that head adds and that are others of head but for case, or how they are encoded."""
    new_files = tree.changed & tree.after - tree.before
    if not new_files:
        return ()
    added = _with_parents(new_files) - _with_parents(tree.before)
    by_name: dict[str, list[PurePosixPath]] = {_folded(path): [] for path in added}
    for path in sorted(_with_parents(tree.after)):
        if (folded := _folded(path)) in by_name:
            by_name[folded].append(path)
    # Of two added ones, the later.
    pairs = (
        (path, next((other for other in by_name[_folded(path)] if _collides(path, other, added)), None))
        for path in sorted(added)
    )
    return tuple(NameCollision(path, other) for path, other in pairs if other)


def _collides(path: PurePosixPath, other: PurePosixPath, added: Collection[PurePosixPath]) -> bool:
    is_first = other not in added or other < path
    return other != path and other.parent == path.parent and is_first


def _with_parents(paths: Iterable[PurePosixPath]) -> frozenset[PurePosixPath]:
    folders: set[PurePosixPath] = set()
    for path in paths:
        for part in (path, *path.parents[:-1]):
            if part in folders:
                break
            folders.add(part)
    return frozenset(folders)


def _folded(path: PurePosixPath) -> str:
    visible = "".join(char for char in str(path) if unicodedata.category(char) != _INVISIBLE)
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", visible).casefold())


# Pulumi projects of a repository that have one name, and with it the same stacks


_MAX_PROJECTS: Final = 500


class SharedName(NamedTuple):
    """A project file that head adds or changes, and another one with the same name."""

    name: str
    file: PurePosixPath
    other: PurePosixPath


def shared_project_names(tree: TreeChange) -> tuple[SharedName, ...]:
    """Return the projects that got the name of another folder's project; none for the working tree.

    Raises:
        GitError: A revision cannot be read.
    """
    if tree.base is None or tree.head is None or not any(path.name in PROJECT_FILES for path in tree.changed):
        return ()
    before, after = ({*_project_files(tree.repository, commit)} for commit in (tree.base, tree.head))
    if len(after) < 2 or after <= before:  # noqa: PLR2004 - a name is shared by two
        return ()
    names = dict(_names(tree.repository, sorted(after)[:_MAX_PROJECTS]))
    known = dict(_names(tree.repository, sorted(before)[:_MAX_PROJECTS]))
    changed = [path for path in names if known.get(path) != names[path]]
    return tuple(
        SharedName(names[path], path, other)
        for path in changed
        for other in sorted({*names} - {path})
        if names[other] == names[path] and other.parent != path.parent
    )


def _project_files(repository: Repository, commit: str) -> Iterator[TreeEntry]:
    for entry in list_entries(repository, commit, (), recursive=True):
        if entry.path.name in PROJECT_FILES and entry.is_regular and entry.size <= MAX_FILE_BYTES:
            yield entry


def _names(repository: Repository, entries: list[TreeEntry]) -> Iterator[tuple[PurePosixPath, str]]:
    for entry, content in zip(entries, read_contents(repository, entries), strict=True):
        if project := project_of(repository.folder, read_bytes(content, str(entry.path))):
            yield entry.path, project.name
