"""Previews of the real engine parse like the recorded ones that the tests of the review use."""

from pathlib import Path

import pytest
from preview_scenarios import SCENARIOS, STREAM, Project, preview_outputs
from standin.projects import World

from recorded_previews import read, read_text

TAKEN = (
    "create",
    "update",
    "region-move",
    "protection-lifted",
    "protected-replacement",
    "config-error",
    "drift-and-update",
)
TELLING = ("region-move", "drift-and-update")
"""They have the most kinds of steps: the review of a step that the engine prints otherwise is caught by them."""


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.telling] if name in TELLING else []) for name in TAKEN],
)
def test_preview_equals_the_recorded_one(name: str, standin_world: World, tmp_path: Path) -> None:
    """Both output formats equal the recorded ones, also for a failed preview."""
    texts = preview_outputs(SCENARIOS[name], tmp_path / "project", standin_world)

    for text, form in zip(texts, ("json", "jsonl"), strict=True):
        now, then = read_text(text, f"dev.{form}"), read(name, form)
        if not then.failure:
            assert now == then
            continue
        # The number of steps before the engine stops at an error varies.
        assert now.failure
        assert now.failure.reason == then.failure.reason
        assert set(now.failure.lines) <= set(then.failure.lines)
        assert all(change in then.changes for change in now.changes)


@pytest.mark.usefixtures("engine")
@pytest.mark.telling
def test_secret_value_is_omitted(standin_world: World, tmp_path: Path) -> None:
    """A value that the engine marks as secret is in neither format, but its change is reported.

    A secret that a preview prints is caught here.
    """
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
