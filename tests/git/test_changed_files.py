"""Files whose content differs between two revisions."""

from pathlib import Path, PurePosixPath

import pytest

from repositories import Repository
from tpucfg.git.changed_files import ChangedFile, changed_files
from tpucfg.git.repository import find_repository

FOLDER = PurePosixPath("a")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Create a repository with a commit and staged changes."""
    repository = Repository(tmp_path / "x")
    for name, text in {"a/kept": "same", "a/b/changed": "old", "a/removed": "r", "a/link": "l", "other": "o"}.items():
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
    repository.git("add", "--all")
    return repository


EXPECTED = (
    ChangedFile(FOLDER / "added\nfile", None, b"+"),
    ChangedFile(FOLDER / "b" / "changed", b"old", b"new"),
    ChangedFile(FOLDER / "large", None, b""),
    ChangedFile(FOLDER / "link", b"l", b""),
    ChangedFile(FOLDER / "removed", b"r", None),
)


def test_staged_changes_are_found(repository: Repository) -> None:
    """Contents are those of the index, seen from any folder; a link and a large file are changed without content."""
    for folder in (repository.folder, repository.folder / "a"):
        assert changed_files(find_repository(folder), "HEAD", None, [FOLDER]) == EXPECTED


def test_committed_changes_are_found(repository: Repository) -> None:
    """Two commits differ as the index did, and a revision is equal to itself."""
    repository.commit()
    assert changed_files(find_repository(repository.folder), "HEAD~1", "HEAD", [FOLDER]) == EXPECTED
    assert changed_files(find_repository(repository.folder), "HEAD", "HEAD", [FOLDER]) == ()


def test_missing_folder_has_no_changes(repository: Repository) -> None:
    """A path that neither revision has is no error."""
    assert changed_files(find_repository(repository.folder), "HEAD", None, [PurePosixPath(".github")]) == ()
