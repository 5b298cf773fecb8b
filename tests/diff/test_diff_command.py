"""`tpucfg diff` as its user runs it."""

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
def test_working_tree_is_compared(made: Repository, capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    """Without a second revision it is the working tree; flags are told by name, and a change once."""
    made.edit(*EDITS)

    assert run(["diff", *arguments]) == 0
    assert capsys.readouterr().out == CHANGED


def test_two_revisions(made: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """Two commits are compared whatever lies in the working tree, and the other way round as well."""
    made.edit(*EDITS)
    made.commit()
    made.spec.write_text("broken: [")

    assert run(["diff", "HEAD~1", "HEAD"]) == 0
    assert capsys.readouterr().out == CHANGED
    assert run(["diff", "HEAD", "HEAD~1", "--env", "dev", "--size", "v2-256"]) == 0
    assert capsys.readouterr().out == "removed: dev: v2-256\n\n1 config is removed\n"


def test_nothing_changed(made: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """A comment in the spec, the order of its keys and the tool's version are no change of a config."""
    made.edit(("version: 1", "# why\nversion: 1"))

    assert run(["diff", "--exit-code"]) == 0
    assert capsys.readouterr().out == "6 configs stay as they are\n"


def test_exit_code(made: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """Differences are status 3 where that was asked for, and 0 where not."""
    made.edit(*EDITS)

    assert run(["diff"]) == 0
    assert run(["diff", "--exit-code"]) == 3
    assert capsys.readouterr().err == ""


def test_json(made: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """A program gets paths, values and the configs of each change; what is absent has no key."""
    made.edit(("    save_checkpoints_steps: 500\n", "    eval_steps: 500\n"))

    assert run(["diff", "--format", "json", "--env", "dev", "--size", "v2-8"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "added": [],
        "removed": [],
        "changes": [
            {
                "name": name,
                "path": ["workerPoolSpecs", 0, "containerSpec", "args", name],
                side: "500",
                "configs": [{"environment": "dev", "size": "v2-8"}],
            }
            for name, side in (("--save_checkpoints_steps", "before"), ("--eval_steps", "after"))
        ],
        "same": 0,
    }


def test_folders(made: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """Two rendered trees are compared without git; a header that differs is no change."""
    assert run(["render", "--out", "one"]) == 0
    made.edit(*EDITS)
    assert run(["render", "--out", "two"]) == 0
    capsys.readouterr()

    assert run(["diff", "one", "two"]) == 0
    assert capsys.readouterr().out == CHANGED


def test_other_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Any YAML or JSON is compared by its data; links, hidden files and other files are left alone."""
    for side, steps in (("a", 1), ("b", 2)):
        (tmp_path / side / ".git").mkdir(parents=True)
        (tmp_path / side / "job.json").write_text(json.dumps({"command": ["python", "--steps", str(steps)]}))
        (tmp_path / side / "same.yaml").write_text(f"# {side}\nx: 1\n")
        (tmp_path / side / "notes.txt").write_text(side)
        (tmp_path / side / ".git" / "x.yaml").write_text(side)
        (tmp_path / side / "link.yaml").symlink_to(tmp_path / "a" / "notes.txt")

    assert run(["diff", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    assert capsys.readouterr().out == "job.json\n  --steps: 1 → 2\n\n1 config changes, 1 stays as it is\n"


def test_file_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is no YAML is said with its place, and nothing is compared by halves."""
    for side in "ab":
        (tmp_path / side).mkdir()
    (tmp_path / "b" / "x.yaml").write_text("a: 1\na: 2\n")

    assert run(["diff", str(tmp_path / "a"), str(tmp_path / "b")]) == 1
    printed = capsys.readouterr()
    assert f"{tmp_path}/b/x.yaml:2:1: error[TPU003]" in printed.err
    assert not printed.out


@pytest.mark.parametrize("committed", [True, False])
def test_broken_side(made: Repository, capsys: pytest.CaptureFixture[str], committed: bool) -> None:
    """Findings of a side are said at the spec's own place, with the side they are of; the status is 1."""
    made.edit(("tuned_on: v2-8", "tuned_on: v2-9"))
    if committed:
        made.commit()
        made.edit(("tuned_on: v2-9", "tuned_on: v2-8"))

    assert run(["diff"]) == 1

    printed = capsys.readouterr()
    assert not printed.out
    assert printed.err.startswith(
        f"tpucfg: {'HEAD' if committed else 'the working tree'} cannot be compared:\ntpucfg.yaml:"
    )
    assert "tuned_on: v2-9" in printed.err


def test_environment_that_one_side_lacks(made: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """What is asked for has to be on one side; the other has nothing of it."""
    made.edit(("  prod:\n", "  live:\n"))

    assert run(["diff", "--env", "live"]) == 0
    assert capsys.readouterr().out.startswith("added: live: v2-8, v2-32, v2-128\n")
    assert run(["diff", "--env", "nowhere"]) == 2
    assert "no environment nowhere" in capsys.readouterr().err


def test_first_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """In a repository without a commit everything is new."""
    repository = Repository(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert run(["init", "--name", "mnist"]) == 0
    capsys.readouterr()

    assert run(["diff"]) == 0
    assert capsys.readouterr().out == "added: dev, prod: v2-8, v2-32, v2-128\n\n6 configs are added\n"
    assert not repository.git("status", "--short", "--untracked-files=no")


@pytest.mark.parametrize(
    "made", [("--target", target) for target in ("cloud-tpu", "gke", "ai-platform")], indirect=True, ids=" ".join
)
def test_every_target_shows_flags(made: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """Wherever a service keeps the command line, in a list or in a start-up script, a flag is a flag."""
    made.edit(("batch_size: 1024", "batch_size: 2048"))

    assert run(["diff", "--env", "dev"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "  --batch_size: 1024 → 2048" in lines
    assert all(line.startswith("  --batch_size: ") for line in lines if line.startswith("  "))


@pytest.mark.parametrize("format", ["text", "json", "markdown"])
def test_secrets_are_not_shown(made: Repository, capsys: pytest.CaptureFixture[str], format: str) -> None:
    """Every format keeps to itself what stands under the name of a secret."""
    made.edit(("    model_dir: ${job_dir}\n", "    model_dir: ${job_dir}\n    wandb_password: hunter2\n"))

    assert run(["diff", "--format", format]) == 0
    told = capsys.readouterr().out
    assert "wandb_password" in told
    assert "[secret]" in told
    assert "hunter2" not in told


def test_wrong_use(made: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown format is status 2, an unknown revision 1 with those there are; no traceback anywhere."""
    assert made.spec.is_file()
    assert run(["diff", "--format", "html"]) == 2
    assert run(["diff", "nowhere"]) == 1
    assert "the branches and tags are: main" in capsys.readouterr().err
