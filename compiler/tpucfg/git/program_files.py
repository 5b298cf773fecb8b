"""The files that `pulumi up` may read for a spec, with their contents' ids, in a commit or in the working tree."""

import hashlib
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final, Literal, NamedTuple

from tpucfg.fs import open_regular_file
from tpucfg.git.repository import (
    MAX_FILE_BYTES,
    MAX_FILES,
    GitError,
    Repository,
    TreeEntry,
    follow_paths,
    list_entries,
    list_staged,
    read_contents,
    split_nul,
)
from tpucfg.git.specs import normalize_path
from tpucfg.infra.pulumi_project import PROJECT_FILES, pulumi_project

PACKAGE_FILES: Final = (
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
ATTRIBUTES: Final = ".gitattributes"
"""A file that can make a checkout differ from the commit: https://git-scm.com/docs/gitattributes."""
_REQUIREMENTS: Final = "requirements.txt"
_INCLUDE: Final = re.compile(r"^\s*(-r|--requirement|-c|--constraint|-e|--editable)[ =]?\s*([^\s#;\[]+)", re.MULTILINE)
"""Lines of a requirements file that name another file, or a folder whose code is installed:
https://pip.pypa.io/en/stable/reference/requirements-file-format/."""
_BUILD_FILES: Final = ("pyproject.toml", "setup.py", "setup.cfg")
_MAX_INCLUDED: Final = 50
_SURROUNDING_FILES: Final = (*PACKAGE_FILES, ATTRIBUTES)
_MAX_HASHED_BYTES: Final = 1 << 26
_MAX_LINK_BYTES: Final = 4096
_SHA1_LENGTH: Final = 40

FileKind = Literal["file", "link", "submodule", "large", "excess"]
"""Of a commit, only a `file` is read: `large` exceeds the limit of one file, and `excess` that of all files."""


class FileVersion(NamedTuple):
    """A file at one revision."""

    path: str
    """Relative to the spec's folder."""
    kind: FileKind
    id: str
    """Git's id of the content; of a link, of what it leads to in the repository. Empty if it is not known."""
    target: str = ""
    """The target of a link."""


class ProgramPaths(NamedTuple):
    """The folders of a Pulumi project, relative to the repository's root."""

    spec_folder: PurePosixPath
    program: PurePosixPath | None
    """None without a project, or with one whose program is not in the repository."""
    stacks: PurePosixPath | None
    other_code: tuple[PurePosixPath, ...]
    included: tuple[PurePosixPath, ...] = ()
    """The entries of requirements files: other ones, and folders whose code is installed."""

    @property
    def roots(self) -> tuple[PurePosixPath, ...]:
        """The folders without the spec's own."""
        return tuple(path for path in (self.program, self.stacks, *self.other_code) if path is not None)

    @property
    def outside_roots(self) -> Sequence[PurePosixPath]:
        """Single paths outside the folders: what chooses the program's packages, and folders that may be links."""
        above = [parent for root in self.roots for parent in (root, *root.parents) if parent.parts]
        names = [folder / name for folder in self.surrounding_folders for name in _SURROUNDING_FILES]
        return list(dict.fromkeys([*above, *names]))

    @property
    def surrounding_folders(self) -> tuple[PurePosixPath, ...]:
        """The folders of program and stacks and those above, in which files may choose packages and the checkout."""
        folders = [folder for folder in (self.program, self.stacks) if folder is not None]
        return tuple(dict.fromkeys(path for folder in folders for path in (folder, *folder.parents)))

    def includes(self, path: PurePosixPath) -> bool:
        """Return True if `pulumi up` may read a file."""
        if path.name in PROJECT_FILES and path.parent == self.spec_folder:
            return True
        if path.name in _SURROUNDING_FILES and path.parent in self.surrounding_folders:
            return True
        is_stack_file = path.parent == self.stacks and path.name.startswith("Pulumi.")
        lineage = {path, *path.parents}
        is_included = not lineage.isdisjoint(self.included)
        is_program = self.program in lineage or self.is_other_code(path) or is_included
        return is_stack_file or is_program or any(path in root.parents or path == root for root in self.roots)

    def is_other_code(self, path: PurePosixPath) -> bool:
        """Return True for a file of the code that Pulumi runs besides the program."""
        return any(code in {path, *path.parents} for code in self.other_code)


def program_paths(folder: Path, spec_folder: PurePosixPath) -> ProgramPaths:
    """Return the folders of the Pulumi project in a folder, which is `spec_folder` in the repository."""
    pulumi = pulumi_project(folder)
    if pulumi is None:
        return ProgramPaths(spec_folder, None, None, ())
    program, stacks = (
        normalize_path(spec_folder, os.path.relpath(path, folder)) for path in (pulumi.program, pulumi.stacks)
    )
    other_code = (normalize_path(spec_folder, path) for path in pulumi.other_code)
    return ProgramPaths(spec_folder, program, stacks, tuple(path for path in other_code if path is not None))


def files_of_commit(
    repository: Repository,
    commit: str,
    paths: ProgramPaths,
    entries: Iterable[TreeEntry],
    skipped: Collection[TreeEntry],
) -> tuple[FileVersion, ...]:
    """Return the files of a commit that `pulumi up` may read.

    Args:
        repository: the repository.
        commit: the id of the commit.
        paths: the folders of the Pulumi project.
        entries: the files that were listed for the export.
        skipped: those that were not exported because of a limit.

    Raises:
        GitError: The commit cannot be read.
    """
    outside = list_entries(repository, commit, paths.outside_roots, recursive=False) if paths.roots else ()
    paths = with_included(paths, lambda path: _text_of_commit(repository, commit, path))
    included = list_entries(repository, commit, paths.included, recursive=True) if paths.included else ()
    chosen = [entry for entry in dict.fromkeys([*entries, *outside, *included]) if paths.includes(entry.path)]
    targets = _link_targets(repository, commit, [entry for entry in chosen if entry.kind == "link"])
    return tuple(
        sorted(
            FileVersion(_shown(entry.path, paths), _kind(entry, skipped), *targets.get(entry, (entry.id,)))
            for entry in chosen
        )
    )


def with_included(paths: ProgramPaths, read: Callable[[PurePosixPath], str]) -> ProgramPaths:
    """Return the paths with what the requirements files of the program name, and what these name in turn.

    Args:
        paths: the folders of the Pulumi project.
        read: returns the text of a file; empty if there is none.
    """
    pending = [folder / _REQUIREMENTS for folder in paths.surrounding_folders]
    included: dict[PurePosixPath, None] = {}
    seen = {*pending}
    while pending and len(included) < _MAX_INCLUDED:
        file = pending.pop(0)
        for option, name in _INCLUDE.findall(read(file)):
            path = normalize_path(file.parent, name)
            if path is None or path in seen:
                continue
            seen.add(path)
            if option in {"-e", "--editable"}:
                included |= dict.fromkeys(path / build for build in _BUILD_FILES)
                # The whole repository is no part of the program.
                included |= {} if path in {paths.spec_folder, *paths.spec_folder.parents} else {path: None}
            else:
                included[path] = None
                pending.append(path)
    return paths._replace(included=tuple(included))


def _text_of_commit(repository: Repository, commit: str, path: PurePosixPath) -> str:
    entries = [entry for entry in list_entries(repository, commit, [path], recursive=False) if entry.path == path]
    readable = [entry for entry in entries if entry.is_regular and entry.size <= MAX_FILE_BYTES]
    return b"".join(read_contents(repository, readable)).decode(errors="replace")


def _text_of_file(path: Path) -> str:
    try:
        with open_regular_file(path) as file:
            return file.read(MAX_FILE_BYTES).decode(errors="replace")
    except OSError:
        return ""


def _kind(entry: TreeEntry, skipped: Collection[TreeEntry]) -> FileKind:
    if entry in skipped:
        return "large" if entry.size > MAX_FILE_BYTES else "excess"
    return "link" if entry.kind == "link" else "submodule" if entry.kind == "submodule" else "file"


def _shown(path: PurePosixPath, paths: ProgramPaths) -> str:
    return os.path.relpath(path, paths.spec_folder)


def _link_targets(
    repository: Repository, commit: str, links: Sequence[TreeEntry]
) -> Mapping[TreeEntry, tuple[str, str]]:
    """Return for each link the id of what it leads to within the commit, and its target."""
    if not links:
        return {}
    # One line for each request: git would split a path at a line break.
    requests = [":" if "\n" in str(link.path) else f"{commit}:{link.path}" for link in links]
    # A link with a longer target leads nowhere.
    short = [link for link in links if link.size <= _MAX_LINK_BYTES][:MAX_FILES]
    contents = dict(zip(short, read_contents(repository, short), strict=True))
    blobs = follow_paths(repository, requests)
    return {
        link: (blob.id if blob else "", os.fsdecode(contents.get(link, b"")))
        for link, blob in zip(links, blobs, strict=True)
    }


def files_of_working_tree(repository: Repository, folder: Path, paths: ProgramPaths) -> tuple[FileVersion, ...]:
    """Return the files of the working tree that `pulumi up` may read, without those that git ignores.

    Args:
        repository: the repository.
        folder: the spec's folder.
        paths: the folders of the Pulumi project.
    """
    paths = with_included(paths, lambda path: _text_of_file(folder / _shown(path, paths)))
    try:
        commit = repository.resolve("HEAD") or ""
        listed = {*_listed_files(repository, paths)}
    except GitError:
        return ()
    algorithm = "sha1" if len(commit) <= _SHA1_LENGTH else "sha256"
    versions = (_version(folder, path, kind, id_, algorithm) for path, kind, id_ in sorted(listed)[: 2 * MAX_FILES])
    return tuple(version for version in versions if version)


def _listed_files(repository: Repository, paths: ProgramPaths) -> Iterator[tuple[str, str, str]]:
    """Yield path, kind and id of the files that git knows or would add; only a submodule's id is of use."""
    project_files = (paths.spec_folder / name for name in PROJECT_FILES)
    roots = [*project_files, *paths.roots, *paths.outside_roots, *paths.included]
    pathspecs = [os.path.relpath(path, repository.prefix) for path in roots]
    for entry in list_staged(repository, pathspecs):
        if paths.includes(entry.path):
            yield _shown(entry.path, paths), "submodule" if entry.kind == "submodule" else "file", entry.id
    untracked = repository.git("ls-files", "-z", "--full-name", "--others", "--exclude-standard", "--", *pathspecs)
    for name in split_nul(untracked):
        path = PurePosixPath(os.fsdecode(name))
        # A virtual environment or a plugin that is not committed is no part of the change.
        if paths.includes(path) and not paths.is_other_code(path):
            yield _shown(path, paths), "submodule" if name.endswith(b"/") else "file", ""


def _version(folder: Path, shown: str, kind: str, id_: str, algorithm: str) -> FileVersion | None:
    """Return a file of the working tree; None if it was deleted or cannot be read."""
    path = folder / shown
    if kind == "submodule":
        return FileVersion(shown, "submodule", id_)
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            return FileVersion(shown, "link", _linked_id(path, algorithm), str(path.readlink()))
        return FileVersion(shown, "large" if status.st_size > MAX_FILE_BYTES else "file", _content_id(path, algorithm))
    except OSError:
        return None


def _linked_id(path: Path, algorithm: str) -> str:
    try:
        return _content_id(path, algorithm)
    except OSError:  # a folder, or a link that leads nowhere
        return ""


def _content_id(path: Path, algorithm: str) -> str:
    """Return the id that git would give a file's content; empty for a file that is too large.

    Raises:
        OSError: The file cannot be read.
    """
    with open_regular_file(path) as file:
        content = file.read(_MAX_HASHED_BYTES + 1)
    if len(content) > _MAX_HASHED_BYTES:
        return ""
    # Git's own format, not a means of security: https://git-scm.com/book/en/v2/Git-Internals-Git-Objects.
    return hashlib.new(algorithm, b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
