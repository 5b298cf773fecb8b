"""`pulumi up` itself, in a copy of this repository, as its reader would type it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from standin import projects
from standin.cloud import Cloud
from standin.projects import ROOT, World

NUMBER = 123456789012
BUCKET = "my-project-dev-mnist-dev-us-central1"
MOVED = "my-project-dev-mnist-dev-europe-west4"

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def cloud() -> Cloud:
    """The Google projects of the example spec."""
    return Cloud({"my-project-dev": NUMBER, "my-project-staging": NUMBER + 1, "my-project-prod": NUMBER + 2})


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What a fresh clone holds for `pulumi up`, with the virtual environment that set-up makes."""
    folder = tmp_path / "clone"
    shutil.copytree(ROOT / "stacks", folder / "stacks", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("Pulumi.yaml", "tpucfg.yaml"):
        shutil.copy(ROOT / name, folder)
    (folder / ".venv").symlink_to(sys.prefix)
    return folder


@pytest.fixture
def pulumi(world: World, clone: Path, tmp_path: Path) -> Run:
    """Runs `pulumi` in the clone; a command that fails although it should pass is the test's failure."""
    environment = projects.with_language_host(world.environment, tmp_path / "host")

    def run(*arguments: str, fails: bool = False) -> subprocess.CompletedProcess[str]:
        ended = subprocess.run(
            ["pulumi", "--non-interactive", *arguments],
            cwd=clone,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ended.returncode != 0) == fails, ended.stdout + ended.stderr
        assert "Traceback" not in ended.stdout
        return ended

    run("stack", "init", "dev")
    return run


def edit(clone: Path, old: str, new: str) -> None:
    """Change the spec where it first says something."""
    spec = clone / "tpucfg.yaml"
    text = spec.read_text()
    assert old in text
    spec.write_text(text.replace(old, new, 1))


def test_up_from_a_fresh_clone(pulumi: Run, world: World, clone: Path) -> None:
    """The documented commands make the environment, a second `up` changes nothing, and the outputs are the spec's."""
    preview = pulumi("preview", "--stack", "dev", "--diff").stdout
    assert f'"serviceAccount:service-{NUMBER}@cloud-tpu.iam.gserviceaccount.com"' in preview
    assert '"serviceAccount:tpu-mnist-dev@my-project-dev.iam.gserviceaccount.com"' in preview
    pulumi("up", "--yes", "--stack", "dev")
    world.cloud.calls.clear()

    pulumi("preview", "--expect-no-changes", "--stack", "dev")
    pulumi("refresh", "--yes", "--expect-no-changes", "--stack", "dev")
    pulumi("up", "--yes", "--expect-no-changes", "--stack", "dev")

    assert not world.cloud.calls
    (clone / "outputs.json").write_text(pulumi("stack", "output", "--json", "--stack", "dev").stdout)
    assert json.loads((clone / "outputs.json").read_text())["bucket"] == BUCKET
    command = [sys.executable, "-m", "tpucfg", "check", "--stack-outputs", "outputs.json"]
    checked = subprocess.run(command, cwd=clone, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_stack_file_stays_within_its_schema(pulumi: Run, clone: Path) -> None:
    """What Pulumi itself writes into a stack file is taken by our check."""
    pulumi("config", "set", "projectNumber", str(NUMBER), "--stack", "dev")
    pulumi("config", "set", "--path", "bucketMembers[0]", "group:team@example.com", "--stack", "dev")
    assert "encryptionsalt" in (clone / "stacks" / "Pulumi.dev.yaml").read_text()

    checked = subprocess.run(
        [sys.executable, "-m", "tpucfg", "check"], cwd=clone, capture_output=True, text=True, check=False
    )

    assert checked.returncode == 0, checked.stdout
    assert '"group:team@example.com"' in pulumi("preview", "--stack", "dev", "--diff").stdout


def test_old_bucket_is_taken_back(pulumi: Run, world: World, clone: Path) -> None:
    """Back in a region, `up` prints the command that takes its old bucket in; after it, `up` goes on with its data."""
    pulumi("up", "--yes", "--stack", "dev")
    world.cloud.buckets[BUCKET].objects.add("data/1")
    edit(clone, "region: us-central1 ", "region: europe-west4 ")
    pulumi("up", "--yes", "--stack", "dev")
    edit(clone, "region: europe-west4 ", "region: us-central1 ")

    said = pulumi("up", "--yes", "--stack", "dev", fails=True).stdout
    [command] = {line.strip() for line in said.splitlines() if line.strip().startswith("pulumi import")}
    pulumi(*command.split()[1:], "--yes")
    pulumi("up", "--yes", "--stack", "dev")

    assert world.cloud.buckets[BUCKET].objects == {"data/1"}
    assert set(world.cloud.buckets) == {BUCKET, MOVED}
    pulumi("up", "--yes", "--expect-no-changes", "--stack", "dev")


def test_account_left_behind_is_taken_in(pulumi: Run, world: World) -> None:
    """Where the account is there already, `up` prints the command that takes it in; after it, `up` goes on."""
    world.cloud.create_account("my-project-dev", "tpu-mnist-dev", {"accountId": "tpu-mnist-dev"})

    said = pulumi("up", "--yes", "--stack", "dev", fails=True).stdout
    assert "the account tpu-mnist-dev@my-project-dev.iam.gserviceaccount.com exists" in said
    [command] = {line.strip() for line in said.splitlines() if line.strip().startswith("pulumi import")}
    pulumi(*command.split()[1:], "--yes")
    pulumi("up", "--yes", "--stack", "dev")

    pulumi("up", "--yes", "--expect-no-changes", "--stack", "dev")


def test_protected_environment_is_left_alone(pulumi: Run, world: World, clone: Path) -> None:
    """With `protect`, `pulumi destroy` and a move end before anything is touched, and say how the protection ends."""
    edit(clone, "    region: us-central1 ", "    protect: true\n    region: us-central1 ")
    pulumi("up", "--yes", "--stack", "dev")
    world.cloud.calls.clear()

    destroyed = pulumi("destroy", "--yes", "--stack", "dev", fails=True)
    edit(clone, "region: us-central1 ", "region: europe-west4 ")
    moved = pulumi("up", "--yes", "--stack", "dev", fails=True)

    assert "protect" in destroyed.stdout
    assert "protect" in moved.stdout
    assert not world.cloud.calls


def test_spec_without_the_environment_is_explained(pulumi: Run) -> None:
    """A stack that no environment is called after is told which there are and how to take one."""
    pulumi("stack", "init", "test")

    refused = pulumi("preview", "--stack", "test", fails=True).stdout

    assert "tpucfg.yaml has no environment test" in refused
    assert "pulumi stack select dev" in refused


def test_new_project_is_made_like_this_one(pulumi: Run, clone: Path, world: World) -> None:
    """What `tpucfg init` writes is made by the same commands, under the new project's own name."""
    shutil.rmtree(clone / "stacks")
    for name in ("Pulumi.yaml", "tpucfg.yaml"):
        (clone / name).unlink()
    command = [sys.executable, "-m", "tpucfg", "init", str(clone), "--name", "speech"]
    subprocess.run(command, capture_output=True, check=True)

    pulumi("stack", "init", "dev")
    pulumi("up", "--yes", "--stack", "dev")

    assert set(world.cloud.buckets) == {"my-project-dev-speech-dev-us-central1"}
    assert "speech:spec" in (clone / "stacks" / "Pulumi.dev.yaml").read_text()
