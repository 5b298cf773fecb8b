"""`tpucfg review --fit`: the fits of a change, as committed and as a job of the run has compiled them."""

import json
import shutil
from pathlib import Path

import pytest

from fit_repositories import PROGRAM, add_step, write_fits
from repositories import Repository
from reviews import review
from tpucfg.cli.app import run

pytestmark = pytest.mark.programs


@pytest.fixture
def fitted(repository: Repository) -> Repository:
    """Create a project with committed results of a training step."""
    add_step(repository)
    write_fits(repository, {"v2-8": 5.5, "v2-32": 3.2, "v2-128": 2})
    repository.commit()
    return repository


def test_fit_of_a_large_file_behind_a_link_is_known_in_a_commit(
    fitted: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files that an export leaves out are read from the commit, so results of them are not outdated."""
    (fitted.folder / "shared").mkdir()
    (fitted.folder / "trainer").rename(fitted.folder / "shared" / "trainer")
    (fitted.folder / "trainer").symlink_to("shared/trainer")
    (fitted.folder / PROGRAM).write_text("# a table of weights\n" * 100_000)
    write_fits(fitted, {"v2-8": 5.5, "v2-32": 3.2, "v2-128": 2.1})
    fitted.commit()
    fitted.edit(("train_steps: 4000", "train_steps: 2000"))
    write_fits(fitted, {"v2-8": 6.0, "v2-32": 3.2, "v2-128": 2.1})
    fitted.commit()

    assert run(["review", "--base", "HEAD~1", "--head", "HEAD", "--run-program"]) == 0
    comment = capsys.readouterr().out
    assert "- v2-8 in dev, prod: 6 of 7.48 GiB (as committed), was 5.5\n" in comment
    assert "- as before: 4 configs (fits, as committed)" in comment
    assert "not known" not in comment


def test_fit_is_in_the_json_report(fitted: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """Each rung has what was known before and after."""
    write_fits(fitted, {"v2-8": 6.0, "v2-32": 3.2})

    facts = json.loads(review(capsys, "--format", "json"))["facts"]

    fits = [
        (fact["scope"], fact["before"], fact["after"]) for fact in facts if fact["name"] == "fit"
    ]
    assert fits == [
        ("v2-8 in dev, prod", "5.5 of 7.48 GiB", "6 of 7.48 GiB"),
        ("v2-128 in dev, prod", "2 of 7.48 GiB", "not compiled"),
    ]


@pytest.mark.telling
def test_fit_of_this_run_is_no_change(
    fitted: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A job that fails is stated, and decides no status.

    Catches a job's result that decides the status of the review.
    """
    assert "tpucfg review: no changes\n" in review(capsys, "--fail-on", "any")
    comment = review(capsys, "--fail-on", "any", "--fit", "../none.json")
    assert "no changes; fit not known from this run" in comment
    path = write_fits(fitted, {"v2-8": 5.5, "v2-32": 3.2, "v2-128": 2}, tmp_path / "fit.json")
    assert "not known" not in review(capsys, "--fit", f".={path}", "--fail-on", "any")


def test_fit_without_a_folder_could_be_of_several_specs(
    fitted: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """With several specs below the root, each needs its folder; a folder without a spec is an error."""
    for name in ("a", "b"):
        shutil.copytree(fitted.folder / "trainer", fitted.folder / name / "trainer")
        shutil.copy(fitted.folder / "tpucfg.yaml", fitted.folder / name)
    fitted.spec.unlink()
    fitted.commit()
    for name in ("a", "b"):
        fitted.edit((":1.0", ":1.1"), file=f"{name}/tpucfg.yaml")
    cases = {
        "fit.json": "2 folders with specs are reviewed",
        "c=fit.json": "has no spec in either revision",
        "../a=fit.json": "give the folder relative to the root of the repository",
        "a=": "it takes FILE or FOLDER=FILE",
    }
    for value, message in cases.items():
        assert run(["review", "--base", "HEAD", "--fit", value]) == 2
        assert message in capsys.readouterr().err
    assert run(["review", "--base", "HEAD", "--fit", "a=../fit.json"]) == 0
    assert "`a/tpucfg.yaml`: the fit is not known from this run" in capsys.readouterr().out


@pytest.mark.usefixtures("fitted")
def test_fit_of_the_change_itself_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A committed file is not what a job of this run made."""
    assert run(["review", "--base", "HEAD", "--fit", "results/fit.json"]) == 1
    assert "is part of the change under review" in capsys.readouterr().err


@pytest.mark.usefixtures("fitted")
def test_fit_of_a_head_is_shown_if_base_has_errors(
    fitted: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a base to compare with, each rung is shown as it is."""
    fitted.edit(("tuned_on: v2-8", "tuned_on: v2-9"))
    fitted.commit()
    fitted.edit(("tuned_on: v2-9", "tuned_on: v2-8"))
    assert "- v2-8 in dev, prod: 5.5 of 7.48 GiB (as committed)\n" in review(capsys)
