"""Probes: short runs of a rung with the figures of the whole run."""

from typing import Any

import pytest

from spec_factory import compiled, finding_with_id, planned, project, spec
from tpucfg.plan import Job, SelectionError
from tpucfg.plan.job import program_of

PROBE: dict[str, Any] = {"probe": {"steps": 50, "args": {"profiler": "xplane"}}}
MAXTEXT: dict[str, Any] = {
    "target": "gke",
    "sizes": ["v6e-16", "v6e-64"],
    "environments": {
        "dev": {"project": "my-project-dev", "region": "us-east5", "kube_context": "c"}
    },
    "training": {
        "tuned_on": "v6e-16",
        "per_device_batch_size": 4,
        "sequence_length": 8192,
        "train_tokens": 20_000_000_000,
        "learning_rate": 3e-4,
        "steps": {"warmup_steps_fraction_steps": 200},
        "flags": "maxtext",
    },
}


def probe_of(run: str | None = None, size: str = "v2-32", **changes: Any) -> Job:
    """Return the probe of a rung."""
    (job,) = planned(spec(**{**PROBE, **changes}), sizes=(size,), probe=True, run=run).jobs
    return job


def test_a_probe_has_its_own_name_folder_and_steps() -> None:
    """Only the length differs from the whole run; both folders are one, without and with a run."""
    folders = {"job": "${job_dir}", "run": "${run_dir}"}
    job = probe_of(trainer__args=folders, training__steps={"warmup_steps": 200})
    whole = job.whole_run
    assert (job.name, whole.name) == ("mnist-dev-v2-32-probe", "mnist-dev-v2-32")
    assert job.job_dir == f"gs://{job.bucket}/jobs/mnist/v2-32/probe"
    assert {job.job_dir} == {text for flag, text in job.flags if flag in folders}
    assert probe_of("a1").name == "mnist-dev-v2-32-probe-a1"
    assert probe_of("a1", trainer__args=folders).flags[1] == ("run", f"{job.job_dir}/a1")
    assert (job.rung.train_steps, whole.rung.train_steps) == (50, 1000)
    assert job.rung.steps["warmup_steps"] == whole.rung.steps["warmup_steps"]
    assert (job.rung.batch_size, job.rung.learning_rate) == (
        whole.rung.batch_size,
        whole.rung.learning_rate,
    )


def test_arguments_of_a_probe_follow_those_of_the_run() -> None:
    """They are merged into the arguments, and the figures stay last."""
    job = probe_of(trainer__args={"profiler": "off", "data": "${bucket}"})
    assert job.args[:3] == ("--profiler=xplane", f"--data=gs://{job.bucket}", "--batch_size=4096")
    assert "--profiler=off" in job.whole_run.args


def test_a_run_in_epochs_has_probes_in_steps() -> None:
    """A probe has steps in the place of epochs; a placeholder of epochs would start a whole run."""
    epochs: dict[str, Any] = {"training": {"tuned_on": "v2-8", "batch_size": 1024, "epochs": 3}}
    assert "--train_steps=50" in probe_of(**epochs).args
    assert not any("epochs" in word for word in probe_of(**epochs).args)
    changed = compiled(spec(**PROBE, **epochs, trainer__args={"n": "${epochs}"}), probe=True)
    assert finding_with_id("TPU113", changed.findings).message.endswith(
        "but a probe is counted in steps"
    )


def test_a_probe_needs_a_way_for_its_steps() -> None:
    """A program that knows epochs only would make a whole run of each probe."""
    training = {"tuned_on": "v2-8", "batch_size": 1024, "epochs": 3, "flags": {"train_steps": None}}
    whole, probes = (
        planned(spec(**PROBE, training=training), probe=probe).findings for probe in (False, True)
    )
    assert not any(finding.id == "TPU034" for finding in whole)
    assert (
        "no flag and no placeholder gives train_steps" in finding_with_id("TPU034", probes).message
    )
    named = {**PROBE, "probe": {"steps": 50, "args": {"max_steps": "${train_steps}"}}}
    assert not any(
        finding.id == "TPU034"
        for finding in planned(spec(**named, training=training), probe=True).findings
    )


def test_maxtext_keeps_nothing_and_follows_the_whole_schedule() -> None:
    """The preset adds both arguments; the spec's own are not repeated, and epochs have no schedule in steps."""
    whole, job = (
        planned(spec(**PROBE, **MAXTEXT), sizes=("v6e-64",), probe=probe).jobs[0]
        for probe in (False, True)
    )
    added = ("enable_checkpointing=false", f"learning_rate_schedule_steps={whole.rung.train_steps}")
    assert set(added) <= set(job.args)
    assert not set(added) & set(whole.args)
    assert f"base_output_directory=gs://{job.bucket}/jobs/mnist/v6e-64" in job.args
    assert "run_name=probe" in job.args
    own = {
        **MAXTEXT,
        "trainer__args": {"learning_rate_schedule_steps": "9", "enable_checkpointing": "true"},
    }
    (job,) = planned(spec(**PROBE, **own), sizes=("v6e-64",), probe=True).jobs
    assert [word for word in job.args if word.startswith(("enable", "learning_rate_s"))] == [
        "learning_rate_schedule_steps=9",
        "enable_checkpointing=true",
    ]
    training = {**MAXTEXT["training"], "train_tokens": None, "epochs": 2}
    in_epochs = {
        **MAXTEXT,
        "training": {key: value for key, value in training.items() if value is not None},
    }
    (job,) = planned(spec(**PROBE, **in_epochs), sizes=("v6e-64",), probe=True).jobs
    assert not any(word.startswith("learning_rate_schedule_steps") for word in job.args)


def test_warnings_are_those_of_the_whole_run() -> None:
    """Fifty steps of a probe are fewer than the warm-up, which is no mistake."""
    steps: dict[str, Any] = {"training__steps": {"warmup_steps": 200, "checkpoint_steps": 500}}
    whole, probes = (
        compiled(spec(**PROBE, **steps), probe=probe).findings for probe in (False, True)
    )
    assert [finding.id for finding in probes] == [
        finding.id for finding in whole if finding.id != "TPU016"
    ]


def test_a_spec_without_probes_has_none() -> None:
    """The error shows what to add."""
    with pytest.raises(SelectionError, match=r"has no probe; add .*:\n\nprobe:\n  steps: 50\n"):
        planned(spec(), probe=True)


def test_a_program_is_that_of_the_whole_run_without_folders_steps_and_rate() -> None:
    """Probe and run have one program, in every bucket, for every length and rate; the batch makes another one."""

    def program(**changes: Any) -> Any:
        data = spec(
            **{**PROBE, "trainer__args": {"out": "${run_dir}", "lr": "${learning_rate}"}, **changes}
        )
        (job,) = planned(data, sizes=("v2-32",), probe=True).jobs
        assert program_of(project(data), job) == program_of(project(data), job.whole_run)
        return program_of(project(data), job)

    base = program(training__learning_rate=0.1)
    assert base.flags == {"out": "${run_dir}", "lr": "${learning_rate}", "batch_size": "4096"}
    assert base.figures == {"batch_size": 4096, "grad_accum": 1, "model_parallel": 1}
    assert base == program(
        training__learning_rate=0.2, training__train_steps=8000, probe={"steps": 9}
    )
    assert base != program(training__learning_rate=0.1, training__batch_size=2048)
    assert base != program(training__learning_rate=0.1, training__grad_accum=2)
