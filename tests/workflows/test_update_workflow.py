"""The workflow that updates stacks after a merge, with a stand-in for Pulumi that prints its arguments."""

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from github_runner import Job, Runner, machine_environment
from repositories import ADDRESS, NEW, Repository
from tpucfg.cli.app import run

pytestmark = [
    pytest.mark.shell,
    pytest.mark.skipif(
        not shutil.which("jq"), reason="jq is not on the PATH, which the workflow needs"
    ),
]

WORKFLOW: Final = Path(".github", "workflows", "update.yml")
ENABLED: Final = (
    "vars.TPUCFG_UPDATE != '' && github.ref_name == github.event.repository.default_branch"
)
PULUMI: Final = '#!/bin/sh\necho "pulumi $*, backend ${PULUMI_BACKEND_URL-unset}"\n'
NO_COMMIT: Final = "0" * 40


@pytest.fixture
def project(tmp_path: Path) -> Repository:
    """Create a project with two stacks, another one below it, and one commit on main."""
    repository = Repository(tmp_path / "mnist")
    assert (
        run(["init", str(repository.folder), "--name", "mnist", "--install-from", ADDRESS, *NEW])
        == 0
    )
    assert run(["init", str(repository.folder / "models/lm"), "--name", "lm", "--infra"]) == 0
    repository.commit()
    return repository


def update(
    repository: Repository, folder: Path, before: str, commit: str = "", **more: str
) -> tuple[dict[str, Job], list[Any]]:
    """Run the workflow for a push to main, and the job of one stack; return the jobs and the stacks that changed."""
    commit = commit or repository.git("rev-parse", "main")
    context = {
        ENABLED: "true",
        "github.sha": commit,
        "github.ref_name": "main",
        "github.event.before": before,
        "matrix.stack.folder": "models/lm",
        "matrix.stack.name": "dev",
        "vars.TPUCFG_IDENTITY_PROVIDER": "provider",
        "vars.TPUCFG_UPDATE_ACCOUNT": "account",
        "vars.PULUMI_BACKEND_URL": "",
        "secrets.PULUMI_CONFIG_PASSPHRASE": "",
        **more,
    }
    tools = folder / "tools"
    tools.mkdir(parents=True)
    (tools / "pulumi").write_text(PULUMI)
    (tools / "pulumi").chmod(0o755)
    machine = machine_environment(GITHUB_SHA=commit)
    machine["PATH"] = f"{tools}:{Path(sys.executable).parent}:{machine['PATH']}"
    runner = Runner(folder / "run", repository.folder, context, machine, {"Install": "true"})
    jobs = runner.run(repository.folder / WORKFLOW)
    return jobs, json.loads(runner.outputs["needs.stacks.outputs.changed"])


def stacks(folder: str) -> list[dict[str, str]]:
    """Return the stacks of a project."""
    return [{"folder": folder, "name": name} for name in ("dev", "prod")]


def test_only_stacks_with_a_changed_file_are_updated(project: Repository, tmp_path: Path) -> None:
    """The spec and the stack program count; a push without a known commit before it counts for every stack."""
    before = project.git("rev-parse", "main")
    (project.folder / "README.md").write_text("about\n")
    project.commit()
    assert update(project, tmp_path / "a", before)[1] == []
    spec = project.folder / "models/lm/tpucfg.yaml"
    spec.write_text(f"{spec.read_text()}# a comment\n")
    project.commit()
    assert update(project, tmp_path / "b", before)[1] == stacks("models/lm")
    (project.folder / "stacks/helper.py").write_text("")
    project.commit()
    assert update(project, tmp_path / "c", before)[1] == stacks("models/lm") + stacks(".")
    assert update(project, tmp_path / "d", NO_COMMIT)[1] == stacks("models/lm") + stacks(".")
    assert update(project, tmp_path / "e", "")[1] == stacks("models/lm") + stacks(".")


@pytest.mark.parametrize("backend", ["", "gs://my-team-pulumi/lm"])
def test_a_stack_is_updated_in_its_folder(
    project: Repository, tmp_path: Path, backend: str
) -> None:
    """Pulumi gets the folder and the stack, and no backend where the project's file names it."""
    jobs, _ = update(project, tmp_path / "run", NO_COMMIT, **{"vars.PULUMI_BACKEND_URL": backend})
    assert jobs["update"].result == "success"
    command = "pulumi up --cwd models/lm --stack dev --yes --non-interactive"
    assert jobs["update"].output == f"{command}, backend {backend or 'unset'}\n"


def test_an_approval_after_a_later_change_updates_nothing(
    project: Repository, tmp_path: Path
) -> None:
    """A stack never goes back to the files of an earlier commit; a later commit about other files stops nothing."""
    commit = project.git("rev-parse", "main")
    (project.folder / "README.md").write_text("about\n")
    project.commit()
    assert update(project, tmp_path / "a", NO_COMMIT, commit)[0]["update"].result == "success"
    (project.folder / "models/lm/stacks/helper.py").write_text("")
    project.commit()
    jobs, _ = update(project, tmp_path / "b", NO_COMMIT, commit)
    assert jobs["update"].result == "failure"
    assert (
        "A later commit changes this stack: approve the run of that commit."
        in jobs["update"].output
    )
    assert "pulumi up" not in jobs["update"].output


def test_each_update_waits_for_its_environment(project: Repository) -> None:
    """The job names the environment of its stack, has no permission to write, and is off until it is enabled."""
    workflow = yaml.safe_load((project.folder / WORKFLOW).read_text())
    assert workflow["permissions"] == {}
    assert workflow["jobs"]["stacks"]["if"] == ENABLED
    job = workflow["jobs"]["update"]
    assert job["environment"] == "${{ matrix.stack.name }}"
    assert job["permissions"] == {"contents": "read", "id-token": "write"}
    used = [
        step["uses"]
        for each in workflow["jobs"].values()
        for step in each["steps"]
        if "uses" in step
    ]
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action) for action in used)
