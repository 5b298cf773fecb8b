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
_GIT_VARIABLES: Final = {
    "LC_ALL": "C",  # error messages are matched in English
    "GIT_LITERAL_PATHSPECS": "1",  # a path such as `:(top)` or `a*b` is a file name and no pattern
    "GIT_OPTIONAL_LOCKS": "0",
    # A partial clone would fetch missing files from its remote. The first variable prevents that from git 2.44 on,
    # the second in every version.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_TERMINAL_PROMPT": "0",
}
# On the command line, because it takes precedence over the environment and over the config of every repository.
_GIT_SETTINGS: Final = (
    # A change can bring HEAD, objects, refs and config: git takes their folder for a repository, and obeys the config.
    "safe.bareRepository=explicit",
    # Empty, because git before 2.36 takes any other value for the name of a command.
    "core.fsmonitor=",
    f"core.hooksPath={os.devnull}",
)
# Filters, textconv and external diffs need no setting: the plumbing commands that are used here never start them.
_MIN_VERSION: Final = (2, 38)
"""The first git that knows safe.bareRepository."""
_NO_REPOSITORY_HELP: Final = (
    "run it in a git repository, or compare two folders "
    "of configs without git: tpucfg diff ONE OTHER"
)
_PARTIAL_CLONE_HELP: Final = (
    "fetch the files that this partial clone lacks, as tpucfg "
    "fetches nothing: git fetch --refetch --no-filter origin"
)


class RevisionError(RefusalError):
    """A revision cannot be read; the message is for users."""


class UnreadableSpecError(RevisionError):
    """A revision has the spec, but as a symbolic link, or too large: other specs can be read nevertheless."""


class GitError(RevisionError):
    """A git command failed; the message is git's own."""


class NoRepositoryError(RevisionError):
    """A folder is in no repository, or in one that is not read because the folder itself looks like it."""


class Repository(NamedTuple):
    """A git repository, seen from a folder inside it."""

    folder: Path
    """The folder that git runs in: the root of the working tree, or for a bare repository the working folder."""
    prefix: PurePosixPath
    """The path of the folder that it is seen from, relative to the root."""
    common_folder: Path
    """The absolute path that `git rev-parse --git-common-dir` prints, one for all worktrees of a repository."""
    is_bare: bool = False

    def git(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """Run a git command and return its output.

        Raises:
            GitError: The command failed.
        """
        return _run_git(
            self.folder, *arguments, stdin=stdin, bare=self.common_folder if self.is_bare else None
        )

    def seen_from(self, spec: Path, command: Sequence[str]) -> "Repository":
        """Return the repository, seen from the folder of a spec.

        Args:
            spec: The path of the spec.
            command: The words of the command, without the spec, for the help.

        Raises:
            RevisionError: Another repository answers in that folder.
        """
        if self.is_bare:
            return self._replace(prefix=PurePosixPath(os.path.normpath(spec.parent)))
        if spec.parent.absolute() == self.folder / self.prefix:
            return self
        try:
            seen = find_repository(spec.parent)
        except NoRepositoryError as error:
            raise RevisionError(
                f"{printable(str(spec))} is not read: {error}", error.help
            ) from None
        if seen.common_folder != self.common_folder:
            raise seen.refusal(spec, command)
        return seen

    def refusal(self, spec: Path, command: Sequence[str]) -> RevisionError:
        """Return the error for a spec of this repository, which is not the one of the working folder."""
        path, repository = printable(str(spec)), printable(str(self.folder))
        inside = (
            shlex.join(["cd", str(spec.parent)]),
            shlex.join(["tpucfg", *command, "--spec", spec.name]),
        )
        return RevisionError(
            f"{path} is not read: it is in the git repository {repository}, not in that of the working folder",
            f"run the command where the spec is: {printable(' && '.join(inside))}",
        )

    def resolve(self, revision: str) -> str | None:
        """Return the id of the commit that a revision names; None for the HEAD of a repository without commits.

        Raises:
            RevisionError: The revision names no commit.
        """
        # A leading dash would make it an option of git.
        if not revision or revision.startswith("-") or not revision.isprintable():
            raise RevisionError(
                f"{printable(revision)!r} is not a revision", "give a branch, a tag or a commit"
            )
        try:
            # ^{commit} resolves a tag to its commit, and refuses a tree or a file.
            return (
                self.git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
                .decode()
                .strip()
            )
        except GitError:
            # A HEAD that names no commit is an error only if there are commits.
            if revision == "HEAD" and not self.git("rev-list", "--all", "--max-count=1"):
                return None
            raise self._unknown_revision(revision) from None

    def merged_commit(self, commit: str, into: str) -> str:
        """Return the commit that `commit` merges into `into`; empty if `commit` does not merge one branch into it."""
        _, *parents = (
            self.git("rev-list", "--parents", "--max-count=1", commit, "--").decode().split()
        )
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
        if self.is_bare:
            return False
        root = self.folder
        links = (folder for folder in file.absolute().parents if folder.is_symlink())
        if any(folder.parent.resolve().is_relative_to(root) for folder in links):
            return True
        if not path.is_relative_to(root):
            return False
        if revision is None:
            return bool(self.git("ls-files", "-z", "--", str(path)))
        commit = self.resolve(revision)
        relative = path.relative_to(root).as_posix()
        return bool(
            commit
            and self.git("ls-tree", "-z", "--full-tree", "--name-only", commit, "--", relative)
        )

    def _unknown_revision(self, revision: str) -> RevisionError:
        """Return the error for a revision that does not exist, with the most probable fix."""
        output = self.git(
            "for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags", "refs/remotes"
        )
        names = output.decode(errors="replace").split()
        # A fresh clone has only the default branch; every other one is origin/NAME.
        remote = next((name for name in names if name.endswith(f"/{revision}")), None)
        near = remote or nearest(revision, names)
        message = f"there is no revision {revision} in this repository{f'; did you mean {near}?' if near else ''}"
        known = f"give one of the branches and tags: {listed(names)}; " if names else ""
        fetch = f"fetch it: git fetch origin {revision}, or fetch-depth: 0 in actions/checkout"
        folders = f"or compare two folders: tpucfg diff {shlex.quote(revision)} OTHER"
        return RevisionError(message, f"{known}{fetch}; {folders}")


def working_repository(specs: Sequence[Path], command: Sequence[str]) -> Repository:
    """Return the repository of the working folder, the only one that is read.

    Args:
        specs: The specs that are given.
        command: The words of the command, without specs, for the help.

    Raises:
        RevisionError: The working folder is in no repository, or git is too old for CI.
    """
    _require_version()
    try:
        return find_repository(Path())
    except NoRepositoryError:
        if bare := _bare_repository():
            return bare
        for spec in specs:
            raise find_repository(spec.parent).refusal(spec, command) from None
        raise


def find_repository(folder: Path) -> Repository:
    """Return the repository that contains a folder, which itself may be deleted from the working tree.

    Raises:
        NoRepositoryError: The folder is in no repository, or it is one itself.
        RevisionError: Git is not installed, or refuses the repository.
    """
    existing = next(
        parent for parent in (folder.absolute(), *folder.absolute().parents) if is_directory(parent)
    )
    deleted = folder.absolute().relative_to(existing)
    try:
        output = os.fsdecode(
            _run_git(existing, "rev-parse", "--show-cdup", "--git-dir", "--git-common-dir")
        )
    except GitError as error:
        if "bare repository" in str(error):
            raise _is_repository(existing) from None
        if "not a git repository" not in str(error):
            raise
        raise NoRepositoryError(
            f"{printable(str(folder))} is not in a git repository", _NO_REPOSITORY_HELP
        ) from None
    existing = existing.resolve()
    # A bare repository has no line for the way to its root.
    to_root, git_path, common_path, *_ = [*output.split("\n"), "", ""]
    git_folder, common_folder = (existing / git_path).resolve(), (existing / common_path).resolve()
    # What git 2.38 refuses, for those before; and a folder that claims to be a worktree of the real repository.
    is_worktree = git_folder.parent == common_folder / "worktrees"
    if existing.is_relative_to(git_folder) or not (git_folder == common_folder or is_worktree):
        raise _is_repository(existing)
    root = (existing / to_root).resolve()
    return Repository(
        root, PurePosixPath(existing.relative_to(root), *deleted.parts), common_folder
    )


def _is_repository(folder: Path) -> NoRepositoryError:
    return NoRepositoryError(
        f"{printable(str(folder))} is in a folder that git takes for a repository of its own, which would answer in "
        "place of the one around it",
        "remove HEAD, objects, refs, commondir and .git from it; a bare repository is read only if GIT_DIR names it",
    )


def _bare_repository() -> Repository | None:
    """Return the bare repository that the environment names; None if it names none, or one that is not bare."""
    named = os.environ.get("GIT_DIR")
    if not named:
        return None
    folder = Path(named).resolve()
    try:
        is_bare = _run_git(Path(), "rev-parse", "--is-bare-repository", bare=folder) == b"true\n"
    except GitError:
        return None
    return Repository(Path(), PurePosixPath(), folder, is_bare=True) if is_bare else None


def _require_version() -> None:
    """Refuse a git that does not know safe.bareRepository, where it would read a stranger's change."""
    if os.environ.get("CI", "false") in {"", "0", "false"}:
        return
    version = os.fsdecode(_run_git(Path(), "version")).removeprefix("git version").strip()
    numbers = re.match(r"([0-9]+)\.([0-9]+)", version)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < _MIN_VERSION:
        raise RevisionError(
            f"git {printable(version)} is too old for CI: it takes a folder of a change for a repository",
            "install git 2.38 or later, as Debian 12 and Ubuntu 24.04 have it",
        )


def split_nul(output: bytes) -> Sequence[bytes]:
    """Split the output of a git command with `-z`, which ends each part with NUL."""
    return output.split(b"\0")[:-1]


def _run_git(folder: Path, *arguments: str, stdin: bytes = b"", bare: Path | None = None) -> bytes:
    """Run git and return its output: the one place of tpucfg that does."""
    settings = [word for setting in _GIT_SETTINGS for word in ("-c", setting)]
    if bare is not None:
        settings.append(f"--git-dir={bare}")
    try:
        process = subprocess.run(
            ["git", "-C", os.fspath(folder), *settings, *arguments],
            env={key: value for key, value in os.environ.items() if not _HOOK_VARIABLE.match(key)}
            | _GIT_VARIABLES,
            input=stdin,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        raise RevisionError(
            "git is not installed; revisions are read with it", "install git"
        ) from None
    except (OSError, ValueError) as error:
        raise GitError(f"git {arguments[0]} could not run: {error}") from None
    if process.returncode:
        message = process.stderr.decode(errors="replace").strip().removeprefix("fatal: ")
        # Git names a missing file of a partial clone a promised object.
        hint = _PARTIAL_CLONE_HELP if "promisor" in message else ""
        shown = "\n".join(printable(line) for line in message.splitlines()[:_MAX_ERROR_LINES])
        raise GitError(f"git {arguments[0]}: {shown}", hint)
    return process.stdout
