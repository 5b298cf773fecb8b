"""The job of the workflow that compiles the training step, and what its results can do to the comment."""

import os
import shutil
import stat
import sys
from pathlib import Path
from typing import Final

import pytest

from fit_repositories import PROGRAM, add_step, write_fits
from github_comments import Comments
from github_runner import Job
from pull_request import Proposal, run_workflow

pytestmark = [
    pytest.mark.workflow,
    pytest.mark.skipif(
        not (shutil.which("curl") and shutil.which("jq")),
        reason="curl or jq is not on the PATH, which the workflow needs",
    ),
]
REQUIREMENTS: Final = "trainer/requirements.txt"
_PACK: Final = "Pack the files of both revisions, and list their specs"
_SIZES: Final = ("v2-8", "v2-32", "v2-128")
_SMALL, _TOO_LARGE = dict.fromkeys(_SIZES, 3.2), dict.fromkeys(_SIZES, 23.26)
_PYTHON: Final = f"""#!/bin/sh
case " $* " in *" venv "*) ;; *) exec "{sys.executable}" "$@" ;; esac
for folder; do :; done # the last argument
mkdir -p "$folder/bin"
for name in pip python; do printf '#!/bin/sh\\n' > "$folder/bin/$name"; chmod +x "$folder/bin/$name"; done
"""
"""A `python3` whose environments need no package index: their pip installs nothing, whatever the options of venv."""
_TPUCFG: Final = f"""#!/bin/sh
[ "$1" = fit ] || exec "{Path(sys.executable).parent}/tpucfg" "$@"
[ ! -e results/fit.json ] || echo "A COMMITTED RESULT WAS LEFT"
mkdir -p results
ACTION
"""
"""A `tpucfg` whose `fit` does what a program of the pull request can do to its machine."""


@pytest.fixture
def proposal(tmp_path: Path) -> Proposal:
    """Create a project with results on main, and a change that needs more memory and forges its results."""
    proposal = Proposal(tmp_path / "mnist")
    add_step(proposal)
    (proposal.folder / REQUIREMENTS).write_text("jax[tpu]\n")
    write_fits(proposal, _SMALL)
    proposal.commit()
    proposal.git("checkout", "--quiet", "-B", "change", "main")
    program = proposal.folder / PROGRAM
    program.write_text(f"{program.read_text()}# twice the layers\n")
    write_fits(proposal, _SMALL)
    proposal.commit()
    return proposal


def review(proposal: Proposal, comments: Comments, folder: Path, action: str) -> dict[str, Job]:
    """Run the workflow with a `tpucfg fit` that does something."""
    proposal.merge_on_trial()
    tools = folder / "tools"
    tools.mkdir(parents=True)
    for name, text in (("python3", _PYTHON), ("tpucfg", _TPUCFG.replace("ACTION", action))):
        (tools / name).write_text(text)
        (tools / name).chmod(stat.S_IRWXU)
    environment = {"PATH": f"{tools}:{os.environ['PATH']}"}
    return run_workflow(
        proposal, comments, folder / "run", requirements=REQUIREMENTS, tools=environment
    )


def test_results_of_the_job_are_shown(
    proposal: Proposal, comments: Comments, tmp_path: Path
) -> None:
    """The comment has what the compiler reported in this run, and names the forged result that was committed."""
    fits = write_fits(proposal, _TOO_LARGE, tmp_path / "fit.json")

    jobs = review(proposal, comments, tmp_path, f"cp {fits} results/fit.json; exit 1")

    assert {name: job.result for name, job in jobs.items()} == {
        "preview": "skipped",
        "source": "success",
        "base": "success",
        "head": "success",
        "fit": "failure",
        "review": "success",
        "comment": "success",
    }, jobs
    assert "A COMMITTED RESULT" not in jobs["fit"].output
    [comment] = comments.ours
    assert (
        "the training step no longer fits: at least 23.26 of 7.48 GiB, was 3.2 of 7.48 GiB"
        in comment
    )
    assert "(as committed)" not in comment
    assert "`results/fit.json` has another result than this run" in comment


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        pytest.param(
            "ln -s /proc/self/environ results/fit.json",
            "its job has left no fit.json",
            marks=pytest.mark.telling,
        ),
        ('ln -s /proc/self/environ "$RUNNER_TEMP/fits/fit.json"', "its job has left no fit.json"),
        (
            'head -c 100000000 /dev/zero > "$RUNNER_TEMP/fits/fit.json"',
            "the file is larger than 8,388,608 bytes",
        ),
        ('printf x > "$RUNNER_TEMP/fits/$(printf "a\\033[2J")"', "its job has left no fit.json"),
    ],
    ids=["link", "link-in-artifact", "huge-artifact", "escapes"],
)
def test_a_job_without_results_hides_nothing(
    proposal: Proposal, comments: Comments, tmp_path: Path, action: str, reason: str
) -> None:
    """The comment is written, states that the fit is not known from this run, and calls the rest committed.

    The first one catches an upload that follows links, and so shows the variables of the machine.
    """
    jobs = review(proposal, comments, tmp_path, action)

    assert jobs["review"].result == "success", jobs["review"].output
    [comment] = comments.ours
    visible = comment.partition("<details")[0]
    assert "the fit is not known from this run: " in visible
    assert reason in visible
    assert "as before: 6 configs (fits, as committed)" in visible
    assert "\033" not in comment + jobs["review"].output
    assert "PATH=" not in comment


def test_a_failed_source_is_reported(
    proposal: Proposal, comments: Comments, tmp_path: Path
) -> None:
    """If the files never reach the job, it is skipped, and neither the resources nor the fit are known."""
    proposal.merge_on_trial()

    jobs = run_workflow(
        proposal,
        comments,
        tmp_path / "run",
        requirements=REQUIREMENTS,
        replacements={_PACK: "exit 1"},
    )

    assert (jobs["source"].result, jobs["fit"].result) == ("failure", "skipped")
    assert "the fit is not known from this run: `its job has left no fit.json`" in comments.ours[0]
    assert "changes to resources are unknown: base.json cannot be read" in comments.ours[0]


def test_only_changed_projects_are_compiled(
    proposal: Proposal, comments: Comments, tmp_path: Path
) -> None:
    """A project below the root is compiled if a file of its folder changes, and has its results there."""
    other = proposal.folder / "projects" / "other"
    proposal.git("checkout", "--quiet", "main")
    for name in ("other", "unchanged"):
        shutil.copytree(proposal.folder / "trainer", other.with_name(name) / "trainer")
        shutil.copy(proposal.folder / "tpucfg.yaml", other.with_name(name))
    proposal.commit()
    proposal.git("checkout", "--quiet", "-B", "change", "main")
    (other / PROGRAM).write_text("# changed\n")
    proposal.commit()

    jobs = review(proposal, comments, tmp_path, 'pwd >> "$RUNNER_TEMP/compiled"; exit 1')

    compiled = (tmp_path / "run" / "fit-temp" / "compiled").read_text().split()
    assert sorted(Path(line).name for line in compiled) == ["head", "other"], jobs["source"].output
    assert "the fit is not known from this run: `its job has left no fit.json`" in comments.ours[0]
