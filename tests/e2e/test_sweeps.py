"""Sweeps: values of the command line in place of the spec's, each set of them a run of its own."""

import json
from pathlib import Path

import pytest

from process import Run
from spec_factory import spec

pytestmark = pytest.mark.shell

RATE = ("--set", "training.learning_rate=2e-4")


@pytest.fixture
def sweep(tpucfg: Run, tmp_path: Path) -> Run:
    """Return the command, in the folder of a spec."""
    data = spec(training__learning_rate=0.1, training__learning_rate_rule="linear")
    (tmp_path / "tpucfg.yaml").write_text(json.dumps(data, indent=1))
    return tpucfg


def test_a_value_takes_part_in_everything(sweep: Run) -> None:
    """The config, its header, its hash, the ladder and the explanation have it, scaled as a value of the spec is."""
    plain = sweep("render", "--size", "v2-32").stdout
    changed = sweep("render", "--size", "v2-32", *RATE).stdout
    assert "--learning_rate=0.0008" in changed
    assert "# Instead of the spec's value: --set training.learning_rate=2e-4\n" in changed
    assert plain.splitlines()[1] != changed.splitlines()[1]
    assert "0.0008" in sweep("ladder", *RATE).stdout
    why = sweep("why", "learning_rate", "--size", "v2-32", *RATE).stdout
    assert "--set training.learning_rate:1:1: training.learning_rate: 2e-4\n" in why


def test_values_are_checked_like_those_of_the_spec(sweep: Run) -> None:
    """Each finding has its argument as its place, and all come at once, with those of the file."""
    checked = sweep(
        "check",
        "--set",
        "training.batch_size=x",
        "--set",
        "sizes[0]=v2-9",
        "--set",
        "training.bath_size=1",
    )
    assert checked.returncode == 1
    for place in ("training.batch_size:1:21", "sizes[0]:1:10", "training.bath_size:1:1"):
        assert f"--set {place}: error[" in checked.stdout


def test_a_credential_is_not_printed(sweep: Run) -> None:
    """Neither the finding nor its place has the value."""
    checked = sweep("check", "--set", "trainer.env.API_KEY=hunter2hunter2")
    assert "--set trainer.env.API_KEY:1:1: error[TPU017]" in checked.stdout
    assert "hunter2" not in checked.stdout + checked.stderr


def test_a_submission_names_its_run(sweep: Run) -> None:
    """The printed command has the values, and the run's name and folder are its own."""
    refused = sweep("submit", "--size", "v2-8", *RATE)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--set needs --run: each set of values is a run of its own" in refused.stderr
    output = sweep("submit", "--size", "v2-8", "--run", "lr-2e-4", *RATE).stdout
    assert (
        "tpucfg render --env dev --size v2-8 --run lr-2e-4 --set training.learning_rate=2e-4 | gcloud "
        in output
    )


def test_two_runs_with_one_name_are_refused(sweep: Run, tmp_path: Path) -> None:
    """A record keeps its values; other ones under the same name are refused by record, and submit prints a line."""
    first = ("record", "--size", "v2-8", "--run", "a1", "--metric", "examples_per_second=9")
    assert sweep(*first, *RATE).returncode == 0
    assert json.loads((tmp_path / "results" / "dev.jsonl").read_text())["set"] == [
        "training.learning_rate=2e-4"
    ]
    refused = sweep(*first, "--set", "training.learning_rate=3e-4")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert (
        "the run a1 has a record with other values: it had --set training.learning_rate=2e-4"
        in refused.stderr
    )
    assert "give this run another id with --run" in refused.stderr
    assert (
        "run:    the run a1 has a record with other values"
        in sweep("submit", "--size", "v2-8", "--run", "a1").stdout
    )
    assert sweep(*first, *RATE).returncode == 0


@pytest.mark.parametrize("argument", ["training", "=1", "a\nb=1"])
def test_malformed_values_are_refused(sweep: Run, argument: str) -> None:
    """The message names the form of the option."""
    refused = sweep("check", "--set", argument)
    assert refused.returncode == 2
    assert "write PATH=VALUE, for example --set training.learning_rate=2e-4" in refused.stderr


def test_a_run_keeps_its_values_on_every_size(sweep: Run, tmp_path: Path) -> None:
    """Another size has them in the command of status, and is refused without them by submit and record."""
    data = json.loads((tmp_path / "tpucfg.yaml").read_text())
    data["trainer"]["args"] = {"model_dir": "${run_dir}"}
    (tmp_path / "tpucfg.yaml").write_text(json.dumps(data))
    assert sweep("record", "--size", "v2-8", "--run", "a1", "--step", "100", *RATE).returncode == 0
    assert (
        f"it goes on with: tpucfg submit --env dev --size v2-8 --run a1 {' '.join(RATE)}\n"
        in sweep("status").stdout
    )
    refused = sweep("submit", "--size", "v2-32", "--run", "a1")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert (
        f"give it the values that it began with: {' '.join(RATE)}; or start another run"
        in refused.stderr
    )
    assert sweep("submit", "--size", "v2-32", "--run", "a1", *RATE).returncode == 0
    assert sweep("record", "--size", "v2-32", "--run", "a1", "--step", "120").returncode == 1


def test_a_move_has_a_step(sweep: Run) -> None:
    """A smaller step on another size is refused, until the step of the move is recorded."""
    step = ("record", "--run", "a1", "--step")
    assert sweep(*step, "1000", "--size", "v2-8").returncode == 0
    refused = sweep(*step, "800", "--size", "v2-32")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "the step at which it moved is not known" in refused.stderr
    assert sweep(*step, "700", "--size", "v2-8").returncode == 0
    assert sweep(*step, "800", "--size", "v2-32").returncode == 0
