"""The review workflow with credentials: the comment contains the previews of the real engine."""

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from standin import projects
from standin.cloud import Cloud
from standin.projects import World

from github_comments import Comments, serving
from pull_request import Proposal, run_workflow

pytestmark = pytest.mark.skipif(
    not (shutil.which("curl") and shutil.which("jq")),
    reason="curl or jq is not on the PATH, which the workflow needs",
)


@pytest.fixture
def cloud() -> Cloud:
    """Return a cloud with the projects of a new spec."""
    return Cloud({"my-project-dev": 123456789012, "my-project-prod": 210987654321})


def bring_up(proposal: Proposal, stack: str, engine: Mapping[str, str]) -> None:
    """Run `pulumi up` for the base revision."""
    (proposal.folder / ".venv").symlink_to(sys.prefix)
    for command in (["stack", "init", stack], ["up", "--yes", "--skip-preview", "--stack", stack]):
        completed = subprocess.run(
            ["pulumi", "--non-interactive", *command],
            cwd=proposal.folder,
            env=dict(engine),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert completed.returncode == 0, completed.stdout
    (proposal.folder / ".venv").unlink()
    for cache in proposal.folder.rglob("__pycache__"):
        shutil.rmtree(cache)  # the next commit has all files, and compiled code is a caution


def test_previews_are_in_the_comment(standin_world: World, tmp_path: Path) -> None:
    """The comment has each environment's steps, and a note for one without a stack."""
    proposal = Proposal(tmp_path / "mnist")
    engine = projects.with_language_host(standin_world.environment, tmp_path / "host")
    bring_up(proposal, "dev", engine)
    proposal.propose(("region: us-central1          #", "region: europe-west4         #"))

    with serving(Comments()) as comments:
        jobs = run_workflow(proposal, comments, tmp_path / "run", engine)

    results = {name: job.result for name, job in jobs.items()}
    assert results.pop("fit") == "skipped"
    assert results == dict.fromkeys(
        ("preview", "source", "base", "head", "review", "comment"), "success"
    )
    [comment] = comments.ours
    old, new = (
        f"data-my-project-dev-mnist-dev-{region}" for region in ("us-central1", "europe-west4")
    )
    assert new in comment
    assert "Resources of `dev`: from Pulumi's preview." in comment
    assert "The stack of `prod` does not exist yet." in comment
    assert f"delete storage.Bucket {old} (kept in the cloud with its content)" in comment
    assert "Drift of `dev`" not in comment  # it was refreshed
