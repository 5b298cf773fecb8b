"""The paths of two revisions, and which of them a change touches."""

import os
from pathlib import PurePosixPath
from typing import NamedTuple

from tpucfg.git.repository import Repository, split_nul


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
