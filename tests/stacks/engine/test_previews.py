"""Previews of the real engine today are read as the recorded ones are, on which the tests of the review stand."""

from pathlib import Path

import pytest
from preview_scenarios import SCENARIOS, STREAM, Project, take
from standin.projects import World

from recorded_previews import read, read_text

TAKEN = ("create", "update", "region-move", "protection-lifted", "protected-replacement", "config-error")


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("name", TAKEN)
def test_preview_is_read_as_the_recorded_one(name: str, standin_world: World, tmp_path: Path) -> None:
    """Both forms say the same as when they were recorded, and where the engine refused, nothing else."""
    texts = take(SCENARIOS[name], tmp_path / "project", standin_world)

    for text, form in zip(texts, ("json", "jsonl"), strict=True):
        now, then = read_text(text, f"dev.{form}"), read(name, form)
        if not then.failure:
            assert now == then
            continue
        # How far the engine gets before it heeds a refusal is a matter of chance.
        assert now.failure
        assert now.failure.reason == then.failure.reason
        assert set(now.failure.lines) <= set(then.failure.lines)
        assert all(change in then.changes for change in now.changes)


@pytest.mark.usefixtures("engine")
def test_secret_is_not_read(standin_world: World, tmp_path: Path) -> None:
    """What the engine marks as a secret is in neither form, and its change is told all the same."""
    project = Project(tmp_path / "project", standin_world)
    program = tmp_path / "project" / "stacks" / "__main__.py"

    def write(label: str) -> None:
        project.write({}, {})
        program.write_text(
            "import pulumi, pulumi_gcp as gcp\n"
            f"labels = pulumi.Output.secret({{'key': {label!r}}})\n"
            "gcp.storage.Bucket('data', name='acme-dev-x', project='acme-dev', location='us-central1', labels=labels)\n"
        )

    write("hunter1")
    project.pulumi("stack", "init")
    up = project.pulumi("up", "--yes", "--skip-preview")
    assert up.returncode == 0, up.stdout
    write("hunter2")

    for environment in ({}, STREAM):
        printed = project.pulumi("preview", "--json", **environment).stdout
        assert "hunter" not in printed
        preview = read_text(printed)
        assert not preview.failure
        [change] = preview.changes
        assert (change.op, change.inputs, change.hidden) == ("update", (), ("labels",))
