"""Snapshots of a project: a spec and the files beside it, at a git revision or in the working tree."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from tpucfg.git.export import MAX_FILE_BYTES, TreeEntry, export_files, list_entries
from tpucfg.git.repository import Repository, RevisionError, find_repository, split_nul
from tpucfg.yamldoc.reader import read_file

WORKING_TREE: Final = "the working tree"
_BUILD_FILES: Final = ("setup.py", "pyproject.toml")
_NOT_LOCAL: Final = ("gs://", "${")
"""A `package` that contains one of these is not a folder of the repository."""


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
    repository_path: str = ""
    """The path of the requested spec, relative to the root of the repository."""
    commit: Commit | None = None
    """None for the working tree, and before the first commit."""

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


@contextmanager
def open_snapshots(request: CompareRequest) -> Iterator[tuple[Snapshot, Snapshot]]:
    """Export both revisions to temporary folders, which are deleted when the context ends.

    Raises:
        RevisionError: A revision cannot be read, or neither has a spec.
    """
    repository = find_repository(request.spec.parent)
    given_base, head = repository.resolve(request.base), repository.resolve(request.head or "HEAD")
    base = given_base
    if request.from_merge_base and given_base and head:
        base = repository.merge_base(given_base, head) or given_base
    path = repository.prefix / request.spec.name
    with ExitStack() as stack:
        before_folder, after_folder = (
            # Resolved, because some systems have a symbolic link in the path of their temporary folder.
            Path(stack.enter_context(TemporaryDirectory(prefix="tpucfg-"))).resolve()
            for _ in range(2)
        )
        if request.head is None:
            # lexists: a broken link is not a missing spec, but one that the reader reports as unreadable.
            after = Snapshot(WORKING_TREE, request.spec, str(request.spec), os.path.lexists(request.spec))
        else:
            after = _export_snapshot(repository, request, request.head, head, path, after_folder)
        before = _export_snapshot(repository, request, request.base, base, path, before_folder)
        if not before.exists and after.exists and (old_path := _path_before_rename(repository, request, base, head)):
            before = _export_snapshot(repository, request, request.base, base, old_path, before_folder)
        if not before.exists and not after.exists:
            raise RevisionError(
                f"there is no {request.spec} in {before.title} or in {after.title}",
                "give the spec's path with --spec FILE, or make a new project with: tpucfg init",
            )
        if base:
            before = before._replace(commit=Commit(base, is_merge_base=base != given_base))
        if request.head is not None and head:
            after = after._replace(commit=Commit(head, merges=repository.merged_commit(head, base) if base else ""))
        yield before._replace(repository_path=path.as_posix()), after._replace(repository_path=path.as_posix())


def _export_snapshot(
    repository: Repository, request: CompareRequest, title: str, commit: str | None, path: PurePosixPath, folder: Path
) -> Snapshot:
    """Export a commit's spec and the files beside it; each keeps its path in the repository."""
    spec = folder / path
    display_path = str(request.spec.parent / os.path.relpath(path, repository.prefix))
    missing = Snapshot(title, spec, display_path, exists=False, exported_to=folder)
    if commit is None:
        return missing
    entries = [entry for entry in list_entries(repository, commit, [path], recursive=False) if entry.path == path]
    if not entries:
        return missing
    if not entries[0].is_regular:
        raise RevisionError(
            f"{display_path} is a symbolic link in {title}, and links are not followed", "commit the file itself"
        )
    if export_files(repository, entries, folder):
        raise RevisionError(
            f"{display_path} is larger than {MAX_FILE_BYTES:,} bytes in {title}", "give the spec with --spec FILE"
        )
    _export_package(repository, commit, path.parent, spec, folder)
    skipped_files = 0
    if request.with_program:
        skipped_files = export_files(repository, _project_entries(repository, commit, path.parent, folder), folder)
    return missing._replace(exists=True, skipped_files=skipped_files)


def _export_package(repository: Repository, commit: str, spec_folder: PurePosixPath, spec: Path, folder: Path) -> None:
    """Export what a check reads of a local trainer package: that the folder exists, and its build file."""
    data = read_file(spec).data
    trainer = data.get("trainer") if isinstance(data, dict) else None
    package = trainer.get("package") if isinstance(trainer, dict) else None
    if not isinstance(package, str) or any(part in package for part in _NOT_LOCAL):
        return
    path = _normalized(spec_folder, package)
    if path is None:
        return
    # A package is built from its own folder or from the one above, where setup.py is.
    build_files = [parent / name for parent in dict.fromkeys((path, path.parent)) for name in _BUILD_FILES]
    export_files(repository, list_entries(repository, commit, build_files, recursive=False), folder)
    if next(list_entries(repository, commit, [path], recursive=True), None):
        # The check needs the folder, not its content.
        (folder / path).mkdir(parents=True, exist_ok=True)


def _project_entries(repository: Repository, commit: str, spec_folder: PurePosixPath, folder: Path) -> list[TreeEntry]:
    """Return the files of the stack program and the stacks, wherever they are, then all files below the spec's folder.

    The program has the first place because the number of exported files is limited.
    """
    pulumi = spec_folder / "Pulumi.yaml"
    export_files(repository, list_entries(repository, commit, [pulumi], recursive=False), folder)
    data = read_file(folder / pulumi).data
    values = [data.get(key) for key in ("main", "stackConfigDir")] if isinstance(data, dict) else []
    paths = [_normalized(spec_folder, value) for value in values if isinstance(value, str)]
    roots = [*(path for path in paths if path is not None), spec_folder]
    entries = (entry for root in roots for entry in list_entries(repository, commit, [root], recursive=True))
    return list(dict.fromkeys(entries))


def _normalized(spec_folder: PurePosixPath, value: str) -> PurePosixPath | None:
    """Return a path from a file of the project, relative to the repository's root; None if it leads out of it."""
    path = PurePosixPath(os.path.normpath(spec_folder / value))
    return None if path.is_absolute() or ".." in path.parts or "\0" in value else path


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
