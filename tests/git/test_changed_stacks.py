"""The stacks for which `pulumi up` reads other files than at another commit."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from repositories import Repository
from tpucfg.cli.app import run

Changed = Callable[[str], list[str]]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Create a project at the root, one below it, whose prod has a spec of another name, and a Pulumi project alone."""
    repository = Repository(tmp_path / "models")
    chat = repository.folder / "chat"
    assert run(["init", str(repository.folder), "--infra"]) == 0
    assert run(["init", str(chat), "--infra"]) == 0
    (chat / "large.yaml").write_text((chat / "tpucfg.yaml").read_text())
    repository.edit(("tpucfg.yaml", "large.yaml"), file="chat/stacks/Pulumi.prod.yaml")
    (chat / "stacks/requirements.txt").write_text("-r ../../shared.txt\n")
    (repository.folder / "shared.txt").write_text("./helpers\n")
    (repository.folder / "helpers").mkdir()
    (repository.folder / "helpers/helper.py").touch()
    (repository.folder / "site/stacks").mkdir(parents=True)
    (repository.folder / "site/Pulumi.yaml").write_text("name: site\nruntime: python\nmain: stacks")
    (repository.folder / "site/Pulumi.dev.yaml").write_text("config: {}\n")
    repository.commit()
    return repository


@pytest.fixture
def changed(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Changed:
    """Return a function that lists the changed stacks as `FOLDER NAME`."""
    monkeypatch.chdir(repository.folder)

    def changed(revision: str) -> list[str]:
        capsys.readouterr()
        assert run(["infra", "--changed-from", revision]) == 0
        return [
            f"{stack['folder']} {stack['name']}" for stack in json.loads(capsys.readouterr().out)
        ]

    return changed


@pytest.mark.parametrize(
    ("file", "stacks"),
    [
        ("README.md", []),
        ("configs/config.yaml", []),
        ("results/fit.json", []),
        ("site/stacks/__main__.py", []),
        ("tpucfg.yaml", [". dev", ". prod"]),
        ("chat/tpucfg.yaml", ["chat dev"]),
        ("chat/large.yaml", ["chat prod"]),
        ("chat/stacks/Pulumi.prod.yaml", ["chat prod"]),
        ("chat/stacks/helper.py", ["chat dev", "chat prod"]),
        ("chat/Pulumi.yaml", ["chat dev", "chat prod"]),
        ("shared.txt", ["chat dev", "chat prod"]),
        ("helpers/helper.py", ["chat dev", "chat prod"]),
        ("requirements.txt", [". dev", ". prod", "chat dev", "chat prod"]),
    ],
)
def test_a_stack_changes_with_the_files_that_it_reads(
    repository: Repository, changed: Changed, file: str, stacks: list[str]
) -> None:
    """The spec that it names, its own file, the program, and requirements with what they name."""
    path = repository.folder / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{path.read_text() if path.exists() else ''}# changed\n")
    repository.commit()
    assert changed("HEAD^") == stacks


@pytest.mark.parametrize("revision", ["", "0" * 40, "no-branch", "--all"])
def test_every_stack_changes_from_an_unknown_commit(changed: Changed, revision: str) -> None:
    """The first push of a branch has no commit before it; a Pulumi project without a spec has no stack here."""
    assert changed(revision) == [". dev", ". prod", "chat dev", "chat prod"]
    assert changed("HEAD") == []


def test_a_file_outside_of_the_repository_counts_as_changed(
    repository: Repository, changed: Changed
) -> None:
    """The content that a link leads to may differ at each commit."""
    (repository.folder / "chat/stacks/values.yaml").symlink_to("/etc/hostname")
    repository.commit()
    (repository.folder / "README.md").touch()
    repository.commit()
    assert changed("HEAD^") == ["chat dev", "chat prod"]
    assert changed("HEAD") == []
