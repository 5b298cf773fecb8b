"""One comment on several specs of a repository."""

import json
from pathlib import Path

import pytest

from repositories import NEW, Repository
from reviews import review
from tpucfg.cli.app import run

pytestmark = pytest.mark.programs

PROTECT = (
    "    protect: true                # Pulumi refuses to delete or replace resources with data\n"
)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """Create a repository with the projects one to four."""
    repository = Repository(tmp_path / "repository")
    for name in ("one", "two", "three", "four"):
        assert run(["init", str(repository.folder / "projects" / name), "--name", name, *NEW]) == 0
    repository.commit()
    monkeypatch.chdir(repository.folder)
    return repository


@pytest.mark.telling
def test_changed_specs_have_parts_by_gravity(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sum and all cautions are on top; each changed spec has a part, and the others have one line.

    Catches a caution of one spec that the comment of several leaves in a fold.
    """
    repository.edit((":1.0", ":1.1"), file="projects/four/tpucfg.yaml")
    repository.edit((PROTECT, ""), file="projects/three/tpucfg.yaml")
    repository.edit(("version: 1", "version: 1 # x"), file="projects/two/tpucfg.yaml")

    comment = review(capsys, "--fail-on", "destructive", status=3)

    head, *parts = comment.split("\n#### ")
    assert head.startswith(
        "<!-- tpucfg-review -->\n\n### tpucfg review: 2 of 4 specs changed, 1 loses data or protection\n"
    )
    assert "> - `projects/three/tpucfg.yaml`: **prod**: protection lifted" in head
    assert [part.partition(": ")[0] for part in parts] == [
        "`projects/three/tpucfg.yaml`",
        "`projects/four/tpucfg.yaml`",
    ]
    assert "CAUTION" not in "".join(parts)
    assert "_No effect on `projects/two/tpucfg.yaml`._" in comment
    assert "_1 other spec of this repository is not affected._" in comment


def test_one_affected_spec_has_its_usual_comment(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line about the other specs, and the marker of the repository's comment, are all that other specs add."""
    repository.edit((":1.0", ":1.1"), file="projects/four/tpucfg.yaml")

    automatic, given = review(capsys), review(capsys, "--spec", "projects/four/tpucfg.yaml")

    automatic = automatic.replace("_3 other specs of this repository are not affected._\n\n", "")
    assert (
        automatic.replace(
            "<!-- tpucfg-review -->", "<!-- tpucfg-review: projects/four/tpucfg.yaml -->"
        )
        == given
    )


def test_no_affected_spec(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """A change of no spec has a comment without parts."""
    (repository.folder / "README.md").write_text("x")

    comment = review(capsys, "--fail-on", "any")

    assert "### tpucfg review: 0 of 4 specs changed\n" in comment
    assert "_4 other specs of this repository are not affected._" in comment


def test_equal_parts_are_shown_once(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """Specs that change alike share a part and their cautions."""
    for name in ("one", "two"):
        repository.edit((PROTECT, ""), file=f"projects/{name}/tpucfg.yaml")

    comment = review(capsys)

    assert (
        "> - `projects/one/tpucfg.yaml`, `projects/two/tpucfg.yaml`: **prod**: protection lifted"
        in comment
    )


def test_unreadable_spec_does_not_hide_the_others(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """A spec that became a link is a caution and an error, and the others are reviewed."""
    repository.edit((PROTECT, ""), file="projects/one/tpucfg.yaml")
    link = repository.folder / "projects/two/tpucfg.yaml"
    link.unlink()
    link.symlink_to("../one/tpucfg.yaml")
    repository.commit()

    assert run(["review", "--base", "HEAD~1", "--head", "HEAD", "--run-program"]) == 1
    comment = capsys.readouterr().out

    assert (
        "> - `projects/two/tpucfg.yaml`: not reviewed: projects/two/tpucfg.yaml is a symbolic link"
        in comment
    )
    assert "> - `projects/one/tpucfg.yaml`: **prod**: protection lifted" in comment


def test_a_link_in_place_of_the_only_affected_spec_is_a_caution(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """The comment names what was not reviewed, in a commit and in the working tree."""
    spec = repository.folder / "projects/two/tpucfg.yaml"
    spec.unlink()
    spec.symlink_to("../one/tpucfg.yaml")
    assert run(["review", "--base", "HEAD"]) == 1
    assert (
        "not reviewed: projects/two/tpucfg.yaml is a symbolic link in the working"
        in capsys.readouterr().out
    )
    repository.commit()
    assert run(["review", "--base", "HEAD~1", "--head", "HEAD", "--fail-on", "caution"]) == 1
    assert "> - `projects/two/tpucfg.yaml`: not reviewed" in capsys.readouterr().out


def test_renamed_spec_is_reviewed_once(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """A moved project is compared with its old place, which the comment names, and not reported as removed."""
    repository.git("mv", "projects/one", "projects/first")
    repository.commit()

    assert (
        run(["review", "--base", "HEAD~1", "--head", "HEAD", "--run-program", "--format", "json"])
        == 0
    )
    data = json.loads(capsys.readouterr().out)
    (spec,) = data["specs"]

    assert (spec["spec"], spec["headline"]) == (
        "projects/first/tpucfg.yaml",
        "no config or resource changes",
    )
    (moved,) = data["effects"]
    assert moved["text"].startswith(
        "spec moved from projects/one/tpucfg.yaml to projects/first/tpucfg.yaml: results"
    )


def test_preview_belongs_to_the_spec_in_its_folder(
    repository: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A preview is named by the spec's folder and the environment."""
    for name in ("one", "two"):
        repository.edit((":1.0", ":1.1"), file=f"projects/{name}/tpucfg.yaml")
    preview = tmp_path / "prod.jsonl"
    preview.write_text("error: no credentials\n")

    comment = review(capsys, "--preview", f"projects/two/prod={preview}")

    failed = comment.index("no credentials")
    assert comment.rindex("projects/two", 0, failed) > comment.rindex("projects/one", 0, failed)


def test_preview_without_a_folder_is_ambiguous(
    repository: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With several specs, a bare environment is refused with the form that it needs."""
    for name in ("one", "two"):
        repository.edit((":1.0", ":1.1"), file=f"projects/{name}/tpucfg.yaml")
    preview = tmp_path / "prod.jsonl"
    preview.write_text("{}")

    assert run(["review", "--base", "HEAD", "--preview", f"prod={preview}"]) == 2
    assert "--preview projects/one/prod=" in capsys.readouterr().err
