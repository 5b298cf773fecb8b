"""Files whose content differs between two revisions."""

import os
from pathlib import Path, PurePosixPath

import pytest

from repositories import Repository
from tpucfg.git.changed_files import changed_below, read_tree_change
from tpucfg.git.repository import find_repository

FOLDER = PurePosixPath("a")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Create a repository with a commit and changes, some of them staged."""
    repository = Repository(tmp_path / "x")
    for name, text in {
        "a/kept": "same",
        "a/b/changed": "old",
        "a/removed": "r",
        "a/link": "l",
        "other": "o",
    }.items():
        (repository.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (repository.folder / name).write_text(text)
    repository.commit()
    (repository.folder / "a/b/changed").write_text("new")
    (repository.folder / "a/removed").unlink()
    (repository.folder / "a/link").unlink()
    (repository.folder / "a/link").symlink_to("/etc/passwd")
    (repository.folder / "a/added\nfile").write_text("+")
    (repository.folder / "a/large").write_text("x" * (2**20 + 1))
    (repository.folder / "other").write_text("changed too")
    repository.git("add", "a/b", "a/link")
    return repository


EXPECTED = tuple(FOLDER / name for name in ("added\nfile", "b/changed", "large", "link", "removed"))


def changed(
    repository: Path, head: str | None, folder: PurePosixPath = FOLDER
) -> tuple[PurePosixPath, ...]:
    """Return the files that differ between the first commit and a revision."""
    git = find_repository(repository)
    base = git.git("rev-list", "--max-parents=0", "HEAD").decode().strip()
    return changed_below(read_tree_change(git, base, head), [folder])


def test_changes_of_the_working_tree_are_found(repository: Repository) -> None:
    """Staged, unstaged and new files count, seen from any folder; a file that was only touched does not."""
    (repository.folder / "a" / "kept").touch()
    for folder in (repository.folder, repository.folder / "a"):
        assert changed(folder, None) == EXPECTED


def test_committed_changes_are_found(repository: Repository) -> None:
    """Two commits differ as the working tree did, and a revision is equal to itself."""
    first = repository.git("rev-parse", "HEAD")
    assert changed(repository.folder, first) == ()
    assert changed(repository.folder, repository.commit()) == EXPECTED


def test_missing_folder_has_no_changes(repository: Repository) -> None:
    """A path that neither revision has is no error."""
    assert changed(repository.folder, None, PurePosixPath(".github")) == ()


def test_a_file_of_another_time_has_not_changed(repository: Repository) -> None:
    """A copy of a checkout has other times than git's index: only what differs from the commit has changed."""
    git = find_repository(repository.folder)
    before = read_tree_change(git, "HEAD", None).changed
    for path in ("a/kept", "other"):
        os.utime(repository.folder / path, (0, 0))

    assert (
        read_tree_change(git, "HEAD", None).changed == before == {*EXPECTED, PurePosixPath("other")}
    )
