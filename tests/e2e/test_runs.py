"""A run that moves between sizes, as a user moves it: submit, record the step, submit on another size."""

import json
from pathlib import Path
from typing import Any

import pytest

from process import Run
from spec_factory import spec

pytestmark = pytest.mark.shell

LADDER: dict[str, Any] = {
    "sizes": ["v2-8", "v2-32"],
    "trainer": {"image": "us-docker.pkg.dev/p/r/i:1", "args": {"model_dir": "${run_dir}"}},
    "training": {"tuned_on": "v2-8", "batch_size": 1024, "train_steps": 4000},
    "overrides": {"v2-32": {"fallback": ["v2-8"]}},
}


def write(folder: Path, **changes: Any) -> None:
    """Write the spec of the run."""
    (folder / "tpucfg.yaml").write_text(json.dumps(spec(**{**LADDER, **changes}), indent=1))


def test_a_run_moves_up_and_back(tpucfg: Run, tmp_path: Path) -> None:
    """Each submission has the steps that are left, and status prints the next ones, with those of `fallback`."""
    write(tmp_path)
    begun = tpucfg("submit", "--size", "v2-8", "--run", "a1")
    assert (
        "# run:    has no record, so it begins at step 0; if it was on another size, add --step"
        in begun.stdout
    )
    assert tpucfg("record", "--size", "v2-8", "--run", "a1", "--step", "1000").returncode == 0

    moved = tpucfg("submit", "--size", "v2-32", "--run", "a1")
    assert (
        "# run:    goes on at step 1,000 of 1,750, with 1,024,000 examples seen on v2-8\n"
        in moved.stdout
    )
    rendered = tpucfg("render", "--size", "v2-32", "--run", "a1")
    assert "--train_steps=1750" in rendered.stdout
    assert "--train_steps=1000" in tpucfg("render", "--size", "v2-32", "--run", "b1").stdout
    why = tpucfg("why", "train_steps", "--size", "v2-32", "--run", "a1").stdout
    assert "the run has seen 1,024,000 of 4,096,000 examples at step 1,000\n" in why
    assert "the examples that are left / those of a step: 3072000 / 4096\n" in why
    assert "with the steps so far: 1000 + 750 = 1750\n" in why

    recorded = tpucfg(
        "record",
        "--size",
        "v2-32",
        "--run",
        "a1",
        "--step",
        "1500",
        "--metric",
        "examples_per_second=9",
    )
    assert "recorded v2-32: step 1500 of a1, examples_per_second 9\n" in recorded.stdout
    back = tpucfg("submit", "--size", "v2-8", "--run", "a1")
    assert (
        "goes on at step 1,500 of 2,500, with 3,072,000 examples seen on v2-8, then v2-32\n"
        in back.stdout
    )

    lines = tpucfg("status").stdout
    assert (
        "the run a1 is at step 1,500 on v2-32, with 3,072,000 of 4,096,000 examples seen\n" in lines
    )
    assert "it goes on with: tpucfg submit --env dev --size v2-32 --run a1\n" in lines
    assert (
        "or on v2-8, a fallback of v2-32, with: tpucfg submit --env dev --size v2-8 --run a1\n"
        in lines
    )


def test_the_command_line_may_state_the_steps(tpucfg: Run, tmp_path: Path) -> None:
    """Without a record, --step gives the steps of the run, and the printed command has it too."""
    write(tmp_path)
    output = tpucfg("submit", "--size", "v2-32", "--run", "a1", "--step", "v2-8:1000").stdout
    assert "tpucfg render --env dev --size v2-32 --run a1 --step v2-8:1000 | gcloud " in output
    assert "goes on at step 1,000 of 1,750" in output


def test_a_program_without_the_folder_of_the_run_is_not_moved(tpucfg: Run, tmp_path: Path) -> None:
    """Its checkpoints are in a folder of their size, so that it would begin again."""
    write(
        tmp_path,
        trainer={"image": "us-docker.pkg.dev/p/r/i:1", "args": {"model_dir": "${job_dir}"}},
    )
    refused = tpucfg("submit", "--size", "v2-32", "--run", "a1", "--step", "v2-8:1000")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert (
        "the run a1 was on v2-8, and its program has no folder that is the same on v2-32"
        in refused.stderr
    )
    assert "write the folder of its checkpoints as ${run_dir}" in refused.stderr
    assert tpucfg("submit", "--size", "v2-8", "--run", "a1", "--step", "v2-8:1000").returncode == 0


def test_a_run_whose_folder_moved_is_not_continued(tpucfg: Run, tmp_path: Path) -> None:
    """Another bucket has none of its checkpoints, on any size; the help copies them."""
    write(tmp_path)
    assert tpucfg("record", "--size", "v2-8", "--run", "a1", "--step", "1000").returncode == 0
    write(tmp_path, environments__dev__bucket="another")
    for size in ("v2-8", "v2-32"):
        refused = tpucfg("submit", "--size", size, "--run", "a1")
        assert (refused.returncode, refused.stdout) == (1, "")
        assert (
            "/runs/mnist/a1, and its folder is gs://another/runs/mnist/a1 now: it would begin again"
            in refused.stderr
        )
        assert "gcloud storage rsync --recursive gs://my-project-dev-" in refused.stderr
    assert tpucfg("record", "--size", "v2-8", "--run", "a1", "--step", "1000").returncode == 0
    assert tpucfg("submit", "--size", "v2-32", "--run", "a1").returncode == 0


def test_a_changed_length_of_examples_keeps_the_tokens(tpucfg: Run, tmp_path: Path) -> None:
    """The tokens that a run has seen count as examples of the new length, and submit names both lengths."""
    tokens = {"tuned_on": "v2-8", "batch_size": 1024, "train_tokens": 4_194_304_000}
    write(tmp_path, training={**tokens, "sequence_length": 1024})
    assert tpucfg("record", "--size", "v2-8", "--run", "a1", "--step", "1000").returncode == 0
    write(tmp_path, training={**tokens, "sequence_length": 512})
    output = tpucfg("submit", "--size", "v2-8", "--run", "a1").stdout
    assert (
        "# run:    goes on at step 1,000 of 7,000, with 2,048,000 examples seen on v2-8\n" in output
    )
    assert (
        "# run:    sequence_length is 512 from this step on, 1024 before: the examples seen are counted by"
        in output
    )


def test_a_stopped_run_passes_the_gate_again(tpucfg: Run, tmp_path: Path) -> None:
    """The gate has let it start on its size; another size and another run are asked as before."""
    write(tmp_path, gate={"min_scaling_efficiency": 0.8})
    submit = ("submit", "--size", "v2-32", "--run", "a1")
    assert "error[TPU110]" in tpucfg(*submit).stderr
    assert "error[TPU110]" in tpucfg(*submit, "--step", "v2-8:100").stderr
    assert tpucfg(*submit, "--step", "v2-32:100").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["render", "--step", "5"], "--step needs --run, the run that has the step"),
        (["render", "--run", "a1", "--step", "v2-8:x"], "--step cannot be v2-8:x"),
        (
            ["record", "--size", "v2-8", "--step", "5"],
            "--step needs --run, the run that has the step",
        ),
        (["submit", "--run", "a1", "--step", "v2-8:4000"], "nothing is left"),
    ],
)
def test_wrong_steps_are_refused(
    tpucfg: Run, tmp_path: Path, arguments: list[str], message: str
) -> None:
    """The message has the mistake of a step."""
    write(tmp_path)
    refused = tpucfg(*arguments)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert message in refused.stderr


def test_records_that_cannot_be_read_stop_a_run(tpucfg: Run, tmp_path: Path) -> None:
    """Each invalid line could be the last step of the run."""
    write(tmp_path)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "dev.jsonl").write_text("broken\n")
    refused = tpucfg("render", "--run", "a1")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "results/dev.jsonl:1:1: error[TPU101]" in refused.stderr
