"""The workflow that `tpucfg init` writes, run end to end, from a new project to the comment on a pull request."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from github_comments import NONE, Comments
from github_runner import Job
from pull_request import WORKFLOW, Proposal, run_workflow
from repositories import ADDRESS, NEW
from shellcheck import SHELLCHECK
from spec_factory import ROOT
from tpucfg.cli.app import run

pytestmark = [
    pytest.mark.workflow,
    pytest.mark.skipif(
        not (shutil.which("curl") and shutil.which("jq")),
        reason="curl or jq is not on the PATH, which the workflow needs",
    ),
]
GITHUB = Path(".github")
MARKER = "<!-- tpucfg-review -->"


@pytest.fixture
def proposal(tmp_path: Path) -> Proposal:
    """Create a new project with a pull request."""
    return Proposal(tmp_path / "mnist")


Review = Callable[[], dict[str, Job]]


@pytest.fixture
def review(proposal: Proposal, comments: Comments, tmp_path: Path) -> Review:
    """Return a function that runs the workflow on the pull request."""
    runs = (tmp_path / f"run-{number}" for number in range(100))
    return lambda: run_workflow(proposal, comments, next(runs))


def test_comment_follows_the_pull_request(
    proposal: Proposal, comments: Comments, review: Review
) -> None:
    """The first review creates a comment, an equal one writes nothing, and a further commit updates it."""
    proposal.propose(
        ("batch_size: 1024", "batch_size: 2048"), ("train/mnist:1.0", "train/mnist:1.1")
    )

    jobs = review()

    assert {name: job.result for name, job in jobs.items()} == {
        "preview": "skipped",
        "source": "success",
        "base": "success",
        "head": "success",
        "fit": "skipped",
        "review": "success",
        "comment": "success",
    }, jobs
    [comment] = comments.ours
    assert comment.startswith(f"{MARKER}\n")
    assert f"which merges {proposal.git('rev-parse', 'change')[:12]} into the base" in comment
    assert "--batch_size" in comment
    assert "1.1" in comment
    assert jobs["review"].summary == comment

    review()
    assert len(comments.writes) == 1

    proposal.propose(("batch_size: 1024", "batch_size: 4096"))
    review()
    assert [call.split()[0] for call in comments.writes] == ["POST", "PATCH"]
    [comment] = comments.ours
    review()
    assert comments.ours == [comment]
    assert "1.1" not in comments.ours[0]


def test_fork_has_its_review_in_the_summary(
    proposal: Proposal, comments: Comments, review: Review
) -> None:
    """With a read-only token nothing fails, and the summary of the run has the review."""
    comments.may_write = False
    proposal.propose(("train_steps: 4000", "train_steps: 5000"))

    jobs = review()

    assert {job.result for job in jobs.values()} == {"skipped", "success"}
    assert comments.ours == []
    assert "--train_steps" in jobs["review"].summary
    assert "::notice title=tpucfg review::" in jobs["comment"].output


@pytest.mark.telling
def test_spec_with_errors_fails_the_run(
    proposal: Proposal, comments: Comments, review: Review
) -> None:
    """The run fails with an annotation on the line, and the comment is still posted.

    Catches a script that loses the review's exit status behind a pipe or `|| true`: an invalid spec would be merged.
    """
    proposal.propose(("region: us-central1", "region: us-west4"))

    jobs = review()

    assert jobs["review"].result == "failure"
    assert "::error file=tpucfg.yaml,line=" in jobs["review"].output
    assert "TPU021" in comments.ours[0]


def test_failed_review_replaces_the_last_one(
    proposal: Proposal, comments: Comments, tmp_path: Path, review: Review
) -> None:
    """A failed review replaces the comment on an earlier commit, until the next review.

    No file of the pull request is taken for a review, and the comment contains nothing of it.
    """
    proposal.propose(("batch_size: 1024", "batch_size: 2048"))
    review()
    proposal.git("checkout", "--quiet", "change")
    (proposal.folder / "tpucfg-review.md").write_text(f"{MARKER}\nall is well, @team\n")
    commit = proposal.commit()
    proposal.merge_on_trial()

    jobs = run_workflow(proposal, comments, tmp_path / "failing", failing="actions/setup-python")

    assert {name: job.result for name, job in jobs.items()} == {
        "preview": "skipped",
        "source": "success",
        "base": "failure",
        "head": "failure",
        "fit": "skipped",
        "review": "failure",
        "comment": "failure",
    }
    assert comments.ours == [NONE.format(commit[:12])]
    review()
    assert f"which merges {commit[:12]} into the base" in comments.ours[0]
    assert "--batch_size" in comments.ours[0]


def test_a_spec_that_cannot_be_reviewed_replaces_the_last_comment(
    proposal: Proposal, comments: Comments, review: Review
) -> None:
    """The comment states that a link in the place of the spec was not reviewed."""
    proposal.propose(("batch_size: 1024", "batch_size: 2048"))
    review()
    proposal.git("checkout", "--quiet", "change")
    (proposal.folder / "tpucfg.yaml").rename(proposal.folder / "other.yaml")
    (proposal.folder / "tpucfg.yaml").symlink_to("other.yaml")
    proposal.commit()
    proposal.merge_on_trial()

    jobs = review()

    assert jobs["review"].result == "failure"
    (comment,) = comments.ours
    assert "`tpucfg.yaml`: not reviewed: tpucfg.yaml is a symbolic link in HEAD" in comment


def test_committed_configs_have_to_be_up_to_date(
    proposal: Proposal, comments: Comments, review: Review
) -> None:
    """If configs are committed, the run names each file that differs from the rendered one."""
    spec = proposal.folder / "tpucfg.yaml"
    assert run(["render", "--spec", str(spec), "--out", str(proposal.folder / "configs")]) == 0
    proposal.commit()
    proposal.propose(("batch_size: 1024", "batch_size: 2048"))

    jobs = review()

    assert jobs["review"].result == "failure"
    assert "configs/dev/v2-8/config.yaml" in jobs["review"].output
    assert comments.ours


def test_later_commits_on_base_are_not_shown(
    proposal: Proposal, comments: Comments, review: Review
) -> None:
    """Changes that were merged into base later are not part of the review."""
    proposal.propose(("batch_size: 1024", "batch_size: 2048"))
    proposal.edit(("learning_rate: 0.1", "learning_rate: 0.17"))
    proposal.commit()
    proposal.merge_on_trial()

    review()

    [comment] = comments.ours
    assert "--batch_size" in comment
    assert "→ 0.17" not in comment


def test_projects_of_a_repository_share_a_comment(
    proposal: Proposal, comments: Comments, review: Review
) -> None:
    """Every project is checked, those that the change affects are reviewed, and the comment stays the same one."""
    other = "projects/other/tpucfg.yaml"
    assert (
        run(
            [
                "init",
                str(proposal.folder / other).removesuffix("/tpucfg.yaml"),
                "--name",
                "other",
                *NEW,
            ]
        )
        == 0
    )
    proposal.commit()
    proposal.propose(("batch_size: 1024", "batch_size: 2048"))
    review()
    proposal.git("checkout", "--quiet", "change")
    proposal.edit(("learning_rate: 0.1", "learning_rate: 0.2"), file=other)
    proposal.commit()
    proposal.merge_on_trial()

    jobs = review()

    assert jobs["review"].result == "success", jobs
    [comment] = comments.ours
    assert comment.startswith(f"{MARKER}\n")
    assert "2 of 2 specs changed" in comment


def test_failed_authentication_is_reported(
    proposal: Proposal, comments: Comments, tmp_path: Path
) -> None:
    """Without a preview the comment reports the failure, and shows the changes that the program declares."""
    proposal.propose(("region: us-central1          #", "region: europe-west4         #"))

    jobs = run_workflow(
        proposal, comments, tmp_path / "run", dict(os.environ), failing="google-github-actions/auth"
    )

    assert {name: job.result for name, job in jobs.items()} == {
        "preview": "failure",
        "source": "success",
        "base": "success",
        "head": "success",
        "fit": "skipped",
        "review": "success",
        "comment": "success",
    }
    [comment] = comments.ours
    assert "pulumi was not started; see the log of the job preview" in comment
    assert "my-project-dev-mnist-dev-europe-west4" in comment


@pytest.mark.telling
def test_workflow_is_started_by_pull_request_only(proposal: Proposal) -> None:
    """It is started by pull_request alone, and the job with a write token runs nothing of the project.

    Catches a trigger or a permission that gives a fork's program the token.
    """
    for root in (ROOT, proposal.folder):
        workflow = yaml.safe_load((root / WORKFLOW).read_text())
        assert list(workflow[True]) == ["pull_request"]  # YAML 1.1 reads `on` as true
        assert workflow["permissions"] == {}
        rights = {name: job["permissions"] for name, job in workflow["jobs"].items()}
        assert rights == {
            "preview": {"contents": "read", "id-token": "write"},
            "source": {"contents": "read"},
            "base": {},
            "head": {},
            "fit": {},
            "review": {"contents": "read"},
            "comment": {"contents": "read", "pull-requests": "write"},
        }
        checkout, *steps = workflow["jobs"]["comment"]["steps"]
        assert checkout["uses"].startswith("actions/checkout@")
        assert checkout["with"]["ref"] == "${{ github.event.pull_request.base.sha }}"
        assert [step["uses"].partition("@")[0] for step in steps if "uses" in step] == [
            "actions/download-artifact",
            "./.github/actions/comment",
        ]
        assert [step["run"].split()[0] for step in steps if "run" in step] == ["echo"]


@pytest.mark.telling
def test_jobs_that_run_programs_have_no_rights(proposal: Proposal) -> None:
    """They check nothing out, so they have no token for the repository, and they have no secret and no cache.

    Catches a checkout, a secret or a cache in a job that runs what a pull request wrote.
    """
    for root in (ROOT, proposal.folder):
        jobs = yaml.safe_load((root / WORKFLOW).read_text())["jobs"]
        for job in (jobs["base"], jobs["head"], jobs["fit"]):
            uses = {step["uses"].partition("@")[0] for step in job["steps"] if "uses" in step}
            assert uses == {
                "actions/download-artifact",
                "actions/setup-python",
                "actions/upload-artifact",
            }
            assert not re.search(r"secrets\.|github\.token|cache", yaml.safe_dump(job))
            limits = [step.get("timeout-minutes", 0) for step in job["steps"]]
            assert any(limits)
            assert job["timeout-minutes"] > sum(limits)
        # What gives the files to these jobs runs nothing of them: no action and no script of the change.
        source = jobs["source"]["steps"]
        assert [step.get("uses", "").partition("@")[0] for step in source] == [
            "actions/checkout",
            "",
            "actions/upload-artifact",
        ]
        assert not re.search(r"python|pip|tpucfg |\./\.github", source[1]["run"])


@pytest.mark.telling
def test_review_starts_no_program(proposal: Proposal) -> None:
    """Neither the action nor the workflow gives the review permission to run what it reads.

    Catches a review that runs the stack program of the change where the token is.
    """
    for path in (GITHUB / "actions" / "review" / "review.sh", WORKFLOW):
        assert "--run-program" not in (proposal.folder / path).read_text()


def test_workflow_installs_the_given_commit(proposal: Proposal) -> None:
    """The workflow of a new project names the given commit once, and installs it before it has credentials."""
    workflow = yaml.safe_load((proposal.folder / WORKFLOW).read_text())
    assert workflow["env"]["TPUCFG"] == f"tpucfg[infra] @ {ADDRESS}"
    jobs = workflow["jobs"]
    for name in ("preview", "base", "head", "fit", "review"):
        names = [step.get("name") or step["uses"].partition("@")[0] for step in jobs[name]["steps"]]
        install = jobs[name]["steps"][names.index("Install")]["run"]
        assert "TPUCFG" in install
        assert "google-github-actions/auth" not in names[: names.index("Install")]


_PYTHON = f"""#!/bin/sh
case " $* " in *" venv "*) ;; *) exec "{sys.executable}" "$@" ;; esac
for folder; do :; done # the last argument
mkdir -p "$folder/bin"
ln -s "{Path(sys.executable).parent}/tpucfg" "$folder/bin/.tpucfg"
cat > "$folder/bin/pip" <<'EOF'
#!/bin/sh
{{ echo "$PWD: $*"; for last; do :; done; [ "$2" != --requirement ] || cat "$last"; }} >> "$RUNNER_TEMP/installed"
! grep -qs unknown "$last" || exit 1
mv "${{0%/*}}/.tpucfg" "${{0%/*}}/tpucfg"
EOF
chmod +x "$folder/bin/pip"
"""
"""A `python` whose environments have a pip that notes what it installs."""


def test_each_revision_installs_what_it_pins(
    proposal: Proposal, comments: Comments, tmp_path: Path
) -> None:
    """Base and head install the requirements of each spec, and for one without them the address of their workflow."""
    assert run(["init", str(proposal.folder / "lm"), "--target", "vertex-ai"]) == 0
    assert run(["init", str(proposal.folder / "broken"), "--infra"]) == 0
    proposal.edit(("# ", "unknown # "), file="broken/stacks/requirements.txt")
    proposal.commit()
    proposal.git("checkout", "--quiet", "-B", "change", "main")
    new = ADDRESS.replace("0123", "abcd")
    for file in ("stacks/requirements.txt", str(WORKFLOW)):
        proposal.edit((ADDRESS, new), file=file)
    proposal.edit(("batch_size: 1024", "batch_size: 2048"))
    for folder in ("lm", "broken"):
        spec = proposal.folder / folder / "tpucfg.yaml"
        spec.write_text(f"{spec.read_text()}# changed\n")
    proposal.commit()
    proposal.merge_on_trial()
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, text in (("python", _PYTHON), ("pip", "#!/bin/sh\n")):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)

    jobs = run_workflow(
        proposal,
        comments,
        tmp_path / "run",
        replacements={"Install": ""},
        tools={"PATH": f"{tools}:{Path(sys.executable).parent}:{os.environ['PATH']}"},
    )

    for name, address in (("base", ADDRESS), ("head", new)):
        assert jobs[name].result == "success", jobs[name].output
        installed = (tmp_path / "run" / f"{name}-temp" / "installed").read_text().splitlines()
        workspace = tmp_path / "run" / name / name
        assert f"{workspace}: install tpucfg[infra] @ {address}" in installed
        assert f"{workspace}: install --requirement ./stacks/requirements.txt" in installed
        assert f"tpucfg[infra] @ {address}" in installed
        resources = (tmp_path / "run" / f"{name}-temp" / f"{name}.json").read_text()
        specs = re.findall(r'^  "spec": "(.*)"', resources, re.MULTILINE)
        assert specs == ["lm/tpucfg.yaml", "tpucfg.yaml"]  # the third one's packages do not exist


@pytest.mark.telling
def test_own_workflow_equals_that_of_a_new_project(proposal: Proposal) -> None:
    """The workflow of this repository differs from that of a new project only in its spec and its installation.

    Catches a fix of one of the two workflows that the other lacks.
    """
    own, new_project = (
        re.sub(
            r"( +- name: Install\n)(?: {8}.*\n)+| +(?:SPEC|TPUCFG): .*\n",
            r"\1",
            (root / WORKFLOW).read_text(),
        )
        for root in (ROOT, proposal.folder)
    )
    assert own == new_project


@pytest.mark.parametrize("action", ["review", "comment"])
def test_scripts_of_the_actions_pass_shellcheck(action: str, tmp_path: Path) -> None:
    """Actionlint checks workflows only, so shellcheck runs on the scripts of the actions here."""
    folder = ROOT / GITHUB / "actions" / action
    scripts = list(folder.glob("*.sh"))
    for number, step in enumerate(
        yaml.safe_load((folder / "action.yml").read_text())["runs"]["steps"]
    ):
        scripts.append(tmp_path / f"{number}.sh")
        scripts[-1].write_text(f"#!/usr/bin/env bash\n{step['run']}\n")
    completed = subprocess.run(
        [SHELLCHECK, *map(str, scripts)], capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stdout
