"""Help lines about results, followed literally, for any name that a project may have."""

import io
import json
import shlex
import subprocess
from contextlib import chdir, redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, Final

import pytest

from process import run_here
from spec_factory import spec
from tpucfg.cli.app import run

pytestmark = pytest.mark.shell

NAMES: Final = ("lm", "true", "null", "nan", "e", "con", "a--b", "x-9", "n" * 30)
"""Valid names that have a special meaning in YAML, JSON, a shell or a file system."""
SIZES: Final = ("v6e-4", "v6e-16")
GATE: Final = {"min_scaling_efficiency": 0.8, "metric": "accuracy", "goal": "max", "max_drop": 0.01}
METRICS: Final = {"accuracy": 0.97, "examples_per_second": 1234.5}
FILES: Final = ("it's a $(spec)/-rf; `x`.yaml", "-rf.yaml", "{a}*?.yaml")
INVALID_LINES: Final = {
    "text": "step 1: loss 2.3",
    "truncated": '{"metrics": {"examples_per_second": 1234.5}, "name": "',
    "truncated with its size": '{"size": "v6e-16", "metrics": {"examples_per_',
    "twice": '{"name": "a", "name": "b"}',
    "not a number": '{"metrics": {"examples_per_second": NaN}, "size": "v6e-16"}',
    "too long": "x" * 10_000,
}


def write_project(folder: Path, name: str, file: str = "tpucfg.yaml", results: str = "") -> Path:
    """Write a project and its results, with one name for project and environment; return the results file."""
    environments = {name: {"project": "my-project", "region": "us-east5", "bucket": "my-bucket"}}
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    training = {"tuned_on": "v6e-16", "batch_size": 4096, "train_steps": 1000}
    account = {
        "service_account": "runner@my-project.iam.gserviceaccount.com"
    }  # its default would be too long with the longest name
    data = spec(name=name, sizes=SIZES, environments=environments, training=training, gate=GATE)
    data["targets"] = {"vertex-ai": account}
    path.write_text(json.dumps(data, indent=1))
    (path.parent / "results").mkdir()
    results_file = path.parent / "results" / f"{name}.jsonl"
    results_file.write_text(results)
    return results_file


def shell(folder: Path, line: str) -> CompletedProcess[str]:
    """Run a command with the arguments that a shell makes of a line pasted by a user."""
    script = f"tpucfg() {{ printf '%s\\0' \"$@\"; }}\n{line}"
    words = subprocess.run(["bash", "-c", script], check=True, capture_output=True, text=True)
    return run_here(folder, *words.stdout.split("\0")[:-1])


def json_output(folder: Path, command: str) -> Any:
    """Return the JSON that a command prints."""
    out = io.StringIO()
    with chdir(folder), redirect_stdout(out):
        run([command, "--format", "json"])
    return json.loads(out.getvalue())


def check_findings(folder: Path) -> list[dict[str, Any]]:
    """Return the findings of `tpucfg check`."""
    return list(json_output(folder, "check"))


def recorded(folder: Path) -> list[str]:
    """Return the rungs with a record that counts."""
    (environment,) = json_output(folder, "status")["environments"]
    return [rung["size"] for rung in environment["rungs"] if rung["recorded"]]


@pytest.mark.parametrize("name", NAMES)
def test_the_help_of_an_invalid_line_resolves_it(tmp_path: Path, name: str) -> None:
    """Deleting the line resolves the finding."""
    for number, (kind, line) in enumerate(INVALID_LINES.items()):
        folder = tmp_path / str(number)
        results_file = write_project(folder, name, results=line)
        (finding,) = check_findings(folder)
        delete, _, _ = finding["help"].partition(", and record that run again")
        assert (finding["id"], delete) == ("TPU101", "delete line 1"), kind
        results_file.write_text("")
        assert check_findings(folder) == []


@pytest.mark.parametrize(
    ("name", "file"),
    [
        *((name, "tpucfg.yaml") for name in ("nan", "a--b", NAMES[-1])),
        *(("true", file) for file in FILES),
    ],
)
def test_the_help_of_a_refusal_opens_the_rung(tmp_path: Path, name: str, file: str) -> None:
    """The commands, pasted into a shell with the log named LOG, open the rung, whatever the names are."""
    results_file = write_project(tmp_path, name, file)
    (tmp_path / "LOG").write_text(json.dumps(METRICS))
    submit = f"tpucfg submit --spec {shlex.quote(file)} --size v6e-16"
    for content in (
        "",
        json.dumps({"metrics": {"accuracy": 1}, "name": name, "size": "v6e-4"}) + "\n",
    ):
        results_file.write_text(content)
        refused = shell(tmp_path, submit)
        assert refused.returncode == 1
        (help_,) = [line for line in refused.stderr.splitlines() if line.startswith("help: ")]
        command = help_[help_.index("tpucfg record") :].removesuffix(
            "; or start it anyway with --force"
        )
        completed = shell(tmp_path, command)
        assert (completed.returncode, completed.stderr) == (0, ""), command
        started = shell(tmp_path, submit)
        assert (started.returncode, started.stderr) == (0, "")
        following = [
            line.partition("tpucfg ")[2]
            for line in completed.stdout.splitlines()
            if "tpucfg " in line
        ]
        assert [shell(tmp_path, f"tpucfg {line}").returncode for line in following] == [0, 0]
        assert json.loads(results_file.read_text().splitlines()[-1])["size"] == "v6e-16"
