"""The command `tpucfg diff`."""

import json
from pathlib import Path

import pytest

from repositories import Repository
from tpucfg.cli.app import run

EDITS = (("train_steps: 4000", "train_steps: 2000"), ("v2-128]", "v2-128, v2-256]"))
CHANGED = """\
added: dev, prod: v2-256
dev, prod: v2-8
  --train_steps: 4000 → 2000
dev, prod: v2-32
  --train_steps: 1000 → 500
dev, prod: v2-128
  --train_steps: 250 → 125

6 configs change, 2 are added
"""


@pytest.mark.parametrize("arguments", [[], ["HEAD"], ["main"]])
def test_default_head_is_the_working_tree(
    repository: Repository, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    """Without a second revision the working tree is compared; each common change is printed once."""
    repository.edit(*EDITS)

    assert run(["diff", *arguments]) == 0
    assert capsys.readouterr().out == CHANGED


def test_two_revisions_are_compared(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two commits are compared in either direction, whatever is in the working tree."""
    repository.edit(*EDITS)
    repository.commit()
    repository.spec.write_text("broken: [")

    assert run(["diff", "HEAD~1", "HEAD"]) == 0
    assert capsys.readouterr().out == CHANGED
    assert run(["diff", "HEAD", "HEAD~1", "--env", "dev", "--size", "v2-256"]) == 0
    assert capsys.readouterr().out == "removed: dev: v2-256\n\n1 config is removed\n"


def test_comment_in_the_spec_is_no_change(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """A comment in the spec changes no config."""
    repository.edit(("version: 1", "# why\nversion: 1"))

    assert run(["diff", "--exit-code"]) == 0
    assert capsys.readouterr().out == "6 configs stay as they are\n"


def test_exit_code_is_3_for_differences_if_requested(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """Differences exit with 3 under --exit-code, and with 0 otherwise."""
    repository.edit(*EDITS)

    assert run(["diff"]) == 0
    assert run(["diff", "--exit-code"]) == 3
    assert capsys.readouterr().err == ""


def test_json_has_paths_values_and_configs(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """JSON has the path, the values and the configs of each change; an absent value has no key."""
    repository.edit(("    save_checkpoints_steps: 500\n", "    eval_steps: 500\n"))

    assert run(["diff", "--format", "json", "--env", "dev", "--size", "v2-8"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "added": [],
        "removed": [],
        "changes": [
            {
                "name": name,
                "path": ["workerPoolSpecs", 0, "containerSpec", "args", name],
                key: "500",
                "configs": [{"environment": "dev", "size": "v2-8"}],
            }
            for name, key in (("--save_checkpoints_steps", "before"), ("--eval_steps", "after"))
        ],
        "same": 0,
    }


def test_rendered_folders_are_compared(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two output folders of `render` are compared; the header of a config is not part of it."""
    assert run(["render", "--out", "one"]) == 0
    repository.edit(*EDITS)
    assert run(["render", "--out", "two"]) == 0
    capsys.readouterr()

    assert run(["diff", "one", "two"]) == 0
    assert capsys.readouterr().out == CHANGED


def test_other_yaml_and_json_files_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Any YAML or JSON file is compared by its data; links, hidden files and other files are skipped."""
    for folder, steps in (("a", 1), ("b", 2)):
        (tmp_path / folder / ".git").mkdir(parents=True)
        (tmp_path / folder / "job.json").write_text(
            json.dumps({"command": ["python", "--steps", str(steps)]})
        )
        (tmp_path / folder / "same.yaml").write_text(f"# {folder}\nx: 1\n")
        (tmp_path / folder / "notes.txt").write_text(folder)
        (tmp_path / folder / ".git" / "x.yaml").write_text(folder)
        (tmp_path / folder / "link.yaml").symlink_to(tmp_path / "a" / "notes.txt")

    assert run(["diff", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    assert (
        capsys.readouterr().out
        == "job.json\n  --steps: 1 → 2\n\n1 config changes, 1 stays as it is\n"
    )


def test_invalid_file_prevents_a_comparison(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that is not valid YAML is reported with its location, and nothing is printed on stdout."""
    for name in "ab":
        (tmp_path / name).mkdir()
    (tmp_path / "b" / "x.yaml").write_text("a: 1\na: 2\n")

    assert run(["diff", str(tmp_path / "a"), str(tmp_path / "b")]) == 1
    printed = capsys.readouterr()
    assert f"{tmp_path}/b/x.yaml:2:1: error[TPU003]" in printed.err
    assert not printed.out


@pytest.mark.parametrize("committed", [True, False])
def test_spec_with_errors_prevents_a_comparison(
    repository: Repository, capsys: pytest.CaptureFixture[str], committed: bool
) -> None:
    """The findings name the revision and the location in its spec, and the status is 1."""
    repository.edit(("tuned_on: v2-8", "tuned_on: v2-9"))
    if committed:
        repository.commit()
        repository.edit(("tuned_on: v2-9", "tuned_on: v2-8"))

    assert run(["diff"]) == 1

    printed = capsys.readouterr()
    assert not printed.out
    assert printed.err.startswith(
        f"tpucfg: {'HEAD' if committed else 'the working tree'} cannot be compared:\ntpucfg.yaml:"
    )
    assert "tuned_on: v2-9" in printed.err


def test_selected_environment_may_be_in_one_revision_only(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """A selected environment has to be in one of the revisions."""
    repository.edit(("  prod:\n", "  live:\n"))

    assert run(["diff", "--env", "live"]) == 0
    assert capsys.readouterr().out.startswith("added: live: v2-8, v2-32, v2-128\n")
    assert run(["diff", "--env", "nowhere"]) == 2
    assert "no environment nowhere" in capsys.readouterr().err


def test_repository_without_commits_is_an_empty_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a repository without commits all configs are added."""
    repository = Repository(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert run(["init", "--name", "mnist", "--target", "vertex-ai"]) == 0
    capsys.readouterr()

    assert run(["diff"]) == 0
    assert (
        capsys.readouterr().out == "added: dev, prod: v2-8, v2-32, v2-128\n\n6 configs are added\n"
    )
    assert not repository.git("status", "--short", "--untracked-files=no")


@pytest.mark.parametrize(
    "repository",
    [("--target", target) for target in ("cloud-tpu", "compute-engine", "ai-platform")]
    + [("--target", "gke", "--trainer", "jax")],
    indirect=True,
    ids=" ".join,
)
def test_flags_are_compared_by_name_on_every_target(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """Flags are found in lists and in start-up scripts."""
    repository.edit(("batch_size: 1024", "batch_size: 2048"))

    assert run(["diff", "--env", "dev"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "  --batch_size: 1024 → 2048" in lines
    assert all(line.startswith("  --batch_size: ") for line in lines if line.startswith("  "))


@pytest.mark.parametrize("format", ["text", "json", "markdown"])
def test_secrets_are_redacted_in_every_format(
    repository: Repository, capsys: pytest.CaptureFixture[str], format: str
) -> None:
    """The value of a key with the name of a secret is redacted."""
    line = "    model_dir: ${run_dir}\n"
    added = f"{line}    wandb_password: hunter2\n"
    allowed = "version: 1\nallow: {TPU017: {path: trainer.args.wandb_password, reason: the password of a test}}\n"
    repository.edit((line, added), ("version: 1\n", allowed))

    assert run(["diff", "--format", format]) == 0
    output = capsys.readouterr().out
    assert "wandb_password" in output
    assert "[secret]" in output
    assert "hunter2" not in output


@pytest.mark.usefixtures("repository")
def test_wrong_arguments_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown format exits with 2; an unknown revision exits with 1 and a list of known ones."""
    assert run(["diff", "--format", "html"]) == 2
    assert run(["diff", "nowhere"]) == 1
    assert "give one of the branches and tags: main" in capsys.readouterr().err
