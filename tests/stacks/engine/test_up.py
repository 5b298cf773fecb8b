"""`pulumi up` in a copy of this repository, with the documented commands."""

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
    """Return a cloud with the Google projects of the example spec."""
    return Cloud(
        {"my-project-dev": NUMBER, "my-project-staging": NUMBER + 1, "my-project-prod": NUMBER + 2}
    )


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Create a fresh clone with the files that `pulumi up` needs, with a virtual environment."""
    folder = tmp_path / "clone"
    shutil.copytree(
        ROOT / "stacks", folder / "stacks", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name in ("Pulumi.yaml", "tpucfg.yaml"):
        shutil.copy(ROOT / name, folder)
    (folder / ".venv").symlink_to(sys.prefix)
    return folder


@pytest.fixture
def pulumi(world: World, clone: Path, tmp_path: Path) -> Run:
    """Return a function that runs `pulumi` in the clone and checks its exit status."""
    environment = projects.with_language_host(world.environment, tmp_path / "host")

    def run(*arguments: str, fails: bool = False) -> subprocess.CompletedProcess[str]:
        process = subprocess.run(
            ["pulumi", "--non-interactive", *arguments],
            cwd=clone,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (process.returncode != 0) == fails, process.stdout + process.stderr
        assert "Traceback" not in process.stdout
        return process

    run("stack", "init", "dev")
    return run


def edit(clone: Path, old: str, new: str) -> None:
    """Replace the first occurrence of a text in the spec."""
    spec = clone / "tpucfg.yaml"
    text = spec.read_text()
    assert old in text
    spec.write_text(text.replace(old, new, 1))


def test_up_works_from_a_fresh_clone(pulumi: Run, world: World, clone: Path) -> None:
    """The documented commands create the environment, a second `up` is empty, and the outputs equal the spec's."""
    preview = pulumi("preview", "--stack", "dev", "--diff").stdout
    assert f'"serviceAccount:service-{NUMBER}@cloud-tpu.iam.gserviceaccount.com"' in preview
    assert '"serviceAccount:tpu-mnist-dev@my-project-dev.iam.gserviceaccount.com"' in preview
    pulumi("up", "--yes", "--stack", "dev")
    world.cloud.calls.clear()

    pulumi("preview", "--expect-no-changes", "--stack", "dev")
    pulumi("refresh", "--yes", "--expect-no-changes", "--stack", "dev")
    pulumi("up", "--yes", "--expect-no-changes", "--stack", "dev")

    assert not world.cloud.calls
    (clone / "outputs.json").write_text(
        pulumi("stack", "output", "--json", "--stack", "dev").stdout
    )
    assert json.loads((clone / "outputs.json").read_text())["bucket"] == BUCKET
    command = [sys.executable, "-m", "tpucfg", "check", "--stack-outputs", "outputs.json"]
    checked = subprocess.run(command, cwd=clone, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_stack_file_stays_within_its_schema(pulumi: Run, clone: Path) -> None:
    """The keys that Pulumi itself writes into a stack file are valid."""
    pulumi("config", "set", "projectNumber", str(NUMBER), "--stack", "dev")
    pulumi(
        "config", "set", "--path", "bucketMembers[0]", "group:team@example.com", "--stack", "dev"
    )
    assert "encryptionsalt" in (clone / "stacks" / "Pulumi.dev.yaml").read_text()

    checked = subprocess.run(
        [sys.executable, "-m", "tpucfg", "check"],
        cwd=clone,
        capture_output=True,
        text=True,
        check=False,
    )

    assert checked.returncode == 0, checked.stdout
    assert '"group:team@example.com"' in pulumi("preview", "--stack", "dev", "--diff").stdout


@pytest.mark.telling
def test_old_bucket_is_imported(pulumi: Run, world: World, clone: Path) -> None:
    """Back in a region, `up` prints the command that imports its old bucket; then `up` continues with its data.

    A printed import that the command line refuses is caught here.
    """
    pulumi("up", "--yes", "--stack", "dev")
    world.cloud.buckets[BUCKET].objects.add("data/1")
    edit(clone, "region: us-central1 ", "region: europe-west4 ")
    pulumi("up", "--yes", "--stack", "dev")
    edit(clone, "region: europe-west4 ", "region: us-central1 ")

    text = pulumi("up", "--yes", "--stack", "dev", fails=True).stdout
    [command] = {
        line.strip() for line in text.splitlines() if line.strip().startswith("pulumi import")
    }
    pulumi(*command.split()[1:], "--yes")
    pulumi("up", "--yes", "--stack", "dev")

    assert world.cloud.buckets[BUCKET].objects == {"data/1"}
    assert set(world.cloud.buckets) == {BUCKET, MOVED}
    pulumi("up", "--yes", "--expect-no-changes", "--stack", "dev")


def test_existing_account_is_imported(pulumi: Run, world: World) -> None:
    """If the account exists, `up` prints the command that imports it; then `up` continues."""
    world.cloud.create_account("my-project-dev", "tpu-mnist-dev", {"accountId": "tpu-mnist-dev"})

    text = pulumi("up", "--yes", "--stack", "dev", fails=True).stdout
    assert "the account tpu-mnist-dev@my-project-dev.iam.gserviceaccount.com exists" in text
    [command] = {
        line.strip() for line in text.splitlines() if line.strip().startswith("pulumi import")
    }
    pulumi(*command.split()[1:], "--yes")
    pulumi("up", "--yes", "--stack", "dev")

    pulumi("up", "--yes", "--expect-no-changes", "--stack", "dev")


def test_protected_environment_is_unchanged(pulumi: Run, world: World, clone: Path) -> None:
    """With `protect`, `pulumi destroy` and a move fail before any change, and name the protection."""
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
    """For a stack without an environment, the message lists the environments and the command to select one."""
    pulumi("stack", "init", "test")

    text = pulumi("preview", "--stack", "test", fails=True).stdout

    assert "tpucfg.yaml has no environment test" in text
    assert "pulumi stack select dev" in text


def test_new_project_works_like_this_one(pulumi: Run, clone: Path, world: World) -> None:
    """The documented commands create the resources of a new project too, under its own name."""
    shutil.rmtree(clone / "stacks")
    for name in ("Pulumi.yaml", "tpucfg.yaml"):
        (clone / name).unlink()
    command = [
        sys.executable,
        "-m",
        "tpucfg",
        "init",
        str(clone),
        "--name",
        "speech",
        "--target",
        "vertex-ai",
        "--infra",
    ]
    subprocess.run(command, capture_output=True, check=True)

    pulumi("stack", "init", "dev")
    pulumi("up", "--yes", "--stack", "dev")

    assert set(world.cloud.buckets) == {"my-project-dev-speech-dev-us-central1"}
    assert "speech:spec" in (clone / "stacks" / "Pulumi.dev.yaml").read_text()
