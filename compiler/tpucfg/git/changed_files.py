"""Paths that differ between two revisions, the specs that they affect, and the files that `pulumi up` may read."""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

from tpucfg.git.repository import Repository, split_nul
from tpucfg.git.trees import FIT_FILE, MAX_FILES, Content, Tree, TreeEntry, read_files, tree_of
from tpucfg.infra.stack_files import PROJECT_FILES, PulumiProject, project_of
from tpucfg.spec import SPEC_NAME
from tpucfg.yamldoc.reader import read_bytes

BUILD_FILES: Final = ("setup.py", "pyproject.toml")
"""Files of a Python package that are read before its code."""
_SURROUNDING_FILES: Final = (
    "requirements.txt",
    "pyproject.toml",
    "uv.lock",
    "uv.toml",
    "poetry.lock",
    "poetry.toml",
    ".python-version",
)
"""Files that choose the program's Python and packages, in its folder or above.

ResolveToolchain and searchup in https://github.com/pulumi/pulumi/blob/master/sdk/python/toolchain/toolchain.go.
"""
_COMMENT: Final = re.compile(r"(?:^|\s)#.*", re.MULTILINE)
_WORD_ENDS: Final = re.compile(r"[\s\"'=:;,\\\[\]]+")
_PATH: Final = re.compile(r"[\w@+.-]*/[\w@+./-]*|[\w@+-][\w@+.-]*\.[A-Za-z]\w*|\.\.?")
"""A word that is a path wherever it is: with a slash, or with the ending of a file."""
_STACK_FILE: Final = re.compile(r"Pulumi\.[^.].*\.(?:ya?ml|json)")
_STACK_SPEC: Final = re.compile(
    r"^[ \t]*[\"']?[\w-]+:spec[\"']?\s*:\s*[\"']?([^\s\"'#]+)", re.MULTILINE
)
"""The setting of a stack that names its spec."""
_RESULTS: Final = (".json", ".jsonl")
"""The ends of results: of compilations and searches, and of records."""
# A .gitmodules of the change can have git leave out submodules; the last option takes precedence over it. A submodule
# with changes of its own is no change of its revision, so git does not have to be started in it.
_NAMES_OF_CHANGES: Final = ("-z", "--name-only", "--no-renames", "--ignore-submodules=dirty")
_MAX_INCLUDED: Final = 1_000
_NOT_LOCAL: Final = ("gs://", "${")
"""A `package` that contains one of these is not a folder of the repository."""


class ProgramPaths(NamedTuple):
    """The paths that a Pulumi project beside a spec names, relative to the repository's root."""

    spec_folder: PurePosixPath
    program: PurePosixPath | None = None
    """None without a project, or with one whose program is not in the repository."""
    stacks: PurePosixPath | None = None
    """The folder of the stack files."""
    other_code: tuple[PurePosixPath, ...] = ()
    """The code that Pulumi runs besides the program."""

    @property
    def roots(self) -> tuple[PurePosixPath, ...]:
        """The folders that the project file names."""
        return tuple(
            path for path in (self.program, self.stacks, *self.other_code) if path is not None
        )

    @property
    def surrounding_folders(self) -> tuple[PurePosixPath, ...]:
        """The folders of program and stacks and those above, in which files may choose packages and the checkout."""
        folders = (folder for folder in (self.program, self.stacks) if folder is not None)
        return tuple(
            dict.fromkeys(path for folder in folders for path in (folder, *folder.parents))
        )

    @property
    def files(self) -> tuple[PurePosixPath, ...]:
        """Single paths: the project file, what chooses the program's packages, and folders that may be links."""
        project_files = [self.spec_folder / name for name in PROJECT_FILES]
        surrounding = [
            folder / name for folder in self.surrounding_folders for name in _SURROUNDING_FILES
        ]
        above = [path for root in self.roots for path in (root, *root.parents) if path.parts]
        return tuple(dict.fromkeys([*project_files, *surrounding, *above]))


def program_paths(spec_folder: PurePosixPath, pulumi: PulumiProject | None) -> ProgramPaths:
    """Return what a Pulumi project names."""
    if pulumi is None:
        return ProgramPaths(spec_folder)
    program, stacks = (
        normalize_path(spec_folder, os.path.relpath(path, pulumi.folder))
        for path in (pulumi.program, pulumi.stacks)
    )
    other_code = (normalize_path(spec_folder, path) for path in pulumi.other_code)
    return ProgramPaths(
        spec_folder, program, stacks, tuple(path for path in other_code if path is not None)
    )


def normalize_path(spec_folder: PurePosixPath, value: str) -> PurePosixPath | None:
    """Return a path from a file of the project, relative to the repository's root; None if it leads out of it."""
    path = PurePosixPath(os.path.normpath(spec_folder / value))
    return None if path.is_absolute() or ".." in path.parts or "\0" in value else path


def package_folder(spec_folder: PurePosixPath, spec: Any) -> PurePosixPath | None:
    """Return the folder of a local trainer package, from the data of a spec; None if it has none."""
    trainer = spec.get("trainer") if isinstance(spec, Mapping) else None
    package = trainer.get("package") if isinstance(trainer, Mapping) else None
    if not isinstance(package, str) or any(part in package for part in _NOT_LOCAL):
        return None
    return normalize_path(spec_folder, package)


def program_files(
    tree: Tree, paths: ProgramPaths, specs: Sequence[PurePosixPath] = ()
) -> dict[str, str]:
    """Return the files that `pulumi up` may read, by path relative to the spec's folder, with what identifies them.

    The identity is empty if it is not known, as of a link that leads out of the repository.

    Args:
        tree: the files of a revision.
        paths: what its Pulumi project names.
        specs: specs to list too.

    Raises:
        GitError: The revision cannot be read.
    """
    included = _included_paths(tree, paths)
    code = {path for path in (paths.program, *paths.other_code, *included) if path is not None}
    single = {*paths.files, *included, *specs}

    def is_read(entry: TreeEntry) -> bool:
        path, lineage = entry.path, (entry.path, *entry.path.parents)
        is_foreign = not entry.id and not {*paths.other_code}.isdisjoint(lineage)
        if is_foreign or path.name == ".gitattributes":
            # A virtual environment or a plugin that is not committed is no part of the change. Attributes are those of
            # the repository, which has a caution of its own for them.
            return False
        is_stack_file = path.parent == paths.stacks and path.name.startswith("Pulumi.")
        return is_stack_file or path in single or not code.isdisjoint(lineage)

    listed = {*tree.entries([*paths.roots, *included], [*paths.files, *specs])}
    entries = sorted(entry for entry in listed if is_read(entry))[: 2 * MAX_FILES]
    return {
        os.path.relpath(entry.path, paths.spec_folder): f"{entry.kind} {' '.join(content)}"
        if content.id
        else ""
        for entry, content in zip(entries, tree.contents(entries), strict=True)
    }


def _included_paths(tree: Tree, paths: ProgramPaths) -> tuple[PurePosixPath, ...]:
    """Return what the requirements files of the program name, and what these name in turn: files, folders or nothing.

    The forms of a requirement are many, and some are undocumented, as `--req` for `--requirement`. So each word that
    can be a path is one: https://pip.pypa.io/en/stable/reference/requirements-file-format/.
    """
    requirements = [folder / _SURROUNDING_FILES[0] for folder in paths.surrounding_folders]
    included = included_paths(tree, requirements, paths.program)
    # The whole repository is no part of the program.
    whole = {paths.spec_folder, *paths.spec_folder.parents}
    return tuple(path for path in included if path not in whole)


def included_paths(
    tree: Tree, requirements: Iterable[PurePosixPath], start: PurePosixPath | None = None
) -> tuple[PurePosixPath, ...]:
    """Return the paths that requirements files name, and that these name in turn.

    Args:
        tree: The files of a revision.
        requirements: The first files.
        start: The folder in which pip starts; that of each file by default.
    """
    pending = list(requirements)
    included: dict[PurePosixPath, None] = {}
    while pending and len(included) < _MAX_INCLUDED:
        texts = read_files(tree, pending)
        named = [
            path
            for file, content in texts.items()
            for name in _named_paths(content.decode(errors="replace"))
            for folder in {file.parent, start or file.parent}
            if (path := normalize_path(folder, name)) is not None
        ]
        pending = [path for path in dict.fromkeys(named) if path not in included][:_MAX_INCLUDED]
        included |= dict.fromkeys(pending)
    return tuple(included)


def _named_paths(text: str) -> Iterator[str]:
    """Yield the words of a requirements file that look like a path, also after an option of one letter."""
    for word in _WORD_ENDS.split(_COMMENT.sub("", text)):
        name = re.sub("^-[A-Za-z]", "", word)
        if _PATH.fullmatch(name):
            yield name


# The files of two revisions


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
    before = commit_files(repository, base) if base else frozenset()
    after = commit_files(repository, head) if head else _working_files(repository)
    changed = _changed_paths(repository, base, head) if base else after
    return TreeChange(repository, base, head, before, after, changed)


def commit_files(repository: Repository, commit: str) -> frozenset[PurePosixPath]:
    """Return the files of a commit."""
    return _paths(
        split_nul(repository.git("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit))
    )


def _working_files(repository: Repository) -> frozenset[PurePosixPath]:
    """Return the files of the working tree: tracked ones, and new ones that are not ignored."""
    listing = repository.git("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return frozenset(
        path for path in _paths(split_nul(listing)) if os.path.lexists(repository.folder / path)
    )


def _changed_paths(repository: Repository, base: str, head: str | None) -> frozenset[PurePosixPath]:
    if head is not None:
        return _paths(split_nul(repository.git("diff-tree", "-r", *_NAMES_OF_CHANGES, base, head)))
    listings = (
        repository.git("diff-index", *_NAMES_OF_CHANGES, base),
        repository.git("ls-files", "-z", "--others", "--exclude-standard"),
    )
    candidates = _paths(name for listing in listings for name in split_nul(listing))
    # The index of a copied checkout has other times: git would refresh it by running the repository's own filters.
    before, after = (_contents(tree_of(repository, commit), candidates) for commit in (base, None))
    return frozenset(path for path, *_ in before ^ after)


def _contents(
    tree: Tree, paths: Collection[PurePosixPath]
) -> set[tuple[PurePosixPath, str, Content]]:
    """Return those of the files that a tree has, each with its kind and what identifies its content."""
    entries = (
        [entry for entry in tree.entries([PurePosixPath()]) if entry.path in paths] if paths else []
    )
    contents = zip(entries, tree.contents(entries), strict=True)
    return {(entry.path, entry.kind, content) for entry, content in contents}


def _paths(names: Iterable[bytes]) -> frozenset[PurePosixPath]:
    return frozenset(PurePosixPath(os.fsdecode(name)) for name in names)


def changed_below(tree: TreeChange, paths: Sequence[PurePosixPath]) -> tuple[PurePosixPath, ...]:
    """Return the files at or below the given paths that differ, sorted."""
    is_given = {*paths}.isdisjoint
    return tuple(
        sorted(path for path in tree.changed if tree.base and not is_given((path, *path.parents)))
    )


# Specs


class SpecScope(NamedTuple):
    """The specs of two revisions, by their paths in the repository."""

    affected: tuple[PurePosixPath, ...]
    """The specs whose configs or resources the change can affect, sorted."""
    others: tuple[PurePosixPath, ...]


def find_affected_specs(tree: TreeChange) -> SpecScope:
    """Return the specs of both revisions, those of other names if a stack reads them; an only spec is always affected.

    A spec is affected by a change of a file in its own folder, unless that file is nearer to another spec, and by a
    change below a folder that it names: the program and the stacks of its Pulumi project, or its trainer's package.
    """
    of_stacks = {
        path for revision, files in tree.trees for path in _specs_of_stacks(revision, files)
    }
    specs = sorted(
        path for path in tree.before | tree.after if path.name == SPEC_NAME or path in of_stacks
    )
    if len(specs) <= 1:
        return SpecScope(tuple(specs), ())
    folders = {spec.parent for spec in specs}
    owners = {
        next((parent for parent in path.parents if parent in folders), None)
        for path in tree.changed
    }
    affected = {spec for spec in specs if spec.parent in owners}
    changed_folders = {parent for path in tree.changed for parent in (path, *path.parents)}
    for revision, files in tree.trees:
        candidates = [spec for spec in specs if spec in files and spec not in affected]
        for spec, named in _named_folders(revision, files, candidates):
            if not changed_folders.isdisjoint(named):
                affected.add(spec)
    return SpecScope(tuple(sorted(affected)), tuple(spec for spec in specs if spec not in affected))


def _named_folders(
    revision: Tree, files: Collection[PurePosixPath], specs: Collection[PurePosixPath]
) -> Iterator[tuple[PurePosixPath, Collection[PurePosixPath]]]:
    """Yield each spec with the folders that it names outside its own folder."""
    contents = read_files(revision, [spec for spec in specs if spec in files])
    for spec, paths in _pulumi_paths(revision, files, specs):
        folder, text = spec.parent, contents.get(spec, b"")
        # Parsing takes longer than searching, and few specs name a package.
        package = package_folder(folder, read_bytes(text, "").data) if b"package" in text else None
        yield spec, {*paths.roots, *((package,) if package else ())} - {folder}


def _pulumi_paths(
    revision: Tree, files: Collection[PurePosixPath], specs: Collection[PurePosixPath]
) -> Iterator[tuple[PurePosixPath, ProgramPaths]]:
    """Yield each spec with what the Pulumi project beside it names."""
    projects = pulumi_projects(revision, files, [spec.parent for spec in specs])
    for spec, (folder, pulumi) in zip(specs, projects, strict=True):
        yield spec, program_paths(folder, pulumi)


def pulumi_projects(
    revision: Tree, files: Collection[PurePosixPath], folders: Sequence[PurePosixPath]
) -> Iterator[tuple[PurePosixPath, PulumiProject | None]]:
    """Yield each folder with its Pulumi project, whose paths are relative to it; None without one."""
    named = {
        folder: [folder / name for name in PROJECT_FILES if folder / name in files]
        for folder in folders
    }
    contents = read_files(revision, [*chain.from_iterable(named.values())])
    for folder in folders:
        file = next((path for path in named[folder] if path in contents), None)
        if file is None:
            yield folder, None
        else:
            yield folder, project_of(Path(), read_bytes(contents[file], str(file)))


def _specs_of_stacks(revision: Tree, files: Collection[PurePosixPath]) -> Iterator[PurePosixPath]:
    """Yield the files that stacks read as their spec, relative to the folder of their Pulumi project."""
    projects = {path.parent for path in files if path.name in PROJECT_FILES}
    stack_files = sorted(path for path in files if _STACK_FILE.fullmatch(path.name))
    for file, content in read_files(revision, stack_files).items():
        for folder in projects.intersection(file.parents):
            for match in _STACK_SPEC.finditer(content.decode(errors="replace")):
                path = normalize_path(folder, match[1])
                if path is not None and path in files:
                    yield path


def other_paths(
    tree: TreeChange, specs: Collection[PurePosixPath], judged: Iterable[PurePosixPath]
) -> Collection[PurePosixPath]:
    """Return the changed files that are neither judged, specs, their results, nor of Pulumi projects beside them."""
    results = {spec.parent / FIT_FILE.parent for spec in specs}
    changed = tree.changed.difference(specs, judged)
    others = {path for path in changed if path.parent not in results or path.suffix not in _RESULTS}
    # Most changes are of specs alone, and no project has to be read for them.
    trees = tree.trees if others else ()
    projects = [
        paths for revision, files in trees for _, paths in _pulumi_paths(revision, files, specs)
    ]
    single = {path for paths in projects for path in paths.files}
    is_outside = {root for paths in projects for root in paths.roots}.isdisjoint
    return {path for path in others - single if is_outside(path.parents)}
