"""Runs that go on: the steps that are left on another size, and what changes with the next step."""

from typing import Any

import pytest

from spec_factory import CATALOG, planned, project, spec
from tpucfg.plan import Job, RunPart, SelectionError, ladder, run_progress_in
from tpucfg.plan.run_progress import joined_parts, progress_lines
from tpucfg.plan.selection import Selection

_TRAINING: dict[str, Any] = {
    "tuned_on": "v2-8",
    "batch_size": 1024,
    "learning_rate": 0.1,
    "steps": {"warmup_steps": 200},
}
STEPS: dict[str, Any] = {**_TRAINING, "train_steps": 4000, "learning_rate_rule": "linear"}
TOKENS: dict[str, Any] = {**_TRAINING, "sequence_length": 512, "train_tokens": 2_097_152_000}


def continued(size: str, *parts: RunPart, training: dict[str, Any] = STEPS, **changes: Any) -> Job:
    """Return the job with which the run a1 goes on."""
    selection = {"sizes": (size,), "environments": ("dev",), "run": "a1", "done": parts}
    (job,) = planned(spec(training=training, **changes), **selection).jobs
    return job


@pytest.mark.parametrize("training", [STEPS, TOKENS], ids=["steps", "tokens"])
@pytest.mark.parametrize("rule", ["per_core", "keep"])
def test_a_run_ends_with_the_examples_of_the_spec(training: dict[str, Any], rule: str) -> None:
    """It has the steps of all sizes, and at most a step of the last size more examples than the spec promises."""
    training = {**training, "batch_rule": rule}
    parts = (RunPart("v2-8", 1001), RunPart("v2-32", 1101))
    for size in ("v2-8", "v2-32"):
        rung = continued(size, *parts, training=training).rung
        seen = 1001 * 1024 + 100 * (4096 if rule == "per_core" else 1024)
        assert rung.seen == (1101, seen)
        assert rung.examples is not None
        assert 0 <= rung.examples - 4000 * 1024 < rung.batch_size
        assert rung.examples == seen + (rung.steps["train_steps"] - 1101) * rung.batch_size
        if rule == "keep":
            assert rung.train_steps == 4000


def test_steps_on_one_size_change_nothing() -> None:
    """A run that goes on where it was has the config that it began with."""
    assert continued("v2-8", RunPart("v2-8", 1000)).args == continued("v2-8").args


def test_the_folder_of_a_run_is_the_same_on_every_size() -> None:
    """The placeholder of the run's folder has the run, and not the size."""
    folder = {"trainer__args": {"model_dir": "${run_dir}"}}
    jobs = [continued(size, RunPart("v2-8", 1000), **folder) for size in ("v2-8", "v2-32")]
    assert {dict(job.flags)["model_dir"] for job in jobs} == {
        f"gs://{jobs[0].bucket}/runs/mnist/a1"
    }


def test_a_recorded_batch_counts() -> None:
    """A record has the batch that its steps had, whatever the spec has today."""
    rung = continued("v2-8", RunPart("v2-8", 1000, 2048)).rung
    assert (rung.seen, rung.train_steps) == ((1000, 2048 * 1000), 3000)


def test_epochs_are_counted_by_the_program() -> None:
    """A run in epochs keeps its figures."""
    training = {"tuned_on": "v2-8", "batch_size": 1024, "epochs": 3}
    job = continued("v2-32", RunPart("v2-8", 1000), training=training)
    assert "--epochs=3" in job.args


A, B = RunPart("v2-8", 1000), RunPart("v2-32", 2000)


@pytest.mark.parametrize(
    ("recorded", "done", "joined"),
    [
        ((A, B), (), (A, B)),
        ((A, B), (RunPart("", 1500),), (A, RunPart("v2-32", 1500))),
        ((A, B), (RunPart("", 2500),), (A, B, RunPart("v2-32", 2500))),
        ((A, B), (RunPart("", 500),), (RunPart("v2-8", 500),)),
        ((A, B), (RunPart("v2-8", 2500),), (A, B, RunPart("v2-8", 2500))),
        ((A, B, RunPart("v2-32", 1500)), (), (A, RunPart("v2-32", 1500))),
        (
            (A, B, RunPart("v2-32", 1200), RunPart("v2-8", 1500)),
            (),
            (A, RunPart("v2-32", 1200), RunPart("v2-8", 1500)),
        ),
        ((), (RunPart("", 5),), (RunPart("", 5),)),
    ],
)
def test_later_parts_replace_what_was_lost(
    recorded: tuple[RunPart, ...], done: tuple[RunPart, ...], joined: tuple[RunPart, ...]
) -> None:
    """A run that goes back to a checkpoint loses the steps after it; a step without a size has that of the records."""
    assert joined_parts(recorded, done) == joined


def test_the_step_of_a_move_has_to_be_known() -> None:
    """A smaller step on another size does not tell how many of the steps were made on which size."""
    with pytest.raises(SelectionError) as error:
        joined_parts((A, B, RunPart("v2-8", 1500)), ())
    assert (
        "the run was at step 2000 on v2-32, and later at step 1500 on v2-8: the step at which it moved"
        in str(error.value)
    )


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (RunPart("", 10), "name the size on which the run did these steps, such as --step v2-8:10"),
        (RunPart("v9-8", 10), "--step v9-8: there is no such size; the ladder has v2-8, v2-32"),
        (
            RunPart("v2-8", 4000),
            "the run a1 has seen all of its examples at step 4000: nothing is left",
        ),
    ],
)
def test_what_cannot_go_on_is_refused(part: RunPart, message: str) -> None:
    """Steps on an unknown size are refused, and so is a run that has ended."""
    with pytest.raises(SelectionError) as error:
        continued("v2-32", part)
    assert message in str(error.value)


def test_a_step_needs_no_size_where_all_have_one_batch() -> None:
    """The batch stays on every size by the rule `keep`."""
    rung = continued("v2-32", RunPart("", 1000), training={**STEPS, "batch_rule": "keep"}).rung
    assert rung.seen == (1000, 1024 * 1000)


def test_changes_in_the_middle_of_a_run_are_said() -> None:
    """The lines have the position, the schedule, the batch, the rate and each setting in steps that changes."""
    given = project(spec(training=STEPS))
    job = continued("v2-32", RunPart("v2-8", 1000))
    selection = Selection(run="a1", done=(RunPart("v2-8", 1000),))
    progress = run_progress_in(given, CATALOG, job.environment, selection)
    assert progress is not None
    (before,) = ladder(given, CATALOG, ("v2-8",))
    assert [*progress_lines(given.training, job.rung, progress, before)] == [
        "goes on at step 1,000 of 1,750, with 1,024,000 examples seen on v2-8",
        "a schedule that is counted in steps goes on at 57.1% of its steps, with 25% of the examples seen",
        "batch_size is 4,096 from this step on, 1,024 before",
        "learning_rate is 0.4 by the rule linear; the spec has 0.1 on v2-8",
        "warmup_steps is 50; the spec has 200 on v2-8",
    ]


@pytest.mark.parametrize(
    ("run", "is_text"),
    [("007", False), ("1e3", False), ("yes", False), ("1-2", True), ("e1", True)],
)
def test_a_preset_takes_only_runs_that_yaml_reads_as_text(run: str, is_text: bool) -> None:
    """MaxText would write the run 007 to the folder 7; a program without a preset gets the text."""
    training = {
        "tuned_on": "v2-8",
        "per_device_batch_size": 4,
        "train_steps": 10,
        "sequence_length": 8,
    }
    data = spec(training={**training, "flags": "maxtext"}, trainer={"image": "r.io/i:1"})
    assert planned(spec(), run=run).jobs
    if is_text:
        assert planned(data, run=run).jobs
    else:
        with pytest.raises(SelectionError, match=f"--run {run}: .*such as r-{run}$"):
            planned(data, run=run)
