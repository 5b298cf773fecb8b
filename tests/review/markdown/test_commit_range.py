"""Which commits a comment says it lies between, out of real repositories."""

import json

import pytest

from repositories import Repository
from tpucfg.cli.app import run


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The line below the heading."""
    assert run(["review", *arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("### tpucfg review")
    return lines[4]


def branched(made: Repository) -> dict[str, str]:
    """A change on a branch, whose base has moved on since; commits by what they are."""
    parting = made.git("rev-parse", "HEAD")
    made.git("switch", "--quiet", "--create", "topic")
    made.edit((":1.0", ":1.1"))
    topic = made.commit()
    made.git("switch", "--quiet", "main")
    (made.folder / "other.txt").write_text("x")
    return {"parting": parting, "topic": topic, "main": made.commit()}


def test_names_and_commits(made: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """Each revision by the name that was given and by its commit, of which as much is shown in any clone."""
    base, head = made.commit()[:12], made.commit()[:12]

    assert told(capsys, "--base", "HEAD~1", "--head", "HEAD") == f"_From `HEAD~1` ({base}) to `HEAD` ({head})._"
    made.git("config", "core.abbrev", "30")
    assert told(capsys, "--base", "HEAD") == f"_From `HEAD` ({head}) to the working tree._"


def test_working_tree_has_no_commit(made: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """What is not committed is called by no id, be there changes or none, as nobody else could look at it."""
    clean = told(capsys, "--base", "HEAD")
    (made.folder / "other.txt").write_text("x")

    assert told(capsys, "--base", "HEAD") == clean
    assert clean.endswith(" to the working tree._")


@pytest.mark.parametrize("characters", [7, 12, 40])
def test_commit_is_said_once(made: Repository, capsys: pytest.CaptureFixture[str], characters: int) -> None:
    """A revision that is given by its id has no other name."""
    base = made.git("rev-parse", "HEAD")

    assert told(capsys, "--base", base[:characters]) == f"_From {base[:12]} to the working tree._"


def test_base_that_moved_on(made: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """It is compared with the commit where the change left it, and that is the one that is named."""
    ids = branched(made)

    assert told(capsys, "--base", "main", "--head", "topic") == (
        f"_From {ids['parting'][:12]}, where the change left `main`, to `topic` ({ids['topic'][:12]})._"
    )


def test_merge_on_trial(made: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a merge into the base, as services check it out, the commit is named that people know."""
    ids = branched(made)
    made.git("switch", "--quiet", "--detach", "main")
    made.git("merge", "--quiet", "--no-ff", "topic", "--message=x")

    assert told(capsys, "--base", "HEAD^1", "--head", "HEAD") == (
        f"_From `HEAD^1` ({ids['main'][:12]}) to `HEAD`, which merges {ids['topic'][:12]} into it._"
    )
    assert "which merges" not in told(capsys, "--base", "HEAD^2", "--head", "HEAD")


def test_before_the_first_commit(made: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """There is nothing to name, and that is said."""
    made.git("update-ref", "-d", "HEAD")

    assert told(capsys, "--base", "HEAD") == "_From nothing, as `HEAD` has no commit yet, to the working tree._"


def test_name_is_no_markdown(made: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """A branch is called as it is called, whatever that would mean on a page."""
    made.git("branch", "@team-_x_-<b>")

    assert told(capsys, "--base", "@team-_x_-<b>").startswith("_From `@team-_x_-<b>` (")


def test_json_has_whole_ids(made: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """A program gets revisions and commits apart, and null for what there is not."""
    ids = branched(made)
    made.git("merge", "--quiet", "--no-ff", "topic", "--message=x")

    assert run(["review", "--base", "HEAD^1", "--head", "HEAD", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["base"] == {"revision": "HEAD^1", "commit": ids["main"], "merges": None}
    assert data["head"] == {"revision": "HEAD", "commit": made.git("rev-parse", "HEAD"), "merges": ids["topic"]}
    assert run(["review", "--base", "HEAD", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["head"] == {"revision": None, "commit": None, "merges": None}


def test_folder_is_no_revision(made: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """Who gives a folder of configs is told which command compares those."""
    (made.folder / "some configs").mkdir()

    assert run(["review", "--base", "some configs"]) == 1
    printed = capsys.readouterr().err
    assert "there is no revision some configs in this repository, and a folder is none" in printed
    assert "tpucfg diff 'some configs' OTHER" in printed
