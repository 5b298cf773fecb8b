"""The stack program of a project, which calls the library."""

import json
from pathlib import Path

import pytest
from mocked import ROOT

from repositories import project
from tpucfg.cli.app import run

PROGRAM = Path("stacks", "__main__.py")
TOPIC = """
import pulumi
import pulumi_gcp as gcp

gcp.pubsub.Topic(
    "done",
    labels={"region": environment.region},
    project=environment.provider.project,
    opts=pulumi.ResourceOptions(provider=environment.provider),
)
"""


def test_program_of_this_repository_is_that_of_new_projects() -> None:
    """The tests of this repository run the program that `tpucfg init` writes."""
    assert (ROOT / PROGRAM).read_bytes() == (ROOT / "templates" / "infra" / PROGRAM).read_bytes()


@pytest.mark.shell
def test_own_resource_is_declared_beside_those_of_the_library(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A resource after `deploy()` can use the environment's provider, and `tpucfg infra` prints it."""
    spec = str(project(tmp_path).spec)
    with (tmp_path / PROGRAM).open("a") as program:
        program.write(TOPIC)
    capsys.readouterr()

    assert run(["infra", "--spec", spec, "--format", "json"]) == 0
    environments = json.loads(capsys.readouterr().out)["environments"]
    assert run(["infra", "--spec", spec]) == 0
    text = capsys.readouterr().out

    assert [environment["name"] for environment in environments] == ["dev", "prod"]
    for environment in environments:
        resources = {resource["name"]: resource for resource in environment["resources"]}
        assert len(resources) > 1
        assert resources["done"]["inputs"] == {
            "labels": {"region": "us-central1"},
            "project": f"my-project-{environment['name']}",
        }
        assert resources["done"]["options"]["provider"] == "gcp"
    assert text.count("pubsub.Topic done") == 2
