"""The commit of an earlier review, in complete and in shallow clones."""

from pathlib import Path

import pytest

from repositories import Repository
from tpucfg.git.repository import find_repository
from tpucfg.git.reviewed import ReviewedCommit, find_reviewed_commit


@pytest.fixture
def remote(tmp_path: Path) -> Repository:
    """Create a repository whose main has advanced since the branch change was reviewed."""
    repository = Repository(tmp_path / "remote")
    repository.git("config", "uploadpack.allowAnySHA1InWant", "true")
    repository.commit()
    repository.git("checkout", "--quiet", "-b", "change")
    repository.commit()
    repository.git("checkout", "--quiet", "main")
    (repository.folder / "file").write_text("x")
    repository.commit()
    return repository


def merge_on_trial(repository: Repository) -> str:
    """Merge the branch into main as GitHub does, without moving main, and return the commit."""
    repository.git("checkout", "--quiet", "--detach", "main")
    repository.git("merge", "--quiet", "--no-ff", "change", "--message", "Merge")
    commit = repository.git("rev-parse", "HEAD")
    repository.git("checkout", "--quiet", "main")
    return commit


def test_commit_is_compared_with_its_own_base(remote: Repository) -> None:
    """The base of the earlier review is where its branch began, and not where main is now."""
    reviewed_commit = find_reviewed_commit(find_repository(remote.folder), "change", "main")
    change = remote.git("rev-parse", "change")
    assert reviewed_commit == ReviewedCommit(change, remote.git("rev-parse", "main~1"), change)


def test_trial_merge_is_compared_with_its_parent_in_a_shallow_clone(remote: Repository, tmp_path: Path) -> None:
    """A trial merge is fetched with its parents, and authors know the second one."""
    old_base, reviewed = remote.git("rev-parse", "main"), merge_on_trial(remote)
    (remote.folder / "file").write_text("y")
    remote.commit()
    clone = Repository(tmp_path / "clone")
    clone.git("fetch", "--quiet", "--depth=2", remote.folder.as_uri(), merge_on_trial(remote))
    clone.git("checkout", "--quiet", "FETCH_HEAD")
    assert find_reviewed_commit(find_repository(clone.folder), reviewed, "HEAD^1") is None

    clone.git("fetch", "--quiet", "--depth=2", remote.folder.as_uri(), reviewed)

    reviewed_commit = find_reviewed_commit(find_repository(clone.folder), reviewed, "HEAD^1")
    assert reviewed_commit == ReviewedCommit(reviewed, old_base, remote.git("rev-parse", "change"))


@pytest.mark.parametrize("revision", ["0" * 40, "no-such-branch", "--output=x", "a\nb", "HEAD:", "change^{tree}"])
def test_unknown_revision_is_no_commit(remote: Repository, revision: str) -> None:
    """A revision that names no commit of this clone is missing, and never an option of git."""
    assert find_reviewed_commit(find_repository(remote.folder), revision, "main") is None
    assert not (remote.folder / "x").exists()
