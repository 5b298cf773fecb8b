"""Hashes of files in a commit equal those in a checkout, within limits."""

from pathlib import Path, PurePosixPath

import pytest

from repositories import Repository
from tpucfg.changes import fits
from tpucfg.changes.fits import CommittedProgramFiles
from tpucfg.fit.rung_fit import MAX_SOURCE_BYTES, ProgramFiles
from tpucfg.git.repository import find_repository

pytestmark = pytest.mark.programs


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Create a project below the root, with files of every kind."""
    repository = Repository(tmp_path / "r")
    folder = repository.folder / "project"
    (folder / "src" / "trainer").mkdir(parents=True)
    (folder / "src" / "trainer" / "step.py").write_text("step = 1\n")
    (folder / "trainer").symlink_to("src/trainer")
    (folder / "out.py").symlink_to("/etc/hostname")
    (folder / "broken.py").symlink_to("nowhere.py")
    (folder / "a name é.py").write_text("x")
    (folder / "two\nlines.py").write_text("x")
    (folder / "large.py").write_bytes(b"#" * (MAX_SOURCE_BYTES + 1))
    (folder / "largest.py").write_bytes(b"#" * MAX_SOURCE_BYTES)
    (repository.folder / "above.py").write_text("x")
    repository.commit()
    return repository


def committed(repository: Repository, folder: str = "project") -> CommittedProgramFiles:
    """Return the files of the last commit below a folder."""
    opened = find_repository(repository.folder)
    return CommittedProgramFiles(opened, repository.git("rev-parse", "HEAD"), PurePosixPath(folder))


@pytest.mark.telling
def test_hashes_equal_those_of_a_checkout(repository: Repository) -> None:
    """A module behind a linked folder is one of them.

    Catches a file of the program that is not compared: the review would state that nothing changed.
    """
    paths = [
        "src/trainer/step.py",
        "trainer/step.py",
        "a name é.py",
        "largest.py",
        "missing.py",
        "src",
        "large.py",
    ]
    hashes = committed(repository).hashes(paths)
    assert [*hashes] == paths[:4]
    assert hashes == ProgramFiles(repository.folder / "project").hashes(paths)
    assert committed(repository, ".").hash("above.py") == hashes["a name é.py"]


@pytest.mark.parametrize(
    "path", ["out.py", "broken.py", "two\nlines.py", "large.py", "../above.py", "", "/etc/hostname"]
)
def test_nothing_outside_of_the_folder_is_read(repository: Repository, path: str) -> None:
    """A link out of the commit, a path out of the folder and what exceeds a limit have no hash."""
    assert committed(repository).hash(path) is None


def test_all_files_together_are_limited(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files beyond the limit are not known, and those that were read stay known."""
    monkeypatch.setattr(fits, "_MAX_BYTES", 10)
    files = committed(repository)
    assert files.hash("src/trainer/step.py")
    assert files.hash("a name é.py")
    assert files.hash("trainer/step.py") is None
    assert files.hash("src/trainer/step.py")
