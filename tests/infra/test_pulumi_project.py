"""The Pulumi project beside a spec: which file the engine reads, and the folders that it names."""

import json
from pathlib import Path

import pytest

from tpucfg.infra.stack_files import pulumi_project

NAMED = {"name": "mnist", "runtime": "python"}


def write(folder: Path, name: str, **settings: object) -> None:
    """Write a project file."""
    (folder / name).write_text(json.dumps({**NAMED, **settings}))


def test_json_wins_over_yaml_and_yml(tmp_path: Path) -> None:
    """The engine reads the first of Pulumi.json, Pulumi.yaml and Pulumi.yml; stack files have the same ending."""
    for name in ("Pulumi.yml", "Pulumi.yaml", "Pulumi.json"):
        write(tmp_path, name)
        pulumi = pulumi_project(tmp_path)
        assert pulumi
        assert pulumi.file == name
        assert pulumi.stack_file("dev").name == f"Pulumi.dev{Path(name).suffix}"


@pytest.mark.parametrize(
    ("settings", "program", "stacks"),
    [
        ({}, ".", "."),
        ({"main": "stacks", "stackConfigDir": "config"}, "stacks", "config"),
        ({"main": "stacks/__main__.py"}, "stacks", "."),
        ({"main": "program.py"}, "program.py", "."),
    ],
)
def test_folders_of_a_project(
    tmp_path: Path, settings: dict[str, str], program: str, stacks: str
) -> None:
    """A main program may be a folder or the file in it."""
    write(tmp_path, "Pulumi.yaml", **settings)

    pulumi = pulumi_project(tmp_path)

    assert pulumi
    assert (pulumi.program, pulumi.stacks) == (tmp_path / program, tmp_path / stacks)


def test_code_besides_the_program(tmp_path: Path) -> None:
    """The Python of the program, plugins and local packages are code too; packages that are downloaded have no path."""
    write(
        tmp_path,
        "Pulumi.yaml",
        runtime={"name": "python", "options": {"virtualenv": ".venv"}},
        plugins={
            "providers": [{"name": "gcp", "path": "bin"}],
            "analyzers": [{"name": "a", "path": "rules"}],
        },
        packages={"near": "./near", "far": "github.com/a/b", "full": {"source": "../full"}},
    )

    pulumi = pulumi_project(tmp_path)

    assert pulumi
    assert pulumi.other_code == (".venv", "bin", "rules", "./near", "../full")


@pytest.mark.parametrize(
    "plugins", [[], "x", {"providers": "x"}, {"providers": [1]}, {"providers": [{}]}, None]
)
def test_malformed_sections_name_no_code(tmp_path: Path, plugins: object) -> None:
    """A section of another type than the engine accepts is no error here: the engine refuses it."""
    write(tmp_path, "Pulumi.yaml", plugins=plugins, packages=plugins, runtime=plugins)
    pulumi = pulumi_project(tmp_path)
    assert pulumi
    assert pulumi.other_code == ()
