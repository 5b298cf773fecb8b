"""The files of a commit and of the working tree through one interface: list them, read them, identify their contents.

Files of a commit can be exported to a folder: regular files only, limited in size and number, never outside of it.
"""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from tpucfg.fs import open_regular_file
from tpucfg.git.repository import GitError, Repository, RevisionError, split_nul

MAX_FILE_BYTES: Final = 1 << 20
"""The limit that a spec has too; source files of a stack program are far smaller."""
MAX_FILES: Final = 5_000
FIT_FILE: Final = PurePosixPath("results", "fit.json")
"""The results of `tpucfg fit`, relative to a spec's folder."""
_MAX_RESULT_BYTES: Final = 8 << 20
"""The limit for results, no less than for reading them: a padded file must not hide a record from a review."""
_MAX_EXPORT_BYTES: Final = 1 << 26
"""The limit for all files together."""
_MAX_HASHED_BYTES: Final = 1 << 26
_MAX_LINK_BYTES: Final = 4096
_KINDS_BY_MODE: Final = {b"120000": "link", b"160000": "submodule"}
"""Modes of entries that are no files; all others are: https://git-scm.com/docs/git-fast-import."""


class TreeEntry(NamedTuple):
    """A file of a commit or of the working tree."""

    path: PurePosixPath
    """Relative to the root of the repository."""
    kind: str
    """`file`, `link` or `submodule`."""
    id: str
    """Git's id of the content, or a submodule's commit. In a working tree, the index has it; empty for a new file."""
    size: int


class Content(NamedTuple):
    """The identity of the content that a path leads to."""

    id: str
    """Git's id of the content; for a link, of its target in the repository. Empty if it is not known."""
    target: str = ""
    """The target of a link."""


class CommitTree(NamedTuple):
    """The files of a commit."""

    repository: Repository
    commit: str

    def entries(
        self, folders: Sequence[PurePosixPath] = (), files: Sequence[PurePosixPath] = ()
    ) -> Iterator[TreeEntry]:
        """Yield the files at or below the folders, and those at the single paths, some of them twice.

        Raises:
            GitError: The commit cannot be read.
        """
        for paths, options in ((folders, ["-r"]), (files, [])):
            # The root of the repository has no path in ls-tree: it is listed when no path is given.
            pathspecs = [str(path) for path in paths] if all(path.parts for path in paths) else []
            arguments = (*options, "-l", "-z", "--full-tree", self.commit, "--", *pathspecs)
            for line in split_nul(self.repository.git("ls-tree", *arguments)) if paths else ():
                description, _, name = line.partition(b"\t")
                mode, kind, id_, size = description.split()
                path = PurePosixPath(os.fsdecode(name))
                if kind != b"tree" and _is_inside(path):
                    # A submodule has no size.
                    length = 0 if size == b"-" else int(size)
                    yield TreeEntry(path, _KINDS_BY_MODE.get(mode, "file"), id_.decode(), length)

    def read(self, entries: Sequence[TreeEntry]) -> Iterator[bytes]:
        """Yield the contents of the entries, in order, from one git process.

        `git cat-file --batch` prints for each file a line `ID TYPE SIZE`, the content, and a line break.
        """
        if not entries:
            return
        ids = "".join(f"{entry.id}\n" for entry in entries)
        output = self.repository.git("cat-file", "--batch", stdin=ids.encode())
        position = 0
        for entry in entries:
            start = output.find(b"\n", position) + 1
            header = output[position:start].split()
            if len(header) != 3 or int(header[2]) != entry.size:  # noqa: PLR2004 - id, type, size
                raise GitError(f"git cat-file: {entry.path} is missing from this clone")
            yield output[start : start + entry.size]
            position = start + entry.size + 1

    def contents(self, entries: Sequence[TreeEntry]) -> Iterator[Content]:
        """Yield the identities of the entries' contents, in order; links are followed within the commit."""
        # A link with a longer target leads nowhere.
        links = [
            entry for entry in entries if entry.kind == "link" and entry.size <= _MAX_LINK_BYTES
        ]
        # One line for each request: git would split a path at a line break.
        requests = [
            ":" if "\n" in str(link.path) else f"{self.commit}:{link.path}" for link in links
        ]
        blobs = follow_paths(self.repository, requests) if links else ()
        followed = {
            link: Content(blob.id if blob else "", os.fsdecode(target))
            for link, blob, target in zip(links, blobs, self.read(links), strict=True)
        }
        for entry in entries:
            yield followed.get(entry, Content("" if entry.kind == "link" else entry.id))


class WorkingTree(NamedTuple):
    """The files of the working tree that git knows or would add: tracked ones, and new ones that are not ignored."""

    repository: Repository

    def entries(
        self, folders: Sequence[PurePosixPath] = (), files: Sequence[PurePosixPath] = ()
    ) -> Iterator[TreeEntry]:
        """Yield the files at or below the folders, and those at the single paths."""
        git, pathspecs = self.repository.git, [str(path) for path in (*folders, *files)]
        listed: dict[bytes, tuple[str, str]] = {}
        for name in split_nul(
            git("ls-files", "-z", "--others", "--exclude-standard", "--", *pathspecs)
        ):
            listed[name] = ("submodule" if name.endswith(b"/") else "file", "")
        for line in split_nul(git("ls-files", "-z", "--stage", "--", *pathspecs)):
            description, _, name = line.partition(b"\t")
            mode, content_id, _ = description.split()
            listed[name] = (_KINDS_BY_MODE.get(mode, "file"), content_id.decode())
        roots, single = {*folders}, {*files}
        for name, (kind, id_) in listed.items():
            path = PurePosixPath(os.fsdecode(name))
            if path in single or not roots.isdisjoint((path, *path.parents)):
                yield from self._entry(path, kind, id_)

    def _entry(self, path: PurePosixPath, kind: str, id_: str) -> Iterator[TreeEntry]:
        """Yield the entry of a path that exists."""
        if kind == "submodule":
            yield TreeEntry(path, kind, id_, 0)
        elif os.path.lexists(self.repository.folder / path):
            status = (self.repository.folder / path).lstat()
            yield TreeEntry(
                path, "link" if stat.S_ISLNK(status.st_mode) else "file", id_, status.st_size
            )

    def read(self, entries: Sequence[TreeEntry]) -> Iterator[bytes]:
        """Yield the contents of the entries, in order; a file that cannot be read is empty."""
        for entry in entries:
            yield self._content(entry) or b""

    def contents(self, entries: Sequence[TreeEntry]) -> Iterator[Content]:
        """Yield the identities of the entries' contents, in order, as git would identify them."""
        algorithm = self.repository.git("rev-parse", "--show-object-format").decode().strip()
        for entry in entries:
            if entry.kind == "submodule":
                yield Content(entry.id)
                continue
            content, id_ = self._content(entry), ""
            if content is not None:
                # Git's own format, not a means of security: https://git-scm.com/book/en/v2/Git-Internals-Git-Objects.
                data = b"blob %d\0" % len(content) + content
                id_ = hashlib.new(algorithm, data, usedforsecurity=False).hexdigest()
            link = self.repository.folder / entry.path
            yield Content(id_, os.readlink(link) if entry.kind == "link" else "")  # noqa: PTH115 - Path alters "./a"

    def _content(self, entry: TreeEntry) -> bytes | None:
        """Return the content of a file, or of what a link leads to; None if it cannot be read, or is too large."""
        try:
            with open_regular_file(self.repository.folder / entry.path) as file:
                content = file.read(_MAX_HASHED_BYTES + 1)
        except OSError:
            return None
        return content if len(content) <= _MAX_HASHED_BYTES else None


Tree = CommitTree | WorkingTree


def tree_of(repository: Repository, commit: str | None) -> Tree:
    """Return the files of a commit; None for the working tree."""
    return CommitTree(repository, commit) if commit else WorkingTree(repository)


def read_files(tree: Tree, paths: Sequence[PurePosixPath]) -> Mapping[PurePosixPath, bytes]:
    """Return the contents of those paths that are files, no links or submodules, and not too large to be read."""
    entries = [
        entry
        for entry in tree.entries(files=paths)
        if entry.kind == "file" and entry.size <= MAX_FILE_BYTES
    ]
    return dict(zip((entry.path for entry in entries), tree.read(entries), strict=True))


def _is_inside(path: PurePosixPath) -> bool:
    """Return True if a path stays inside the folder it is exported to.

    Git refuses to create such a tree, but a hostile repository can contain one.
    """
    return (
        bool(path.parts)
        and not path.is_absolute()
        and ".." not in path.parts
        and "\\" not in path.name
    )


# Objects of a repository


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
    output = repository.git(
        "cat-file", "--batch-check", "--follow-symlinks", stdin=os.fsencode(stdin)
    )
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


# Export


def export_files(
    tree: CommitTree, entries: Iterable[TreeEntry], folder: Path
) -> frozenset[TreeEntry]:
    """Write the regular files below the folder; return those that were skipped because of a limit.

    Raises:
        RevisionError: A file cannot be read or written.
    """
    chosen: list[TreeEntry] = []
    skipped = []
    remaining_bytes = _MAX_EXPORT_BYTES
    for entry in entries:
        if entry.kind != "file":
            continue
        if entry.size > min(_max_bytes(entry.path), remaining_bytes) or len(chosen) >= MAX_FILES:
            skipped.append(entry)
            continue
        chosen.append(entry)
        remaining_bytes -= entry.size
    for entry, content in zip(chosen, tree.read(chosen), strict=True):
        _write_new_file(folder / entry.path, content)
    return frozenset(skipped)


def _max_bytes(path: PurePosixPath) -> int:
    return _MAX_RESULT_BYTES if path.parent.name == FIT_FILE.parent.name else MAX_FILE_BYTES


def _write_new_file(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Mode x never follows or overwrites an existing file.
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError:
        return  # two paths that are one for this file system, or a file that is exported twice
    except OSError as error:
        raise RevisionError(f"{path.name} cannot be exported: {error.strerror or error}") from None
