"""The repository around a folder, by the user's own git: nothing here writes to it, and no hook of it runs."""

import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from tpucfg.fs import is_directory
from tpucfg.text_format import listed, nearest, printable

_ELSEWHERE: Final = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_CEILING_DIRECTORIES",
)
"""What git sets for its hooks; the repository meant is the one that the spec lies in."""
_SET: Final = {
    "LC_ALL": "C",  # the messages below are looked for in English
    "GIT_LITERAL_PATHSPECS": "1",  # a path is a path, whatever stands in it
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",  # no command of ours opens a connection, nor lets git do it; from git 2.44
    "GIT_ALLOW_PROTOCOL": "",  # likewise, from the first on
    "GIT_TERMINAL_PROMPT": "0",
}
_NO_REPOSITORY: Final = (
    "run it where the spec is under git; without git, two folders of configs are compared by: tpucfg diff ONE OTHER"
)
_FETCH: Final = (
    "this clone is a partial one, and nothing is fetched here; get the rest: git fetch --refetch --no-filter origin"
)


class RevisionError(Exception):
    """A revision cannot be read; the message is for people."""

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(message)
        self.help = help


class Repository(NamedTuple):
    """Where git runs, and where that is in the repository."""

    folder: Path
    prefix: PurePosixPath
    """The folder as seen from the repository's root."""

    def git(self, *arguments: str, given: bytes | None = None) -> bytes:
        """What a git command prints.

        Raises:
            GitError: It failed.
        """
        return _git(self.folder, *arguments, given=given)

    def commit(self, revision: str) -> str | None:
        """The commit that a revision names; None for the HEAD of a repository without any commit.

        Raises:
            RevisionError: It names none.
        """
        if not revision or revision.startswith("-") or not revision.isprintable():
            raise RevisionError(f"{printable(revision)!r} is no revision", "give a branch, a tag or a commit")
        try:
            return self.git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").decode().strip()
        except GitError:
            if revision == "HEAD" and not self.git("rev-list", "--all", "--max-count=1"):
                return None
            raise self._unknown(revision) from None

    def merged(self, commit: str, into: str) -> str:
        """The commit that this one merges into another; empty where it does anything else."""
        _, *parents = self.git("rev-list", "--parents", "--max-count=1", commit, "--").decode().split()
        return parents[1] if len(parents) == 2 and parents[0] == into else ""  # noqa: PLR2004 - of a merge

    def merge_base(self, one: str, other: str) -> str | None:
        """The commit where two lines of history part; None where the repository does not know one."""
        try:
            return self.git("merge-base", one, other).decode().split("\n")[0] or None
        except GitError:
            return None

    def _unknown(self, revision: str) -> RevisionError:
        names = self.git("for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags", "refs/remotes")
        known = names.decode(errors="replace").split()
        message = f"there is no revision {revision} in this repository"
        if is_directory(Path(revision)):
            folders = f"two folders of configs are compared by: tpucfg diff {shlex.quote(revision)} OTHER"
            return RevisionError(f"{message}, and a folder is none", folders)
        remote = next((name for name in known if name.endswith(f"/{revision}")), None)
        if near := remote or nearest(revision, known):
            return RevisionError(f"{message}; did you mean {near}?", f"the branches and tags are: {listed(known)}")
        if self.git("rev-parse", "--is-shallow-repository").strip() == b"true":
            return RevisionError(
                f"{message}, which is a shallow clone",
                f"fetch it: git fetch --depth=1 origin {revision}; or, in actions/checkout, set fetch-depth: 0",
            )
        there = f"the branches and tags are: {listed(known)}; " if known else ""
        return RevisionError(message, f"{there}fetch what is missing: git fetch origin")


class GitError(RevisionError):
    """Git itself failed: the message is git's."""


def find_repository(folder: Path) -> Repository:
    """The repository that a folder lies in; the folder itself may be gone from the working tree.

    Raises:
        RevisionError: There is no git, or no repository.
    """
    there = next(it for it in (folder.absolute(), *folder.absolute().parents) if is_directory(it))
    gone = folder.absolute().relative_to(there)
    try:
        prefix = os.fsdecode(_git(there, "rev-parse", "--show-prefix")).rstrip("\n")
    except GitError as error:
        if "not a git repository" not in str(error):
            raise
        raise RevisionError(f"{printable(str(folder))} is not in a git repository", _NO_REPOSITORY) from None
    return Repository(there, PurePosixPath(prefix, *gone.parts))


def _git(folder: Path, *arguments: str, given: bytes | None = None) -> bytes:
    try:
        ended = subprocess.run(
            ["git", "-C", os.fspath(folder), *arguments],
            env=_environment(),
            input=given if given is not None else b"",
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        raise RevisionError("git is not installed, and a revision is read with it", "install git") from None
    except (OSError, ValueError) as error:
        raise GitError(f"git {arguments[0]} could not run: {error}") from None
    if ended.returncode:
        said = ended.stderr.decode(errors="replace").strip().removeprefix("fatal: ")
        raise GitError(f"git {arguments[0]}: {_lines(said)}", _FETCH if "promisor" in said else "")
    return ended.stdout


def _lines(said: str) -> str:
    """Git's message without what a terminal would act on."""
    return "\n".join(printable(line) for line in said.splitlines()[:5])


def _environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key not in _ELSEWHERE} | _SET


def split_nul(output: bytes) -> Sequence[bytes]:
    """The parts of an output that `-z` ends with NUL."""
    return output.split(b"\0")[:-1]
