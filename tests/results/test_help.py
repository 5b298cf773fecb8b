"""The helps of what is wrong with results, followed to the letter, for any name that a project may have."""

import io
import json
import shlex
import subprocess
from contextlib import chdir, redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, Final

import pytest

from process import COMMAND, ENVIRONMENT
from spec_factory import spec
from tpucfg.cli.app import run

NAMES: Final = ("lm", "true", "null", "nan", "e", "con", "a--b", "x-9", "n" * 30)
"""Each is a name that the spec takes, and something else to YAML, JSON, a shell or a file system."""
SIZES: Final = ("v6e-4", "v6e-16")
GATE: Final = {"min_scaling_efficiency": 0.8, "metric": "accuracy", "goal": "max", "max_drop": 0.01}
METRICS: Final = {"accuracy": 0.97, "examples_per_second": 1234.5}
FILES: Final = ("it's a $(spec)/-rf; `x`.yaml", "-rf.yaml", "{a}*?.yaml")
TORN: Final = {
    "text": "step 1: loss 2.3",
    "torn": '{"metrics": {"examples_per_second": 1234.5}, "name": "',
    "torn with its size": '{"size": "v6e-16", "metrics": {"examples_per_',
    "twice": '{"name": "a", "name": "b"}',
    "no number": '{"metrics": {"examples_per_second": NaN}, "size": "v6e-16"}',
    "too long": "x" * 10_000,
}


def written(folder: Path, name: str, file: str = "tpucfg.yaml", results: str = "") -> Path:
    """A spec of that name, whose only environment has it too, and results beside it; gives their file."""
    environments = {name: {"project": "my-project", "region": "us-east5", "bucket": "my-bucket"}}
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    training = {"tuned_on": "v6e-4", "batch_size": 1024, "train_steps": 4000}
    account = {"service_account": "runner@my-project.iam.gserviceaccount.com"}  # or the longest names were too long
    made = spec(name=name, sizes=SIZES, environments=environments, training=training, gate=GATE)
    made["targets"] = {"vertex-ai": account}
    path.write_text(json.dumps(made, indent=1))
    (path.parent / "results").mkdir()
    lines = path.parent / "results" / f"{name}.jsonl"
    lines.write_text(results)
    return lines


def shell(folder: Path, line: str) -> CompletedProcess[str]:
    """A command line as its reader pastes it."""
    script = f'tpucfg() {{ {shlex.join(COMMAND)} "$@"; }}\n{line}'
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=60
    )


def answered(folder: Path, command: str) -> Any:
    """What a command prints as JSON."""
    out = io.StringIO()
    with chdir(folder), redirect_stdout(out):
        run([command, "--format", "json"])
    return json.loads(out.getvalue())


def found(folder: Path) -> list[dict[str, Any]]:
    """The findings of `tpucfg check`."""
    return list(answered(folder, "check"))


def recorded(folder: Path) -> list[str]:
    """The rungs of which a record counts."""
    (environment,) = answered(folder, "status")["environments"]
    return [rung["size"] for rung in environment["rungs"] if rung["recorded"]]


@pytest.mark.parametrize("name", NAMES)
def test_a_line_that_is_no_record(tmp_path: Path, name: str) -> None:
    """Deleting it, and writing the record that the help shows in its place, both end the finding; the record counts."""
    for at, (kind, line) in enumerate(TORN.items()):
        folder = tmp_path / str(at)
        lines = written(folder, name, results=line)
        (finding,) = found(folder)
        delete, _, again = finding["help"].partition(", or write the record again: ")
        assert (finding["id"], delete) == ("TPU101", "delete line 1"), kind
        lines.write_text("")
        assert found(folder) == []
        lines.write_text(again)
        assert found(folder) == [], kind
        assert recorded(folder) == ["v6e-16" if '"v6e-16"' in line else "v6e-4"], kind


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_is_something_else(tmp_path: Path, name: str) -> None:
    """The line that the help of a file without records shows is one."""
    lines = written(tmp_path, name, results="step 1\n" * 50)
    (finding,) = found(tmp_path)
    assert finding["id"] == "TPU100"
    lines.write_text(finding["help"].partition("A record is one line: ")[2])
    assert found(tmp_path) == []
    assert recorded(tmp_path) == ["v6e-4"]


@pytest.mark.parametrize(
    ("name", "file"),
    [*((name, "tpucfg.yaml") for name in ("nan", "a--b", NAMES[-1])), *(("true", file) for file in FILES)],
)
def test_the_commands_of_a_refusal(tmp_path: Path, name: str, file: str) -> None:
    """Pasted into a shell, with the log in the place of LOG, they open the rung; whatever the names are."""
    lines = written(tmp_path, name, file)
    (tmp_path / "LOG").write_text(json.dumps(METRICS))
    submit = f"tpucfg submit --spec {shlex.quote(file)} --size v6e-16"
    for given in ("", json.dumps({"metrics": {"accuracy": 1}, "name": name, "size": "v6e-4"}) + "\n"):
        lines.write_text(given)
        refused = shell(tmp_path, submit)
        assert refused.returncode == 1
        (help_,) = [line for line in refused.stderr.splitlines() if line.startswith("help: ")]
        command = help_[help_.index("tpucfg record") :].removesuffix("; or climb in spite of it with --force")
        done = shell(tmp_path, command)
        assert (done.returncode, done.stderr) == (0, ""), command
        started = shell(tmp_path, submit)
        assert (started.returncode, started.stderr) == (0, "")
        following = [line.partition("tpucfg ")[2] for line in done.stdout.splitlines() if "tpucfg " in line]
        assert [shell(tmp_path, f"tpucfg {line}").returncode for line in following] == [0, 0]
        assert json.loads(lines.read_text().splitlines()[-1])["size"] == "v6e-16"
