"""Paths that differ between two revisions, the specs that they affect, and names that collide because of them."""

import os
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from tpucfg.git.program_files import package_folder, program_paths
from tpucfg.git.repository import Repository, split_nul
from tpucfg.git.trees import Content, Tree, TreeEntry, read_files, tree_of
from tpucfg.grouped import grouped
from tpucfg.infra.stack_files import PROJECT_FILES, PulumiProject, project_of
from tpucfg.spec import SPEC_NAME
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

    @property
    def trees(self) -> tuple[tuple[Tree, frozenset[PurePosixPath]], ...]:
        """Head and, if there is one, base, each with its files."""
        head = (tree_of(self.repository, self.head), self.after)
        return (head, (tree_of(self.repository, self.base), self.before)) if self.base else (head,)


def read_tree_change(repository: Repository, base: str | None, head: str | None) -> TreeChange:
    """List the files of both revisions.

    Raises:
        GitError: A revision cannot be read.
    """
    before = _commit_files(repository, base) if base else frozenset()
    after = _commit_files(repository, head) if head else _working_files(repository)
    changed = _changed_paths(repository, base, head) if base else after
    return TreeChange(repository, base, head, before, after, changed)


def _commit_files(repository: Repository, commit: str) -> frozenset[PurePosixPath]:
    return _paths(repository.git("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit))


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


def changed_below(tree: TreeChange, paths: Sequence[PurePosixPath]) -> tuple[PurePosixPath, ...]:
    """Return the files at or below the given paths whose content differs, sorted.

    Raises:
        GitError: A revision cannot be read.
    """
    if tree.base is None:
        return ()
    after, before = ({*_identified(revision, [*revision.entries(paths)])} for revision, _ in tree.trees)
    return tuple(sorted({path for path, *_ in before ^ after}))


def _identified(revision: Tree, entries: Sequence[TreeEntry]) -> Iterator[tuple[PurePosixPath, str, Content]]:
    for entry, content in zip(entries, revision.contents(entries), strict=True):
        yield entry.path, entry.kind, content


# Specs


class SpecScope(NamedTuple):
    """The specs of two revisions, by their paths in the repository."""

    affected: tuple[PurePosixPath, ...]
    """The specs whose configs or resources the change can affect, sorted."""
    others: tuple[PurePosixPath, ...]


def find_affected_specs(tree: TreeChange) -> SpecScope:
    """Return the specs of both revisions; an only spec is always affected.

    A spec is affected by a change of a file in its own folder, unless that file is nearer to another spec, and by a
    change below a folder that it names: the program and the stacks of its Pulumi project, or its trainer's package.
    """
    specs = sorted(path for path in tree.before | tree.after if path.name == SPEC_NAME)
    if len(specs) <= 1:
        return SpecScope(tuple(specs), ())
    folders = {spec.parent for spec in specs}
    owners = {next((parent for parent in path.parents if parent in folders), None) for path in tree.changed}
    affected = {spec for spec in specs if spec.parent in owners}
    changed_folders = {parent for path in tree.changed for parent in (path, *path.parents)}
    for revision, files in tree.trees:
        candidates = [spec for spec in specs if spec in files and spec not in affected]
        for spec, named in _named_folders(revision, files, candidates):
            if not changed_folders.isdisjoint(named):
                affected.add(spec)
    return SpecScope(tuple(sorted(affected)), tuple(spec for spec in specs if spec not in affected))


def _named_folders(
    revision: Tree, files: Collection[PurePosixPath], specs: Iterable[PurePosixPath]
) -> Iterator[tuple[PurePosixPath, Collection[PurePosixPath]]]:
    """Yield each spec with the folders that it names outside its own folder."""
    names = (SPEC_NAME, *PROJECT_FILES)
    contents = read_files(revision, [path for spec in specs for name in names if (path := spec.parent / name) in files])
    for spec in specs:
        folder, text = spec.parent, contents.get(spec, b"")
        project_file = next((folder / name for name in PROJECT_FILES if folder / name in contents), None)
        pulumi = _project(project_file, contents[project_file]) if project_file else None
        # Parsing takes longer than searching, and few specs name a package.
        package = package_folder(folder, read_bytes(text, "").data) if b"package" in text else None
        yield spec, {*program_paths(folder, pulumi).roots, *((package,) if package else ())} - {folder}


def _project(file: PurePosixPath, content: bytes) -> PulumiProject | None:
    return project_of(Path(), read_bytes(content, str(file)))


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
    by_name = grouped(((path.parent, _folded(path.name)), path) for path in sorted(_with_parents(tree.after)))
    collisions = []
    for path in sorted(added):
        others = by_name[path.parent, _folded(path.name)]
        # Of two added ones, the later.
        other = next((other for other in others if other != path and (other not in added or other < path)), None)
        if other:
            collisions.append(NameCollision(path, other))
    return tuple(collisions)


def _with_parents(paths: Iterable[PurePosixPath]) -> frozenset[PurePosixPath]:
    return frozenset(part for path in paths for part in (path, *path.parents[:-1]))


def _folded(name: str) -> str:
    visible = "".join(char for char in name if unicodedata.category(char) != _INVISIBLE)
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", visible).casefold())


# Pulumi projects of a repository that have one name, and with it the same stacks


_MAX_PROJECTS: Final = 500


class SharedName(NamedTuple):
    """A project file that head adds or changes, and another one with the same name."""

    name: str
    file: PurePosixPath
    other: PurePosixPath


def shared_project_names(tree: TreeChange) -> tuple[SharedName, ...]:
    """Return the projects that got the name of another folder's project.

    Raises:
        GitError: A revision cannot be read.
    """
    if tree.base is None or not any(path.name in PROJECT_FILES for path in tree.changed):
        return ()
    names, known = (_project_names(revision, files) for revision, files in tree.trees)
    return tuple(
        SharedName(name, path, other)
        for path, name in names.items()
        for other, its_name in names.items()
        if known.get(path) != name and its_name == name and other.parent != path.parent
    )


def _project_names(revision: Tree, files: Iterable[PurePosixPath]) -> Mapping[PurePosixPath, str]:
    project_files = sorted(path for path in files if path.name in PROJECT_FILES)[:_MAX_PROJECTS]
    projects = {path: _project(path, content) for path, content in read_files(revision, project_files).items()}
    return {path: project.name for path, project in projects.items() if project}
