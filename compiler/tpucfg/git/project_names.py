"""Pulumi projects of a repository that have one name, and with it the same stacks."""

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from tpucfg.git.export import MAX_FILE_BYTES
from tpucfg.git.objects import TreeEntry, list_entries, read_contents
from tpucfg.git.repository import Repository
from tpucfg.git.tree_change import TreeChange
from tpucfg.infra.pulumi_project import PROJECT_FILES, project_of
from tpucfg.yamldoc.reader import read_bytes

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
