"""Revisions to sides: the spec, found again where it was renamed, and what lies beside it."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from tpucfg.revisions.copying import LARGEST_FILE, Entry, copy, entries
from tpucfg.revisions.git import Repository, names, repository_of
from tpucfg.revisions.model import WORKING_TREE, Commit, RevisionError, Side
from tpucfg.spec.reader import read_file

_BUILD_FILES: Final = ("setup.py", "pyproject.toml")
_SUBSTITUTED: Final = ("gs://", "${")
"""What a package that is no local folder begins with, or holds."""


class Asked(NamedTuple):
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
def opened(asked: Asked) -> Iterator[tuple[Side, Side]]:
    """Both sides, as long as the context lasts: a revision lies in a temporary folder.

    Raises:
        RevisionError: One of them cannot be read, or neither has a spec.
    """
    repository = repository_of(asked.spec.parent)
    named, head = repository.commit(asked.base), repository.commit(asked.head or "HEAD")
    base = named
    if asked.since_parting and named and head:
        base = repository.merge_base(named, head) or named
    path = repository.prefix / asked.spec.name
    with ExitStack() as stack:
        folders = [Path(stack.enter_context(TemporaryDirectory(prefix="tpucfg-"))).resolve() for _ in range(2)]
        if asked.head is None:
            after = Side(WORKING_TREE, asked.spec, str(asked.spec), os.path.lexists(asked.spec))
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
            before = before._replace(commit=Commit(base, is_parting=base != named))
        if asked.head is not None and head:
            after = after._replace(commit=Commit(head, merges=repository.merged(head, base) if base else ""))
        yield before._replace(inside=path.as_posix()), after._replace(inside=path.as_posix())


def _side(
    repository: Repository, asked: Asked, title: str, commit: str | None, path: PurePosixPath, folder: Path
) -> Side:
    """The side of a commit, copied into the folder below the same path that it has in the repository."""
    spec, shown = folder / path, _shown(asked.spec, repository.prefix, path)
    if commit is None:
        return Side(title, spec, shown, exists=False, copied_to=folder)
    found = [entry for entry in entries(repository, commit, [path], below=False) if entry.path == path]
    if not found:
        return Side(title, spec, shown, exists=False, copied_to=folder)
    if not found[0].regular:
        raise RevisionError(f"{shown} is a symbolic link in {title}, and is not followed", "commit the file itself")
    if copy(repository, found, folder):
        raise RevisionError(f"{shown} is larger than {LARGEST_FILE:,} bytes in {title}", "is this the right file?")
    _copy_package(repository, commit, path.parent, spec, folder)
    left_out = copy(repository, _beside(repository, commit, path.parent, folder), folder) if asked.whole else 0
    return Side(title, spec, shown, exists=True, copied_to=folder, left_out=left_out)


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
    wanted = [place / name for place in dict.fromkeys((path, path.parent)) for name in _BUILD_FILES]
    copy(repository, entries(repository, commit, wanted, below=False), folder)
    if next(entries(repository, commit, [path], below=True), None):
        (folder / path).mkdir(parents=True, exist_ok=True)


def _beside(repository: Repository, commit: str, inside: PurePosixPath, folder: Path) -> list[Entry]:
    """Everything below the spec's folder, the stack program and its stacks first, wherever they are."""
    copy(repository, entries(repository, commit, [inside / "Pulumi.yaml"], below=False), folder)
    data = read_file(folder / inside / "Pulumi.yaml").data
    named = [data.get(key) for key in ("main", "stackConfigDir")] if isinstance(data, dict) else []
    first = [PurePosixPath(os.path.normpath(inside / it)) for it in named if isinstance(it, str) and "\0" not in it]
    first = [it for it in first if not it.is_absolute() and ".." not in it.parts]
    found = (entry for it in (*first, inside) for entry in entries(repository, commit, [it], below=True))
    return list(dict.fromkeys(found))


def _renamed(
    repository: Repository, asked: Asked, base: str | None, head: str | None, path: PurePosixPath
) -> PurePosixPath | None:
    """What the spec was called in base, as git finds it; None where it is new.

    Of the working tree the index tells: to look at the files themselves, git would run the repository's filters.
    """
    if base is None or head is None:
        return None
    command, sides = (("diff-index", "--cached"), [base]) if asked.head is None else (("diff-tree", "-r"), [base, head])
    found = repository.git(*command, "-z", "-M", "--diff-filter=R", "--name-status", *sides)
    parts = [os.fsdecode(name) for name in names(found)]
    pairs = zip(parts[1::3], parts[2::3], strict=True)  # behind a status such as R087
    return next((PurePosixPath(old) for old, new in pairs if new == str(path)), None)
