"""Snapshots of a project, a spec and the files beside it, at a git revision or in the working tree.

A revision is exported to a temporary folder: regular files only, limited in size and number, never outside of it.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from tpucfg.git.changed_files import BUILD_FILES, package_folder, program_files, program_paths
from tpucfg.git.repository import (
    Repository,
    RevisionError,
    UnreadableSpecError,
    split_nul,
    working_repository,
)
from tpucfg.git.trees import FIT_FILE, MAX_FILE_BYTES, CommitTree, export_files, tree_of
from tpucfg.infra.stack_files import PROJECT_FILES, pulumi_project
from tpucfg.yamldoc.reader import read_file

WORKING_TREE: Final = "the working tree"


class Commit(NamedTuple):
    """The commit that a snapshot was read from."""

    id: str
    """The full id: how short an unambiguous one may be depends on the clone."""
    is_merge_base: bool = False
    """True if this is the merge base of the two revisions, and not the revision that was given."""
    merges: str = ""
    """The commit that this one merges into the base, as GitHub does to test a merge; empty for other commits."""


class Snapshot(NamedTuple):
    """A project as it is at a revision or in the working tree."""

    title: str
    """The revision as the user gave it, or `the working tree`."""
    spec: Path
    """The path at which the spec can be read."""
    display_path: str
    """The spec's path relative to the user's current folder, for findings."""
    exists: bool
    """False if the revision has no spec, for example before the first commit."""
    exported_to: Path | None = None
    """The temporary folder with the files of the revision; None for the working tree."""
    skipped_files: int = 0
    """The number of files that were too many or too large to be exported."""
    program_files: Mapping[str, str] = {}
    """The files that `pulumi up` may read, if they were requested: by path, what identifies their content."""
    repository_path: str = ""
    """The path of the requested spec, relative to the root of the repository."""
    commit: Commit | None = None
    """None for the working tree, and before the first commit."""
    repository: Repository | None = None
    """The repository that the snapshot was exported from; None for the working tree."""

    @property
    def renamed_from(self) -> str:
        """The path of the spec in this revision if it had another name; empty otherwise."""
        if not self.exists or self.exported_to is None:
            return ""
        path = self.spec.relative_to(self.exported_to).as_posix()
        return "" if path == self.repository_path else path

    def hide_export_path(self, text: str) -> str:
        """Return the text without the name of the temporary folder, which changes with every run."""
        if self.exported_to is None:
            return text
        return text.replace(f"{self.exported_to}/", "").replace(str(self.exported_to), ".")


class CompareRequest(NamedTuple):
    """Two revisions of one spec to compare."""

    base: str
    head: str | None
    """None for the working tree."""
    spec: Path
    with_program: bool
    """Export the stack program and everything else beside the spec, and not only what a check reads."""
    from_merge_base: bool = False
    """Compare with the merge base of the two revisions instead of `base` itself."""
    repository: Repository | None = None
    """The repository to read; None for the one of the working folder."""

    @property
    def command(self) -> tuple[str, ...]:
        """The words of the command that compares the revisions, without the spec."""
        if not self.with_program:
            return ("diff", self.base, *((self.head,) if self.head else ()))
        return ("review", "--base", self.base, *(("--head", self.head) if self.head else ()))

    def open_repository(self, *specs: Path) -> Repository:
        """Return the repository, seen from the folder of the first of the given specs, which all have to be in it.

        Raises:
            RevisionError: There is no repository, or another one answers in the folder of a spec.
        """
        repository = self.repository or working_repository(specs, self.command)
        seen = [repository.seen_from(spec, self.command) for spec in specs]
        return seen[0] if seen else repository


class CommitRange(NamedTuple):
    """The commits of a comparison; None if the repository has no commits."""

    given_base: str | None
    base: str | None
    """The given base, or its merge base with head."""
    head: str | None
    """The current commit if the working tree is compared."""


def resolve_commits(repository: Repository, request: CompareRequest) -> CommitRange:
    """Return the commits that a request names.

    Raises:
        RevisionError: A revision does not exist.
    """
    given_base, head = repository.resolve(request.base), repository.resolve(request.head or "HEAD")
    base = given_base
    if request.from_merge_base and given_base and head:
        base = repository.merge_base(given_base, head) or given_base
    return CommitRange(given_base, base, head)


@contextmanager
def open_snapshots(request: CompareRequest) -> Iterator[tuple[Snapshot, Snapshot]]:
    """Export both revisions to temporary folders, which are deleted when the context ends.

    Raises:
        RevisionError: A revision cannot be read, or neither has a spec.
    """
    repository = request.open_repository(request.spec)
    given_base, base, head = resolve_commits(repository, request)
    path = repository.prefix / request.spec.name
    with ExitStack() as stack:
        before_folder, after_folder = (
            # Resolved, because some systems have a symbolic link in the path of their temporary folder.
            Path(stack.enter_context(TemporaryDirectory(prefix="tpucfg-"))).resolve()
            for _ in range(2)
        )
        if request.head is None:
            after = _working_tree(repository, request)
        else:
            after = _export_snapshot(repository, request, request.head, head, path, after_folder)
        before = _export_snapshot(repository, request, request.base, base, path, before_folder)
        if (
            not before.exists
            and after.exists
            and (old_path := _path_before_rename(repository, request, base, head))
        ):
            before = _export_snapshot(
                repository, request, request.base, base, old_path, before_folder
            )
        if not before.exists and not after.exists:
            raise RevisionError(
                f"there is no {request.spec} in {before.title} or in {after.title}",
                "give the spec's path with --spec FILE, or make a new project with: tpucfg init",
            )
        if base:
            before = before._replace(commit=Commit(base, is_merge_base=base != given_base))
        if request.head is not None and head:
            after = after._replace(
                commit=Commit(head, merges=repository.merged_commit(head, base) if base else "")
            )
        yield (
            before._replace(repository_path=path.as_posix()),
            after._replace(repository_path=path.as_posix()),
        )


def _working_tree(repository: Repository, request: CompareRequest) -> Snapshot:
    spec = request.spec
    # lexists: a broken link is not a missing spec, but one that the reader reports as unreadable.
    exists = os.path.lexists(spec)
    if spec.is_symlink():
        raise _link_error(str(spec), "the working tree")
    files: Mapping[str, str] = {}
    if request.with_program and exists:
        paths = program_paths(repository.prefix, pulumi_project(spec.parent))
        files = program_files(tree_of(repository, None), paths)
    return Snapshot(WORKING_TREE, spec, str(spec), exists, program_files=files)


def _export_snapshot(
    repository: Repository,
    request: CompareRequest,
    title: str,
    commit: str | None,
    path: PurePosixPath,
    folder: Path,
) -> Snapshot:
    """Export a commit's spec and the files beside it; each keeps its path in the repository."""
    spec = folder / path
    display_path = str(request.spec.parent / os.path.relpath(path, repository.prefix))
    missing = Snapshot(
        title, spec, display_path, exists=False, exported_to=folder, repository=repository
    )
    if commit is None:
        return missing
    tree = CommitTree(repository, commit)
    entries = [entry for entry in tree.entries(files=[path]) if entry.path == path]
    if not entries:
        return missing
    if entries[0].kind != "file":
        raise _link_error(display_path, title)
    if export_files(tree, entries, folder):
        raise UnreadableSpecError(
            f"{display_path} is larger than {MAX_FILE_BYTES:,} bytes in {title}",
            "give the spec with --spec FILE",
        )
    _export_package(tree, package_folder(path.parent, read_file(spec).data), folder)
    if not request.with_program:
        return missing._replace(exists=True)
    skipped, files = _export_project(tree, path.parent, folder)
    return missing._replace(exists=True, skipped_files=skipped, program_files=files)


def _link_error(path: str, title: str) -> UnreadableSpecError:
    message = f"{path} is a symbolic link in {title}, and links are not followed"
    return UnreadableSpecError(message, "commit the file itself")


def _export_package(tree: CommitTree, package: PurePosixPath | None, folder: Path) -> None:
    """Export what a check reads of a local trainer package: that the folder exists, and its build file."""
    if package is None:
        return
    # A package is built from its own folder or from the one above, where setup.py is.
    build_files = [
        parent / name for parent in dict.fromkeys((package, package.parent)) for name in BUILD_FILES
    ]
    export_files(tree, tree.entries(files=build_files), folder)
    if next(tree.entries([package]), None):
        # The check needs the folder, not its content.
        (folder / package).mkdir(parents=True, exist_ok=True)


def _export_project(
    tree: CommitTree, spec_folder: PurePosixPath, folder: Path
) -> tuple[int, dict[str, str]]:
    """Export the stack program and the stacks, wherever they are, and all files below the spec's folder.

    The program has the first place, after the results of compilations, because the number of exported files is limited.
    Returns the number of files that were skipped because of a limit, and the files that `pulumi up` may read.
    """
    first = [*tree.entries(files=[spec_folder / name for name in (*PROJECT_FILES, FIT_FILE)])]
    export_files(tree, first, folder)
    paths = program_paths(spec_folder, pulumi_project(folder / spec_folder))
    roots = tree.entries(paths.roots) if paths.roots else ()
    skipped = export_files(
        tree, dict.fromkeys([*first, *roots, *tree.entries([spec_folder])]), folder
    )
    return len(skipped), program_files(tree, paths)


def _path_before_rename(
    repository: Repository, request: CompareRequest, base: str | None, head: str | None
) -> PurePosixPath | None:
    """Return the spec's path in base if git finds that it was renamed since; None otherwise."""
    if base is None or head is None:
        return None
    options = ["-z", "-M", "--diff-filter=R", "--name-status"]
    if request.head is None:
        # The index, and not the working tree: to compare its files, git would run the repository's own filters.
        output = repository.git("diff-index", "--cached", *options, base)
    else:
        output = repository.git("diff-tree", "-r", *options, base, head)
    parts = [os.fsdecode(part) for part in split_nul(output)]
    path = str(repository.prefix / request.spec.name)
    # Each rename is three parts: a status such as R087, the old path, the new path.
    renames = zip(parts[1::3], parts[2::3], strict=True)
    return next((PurePosixPath(old) for old, new in renames if new == path), None)
