"""The line of a comment about the commits that it compares."""

import json

import pytest

from repositories import Repository
from tpucfg.cli.app import run

pytestmark = pytest.mark.programs


def commit_range(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the line below the heading of the comment."""
    assert run(["review", *arguments]) == 0
    _, _, text = capsys.readouterr().out.partition("### tpucfg review")
    return text.splitlines()[2]


def create_branch(repository: Repository) -> dict[str, str]:
    """Create a branch with a change, then a commit on its base; return the commits by name."""
    merge_base = repository.git("rev-parse", "HEAD")
    repository.git("switch", "--quiet", "--create", "topic")
    repository.edit((":1.0", ":1.1"))
    topic = repository.commit()
    repository.git("switch", "--quiet", "main")
    (repository.folder / "other.txt").write_text("x")
    return {"merge_base": merge_base, "topic": topic, "main": repository.commit()}


def test_revisions_have_name_and_commit(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each revision has the name that was given and an id, whose length does not depend on the clone."""
    base, head = repository.commit()[:12], repository.commit()[:12]

    assert (
        commit_range(capsys, "--base", "HEAD~1", "--head", "HEAD")
        == f"_From `HEAD~1` ({base}) to `HEAD` ({head})._"
    )
    repository.git("config", "core.abbrev", "30")
    assert commit_range(capsys, "--base", "HEAD") == f"_From `HEAD` ({head}) to the working tree._"


def test_working_tree_has_no_commit(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """The working tree has no id, with or without uncommitted changes."""
    clean = commit_range(capsys, "--base", "HEAD")
    (repository.folder / "other.txt").write_text("x")

    assert commit_range(capsys, "--base", "HEAD") == clean
    assert clean.endswith(" to the working tree._")


@pytest.mark.parametrize("characters", [7, 12, 40])
def test_revision_given_by_its_id_has_no_other_name(
    repository: Repository, capsys: pytest.CaptureFixture[str], characters: int
) -> None:
    """A revision that was given by its id is shown once."""
    base = repository.git("rev-parse", "HEAD")

    assert (
        commit_range(capsys, "--base", base[:characters])
        == f"_From {base[:12]} to the working tree._"
    )


def test_merge_base_is_shown(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """If base has later commits, the merge base is shown, as the comparison starts there."""
    ids = create_branch(repository)

    assert commit_range(capsys, "--base", "main", "--head", "topic") == (
        f"_From `main` (merge base {ids['merge_base'][:12]}) to `topic` ({ids['topic'][:12]})._"
    )


def test_merge_into_base_shows_the_merged_commit(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """For a merge into base, as GitHub checks it out, the merged commit is shown."""
    ids = create_branch(repository)
    repository.git("switch", "--quiet", "--detach", "main")
    repository.git("merge", "--quiet", "--no-ff", "topic", "--message=x")
    merge = repository.git("rev-parse", "HEAD")[:12]

    assert commit_range(capsys, "--base", "HEAD^1", "--head", "HEAD") == (
        f"_From `HEAD^1` ({ids['main'][:12]}) to `HEAD` ({merge}), which merges {ids['topic'][:12]} into the base._"
    )
    assert "which merges" not in commit_range(capsys, "--base", "HEAD^2", "--head", "HEAD")


def test_repository_without_commits_is_shown(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a repository without commits the line contains no id for base."""
    repository.git("update-ref", "-d", "HEAD")

    assert (
        commit_range(capsys, "--base", "HEAD")
        == "_From `HEAD` (no commits yet) to the working tree._"
    )


def test_name_of_a_branch_is_escaped(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """The name of a branch is never interpreted as Markdown."""
    repository.git("branch", "@team-_x_-<b>")

    assert commit_range(capsys, "--base", "@team-_x_-<b>").startswith("_From `@team-_x_-<b>` (")


def test_json_has_full_ids(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON has the full ids of commits, and null for the working tree."""
    ids = create_branch(repository)
    repository.git("merge", "--quiet", "--no-ff", "topic", "--message=x")

    assert run(["review", "--base", "HEAD^1", "--head", "HEAD", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)["specs"][0]
    assert data["base"] == ids["main"]
    assert data["head"] == repository.git("rev-parse", "HEAD")
    assert run(["review", "--base", "HEAD", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["specs"][0]["head"] is None


def test_folder_as_revision_has_help(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder given as revision is refused, with the command that compares folders."""
    (repository.folder / "some configs").mkdir()

    assert run(["review", "--base", "some configs"]) == 1
    printed = capsys.readouterr().err
    assert "there is no revision some configs in this repository" in printed
    assert "tpucfg diff 'some configs' OTHER" in printed


def test_errors_are_listed_by_a_command_for_their_specs(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command works where the review ran: it names each broken spec that is not the folder's own."""
    hint = "help: list them with: tpucfg check"
    repository.edit(("version: 1", "version: 2"))
    assert run(["review", "--base", "HEAD"]) == 1
    assert capsys.readouterr().err.endswith(f"{hint}\n")

    folder = repository.folder / "models" / "a b"
    folder.mkdir(parents=True)
    (folder / "tpucfg.yaml").write_text((repository.folder / "tpucfg.yaml").read_text())
    assert run(["review", "--base", "HEAD"]) == 1
    assert capsys.readouterr().err.endswith(
        f"{hint} --spec 'models/a b/tpucfg.yaml' --spec tpucfg.yaml\n"
    )
