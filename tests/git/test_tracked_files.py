"""Files that are part of a revision, and so of the change under review."""

from pathlib import Path

import pytest

from repositories import Repository
from tpucfg.git.repository import find_repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Create a repository with a tracked file, an untracked one, and links."""
    repository = Repository(tmp_path / "x")
    folder = repository.folder
    (folder / "a").mkdir()
    (folder / "a" / "tracked").write_text("x")
    (folder / "inside").symlink_to("a")
    (folder / "outside").symlink_to(tmp_path)
    (folder / ".gitignore").write_text("untracked\n")
    repository.commit()
    (folder / "untracked").write_text("x")
    (tmp_path / "elsewhere").write_text("x")
    return repository


@pytest.mark.parametrize("revision", ["HEAD", None])
def test_tracked_file_is_recognized(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, revision: str | None
) -> None:
    """Spelling, links and the current folder do not matter; a file behind a link of the repository counts too."""
    folder = repository.folder
    for current in (folder, folder / "a", folder.parent):
        monkeypatch.chdir(current)
        git = find_repository(folder)
        for path in ("a/tracked", "./a/../a/tracked", "inside/tracked", "outside/elsewhere"):
            assert git.tracks(folder / path, revision)
        for path in ("untracked", "missing", "../elsewhere", "a/TRACKED", "a/*"):
            assert not git.tracks(folder / path, revision)


def test_removed_file_is_untracked(repository: Repository) -> None:
    """After `git rm --cached`, a file is not part of the working tree's change, but still of the last commit."""
    repository.git("rm", "--quiet", "--cached", "a/tracked")
    git = find_repository(repository.folder)
    assert not git.tracks(repository.folder / "a/tracked", None)
    assert git.tracks(repository.folder / "a/tracked", "HEAD")
