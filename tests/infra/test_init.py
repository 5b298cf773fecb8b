"""`tpucfg init`: a valid project with a stack per environment, and hints about the repository around it."""

import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from repositories import ADDRESS, Repository
from tpucfg.cli.app import run
from tpucfg.scaffold import EXAMPLE
from tpucfg.yamldoc.reader import read_text

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ("vertex-ai", "cloud-tpu", "compute-engine", "gke", "ai-platform")


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_new_project_is_valid_and_declares_its_resources(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Spec and stack files have no error, and the copied stack program declares every environment."""
    folder = tmp_path / "mnist"
    assert run(["init", str(folder), "--target", target, "--infra"]) == 0
    capsys.readouterr()

    assert run(["check", "--spec", str(folder / "tpucfg.yaml")]) == 0
    assert run(["infra", "--spec", str(folder / "tpucfg.yaml")]) == 0

    printed = capsys.readouterr().out
    assert "name: my-project-dev-mnist-dev-us-central1" in printed
    assert "name: my-project-prod-mnist-prod-us-central1" in printed


def test_new_project_has_its_name_and_a_copy_of_the_program(tmp_path: Path) -> None:
    """Its Pulumi project has its name and this repository's config; its stack program is a copy of this one."""
    assert run(["init", str(tmp_path / "mnist"), "--infra"]) == 0

    created, original = (
        read_text((folder / "Pulumi.yaml").read_text(), "Pulumi.yaml").data
        for folder in (tmp_path / "mnist", ROOT)
    )
    assert created == {**original, "name": "mnist"}
    assert (
        "mnist:spec: tpucfg.yaml" in (tmp_path / "mnist" / "stacks" / "Pulumi.dev.yaml").read_text()
    )
    program = Path("stacks", "__main__.py")
    assert (tmp_path / "mnist" / program).read_text() == (ROOT / program).read_text()


def test_a_virtual_environment_is_not_committed(tmp_path: Path) -> None:
    """Git ignores the environment and the bytecode of a new project, whose other files `git add .` adds."""
    folder = tmp_path / "mnist"
    assert run(["init", str(folder), "--trainer", "jax"]) == 0
    for path in (".venv/bin/python", "trainer/__pycache__/fit.pyc"):
        (folder / path).parent.mkdir(parents=True)
        (folder / path).touch()
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    ignored = ["git", "ls-files", "--others", "--ignored", "--exclude-standard"]
    listing = subprocess.run(ignored, cwd=folder, check=True, capture_output=True, text=True).stdout
    assert listing.split() == [".venv/bin/python", "trainer/__pycache__/fit.pyc"]


def test_an_existing_gitignore_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder that has one keeps it, and gets all other files."""
    (tmp_path / ".gitignore").write_text("data/\n")
    assert run(["init", str(tmp_path), "--name", "mnist", "--infra"]) == 0
    assert (tmp_path / ".gitignore").read_text() == "data/\n"
    assert ".gitignore" not in capsys.readouterr().out
    assert (tmp_path / "tpucfg.yaml").exists()


@pytest.fixture
def outer(tmp_path: Path) -> Path:
    """Create a repository with one commit."""
    repository = Repository(tmp_path / "outer")
    repository.commit()
    return repository.folder


def init_hints(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    new: str = "sub/m",
) -> str:
    """Run `tpucfg init` in a folder and return its stderr."""
    monkeypatch.chdir(folder)
    assert run(["init", new, "--name", "mnist", "--install-from", ADDRESS]) == 0
    return capsys.readouterr().err


def test_workflow_outside_the_repository_root_has_a_hint(
    outer: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A project below the repository's root has a hint, as GitHub reads workflows only there; the root has none."""
    hint = "GitHub runs no workflow in sub/m/.github: move it to .github, and set its spec input"
    assert init_hints(outer, monkeypatch, capsys) == f"tpucfg: {hint}\n"
    assert init_hints(outer, monkeypatch, capsys, ".") == ""
    Repository(outer / "sub/new")
    assert init_hints(outer, monkeypatch, capsys, "sub/new") == ""
    (outer / "sub/stray/.git").mkdir(parents=True)
    assert "move it to .github" in init_hints(outer, monkeypatch, capsys, "sub/stray")
    (outer.parent / "link").symlink_to(outer / "sub")
    assert "move it to outer/.github" in init_hints(outer.parent, monkeypatch, capsys, "link/other")


def test_worktree_and_submodule_are_repositories(
    outer: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A `.git` file that names the repository's folder marks a repository too."""
    repository = Repository(outer)
    repository.git("worktree", "add", "--quiet", "../tree")
    repository.git(
        "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(outer), "module"
    )
    for folder in (outer.parent / "tree", outer / "module"):
        assert (folder / ".git").is_file()
        assert "move it to .github," in init_hints(folder, monkeypatch, capsys)


@pytest.mark.parametrize("kind", ["empty", "half", "file", "link", "long"])
def test_invalid_git_entry_is_not_a_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    """An empty or incomplete `.git` folder, an invalid `.git` file and a dangling link are not repositories."""
    stray = tmp_path / ".git"
    if kind in ("empty", "half"):
        stray.mkdir()
    if kind == "half":
        (stray / "HEAD").write_text("ref: refs/heads/main\n")
    if kind in ("file", "long"):
        stray.write_text("gitdir: nowhere\n" if kind == "file" else "gitdir: " + "x" * 1_000_000)
    if kind == "link":
        stray.symlink_to("nowhere")
    assert init_hints(tmp_path, monkeypatch, capsys) == ""


def test_init_works_without_git(
    outer: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without git, the project is written and no hint is printed."""
    monkeypatch.setenv("PATH", os.fspath(outer))
    assert init_hints(outer, monkeypatch, capsys) == ""
    assert (outer / "sub/m/tpucfg.yaml").is_file()


def test_hint_escapes_an_undecodable_folder_name(
    outer: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder name that is not valid UTF-8 is printed as an escape, although git prints the raw bytes."""
    assert "sub/\\udcff/.github: move it to .github," in init_hints(
        outer, monkeypatch, capsys, "sub/\udcff"
    )


@pytest.mark.parametrize("new", ["m", "my models/m", "it's", "-rf", "$(id)", "../m"])
def test_next_command_is_quoted_for_the_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], new: str
) -> None:
    """The printed `cd` works in a shell for any folder name."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert run(["init", "--name", "mnist", "--", new]) == 0
    enter, _, ladder = (
        capsys.readouterr().out.splitlines()[-1].removeprefix("next: ").partition(" && ")
    )
    assert ladder == "tpucfg ladder"
    completed = subprocess.run(
        ["sh", "-c", f"{enter} && ls"], capture_output=True, text=True, check=True
    )
    assert "tpucfg.yaml" in completed.stdout


def test_output_escapes_control_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Control characters of a folder name are escaped, both when files are written and when they exist."""
    monkeypatch.chdir(tmp_path)
    for name in ("mnist", "other"):
        run(["init", "--workflow", "--name", name, "a\x1b[31m"])
    printed = capsys.readouterr()
    assert all(line.isprintable() for line in (printed.out + printed.err).splitlines())
    assert "these files exist with another content" in printed.err


def test_an_interrupted_init_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Files that exist as they would be written stay, and those that are missing are written."""
    arguments = ["init", str(tmp_path), "--name", "mnist", "--infra", "--install-from", ADDRESS]
    assert run(arguments) == 0
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    lost = [tmp_path / name for name in ("Pulumi.yaml", ".github/workflows/update.yml")]
    for path in lost:
        path.unlink()
    capsys.readouterr()
    assert run(arguments) == 0
    created = [line for line in capsys.readouterr().out.splitlines() if line.startswith("create ")]
    assert sorted(created) == sorted(f"create {path}" for path in lost)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == files


def test_a_file_with_another_content_stops_init(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is written, whether the file is another one, a link, or shorter after a full disk."""
    for number, left in enumerate(("version: 2\n", "", None)):
        folder = tmp_path / str(number)
        folder.mkdir()
        if left is None:
            (folder / "tpucfg.yaml").symlink_to("nowhere")
        else:
            (folder / "tpucfg.yaml").write_text(left)
        assert run(["init", str(folder), "--name", "mnist"]) == 1
        assert f"  {folder}/tpucfg.yaml\n" in capsys.readouterr().err
        assert [path.name for path in folder.iterdir()] == ["tpucfg.yaml"]


def test_init_goes_on_after_a_kill(tmp_path: Path) -> None:
    """A process that is killed while it writes leaves complete files, with which the next one goes on."""
    command = [sys.executable, "-m", "tpucfg", "init", str(tmp_path), "--name", "mnist", "--infra"]
    for delay in (0.05, 0.1, 0.2, 0.3):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            time.sleep(delay)
            process.kill()
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    assert run(["check", "--spec", str(tmp_path / "tpucfg.yaml")]) == 0


def test_a_new_project_is_a_spec_and_its_schema(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing else is written unless it is asked for, and the spec has no finding."""
    folder = tmp_path / "lm"
    assert run(["init", str(folder)]) == 0
    files = sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )
    assert files == ["schema/tpucfg.schema.json", "tpucfg.yaml"]
    capsys.readouterr()
    assert run(["check", "--spec", str(folder / "tpucfg.yaml")]) == 0
    assert capsys.readouterr().out.endswith("4 configs: no findings\n")


@pytest.mark.parametrize("new", ["my models", "-rf", "."])
def test_workflow_of_unknown_origin_is_added_by_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], new: str
) -> None:
    """A tpucfg that only this machine can install writes all but the workflows; the printed command adds them."""
    monkeypatch.chdir(tmp_path)
    assert run(["init", "--name", "mnist", "--workflow", "--infra", "--", new]) == 0
    printed = capsys.readouterr()
    assert "without the workflows, which cannot install tpucfg: this tpucfg was" in printed.err
    assert (tmp_path / new / "stacks/__main__.py").exists()
    assert not (tmp_path / new / ".github").exists()

    (command,) = re.findall("^to add them: tpucfg (.*)$", printed.out, re.MULTILINE)
    address = f"git+https://github.com/acme/tpucfg@{'0' * 40}"
    assert run(shlex.split(command.replace(EXAMPLE, address))) == 0
    created = capsys.readouterr().out.splitlines()
    assert created
    assert all("/.github/" in f"/{line.removeprefix('create ')}" for line in created)
    for name in ("review", "update"):
        workflow = (tmp_path / new / f".github/workflows/{name}.yml").read_text()
        assert (
            workflow.count(f'TPUCFG: "tpucfg[infra] @ {address}"') == workflow.count(address) == 1
        )


def test_workflow_alone_takes_no_option_of_a_project(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An option that would have no effect is refused."""
    assert run(["init", str(tmp_path), "--only-workflow", "--trainer", "jax"]) == 2
    assert (
        "--only-workflow excludes --name, --target, --trainer and --infra"
        in capsys.readouterr().err
    )


def test_workflow_alone_needs_a_known_origin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The workflow is never written with the bare name, which anyone could register on the package index."""
    assert run(["init", str(tmp_path), "--only-workflow"]) == 1
    assert "the workflows cannot install tpucfg" in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    "address",
    [
        "tpucfg",
        "tpucfg==0.1.0",
        "git+https://github.com/acme/tpucfg",
        "git+https://github.com/acme/tpucfg@main",
        f"git+https://github.com/acme/tpucfg@{'0' * 12}",
        f"git+http://github.com/acme/tpucfg@{'0' * 40}",
        f"git+https://user:secret@github.com/acme/tpucfg@{'0' * 40}",
        f"git+https://github.com/acme/tpucfg'; id #@{'0' * 40}",
        f"git+https://github.com/acme/$(id)@{'0' * 40}",
        "https://example.com/tpucfg-0.1.0-py3-none-any.whl",
        f"https://example.com/tpucfg-0.1.0.tar.gz#sha256={'0' * 64}",
        f"https://example.com/other-0.1.0-py3-none-any.whl#sha256={'0' * 64}",
        f"https://example.com/tpucfg-0.1.0-py3-none-any.whl#md5={'0' * 32}",
        f"ADDRESS\n@{'0' * 40}",
    ],
)
def test_address_whose_content_could_change_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], address: str
) -> None:
    """Only a full commit id or a hash over https is accepted, and nothing that a shell would interpret."""
    assert run(["init", str(tmp_path), "--install-from", address]) == 2
    assert "its content could change, or it is no public address" in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == []
