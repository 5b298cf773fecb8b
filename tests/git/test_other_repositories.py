"""Attacks by folders that git takes for a repository: none of them answers in place of the one that was asked for."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from repositories import ENVIRONMENT, Repository
from tpucfg.cli.app import run

ACTION: Final = Path(__file__).parents[2] / ".github" / "actions" / "review"
OLD: Final = "acme/train:1.0"
NEW: Final = "evil.example/miner:6.6"
SPEC: Final = """\
version: 1
name: chat
target: vertex-ai
sizes: [v5litepod-4]
environments: {dev: {project: acme-dev, region: us-west4}}
trainer: {image: us-docker.pkg.dev/acme/train:1.0}
training: {tuned_on: v5litepod-4, batch_size: 8, train_steps: 10, learning_rate: 1e-3}
"""
REVIEWS: Final = {
    "review": ("review", "--base", "main", "--fail-on", "caution"),
    "review-head": ("review", "--base", "main", "--head", "topic", "--fail-on", "caution"),
    "diff": ("diff", "main", "--exit-code"),
    "diff-head": ("diff", "main", "topic", "--exit-code"),
}
"""The commands that compare two revisions; each exits 3 because of the change."""
CONFIGS: Final = {
    "bare": "[core]\nrepositoryformatversion = 0\nbare = true\n",
    "worktree": "[core]\nrepositoryformatversion = 0\nbare = false\nworktree = .\n",
}
"""The `config` of a repository that a change brings: a folder, or one with a working tree."""


class Answer(NamedTuple):
    """The output of a command, and its exit code."""

    code: int
    output: str
    errors: str


Ask = Callable[..., Answer]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Return a function that runs tpucfg."""

    def run_command(*arguments: str) -> Answer:
        capsys.readouterr()
        code = run([*arguments])
        return Answer(code, *capsys.readouterr())

    return run_command


def changed(folder: Path, spec: str) -> Repository:
    """Create a repository whose branch `topic`, which is checked out, has another image than `main`."""
    repository = Repository(folder)
    path = folder / spec
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SPEC)
    repository.commit()
    repository.git("switch", "--quiet", "--create", "topic")
    repository.edit((OLD, NEW), file=spec)
    repository.commit()
    return repository


def plant(repository: Repository, folder: str, config: str, tmp_path: Path) -> Path:
    """Commit a repository in a folder of the change, in which both branches have the new image; return its witness.

    Its monitor and its hooks are commands that create the witness.
    """
    planted = Repository(tmp_path / "planted")
    shutil.copy(repository.folder / folder / "tpucfg.yaml", planted.folder)
    planted.commit()
    planted.git("branch", "topic")
    witness = tmp_path / "witness"
    target = repository.folder / folder
    for name in ("HEAD", "objects", "refs", "index"):
        source = planted.folder / ".git" / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target / name)
    command = tmp_path / "command"
    command.write_text(f"#!/bin/sh\ntouch {witness}\n")
    command.chmod(0o755)
    (target / "config").write_text(f"{config}fsmonitor = {command}\nhooksPath = {target}\n")
    shutil.copy(command, target / "post-index-change")
    repository.commit()
    return witness


def is_refused(answer: Answer, spec: str) -> bool:
    """Return True if the command refuses a spec by name, and prints nothing about its change."""
    return answer.code == 1 and spec in answer.errors and NEW not in answer.output


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("folder", ["", "models"], ids=["root", "below"])
def test_folder_like_a_repository_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask, config: str, folder: str
) -> None:
    """The change is reported, or the spec refused by name; no command of the change runs."""
    spec = str(Path(folder) / "tpucfg.yaml")
    repository = changed(tmp_path / "p", spec)
    witness = plant(repository, folder, CONFIGS[config], tmp_path)
    monkeypatch.chdir(repository.folder)

    commands = [[*arguments, "--spec", spec] for arguments in REVIEWS.values()]
    commands += [[*REVIEWS["review"]], [*REVIEWS["review-head"]]]
    for command in commands:
        answer = ask(*command)
        assert not witness.exists(), command
        if folder:
            assert is_refused(answer, spec), (command, answer)
            assert "git takes for a repository of its own" in answer.errors
        else:
            # Git looks for .git first.
            assert answer.code == 3, (command, answer)
            assert NEW in answer.output


@pytest.mark.parametrize("config", CONFIGS)
def test_working_folder_like_a_repository_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask, config: str
) -> None:
    """The working folder is never taken for a repository because it looks like one."""
    repository = changed(tmp_path / "p", "models/tpucfg.yaml")
    witness = plant(repository, "models", CONFIGS[config], tmp_path)

    for working_folder in ("models", "models/refs"):
        monkeypatch.chdir(repository.folder / working_folder)
        for arguments in REVIEWS.values():
            answer = ask(*arguments)
            assert answer.code == 1, (arguments, answer)
            assert "git takes for a repository of its own" in answer.errors
            assert NEW not in answer.output
    assert not witness.exists()


def test_folder_like_a_worktree_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    """HEAD and commondir make a folder a worktree of the real repository, with a HEAD and an index of its own."""
    repository = changed(tmp_path / "p", "models/tpucfg.yaml")
    (repository.folder / "models/HEAD").write_text("ref: refs/heads/main\n")
    (repository.folder / "models/commondir").write_text("../.git\n")
    repository.commit()

    for working_folder, spec in ((".", "models/tpucfg.yaml"), ("models", "tpucfg.yaml")):
        monkeypatch.chdir(repository.folder / working_folder)
        for arguments in REVIEWS.values():
            answer = ask(*arguments, "--spec", spec)
            assert answer.code == 1, (working_folder, arguments, answer)
            assert NEW not in answer.output


@pytest.mark.parametrize("kind", ["file", "link", "file-of-a-worktree"])
def test_git_file_of_a_change_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask, kind: str
) -> None:
    """A .git file or link, as an archive can have it, leads to no repository of the change."""
    repository = changed(tmp_path / "p", "models/tpucfg.yaml")
    witness = plant(repository, "models", CONFIGS["bare"], tmp_path)
    models = repository.folder / "models"
    (models / "d").mkdir()
    for file in ("HEAD", "objects", "refs", "config", "index"):
        (models / file).rename(models / "d" / file)
    if kind == "link":
        (models / ".git").symlink_to("d")
    else:
        (models / ".git").write_text("gitdir: d\n")
    if kind == "file-of-a-worktree":
        (models / "d/commondir").write_text("../../.git\n")
    monkeypatch.chdir(repository.folder)

    for arguments in REVIEWS.values():
        answer = ask(*arguments, "--spec", "models/tpucfg.yaml")
        assert not witness.exists(), arguments
        assert is_refused(answer, "models/tpucfg.yaml"), (arguments, answer)
    if kind == "file-of-a-worktree":
        monkeypatch.chdir(models)
        for arguments in REVIEWS.values():
            assert ask(*arguments).code == 1, arguments


def test_variables_choose_no_other_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    """Variables that git sets for its hooks lead to no other repository, and settings turn no protection off."""
    repository = changed(tmp_path / "p", "models/tpucfg.yaml")
    witness = plant(repository, "models", CONFIGS["bare"], tmp_path)
    planted = repository.folder / "models"
    settings = {
        "safe.bareRepository": "all",
        "core.fsmonitor": str(tmp_path / "command"),
        "core.hooksPath": str(planted),
    }
    variables: dict[str, object] = {
        "GIT_WORK_TREE": planted,
        "GIT_COMMON_DIR": planted,
        "GIT_OBJECT_DIRECTORY": planted / "objects",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": planted / "objects",
        "GIT_INDEX_FILE": planted / "index",
        "GIT_NAMESPACE": "x",
        "GIT_EXTERNAL_DIFF": tmp_path / "command",
        "GIT_CONFIG_COUNT": len(settings),
    }
    for number, (key, value) in enumerate(settings.items()):
        variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    for variable, content in variables.items():
        monkeypatch.setenv(variable, str(content))
    monkeypatch.chdir(repository.folder)

    for arguments in REVIEWS.values():
        monkeypatch.chdir(repository.folder)
        answer = ask(*arguments, "--spec", "models/tpucfg.yaml")
        assert is_refused(answer, "models/tpucfg.yaml"), (arguments, answer)
        monkeypatch.chdir(planted)
        assert ask(*arguments).code == 1, arguments
    # In a hook of a repository, GIT_DIR is set too: the working folder decides nevertheless.
    other = changed(tmp_path / "other", "tpucfg.yaml")
    monkeypatch.chdir(other.folder)
    for git_dir in (".git", repository.folder / ".git", planted):
        monkeypatch.setenv("GIT_DIR", str(git_dir))
        for arguments in REVIEWS.values():
            answer = ask(*arguments)
            assert answer.code == 3, (git_dir, arguments, answer)
            assert NEW in answer.output
    assert not witness.exists()


def test_monitor_hooks_and_filters_of_the_repository_do_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    """A change chooses by its attributes which filter runs, so that none of the repository's own runs either."""
    repository = changed(tmp_path / "p", "tpucfg.yaml")
    witness = tmp_path / "witness"
    command = tmp_path / "command"
    command.write_text(f"#!/bin/sh\ntouch {witness}\ncat\n")
    command.chmod(0o755)
    (repository.folder / ".gitattributes").write_text("* filter=spy diff=spy\n")
    repository.commit()
    keys = ("core.fsmonitor", "filter.spy.clean", "filter.spy.smudge", "filter.spy.process")
    for key in (
        *keys,
        "diff.external",
        "diff.spy.textconv",
        "diff.spy.command",
        "core.pager",
        "core.sshCommand",
    ):
        repository.git("config", key, str(command))
    shutil.copy(command, repository.folder / ".git" / "hooks" / "post-index-change")
    monkeypatch.chdir(repository.folder)
    for file in ("tpucfg.yaml", ".gitattributes"):
        os.utime(file, (0, 0))  # the index has another time, so git reads the files again
    witness.unlink(missing_ok=True)

    for arguments in REVIEWS.values():
        assert ask(*arguments).code == 3
    assert not witness.exists()


def test_change_hides_no_submodule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    """The file .gitmodules is config that a revision brings: `ignore = all` there hides no submodule."""
    repository = changed(tmp_path / "p", "tpucfg.yaml")
    repository.git("switch", "--quiet", "main")
    first, second = (repository.git("rev-parse", revision) for revision in ("main", "topic"))
    (repository.folder / ".gitmodules").write_text(
        '[submodule "lib"]\npath = lib\nurl = https://example.com/lib\nignore = all\n'
    )
    repository.git("add", "--all")
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{first},lib")
    repository.git("commit", "--quiet", "--message=x")
    repository.git("switch", "--quiet", "--force-create", "topic")
    repository.git("update-index", "--cacheinfo", f"160000,{second},lib")
    repository.git("commit", "--quiet", "--message=x")
    monkeypatch.chdir(repository.folder)

    for name in ("review", "review-head"):
        answer = ask(*REVIEWS[name])
        assert "`lib`" in answer.output, (name, answer)


@pytest.mark.parametrize("script", ["check.sh", "review.sh"])
def test_scripts_of_the_workflow_ask_no_other_repository(tmp_path: Path, script: str) -> None:
    """In a folder of the checkout that looks like a repository, the actions run no command of it."""
    repository = changed(tmp_path / "p", "models/tpucfg.yaml")
    witness = plant(repository, "models", CONFIGS["worktree"], tmp_path)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/tpucfg").symlink_to("/bin/true")
    (tmp_path / "fits").mkdir()
    variables: dict[str, str] = dict.fromkeys(("SPEC", "RESOURCES", "PREVIEWS"), "")
    variables |= {
        "CONFIGS": "configs",
        "BASE": "main",
        "FAIL_ON": "none",
        "FITS": f"{tmp_path}/fits",
    }
    variables |= dict.fromkeys(("COMMENT", "GITHUB_STEP_SUMMARY"), f"{tmp_path}/comment")

    subprocess.run(
        ["bash", ACTION / script],
        cwd=repository.folder / "models",
        env={**variables, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"},
        check=True,
        capture_output=True,
    )

    assert not witness.exists()


# What goes on working


def run_git(folder: Path, *arguments: str) -> None:
    """Run git with settings that allow a submodule from a folder."""
    subprocess.run(
        ["git", "-c", "protocol.file.allow=always", "-C", str(folder), *arguments],
        env=ENVIRONMENT,
        check=True,
        capture_output=True,
    )


def followed(help_text: str) -> tuple[Path, Sequence[str]]:
    """Return the folder and the arguments of the command in a help line."""
    match = re.search(r"cd (\S+) && tpucfg (.*)", help_text)
    assert match, help_text
    return Path(match[1]), match[2].split()


def test_submodule_is_read_from_inside_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    """From above, the refusal names the submodule and prints the command that works."""
    changed(tmp_path / "part", "models/tpucfg.yaml")
    above = Repository(tmp_path / "above")
    run_git(above.folder, "submodule", "--quiet", "add", str(tmp_path / "part"), "parts/chat")
    run_git(above.folder / "parts/chat", "branch", "main", "origin/main")
    above.commit()

    for arguments in REVIEWS.values():
        monkeypatch.chdir(above.folder)
        refused = ask(*arguments, "--spec", "parts/chat/models/tpucfg.yaml")
        assert is_refused(refused, "parts/chat/models/tpucfg.yaml"), (arguments, refused)
        assert f"in the git repository {above.folder}/parts/chat," in refused.errors
        folder, command = followed(refused.errors)
        monkeypatch.chdir(folder)
        assert NEW in ask(*command).output, (arguments, command)


def test_repository_below_the_working_folder_is_refused_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    """Outside of every repository, the help is the command for the folder of the spec."""
    changed(tmp_path / "p", "models/tpucfg.yaml")

    for arguments in REVIEWS.values():
        monkeypatch.chdir(tmp_path)
        refused = ask(*arguments, "--spec", "p/models/tpucfg.yaml")
        assert is_refused(refused, "p/models/tpucfg.yaml"), (arguments, refused)
        folder, command = followed(refused.errors)
        monkeypatch.chdir(folder)
        assert NEW in ask(*command).output, (arguments, command)


def test_worktrees_are_of_their_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    """A worktree is read from inside, and from the main working tree."""
    repository = changed(tmp_path / "p", "models/tpucfg.yaml")
    repository.git("switch", "--quiet", "main")
    repository.git("worktree", "add", "--quiet", str(tmp_path / "w"), "topic")

    for working_folder, spec in (
        ("w", "models/tpucfg.yaml"),
        ("w/models", "tpucfg.yaml"),
        ("p", "../w/models/tpucfg.yaml"),
    ):
        monkeypatch.chdir(tmp_path / working_folder)
        for arguments in REVIEWS.values():
            answer = ask(*arguments, "--spec", spec)
            assert answer.code == 3, (working_folder, arguments, answer)
            assert NEW in answer.output


def test_bare_repository_is_read_if_the_environment_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    """As in a hook of a server: GIT_DIR names a bare repository, which the working folder alone never does."""
    changed(tmp_path / "p", "tpucfg.yaml")
    run_git(tmp_path, "clone", "--quiet", "--bare", "p", "bare.git")
    other = changed(tmp_path / "other", "tpucfg.yaml")
    monkeypatch.chdir(tmp_path / "bare.git")
    assert ask(*REVIEWS["diff-head"]).code == 1

    for git_dir, working_folder in (
        (".", "bare.git"),
        (tmp_path / "bare.git", "bare.git"),
        ("bare.git", "."),
    ):
        monkeypatch.chdir(tmp_path / working_folder)
        monkeypatch.setenv("GIT_DIR", str(git_dir))
        for name in ("diff-head", "review-head"):
            answer = ask(*REVIEWS[name])
            assert answer.code == 3, answer
            assert NEW in answer.output
    # The .git of a working tree is no bare repository.
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    assert ask(*REVIEWS["diff-head"]).code == 1


@pytest.mark.parametrize("is_ci", [True, False])
def test_old_git_is_refused_in_ci(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask, is_ci: bool
) -> None:
    """Git before 2.38 does not know safe.bareRepository: elsewhere, the comparison of repositories protects."""
    repository = changed(tmp_path / "p", "tpucfg.yaml")
    other = changed(tmp_path / "other", "models/tpucfg.yaml")
    witness = plant(other, "models", CONFIGS["bare"], tmp_path)
    script = tmp_path / "bin" / "git"
    script.parent.mkdir()
    # To a git that does not know it, the setting is one of any name.
    script.write_text(
        f"""#!{shutil.which("bash")}
[ "${{!#}}" != version ] || {{ echo git version 2.34.1; exit; }}
exec {shutil.which("git")} "${{@/safe.bareRepository=explicit/x.y=z}}"
"""
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(script.parent), prepend=os.pathsep)
    monkeypatch.delenv("CI", raising=False)
    if is_ci:
        monkeypatch.setenv("CI", "true")
    monkeypatch.chdir(repository.folder)

    for arguments in REVIEWS.values():
        answer = ask(*arguments)
        if is_ci:
            assert answer.code == 1
            assert "git 2.34.1 is too old" in answer.errors
            assert "2.38" in answer.errors
        else:
            assert answer.code == 3, answer
    for working_folder, spec in ((".", "models/tpucfg.yaml"), ("models", "tpucfg.yaml")):
        monkeypatch.chdir(other.folder / working_folder)
        for arguments in REVIEWS.values():
            answer = ask(*arguments, "--spec", spec)
            assert is_refused(answer, "git"), (working_folder, arguments, answer)
    assert not witness.exists()
