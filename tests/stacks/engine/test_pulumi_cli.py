"""The `pulumi` command on a project on disk."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pulumi
import pytest
from standin import projects
from standin.engine import NewStack
from standin.projects import World

FILES = {
    "Pulumi.yaml": """\
name: tpucfg
runtime: {name: python, options: {toolchain: pip, virtualenv: .venv}}
main: stacks
stackConfigDir: stacks
config:
  protect: {type: boolean, default: false}
  extraMembers: {type: array, items: {type: string}, default: []}
""",
    "stacks/Pulumi.dev.yaml": "config:\n  tpucfg:extraMembers: ['user:ada@example.com']\n",
    "stacks/names.py": "BUCKET = 'acme-dev-data'\n",
    "stacks/__main__.py": """\
import names
import pulumi
import pulumi_gcp as gcp

config = pulumi.Config()
gcp.storage.Bucket("data", name=names.BUCKET, project="acme-dev", location="us-central1")
pulumi.export("protect", config.require_bool("protect"))
pulumi.export("extraMembers", config.require_object("extraMembers"))
""",
}

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Create a Pulumi project with a stack file, a program of two modules and a virtual environment."""
    for name, text in FILES.items():
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "project" / ".venv").symlink_to(sys.prefix)
    return tmp_path / "project"


@pytest.fixture
def run(standin_world: World, project: Path, tmp_path: Path) -> Run:
    """Return a function that runs `pulumi` in the project."""
    environment = projects.with_language_host(standin_world.environment, tmp_path / "host")

    def pulumi(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["pulumi", "--non-interactive", *arguments]
        return subprocess.run(
            command,
            cwd=project,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    return pulumi


def test_up_runs_the_program_on_disk(run: Run, standin_world: World) -> None:
    """`pulumi up` uses the folders in Pulumi.yaml and creates the resources that the program declares."""
    run("stack", "init", "dev")

    up = run("up", "--yes", "--stack", "dev")

    assert up.returncode == 0, up.stdout + up.stderr
    assert "Traceback" not in up.stdout + up.stderr
    assert standin_world.cloud.operations == ["bucket.create"]
    outputs = json.loads(run("stack", "output", "--json", "--stack", "dev").stdout)
    assert outputs == {"protect": False, "extraMembers": ["user:ada@example.com"]}


def test_failing_program_fails_the_command(run: Run, project: Path) -> None:
    """An exception of the program fails `pulumi preview` with its message."""
    run("stack", "init", "dev")
    (project / "stacks" / "names.py").write_text("raise ValueError('no such environment')\n")

    preview = run("preview", "--stack", "dev")

    assert preview.returncode != 0
    assert "no such environment" in preview.stdout


def test_value_of_the_wrong_type_is_rejected(run: Run, project: Path) -> None:
    """The engine rejects a stack file that breaks the types of Pulumi.yaml before it runs the program."""
    run("stack", "init", "dev")
    (project / "stacks" / "Pulumi.dev.yaml").write_text("config:\n  tpucfg:extraMembers: 7\n")

    preview = run("preview", "--stack", "dev")

    assert preview.returncode != 0
    assert "extraMembers" in preview.stderr
    assert "array" in preview.stderr


def test_inline_program_uses_the_project_on_disk(new_stack: NewStack, project: Path) -> None:
    """A stack created in a folder with a Pulumi.yaml uses that project's types, defaults and stack files."""
    read: dict[str, object] = {}

    def program() -> None:
        config = pulumi.Config()
        read.update(
            protect=config.require_bool("protect"), members=config.require_object("extraMembers")
        )

    new_stack(program, folder=project, config={"protect": True}).preview()

    assert read == {"protect": True, "members": ["user:ada@example.com"]}
    assert not (project / "Pulumi.dev.yaml").exists()
