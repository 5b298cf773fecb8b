"""The update workflow with the real engine: a project below the root, and stacks that were never made."""

import shutil
from pathlib import Path

import pytest
from standin import projects
from standin.cloud import Cloud
from standin.projects import World

from github_runner import Job, machine_environment
from repositories import ADDRESS, NEW, Repository
from stack_update import run_update
from tpucfg.cli.app import run

pytestmark = pytest.mark.skipif(
    not shutil.which("jq"), reason="jq is not on the PATH, which the workflow needs"
)


@pytest.fixture
def cloud() -> Cloud:
    """Return a cloud with the projects of a new spec."""
    return Cloud({"my-project-dev": 123456789012, "my-project-prod": 210987654321})


def test_stacks_of_a_nested_project_are_made_and_updated(
    standin_world: World, tmp_path: Path
) -> None:
    """The first update makes the stack, a later one finds it, and one without a secret explains how to make it.

    Catches a virtual environment that is not beside Pulumi.yaml, and a stack whose state a new checkout cannot decrypt.
    """
    repository = Repository(tmp_path / "models")
    root, chat = repository.folder, repository.folder / "models/chat"
    assert run(["init", str(root), "--name", "mnist", "--install-from", ADDRESS, *NEW]) == 0
    assert run(["init", str(chat), *NEW]) == 0
    before = repository.commit()
    engine = projects.with_language_host(standin_world.environment, tmp_path / "host")
    passphrase = engine.pop("PULUMI_CONFIG_PASSPHRASE")
    machine = {**machine_environment(), **engine}

    def update(number: int, name: str, passphrase: str, before: str) -> Job:
        jobs, changed = run_update(
            repository,
            tmp_path / f"run-{number}",
            machine,
            before,
            **{
                "matrix.stack.folder": "models/chat",
                "matrix.stack.name": name,
                "vars.PULUMI_BACKEND_URL": engine["PULUMI_BACKEND_URL"],
                "secrets.PULUMI_CONFIG_PASSPHRASE": passphrase,
            },
        )
        assert {"folder": "models/chat", "name": name} in changed
        return jobs["update"]

    first = update(1, "dev", passphrase, "")
    assert first.result == "success", first.output
    assert [*standin_world.cloud.buckets] == ["my-project-dev-chat-dev-us-central1"]

    repository.edit(
        ("    region:", "    soft_delete_days: 7\n    region:"), file="models/chat/tpucfg.yaml"
    )
    repository.commit()
    second = update(2, "dev", passphrase, before)
    assert second.result == "success", second.output
    assert "Created stack" not in second.output
    [bucket] = standin_world.cloud.buckets.values()
    assert "604800" in str(bucket.body)

    missing = update(3, "prod", "", "")
    assert missing.result == "failure"
    assert "no stack named 'prod' found" in missing.output
    assert "docs/environments.md of tpucfg has the command, pulumi stack init" in missing.output
    assert len(standin_world.cloud.buckets) == 1
