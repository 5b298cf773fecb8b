"""Real git repositories with a project, for tests that compare revisions."""

import os
import subprocess
from pathlib import Path
from typing import Final

from tpucfg.cli.app import run

# The configuration of the machine must not matter, and equal commits have equal ids.
ENVIRONMENT: Final = {
    **{key: value for key, value in os.environ.items() if not key.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{role}_NAME": "a" for role in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{role}_EMAIL": "a@b.c" for role in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{role}_DATE": "2026-01-01T00:00:00Z" for role in ("AUTHOR", "COMMITTER")},
}

ADDRESS: Final = f"git+https://github.com/acme/tpucfg@{'0123456789' * 4}"
"""An address for `tpucfg init --install-from`: the tests run from a folder, which a workflow cannot install."""


DEPLOY: Final = "from tpucfg.stack import deploy\n"
"""The first statement of a new project's stack program."""


class Repository:
    """A new repository without commits."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")

    @property
    def spec(self) -> Path:
        """The path of a spec at the root."""
        return self.folder / "tpucfg.yaml"

    def git(self, *arguments: str) -> str:
        """Run a git command and return its output."""
        process = subprocess.run(
            ["git", "-C", str(self.folder), *arguments],
            env=ENVIRONMENT,
            check=True,
            capture_output=True,
            text=True,
        )
        return process.stdout.strip()

    def commit(self) -> str:
        """Commit all files and return the id."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=x")
        return self.git("rev-parse", "HEAD")

    def edit(self, *replaced: tuple[str, str], file: str = "tpucfg.yaml") -> None:
        """Replace texts in a file; each has to be in it."""
        path = self.folder / file
        text = path.read_text()
        for old, new in replaced:
            assert old in text, old
            text = text.replace(old, new)
        path.write_text(text)


NEW: Final = ("--target", "vertex-ai", "--infra")
"""The project of the tests: its figures are those that their edits and golden files have."""


def project(folder: Path, *arguments: str) -> Repository:
    """Create a repository with one commit, of the project that `tpucfg init` writes."""
    repository = Repository(folder)
    assert (
        run(["init", str(folder), "--name", "mnist", "--install-from", ADDRESS, *NEW, *arguments])
        == 0
    )
    repository.commit()
    return repository
