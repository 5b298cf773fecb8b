"""A project that `tpucfg init` wrote has a stack for each environment, and they hold."""

import os
import subprocess
from pathlib import Path

import pytest

from repositories import Repository
from tpucfg.cli.app import run
from tpucfg.yamldoc.reader import read_text

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ("vertex-ai", "cloud-tpu", "gke", "ai-platform")


@pytest.mark.parametrize("target", TARGETS)
def test_new_project_is_whole(target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Spec and stack files have no error, and its own copy of the program makes every environment."""
    folder = tmp_path / "mnist"
    assert run(["init", str(folder), "--target", target]) == 0
    capsys.readouterr()

    assert run(["check", "--spec", str(folder / "tpucfg.yaml")]) == 0
    assert run(["infra", "--spec", str(folder / "tpucfg.yaml")]) == 0

    printed = capsys.readouterr().out
    assert "name: my-project-dev-mnist-dev-us-central1" in printed
    assert "name: my-project-prod-mnist-prod-us-central1" in printed


def test_new_project_has_its_own_name_and_this_program(tmp_path: Path) -> None:
    """Its Pulumi project is called after it, declares the same config, and the program is this repository's."""
    assert run(["init", str(tmp_path / "mnist")]) == 0

    made, ours = (
        read_text((folder / "Pulumi.yaml").read_text(), "Pulumi.yaml").data for folder in (tmp_path / "mnist", ROOT)
    )
    assert made == {**ours, "name": "mnist"}
    assert "mnist:spec: tpucfg.yaml" in (tmp_path / "mnist" / "stacks" / "Pulumi.dev.yaml").read_text()
    for module in (ROOT / "stacks").glob("*.py"):
        assert (tmp_path / "mnist" / "stacks" / module.name).read_text() == module.read_text()


@pytest.fixture
def outer(tmp_path: Path) -> Path:
    """A repository with one commit, in a folder of its own."""
    made = Repository(tmp_path / "outer")
    made.commit()
    return made.folder


def told(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], new: str = "sub/m") -> str:
    """What `tpucfg init` says on stderr, in that folder."""
    monkeypatch.chdir(folder)
    assert run(["init", new, "--name", "mnist"]) == 0
    return capsys.readouterr().err


def test_workflow_that_nobody_runs_is_told(
    outer: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Inside a repository GitHub only looks at the root; a project that is the root itself is told nothing."""
    said = "GitHub runs no workflow in sub/m/.github: move it to .github, and set its spec input"
    assert told(outer, monkeypatch, capsys) == f"tpucfg: {said}\n"
    assert told(outer, monkeypatch, capsys, ".") == ""
    Repository(outer / "sub/new")
    assert told(outer, monkeypatch, capsys, "sub/new") == ""
    (outer / "sub/stray/.git").mkdir(parents=True)
    assert "move it to .github" in told(outer, monkeypatch, capsys, "sub/stray")
    (outer.parent / "link").symlink_to(outer / "sub")
    assert "move it to outer/.github" in told(outer.parent, monkeypatch, capsys, "link/other")


def test_a_worktree_and_a_submodule_are_repositories(
    outer: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """There .git is a file that says where the repository is kept."""
    made = Repository(outer)
    made.git("worktree", "add", "--quiet", "../tree")
    made.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(outer), "module")
    for folder in (outer.parent / "tree", outer / "module"):
        assert (folder / ".git").is_file()
        assert "move it to .github," in told(folder, monkeypatch, capsys)


@pytest.mark.parametrize("kind", ["empty", "half", "file", "link", "long"])
def test_what_is_only_called_like_a_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    """An empty folder, one with a file or two, a text, a link that leads nowhere: git takes none of them for one."""
    stray = tmp_path / ".git"
    if kind in ("empty", "half"):
        stray.mkdir()
    if kind == "half":
        (stray / "HEAD").write_text("ref: refs/heads/main\n")
    if kind in ("file", "long"):
        stray.write_text("gitdir: nowhere\n" if kind == "file" else "gitdir: " + "x" * 1_000_000)
    if kind == "link":
        stray.symlink_to("nowhere")
    assert told(tmp_path, monkeypatch, capsys) == ""


def test_no_git_is_needed(outer: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Who has no git is told nothing about repositories, and has the project."""
    monkeypatch.setenv("PATH", os.fspath(outer))
    assert told(outer, monkeypatch, capsys) == ""
    assert (outer / "sub/m/tpucfg.yaml").is_file()


def test_a_folder_whose_name_is_no_text(
    outer: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Git prints such a path as it is."""
    assert "sub/\\udcff/.github: move it to .github," in told(outer, monkeypatch, capsys, "sub/\udcff")


@pytest.mark.parametrize("new", ["m", "my models/m", "it's", "-rf", "$(id)", "../m"])
def test_the_next_command_can_be_pasted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], new: str
) -> None:
    """Whatever the folder is called, a shell goes there."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert run(["init", "--name", "mnist", "--", new]) == 0
    enter, _, ladder = capsys.readouterr().out.splitlines()[-1].removeprefix("next: ").partition(" && ")
    assert ladder == "tpucfg ladder"
    ended = subprocess.run(["sh", "-c", f"{enter} && ls"], capture_output=True, text=True, check=True)
    assert "tpucfg.yaml" in ended.stdout


def test_what_is_written_is_named_without_what_a_terminal_acts_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither when it is written, nor when it is there already."""
    monkeypatch.chdir(tmp_path)
    for _ in "12":
        run(["init", "--name", "mnist", "a\x1b[31m"])
    said = capsys.readouterr()
    assert all(line.isprintable() for line in (said.out + said.err).splitlines())
    assert "these files exist" in said.err
