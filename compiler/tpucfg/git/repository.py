"""Read-only access to a git repository through the installed `git` command: revisions, files, contents."""

import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from tpucfg.fs import is_directory
from tpucfg.refusal import RefusalError
from tpucfg.text_format import listed, nearest, printable

_MAX_ERROR_LINES: Final = 5
# Git sets variables for its hooks that redirect every command to the repository of the hook, and not to the one that
# contains the spec. Those with settings stay: a container can trust a folder by them.
_HOOK_VARIABLE: Final = re.compile("GIT_(?!CONFIG)")
_GIT_SETTINGS: Final = {
    "LC_ALL": "C",  # error messages are matched in English
    "GIT_LITERAL_PATHSPECS": "1",  # a path such as `:(top)` or `a*b` is a file name and no pattern
    "GIT_OPTIONAL_LOCKS": "0",
    # A partial clone would fetch missing files from its remote. The first variable prevents that from git 2.44 on,
    # the second in every version.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_TERMINAL_PROMPT": "0",
}
_NO_REPOSITORY_HELP: Final = (
    "run it in a git repository, or compare two folders of configs without git: tpucfg diff ONE OTHER"
)
_PARTIAL_CLONE_HELP: Final = (
    "fetch the files that this partial clone lacks, as tpucfg fetches nothing: git fetch --refetch --no-filter origin"
)


class RevisionError(RefusalError):
    """A revision cannot be read; the message is for users."""


class UnreadableSpecError(RevisionError):
    """A revision has the spec, but as a symbolic link, or too large: other specs can be read nevertheless."""


class GitError(RevisionError):
    """A git command failed; the message is git's own."""


class Repository(NamedTuple):
    """A git repository, seen from a folder inside it."""

    folder: Path
    """The folder that git runs in."""
    prefix: PurePosixPath
    """The folder's path, relative to the root of the repository."""

    def git(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """Run a git command and return its output.

        Raises:
            GitError: The command failed.
        """
        return _run_git(self.folder, *arguments, stdin=stdin)

    def at_root(self) -> "Repository":
        """Return the repository, seen from the root of its working tree."""
        to_root = os.fsdecode(self.git("rev-parse", "--show-cdup")).rstrip("\n")
        return Repository((self.folder / to_root).resolve(), PurePosixPath())

    def resolve(self, revision: str) -> str | None:
        """Return the id of the commit that a revision names; None for the HEAD of a repository without commits.

        Raises:
            RevisionError: The revision names no commit.
        """
        # A leading dash would make it an option of git.
        if not revision or revision.startswith("-") or not revision.isprintable():
            raise RevisionError(f"{printable(revision)!r} is not a revision", "give a branch, a tag or a commit")
        try:
            # ^{commit} resolves a tag to its commit, and refuses a tree or a file.
            return self.git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").decode().strip()
        except GitError:
            # A HEAD that names no commit is an error only if there are commits.
            if revision == "HEAD" and not self.git("rev-list", "--all", "--max-count=1"):
                return None
            raise self._unknown_revision(revision) from None

    def merged_commit(self, commit: str, into: str) -> str:
        """Return the commit that `commit` merges into `into`; empty if `commit` does not merge one branch into it."""
        _, *parents = self.git("rev-list", "--parents", "--max-count=1", commit, "--").decode().split()
        return parents[1] if len(parents) == 2 and parents[0] == into else ""  # noqa: PLR2004

    def merge_base(self, commit: str, other: str) -> str | None:
        """Return the merge base of two commits; None if this clone does not contain one."""
        try:
            return self.git("merge-base", commit, other).decode().split("\n")[0] or None
        except GitError:
            return None

    def tracks(self, file: Path, revision: str | None) -> bool:
        """Return True if a file in the working tree is part of a revision, or of the index if that is None.

        A file behind a link of the repository counts as part of it, wherever the link leads.

        Raises:
            RevisionError: The revision names no commit.
        """
        path = file.parent.resolve() / file.name
        try:
            root = self.at_root().folder
        except GitError:
            return False  # a bare repository has no working tree
        links = (folder for folder in file.absolute().parents if folder.is_symlink())
        if any(folder.parent.resolve().is_relative_to(root) for folder in links):
            return True
        if not path.is_relative_to(root):
            return False
        if revision is None:
            return bool(self.git("ls-files", "-z", "--", str(path)))
        commit = self.resolve(revision)
        relative = path.relative_to(root).as_posix()
        return bool(commit and self.git("ls-tree", "-z", "--full-tree", "--name-only", commit, "--", relative))

    def _unknown_revision(self, revision: str) -> RevisionError:
        """Return the error for a revision that does not exist, with the most probable fix."""
        output = self.git("for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags", "refs/remotes")
        names = output.decode(errors="replace").split()
        # A fresh clone has only the default branch; every other one is origin/NAME.
        remote = next((name for name in names if name.endswith(f"/{revision}")), None)
        near = remote or nearest(revision, names)
        message = f"there is no revision {revision} in this repository{f'; did you mean {near}?' if near else ''}"
        known = f"give one of the branches and tags: {listed(names)}; " if names else ""
        fetch = f"fetch it: git fetch origin {revision}, or fetch-depth: 0 in actions/checkout"
        folders = f"or compare two folders: tpucfg diff {shlex.quote(revision)} OTHER"
        return RevisionError(message, f"{known}{fetch}; {folders}")


def find_repository(folder: Path) -> Repository:
    """Return the repository that contains a folder, which itself may be deleted from the working tree.

    Raises:
        RevisionError: Git is not installed, or the folder is in no repository.
    """
    existing = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if is_directory(parent))
    deleted = folder.absolute().relative_to(existing)
    try:
        prefix = os.fsdecode(_run_git(existing, "rev-parse", "--show-prefix")).rstrip("\n")
    except GitError as error:
        if "not a git repository" not in str(error):
            raise
        raise RevisionError(f"{printable(str(folder))} is not in a git repository", _NO_REPOSITORY_HELP) from None
    return Repository(existing, PurePosixPath(prefix, *deleted.parts))


def split_nul(output: bytes) -> Sequence[bytes]:
    """Split the output of a git command with `-z`, which ends each part with NUL."""
    return output.split(b"\0")[:-1]


def _run_git(folder: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    try:
        process = subprocess.run(
            ["git", "-C", os.fspath(folder), *arguments],
            env={key: value for key, value in os.environ.items() if not _HOOK_VARIABLE.match(key)} | _GIT_SETTINGS,
            input=stdin,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        raise RevisionError("git is not installed; revisions are read with it", "install git") from None
    except (OSError, ValueError) as error:
        raise GitError(f"git {arguments[0]} could not run: {error}") from None
    if process.returncode:
        message = process.stderr.decode(errors="replace").strip().removeprefix("fatal: ")
        # Git names a missing file of a partial clone a promised object.
        hint = _PARTIAL_CLONE_HELP if "promisor" in message else ""
        shown = "\n".join(printable(line) for line in message.splitlines()[:_MAX_ERROR_LINES])
        raise GitError(f"git {arguments[0]}: {shown}", hint)
    return process.stdout
