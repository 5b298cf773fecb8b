"""The workflow that updates stacks after a merge, with a stand-in for Pulumi that prints its arguments."""

import re
import shutil
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from github_runner import Job, machine_environment
from repositories import ADDRESS, NEW, Repository
from spec_factory import ROOT
from stack_update import ENABLED, WORKFLOW, run_update
from tpucfg.cli.app import run

pytestmark = [
    pytest.mark.shell,
    pytest.mark.skipif(
        not shutil.which("jq"), reason="jq is not on the PATH, which the workflow needs"
    ),
]

NO_COMMIT: Final = "0" * 40
PULUMI: Final = """#!/bin/sh
echo "pulumi $*, backend ${PULUMI_BACKEND_URL-unset}"
"""


def update(
    repository: Repository, folder: Path, before: str, commit: str = "", **more: str
) -> tuple[dict[str, Job], list[Any]]:
    """Run the workflow with the stand-in; return the jobs and the stacks that changed."""
    tools = folder / "tools"
    tools.mkdir(parents=True)
    (tools / "pulumi").write_text(PULUMI)
    (tools / "pulumi").chmod(0o755)
    machine = machine_environment()
    machine["PATH"] = f"{tools}:{machine['PATH']}"
    return run_update(repository, folder / "run", machine, before, commit, **more)


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


def stacks(folder: str) -> list[dict[str, str]]:
    """Return the stacks of a project."""
    return [{"folder": folder, "name": name} for name in ("dev", "prod")]


def test_only_stacks_that_read_a_changed_file_are_updated(
    project: Repository, tmp_path: Path
) -> None:
    """A push without a known commit before it counts for every stack, and so does a start by hand."""
    before = project.git("rev-parse", "main")
    (project.folder / "README.md").write_text("about\n")
    project.commit()
    assert update(project, tmp_path / "a", before)[1] == []
    spec = project.folder / "models/lm/tpucfg.yaml"
    spec.write_text(f"{spec.read_text()}# a comment\n")
    project.commit()
    assert update(project, tmp_path / "b", before)[1] == stacks("models/lm")
    assert update(project, tmp_path / "c", NO_COMMIT)[1] == stacks(".") + stacks("models/lm")
    assert update(project, tmp_path / "d", "")[1] == stacks(".") + stacks("models/lm")


@pytest.mark.parametrize("backend", ["", "gs://my-team-pulumi/lm"])
def test_a_stack_is_updated_in_its_folder(
    project: Repository, tmp_path: Path, backend: str
) -> None:
    """Pulumi gets the folder and the stack, and no backend where the project's file names it."""
    jobs, _ = update(project, tmp_path / "run", NO_COMMIT, **{"vars.PULUMI_BACKEND_URL": backend})
    assert jobs["update"].result == "success", jobs["update"].output
    command = "pulumi up --cwd models/lm --stack dev --yes --non-interactive"
    assert f"{command}, backend {backend or 'unset'}\n" in jobs["update"].output


@pytest.mark.parametrize(
    ("passphrase", "line", "creates"),
    [("", "", False), ("secret", "", True), ("secret", "secretsprovider: gcpkms://k\n", False)],
)
def test_a_stack_is_created_only_with_a_passphrase(
    project: Repository, tmp_path: Path, passphrase: str, line: str, creates: bool
) -> None:
    """Without one, or with a key in its file, Pulumi would encrypt its state by another secret than the team's."""
    stack = project.folder / "models/lm/stacks/Pulumi.dev.yaml"
    stack.write_text(line + stack.read_text())
    project.commit()
    secret = {"secrets.PULUMI_CONFIG_PASSPHRASE": passphrase}
    output = update(project, tmp_path / "run", NO_COMMIT, **secret)[0]["update"].output
    select = "pulumi stack select dev --cwd models/lm --non-interactive"
    assert f"{select}{' --create' if creates else ''}, backend unset\n" in output


def test_an_approval_of_an_earlier_commit_updates_to_that_commit(
    project: Repository, tmp_path: Path
) -> None:
    """The approved commit is checked out; a later one about other files stops nothing, one about the stack does."""
    commit = project.git("rev-parse", "main")
    (project.folder / "README.md").write_text("about\n")
    prod = project.folder / "models/lm/stacks/Pulumi.prod.yaml"
    prod.write_text(f"{prod.read_text()}# a file of another stack\n")
    project.commit()
    jobs, _ = update(project, tmp_path / "a", NO_COMMIT, commit)
    assert jobs["update"].result == "success", jobs["update"].output
    assert not (tmp_path / "a/run/update/README.md").exists()
    (project.folder / "models/lm/tpucfg.yaml").unlink()
    project.commit()
    jobs, _ = update(project, tmp_path / "b", NO_COMMIT, commit)
    assert jobs["update"].result == "failure"
    text = "A later commit changes this stack: approve the run of that commit."
    assert text in jobs["update"].output
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


def test_pulumi_is_the_version_that_the_tests_run(project: Repository) -> None:
    """An exact version, of the engine that `make engine` builds."""
    engine = re.search(
        r"github.com/pulumi/pulumi/pkg/v3 v(.*) //", (ROOT / "tools/go.mod").read_text()
    )
    assert engine
    for name in ("review", "update"):
        text = (project.folder / f".github/workflows/{name}.yml").read_text()
        assert re.findall(r"pulumi-version: (.*)", text) == [engine[1]]
