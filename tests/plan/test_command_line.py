"""The program's command line: its words in each style, and each figure by a flag or a placeholder."""

from typing import Any

import pytest

from spec_factory import planned, spec

FIGURES: dict[str, Any] = {"tuned_on": "v2-8", "batch_size": 1024, "train_steps": 4000}


def words(**changes: Any) -> tuple[str, ...]:
    """Return the words of the job on v2-32."""
    plan = planned(spec(**changes), sizes=("v2-32",))
    assert not [finding for finding in plan.findings if finding.level == "error"], plan.findings
    return plan.jobs[0].args


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        (
            "--key=value",
            (
                "--data=d",
                "--bare",
                "--batch_size=4096",
                "--train_steps=1000",
                "--learning_rate=0.4",
            ),
        ),
        (
            "--key value",
            (
                *("--data", "d", "--bare", "--batch_size", "4096", "--train_steps", "1000"),
                *("--learning_rate", "0.4"),
            ),
        ),
    ],
)
def test_flags_are_written_in_the_style_of_the_trainer(
    style: str, expected: tuple[str, ...]
) -> None:
    """Arguments come before figures, and a bare flag is one word."""
    assert words(trainer__arg_style=style, trainer__args={"data": "d", "bare": None}) == expected


def test_a_hydra_line_has_dots_in_its_keys() -> None:
    """In the style key=value, a key may be a path of the program's own configuration."""
    flags = {
        "batch_size": "data.batch",
        "train_steps": "trainer.max_steps",
        "learning_rate": "optim.lr",
    }
    line = words(
        trainer__arg_style="key=value", trainer__args={"model.dim": 512}, training__flags=flags
    )
    assert line == ("model.dim=512", "data.batch=4096", "trainer.max_steps=1000", "optim.lr=0.4")


def test_a_list_is_written_as_it_is_before_the_figures() -> None:
    """The texts of a list get their placeholders, and nothing else."""
    line = words(
        trainer__args=["base.yml", "a.b=${hosts}", "--flag"], trainer__arg_style="key=value"
    )
    assert line == (
        "base.yml",
        "a.b=4",
        "--flag",
        "batch_size=4096",
        "train_steps=1000",
        "learning_rate=0.4",
    )


def test_every_figure_is_a_placeholder() -> None:
    """A program that reads one text of YAML gets the figures of each rung in it."""
    text = "{batch: ${batch_size}, device: ${per_device_batch_size}, steps: ${train_steps}, warmup: ${steps.warmup}}"
    training = {
        **FIGURES,
        "steps": {"warmup": 200},
        "flags": dict.fromkeys(("batch_size", "train_steps", "warmup")),
    }
    assert words(trainer__args=[text], training=training) == (
        "{batch: 4096, device: 128, steps: 1000, warmup: 50}",
    )


@pytest.mark.parametrize(
    ("changes", "batch", "per_device"),
    [
        ({"per_device_batch_size": 16}, 512, "16"),
        ({"per_device_batch_size": 0.5, "model_parallel": 2}, 16, "0.5"),
        ({"per_device_batch_size": 4, "grad_accum": 2}, 256, "4"),
        ({"per_device_batch_size": 16, "batch_rule": "keep"}, 128, "4"),
    ],
)
def test_the_batch_of_a_device_follows_from_the_batch(
    changes: dict[str, Any], batch: int, per_device: str
) -> None:
    """It is given for the tuned size, and worked out for the others from their batch."""
    training = {
        "tuned_on": "v2-8",
        "train_steps": 4000,
        "flags": {"per_device_batch_size": "pdbs"},
        **changes,
    }
    plan = planned(spec(training=training), sizes=("v2-32",))
    assert plan.jobs[0].rung.batch_size == batch
    assert plan.jobs[0].args[0] == f"--pdbs={per_device}"


def test_an_override_may_give_the_batch_of_a_device() -> None:
    """The batch of that rung is worked out from its own devices."""
    plan = planned(spec(overrides={"v2-32": {"per_device_batch_size": 64}}), sizes=("v2-32",))
    assert plan.jobs[0].rung.batch_size == 64 * 32


def test_a_run_has_one_folder_on_every_size() -> None:
    """With an id, the folder of a run does not depend on the size; without one, it is the job's."""
    texts = {"dir": "${run_dir}", "run": "${run}"}
    named = [
        planned(spec(trainer__args=texts), sizes=(size,), run="r1").jobs[0]
        for size in ("v2-8", "v2-32")
    ]
    assert {job.args[:2] for job in named} == {
        ("--dir=gs://my-project-dev-mnist-dev-us-central1/runs/mnist/r1", "--run=r1")
    }
    unnamed = planned(spec(trainer__args=texts), sizes=("v2-32",)).jobs[0]
    assert unnamed.args[1] == "--run=mnist-dev-v2-32"
