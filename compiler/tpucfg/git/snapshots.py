"""A side of a comparison."""

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


class Commit(NamedTuple):
    """The commit that a side is."""

    id: str
    """In full: how short an id may be depends on the clone."""
    is_merge_base: bool = False
    """Whether it is not what was asked for, but where the other side left that."""
    merges: str = ""
    """The commit that it merges into the other side, as a service does to try a merge; empty for any other commit."""


class Snapshot(NamedTuple):
    """A spec with what lies beside it, as it was or is somewhere."""

    title: str
    """The revision as the user gave it, or `the working tree`."""
    spec: Path
    """Where the spec can be read now."""
    shown: str
    """The spec's path as its user knows it, for findings."""
    exists: bool
    """Whether this side has a spec at all: before the first commit there is none."""
    exported_to: Path | None = None
    """The temporary folder that a revision was copied to; None for the working tree."""
    left_out: int = 0
    """Files of the revision that were too many or too large to be copied."""
    repository_path: str = ""
    """The path in the repository that is asked for, on either side; it is the same from wherever somebody asks."""
    commit: Commit | None = None
    """What was read; None for the working tree, and before the first commit."""

    def said(self, text: str) -> str:
        """A text about this side without the temporary folder's name in it."""
        return (
            text
            if self.exported_to is None
            else text.replace(f"{self.exported_to}/", "").replace(str(self.exported_to), ".")
        )


# Revisions to sides: the spec, found again where it was renamed, and what lies beside it.


_BUILD_FILES: Final = ("setup.py", "pyproject.toml")
_SUBSTITUTED: Final = ("gs://", "${")
"""What a package that is no local folder begins with, or holds."""


class CompareRequest(NamedTuple):
    """What to compare."""

    base: str
    head: str | None
    """None: the working tree."""
    spec: Path
    whole: bool
    """The stack program too, and not only what a check of the spec looks at."""
    since_parting: bool = False
    """From where head left base, and not from base as it is by now."""


@contextmanager
def open_snapshots(asked: CompareRequest) -> Iterator[tuple[Snapshot, Snapshot]]:
    """Both sides, as long as the context lasts: a revision lies in a temporary folder.

    Raises:
        RevisionError: One of them cannot be read, or neither has a spec.
    """
    repository = find_repository(asked.spec.parent)
    named, head = repository.commit(asked.base), repository.commit(asked.head or "HEAD")
    base = named
    if asked.since_parting and named and head:
        base = repository.merge_base(named, head) or named
    path = repository.prefix / asked.spec.name
    with ExitStack() as stack:
        folders = [Path(stack.enter_context(TemporaryDirectory(prefix="tpucfg-"))).resolve() for _ in range(2)]
        if asked.head is None:
            after = Snapshot(WORKING_TREE, asked.spec, str(asked.spec), os.path.lexists(asked.spec))
        else:
            after = _side(repository, asked, asked.head, head, path, folders[1])
        before = _side(repository, asked, asked.base, base, path, folders[0])
        if not before.exists and after.exists and (old := _renamed(repository, asked, base, head, path)):
            before = _side(repository, asked, asked.base, base, old, folders[0])
        if not before.exists and not after.exists:
            raise RevisionError(
                f"there is no {asked.spec} in {before.title}, nor in {after.title}",
                "give the spec's path with --spec FILE, or make a new project with: tpucfg init",
            )
        if base:
            before = before._replace(commit=Commit(base, is_merge_base=base != named))
        if asked.head is not None and head:
            after = after._replace(commit=Commit(head, merges=repository.merged(head, base) if base else ""))
        yield before._replace(repository_path=path.as_posix()), after._replace(repository_path=path.as_posix())


def _side(
    repository: Repository, asked: CompareRequest, title: str, commit: str | None, path: PurePosixPath, folder: Path
) -> Snapshot:
    """The side of a commit, copied into the folder below the same path that it has in the repository."""
    spec, shown = folder / path, _shown(asked.spec, repository.prefix, path)
    if commit is None:
        return Snapshot(title, spec, shown, exists=False, exported_to=folder)
    found = [entry for entry in list_entries(repository, commit, [path], below=False) if entry.path == path]
    if not found:
        return Snapshot(title, spec, shown, exists=False, exported_to=folder)
    if not found[0].regular:
        raise RevisionError(f"{shown} is a symbolic link in {title}, and is not followed", "commit the file itself")
    if export_files(repository, found, folder):
        raise RevisionError(f"{shown} is larger than {MAX_FILE_BYTES:,} bytes in {title}", "is this the right file?")
    _copy_package(repository, commit, path.parent, spec, folder)
    left_out = export_files(repository, _beside(repository, commit, path.parent, folder), folder) if asked.whole else 0
    return Snapshot(title, spec, shown, exists=True, exported_to=folder, left_out=left_out)


def _shown(spec: Path, prefix: PurePosixPath, path: PurePosixPath) -> str:
    """A path of the repository as seen from where the user stands."""
    return str(spec.parent / os.path.relpath(path, prefix))


def _copy_package(repository: Repository, commit: str, inside: PurePosixPath, spec: Path, folder: Path) -> None:
    """A local package, as far as a check looks at it: whether it is there, and its build file."""
    data = read_file(spec).data
    trainer = data.get("trainer") if isinstance(data, dict) else None
    package = trainer.get("package") if isinstance(trainer, dict) else None
    if not isinstance(package, str) or any(it in package for it in _SUBSTITUTED) or "\0" in package:
        return
    path = PurePosixPath(os.path.normpath(inside / package))
    if path.is_absolute() or ".." in path.parts:
        return
    wanted = [location / name for location in dict.fromkeys((path, path.parent)) for name in _BUILD_FILES]
    export_files(repository, list_entries(repository, commit, wanted, below=False), folder)
    if next(list_entries(repository, commit, [path], below=True), None):
        (folder / path).mkdir(parents=True, exist_ok=True)


def _beside(repository: Repository, commit: str, inside: PurePosixPath, folder: Path) -> list[TreeEntry]:
    """Everything below the spec's folder, the stack program and its stacks first, wherever they are."""
    export_files(repository, list_entries(repository, commit, [inside / "Pulumi.yaml"], below=False), folder)
    data = read_file(folder / inside / "Pulumi.yaml").data
    named = [data.get(key) for key in ("main", "stackConfigDir")] if isinstance(data, dict) else []
    first = [PurePosixPath(os.path.normpath(inside / it)) for it in named if isinstance(it, str) and "\0" not in it]
    first = [it for it in first if not it.is_absolute() and ".." not in it.parts]
    found = (entry for it in (*first, inside) for entry in list_entries(repository, commit, [it], below=True))
    return list(dict.fromkeys(found))


def _renamed(
    repository: Repository, asked: CompareRequest, base: str | None, head: str | None, path: PurePosixPath
) -> PurePosixPath | None:
    """What the spec was called in base, as git finds it; None where it is new.

    Of the working tree the index tells: to look at the files themselves, git would run the repository's filters.
    """
    if base is None or head is None:
        return None
    command, sides = (("diff-index", "--cached"), [base]) if asked.head is None else (("diff-tree", "-r"), [base, head])
    found = repository.git(*command, "-z", "-M", "--diff-filter=R", "--name-status", *sides)
    parts = [os.fsdecode(name) for name in split_nul(found)]
    pairs = zip(parts[1::3], parts[2::3], strict=True)  # behind a status such as R087
    return next((PurePosixPath(old) for old, new in pairs if new == str(path)), None)
