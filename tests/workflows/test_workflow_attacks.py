"""Attacks that go through the whole workflow, from the pull request to the comment on it."""

import json
import os
import shutil
import stat
import sys
from pathlib import Path

import pytest

from attacks.environments import PROTECT
from github_comments import NONE, Comments
from pull_request import WORKFLOW, Proposal, run_workflow

pytestmark = [
    pytest.mark.workflow,
    pytest.mark.skipif(
        not (shutil.which("curl") and shutil.which("jq")),
        reason="curl or jq is not on the PATH, which the workflow needs",
    ),
]
NOTHING = json.dumps({"steps": [], "changeSummary": {"same": 12}})
OWNER = """
import pulumi_gcp as gcp
gcp.projects.IAMMember("x", project="my-project-prod", role="roles/owner", member="user:mallory@example.com")
"""
PULUMI = f"""#!{sys.executable}
import os, pathlib, sys
folder = pathlib.Path(os.environ["RUNNER_TEMP"]) / "previews"
ACTION
print({NOTHING!r})
"""
"""A `pulumi` as a pull request controls it: the program that runs under it can do anything to the machine."""


@pytest.fixture
def proposal(tmp_path: Path) -> Proposal:
    """Create a project whose change lifts the protection of prod and makes a person its owner."""
    proposal = Proposal(tmp_path / "mnist")
    proposal.git("checkout", "--quiet", "-B", "change", "main")
    proposal.edit((PROTECT, ""))
    program = proposal.folder / "stacks" / "__main__.py"
    program.write_text(program.read_text() + OWNER)
    return proposal


def push(proposal: Proposal) -> str:
    """Commit the change and merge it on trial; return the commit."""
    commit = proposal.commit()
    proposal.merge_on_trial()
    return commit


def with_pulumi(folder: Path, action: str = "") -> dict[str, str]:
    """Return an environment whose `pulumi` does something before it prints a preview without changes."""
    path = folder / "bin" / "pulumi"
    path.parent.mkdir(parents=True)
    path.write_text(PULUMI.replace("ACTION", action))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {**os.environ, "PATH": f"{path.parent}:{os.environ['PATH']}"}


def assert_dangers_are_named(comment: str) -> None:
    """Require the cautions above the first fold."""
    visible = comment.partition("<details")[0]
    assert "**prod**: protection lifted" in visible
    assert "`roles/owner`" in visible


def test_committed_preview_is_ignored(
    proposal: Proposal, comments: Comments, tmp_path: Path
) -> None:
    """Files of the pull request are no previews, wherever it puts them, from a fork and from a branch."""
    for folder in ("previews", "change/previews", "../previews", "tpucfg-previews"):
        path = proposal.folder / folder.removeprefix("../") / "prod.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(NOTHING)
    push(proposal)

    jobs = run_workflow(proposal, comments, tmp_path / "fork")

    assert jobs["preview"].result == "skipped"
    [comment] = comments.ours
    assert_dangers_are_named(comment)
    assert "from Pulumi's preview" not in comment


@pytest.mark.telling
def test_preview_of_a_lying_program_hides_nothing(
    proposal: Proposal, comments: Comments, tmp_path: Path
) -> None:
    """Changes that the stack programs declare are shown beside a preview without changes.

    Catches a file that one of the five jobs no longer passes to the next: the comment would have the preview alone.
    """
    push(proposal)

    jobs = run_workflow(proposal, comments, tmp_path / "run", with_pulumi(tmp_path))

    assert jobs["preview"].result == "success", jobs["preview"].output
    [comment] = comments.ours
    assert_dangers_are_named(comment)
    assert "changes according to the stack programs, but not in the preview" in comment


@pytest.mark.parametrize("target", ["/proc/self/environ", "{secret}"])
def test_link_among_the_previews_shows_nothing(
    proposal: Proposal, comments: Comments, tmp_path: Path, target: str
) -> None:
    """A link is neither uploaded nor reviewed, so the comment shows no other file of the machine."""
    secret = tmp_path / "secret"
    secret.write_text("ghs_hunter2\n")
    (proposal.folder / "previews").mkdir()
    (proposal.folder / "previews" / "prod.jsonl").symlink_to(target.format(secret=secret))
    push(proposal)
    link = f"(folder / 'dev.jsonl').unlink(); (folder / 'dev.jsonl').symlink_to({target.format(secret=secret)!r})"

    jobs = run_workflow(proposal, comments, tmp_path / "run", with_pulumi(tmp_path, link))

    written = [comments.ours[0], *(job.output + job.summary for job in jobs.values())]
    assert not any("hunter2" in text or "RUNNER_TEMP=" in text for text in written)
    assert not (tmp_path / "run/artifacts/previews/dev.jsonl").exists()
    assert_dangers_are_named(comments.ours[0])


def test_file_that_is_no_preview_stops_the_review(
    proposal: Proposal, comments: Comments, tmp_path: Path
) -> None:
    """A name that is no environment's is refused without printing it raw, and the comment reports no review."""
    commit = push(proposal)
    odd = "(folder / 'x=y\\n::warning::all is well.jsonl').write_text('{}')"

    jobs = run_workflow(proposal, comments, tmp_path / "run", with_pulumi(tmp_path, odd))

    assert jobs["review"].result == "failure"
    assert "in the folder of previews is no file called ENV.jsonl" in jobs["review"].output
    assert not any(
        line.startswith("::warning::all is well") for line in jobs["review"].output.splitlines()
    )
    assert comments.ours == [NONE.format(commit[:12])]


def test_artifact_of_another_job_is_no_review(
    proposal: Proposal, comments: Comments, tmp_path: Path
) -> None:
    """A program in the job of the previews can upload an artifact called `review`, which is never posted."""
    commit = push(proposal)
    forge = (
        "forged = folder.parent.parent / 'artifacts' / 'review'; forged.mkdir(parents=True, exist_ok=True); "
        "(forged / 'tpucfg-review.md').write_text('<!-- tpucfg-review -->\\nall is well')"
    )

    jobs = run_workflow(proposal, comments, tmp_path / "run", with_pulumi(tmp_path, forge))

    assert jobs["review"].result == "failure"
    assert comments.ours == [NONE.format(commit[:12])]


def test_scripts_of_the_pull_request_do_not_run(
    proposal: Proposal, comments: Comments, tmp_path: Path
) -> None:
    """Neither the token nor the comment is reached by changed actions, and the change is a caution."""
    stolen = tmp_path / "stolen"
    for name in ("comment/comment.sh", "review/review.sh"):
        script = proposal.folder / ".github" / "actions" / name
        script.write_text(
            f'echo "$TOKEN" >> {stolen}\necho "<!-- tpucfg-review -->" > "$COMMENT"\n'
        )
    push(proposal)

    run_workflow(proposal, comments, tmp_path / "run")

    assert not stolen.exists()
    [comment] = comments.ours
    assert_dangers_are_named(comment)
    assert (
        ".github/actions/comment/comment.sh, .github/actions/review/review.sh` changed: continuous"
        in comment
    )


def test_first_pull_request_is_reviewed_without_a_token(
    proposal: Proposal, comments: Comments, tmp_path: Path
) -> None:
    """If the base has no actions, those of the pull request write the summary, and nothing is posted."""
    proposal.git("stash", "--quiet")
    proposal.git("checkout", "--quiet", "main")
    shutil.rmtree(proposal.folder / ".github")
    proposal.commit()
    proposal.git("checkout", "--quiet", "change")
    proposal.git("stash", "pop", "--quiet")
    proposal.git("reset", "--quiet", "main")
    assert (proposal.folder / WORKFLOW).is_file()
    push(proposal)
    # The workflow is that of the merge commit.
    proposal.git("checkout", "--quiet", "change")

    jobs = run_workflow(proposal, comments, tmp_path / "run")

    assert comments.writes == []
    assert_dangers_are_named(jobs["review"].summary)
    assert "::notice title=tpucfg review::The base has no review yet" in jobs["comment"].output


def test_program_cannot_change_what_the_base_declares(
    proposal: Proposal, comments: Comments, tmp_path: Path
) -> None:
    """Whatever the job of the change uploads, the declared resources of the base are those of its own job."""
    push(proposal)
    forge = """
        base=$RUNNER_TEMP/../artifacts/resources-base/base.json
        mkdir "$RUNNER_TEMP/head.json"
        cp "$base" "$RUNNER_TEMP/head.json/head.json"
        echo "{}" > "$RUNNER_TEMP/head.json/base.json"
    """

    jobs = run_workflow(
        proposal,
        comments,
        tmp_path / "run",
        replacements={"Run the stack programs of the change": forge},
    )

    assert jobs["head"].result == "success", jobs["head"].output
    assert (tmp_path / "run/artifacts/resources-head/base.json").exists()
    visible = comments.ours[0].partition("<details")[0]
    assert "changes to resources are unknown" not in visible


@pytest.mark.parametrize(
    "left", ["rm -f", "ln -sf /proc/self/environ", "printf '{\"spec\": 1}' >", "mkdir -p x"]
)
def test_missing_or_malformed_resources_are_unknown(
    proposal: Proposal, comments: Comments, tmp_path: Path, left: str
) -> None:
    """Whatever the job leaves, the review is written, names the change of the spec, and calls the resources unknown."""
    push(proposal)
    name = "Run the stack programs of the change"
    action = f'{left} "$RUNNER_TEMP/head.json"; true'

    jobs = run_workflow(proposal, comments, tmp_path / "run", replacements={name: action})

    visible = comments.ours[0].partition("<details")[0]
    assert "**prod**: protection lifted" in visible
    assert "changes to resources are unknown" in visible
    assert "PATH=" not in comments.ours[0] + jobs["review"].output
