"""Files of a commit or of the index, and their contents, as git stores them."""

import os
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from tpucfg.git.repository import GitError, Repository, split_nul

_KINDS_BY_MODE: Final = {b"120000": "link", b"160000": "submodule"}
"""Modes of entries that are no files; all others are: https://git-scm.com/docs/git-fast-import."""


class TreeEntry(NamedTuple):
    """A file of a commit."""

    path: PurePosixPath
    """Relative to the root of the repository."""
    kind: str
    """`file`, `link` or `submodule`."""
    id: str
    """The id of the content; of a submodule, its commit."""
    size: int

    @property
    def is_regular(self) -> bool:
        """True if the entry is a file, and no symbolic link or submodule."""
        return self.kind == "file"


def list_entries(
    repository: Repository, commit: str, paths: Sequence[PurePosixPath], *, recursive: bool
) -> Iterator[TreeEntry]:
    """Yield the files of a commit at the given paths; with `recursive`, also the files below those that are folders.

    Raises:
        GitError: The commit cannot be read.
    """
    # The root of the repository has no path in ls-tree: it is listed when no path is given.
    pathspecs = [str(path) for path in paths if path.parts]
    options = ["-r"] if recursive else []
    listing = repository.git("ls-tree", *options, "-l", "-z", "--full-tree", commit, "--", *pathspecs)
    for line in split_nul(listing):
        description, _, name = line.partition(b"\t")
        mode, kind, id_, size = description.split()
        path = PurePosixPath(os.fsdecode(name))
        if kind != b"tree" and _is_inside(path):
            # A submodule has no size.
            yield TreeEntry(path, _KINDS_BY_MODE.get(mode, "file"), id_.decode(), int(size) if size.isdigit() else 0)


def list_staged(repository: Repository, pathspecs: Sequence[str]) -> Iterator[TreeEntry]:
    """Yield the files of the index below the given paths, which are relative to the repository's folder.

    The index has no sizes: they are 0.

    Raises:
        GitError: The index cannot be read.
    """
    for line in split_nul(repository.git("ls-files", "-z", "--full-name", "--stage", "--", *pathspecs)):
        description, _, name = line.partition(b"\t")
        mode, id_, _ = description.split()
        yield TreeEntry(PurePosixPath(os.fsdecode(name)), _KINDS_BY_MODE.get(mode, "file"), id_.decode(), 0)


def read_contents(repository: Repository, entries: Sequence[TreeEntry]) -> Iterator[bytes]:
    """Yield the contents of the entries, in order, from one git process.

    `git cat-file --batch` prints for each file a line `ID TYPE SIZE`, the content, and a line break.
    """
    if not entries:
        return
    ids = "".join(f"{entry.id}\n" for entry in entries)
    output = repository.git("cat-file", "--batch", stdin=ids.encode())
    position = 0
    for entry in entries:
        start = output.find(b"\n", position) + 1
        header = output[position:start].split()
        if len(header) != 3 or int(header[2]) != entry.size:  # noqa: PLR2004 - id, type, size
            raise GitError(f"git cat-file: {entry.path} is missing from this clone")
        yield output[start : start + entry.size]
        position = start + entry.size + 1


class Blob(NamedTuple):
    """The content that a path of a commit leads to."""

    kind: str
    """`blob`, or `tree` for a folder."""
    id: str
    size: int


def follow_paths(repository: Repository, requests: Sequence[str]) -> Iterator[Blob | None]:
    """Yield what each `COMMIT:PATH` leads to, through links inside the commit; None if that is nothing in the commit.

    `git cat-file --follow-symlinks` prints `ID TYPE SIZE`; or `symlink SIZE`, a line break and a target outside of the
    commit; or `dangling`, `loop` or `notdir` in the same form; or `REQUEST missing`. A request has no line break.
    """
    stdin = "".join(f"{request}\n" for request in requests)
    output = repository.git("cat-file", "--batch-check", "--follow-symlinks", stdin=os.fsencode(stdin))
    position = 0
    for _ in requests:
        end = output.find(b"\n", position)
        words = output[position:end].split()
        position = end + 1
        if words and words[0] in {b"symlink", b"dangling", b"loop", b"notdir"}:
            position += int(words[1]) + 1
            yield None
        elif len(words) == 3 and words[1] in {b"blob", b"tree"}:  # noqa: PLR2004 - id, type, size
            yield Blob(words[1].decode(), words[0].decode(), int(words[2]))
        else:
            yield None


def _is_inside(path: PurePosixPath) -> bool:
    """Return True if a path stays inside the folder it is exported to.

    Git refuses to create such a tree, but a hostile repository can contain one.
    """
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts and "\\" not in path.name
