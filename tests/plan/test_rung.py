"""Figures of rungs: the published example, scaling up and down, and overrides."""

from fractions import Fraction
from typing import Any

from spec_factory import CATALOG, WITHOUT, planned, project, spec
from tpucfg.plan import Rung, ladder


def rungs(*sizes: str, **changes: Any) -> list[Rung]:
    """Return the rungs of a spec with these sizes."""
    project_ = project(spec(sizes=list(sizes), **changes))
    return list(ladder(project_, CATALOG, sizes))


def test_the_published_example_is_reproduced() -> None:
    """A batch of 1,024 on v2-8 is 4,096 on v2-32; 100 steps of 1,000 are 25 of 4,000; epochs do not change.

    The figures of https://cloud.google.com/tpu/docs/training-on-tpu-pods.
    """
    (pod,) = rungs("v2-32", training__batch_size=1024)
    assert pod.batch_size == 4096
    (pod,) = rungs("v2-32", training__batch_size=1000, training__train_steps=100)
    assert (pod.train_steps, pod.batch_size, pod.examples) == (25, 4000, 100_000)
    (pod,) = rungs("v2-32", training__train_steps=WITHOUT, training__epochs=10)
    assert (pod.epochs, pod.train_steps, pod.examples) == ("10", None, None)


def test_figures_scale_up() -> None:
    """Four rungs have the figures of the linear rule."""
    steps = {"warmup_steps": 200, "save_checkpoints_steps": 500}
    training = {
        "training__learning_rate": 0.1,
        "training__learning_rate_rule": "linear",
        "training__steps": steps,
    }
    ladder_rungs = rungs("v2-8", "v2-32", "v2-128", "v2-512", **training)
    assert [
        (rung.batch_size, rung.train_steps, rung.learning_rate, rung.steps["warmup_steps"])
        for rung in ladder_rungs
    ] == [
        (1024, 4000, "0.1", 200),
        (4096, 1000, "0.4", 50),
        (16384, 250, "1.6", 13),
        (65536, 63, "6.4", 4),
    ]
    assert [rung.per_core for rung in ladder_rungs] == [128, 128, 128, 128]
    assert [rung.examples for rung in ladder_rungs] == [4_096_000, 4_096_000, 4_096_000, 4_128_768]


def test_figures_scale_down() -> None:
    """From a large slice to a small one, the batch shrinks and the steps grow."""
    (small,) = rungs(
        "v2-8",
        training__tuned_on="v2-32",
        training__batch_size=4096,
        training__train_steps=250,
        training__learning_rate=0.4,
        training__learning_rate_rule="sqrt",
    )
    assert (small.scale, small.batch_size, small.train_steps, small.learning_rate) == (
        Fraction(1, 4),
        1024,
        1000,
        "0.2",
    )


def test_a_scale_may_be_a_third() -> None:
    """From 384 cores to 128 the scale is a third; batch and steps are exact, and the learning rate is rounded."""
    (third,) = rungs(
        "v4-128",
        environments__dev__region="us-central2",
        target="cloud-tpu",
        training__tuned_on="v4-384",
        training__batch_size=3840,
        training__train_steps=1000,
        training__learning_rate=0.1,
        training__learning_rate_rule="linear",
    )
    assert (third.batch_size, third.train_steps, third.learning_rate) == (1280, 3000, "0.0333333")


def test_steps_that_do_not_divide_are_rounded_up() -> None:
    """1,001 steps divided by 4 are 251, which see 3,072 more examples: less than one global batch."""
    first, second = rungs("v2-8", "v2-32", training__train_steps=1001)
    assert second.train_steps == 251
    assert first.examples is not None
    assert second.examples is not None
    assert second.examples - first.examples == 3072


def test_an_unchanged_learning_rate_keeps_its_text() -> None:
    """On the tuned size, and with the rule `keep`, the learning rate is the text of the spec."""
    for rule in ("linear", "sqrt"):
        assert (
            rungs("v2-8", training__learning_rate=1e-05, training__learning_rate_rule=rule)[
                0
            ].learning_rate
            == "1e-05"
        )
    kept = {"training__learning_rate": 1e-05, "training__learning_rate_rule": "keep"}
    assert [rung.learning_rate for rung in rungs("v2-8", "v2-32", **kept)] == ["1e-05", "1e-05"]
    assert rungs("v2-32", training__learning_rate=WITHOUT)[0].learning_rate is None


def test_an_overridden_batch_scales_the_other_figures() -> None:
    """With half of the scaled batch, the scale of steps and learning rate is half too."""
    steps = {"warmup_steps": 200, "eval_steps": 7}
    training = {
        "training__learning_rate": 0.1,
        "training__learning_rate_rule": "linear",
        "training__steps": steps,
    }
    (rung,) = rungs("v2-128", overrides={"v2-128": {"batch_size": 8192}}, **training)
    assert [rung.cores_scale, rung.scale, rung.batch_size] == [16, 8, 8192]
    assert (rung.train_steps, rung.learning_rate) == (500, "0.8")
    assert rung.steps == {"train_steps": 500, "eval_steps": 1, "warmup_steps": 25}
    assert rung.per_core == 64
    assert rung.overridden == {"batch_size"}


def test_other_overrides_are_used_unchanged() -> None:
    """An overridden learning rate or step setting is used unchanged; all other figures are scaled."""
    override = {"learning_rate": 0.25, "warmup_steps": 10}
    (rung,) = rungs(
        "v2-32",
        training__learning_rate=0.1,
        training__learning_rate_rule="linear",
        training__steps={"warmup_steps": 200, "save_steps": 100},
        overrides={"v2-32": override},
    )
    assert [rung.scale, rung.batch_size, rung.train_steps, rung.learning_rate] == [
        4,
        4096,
        1000,
        "0.25",
    ]
    assert rung.steps == {"train_steps": 1000, "save_steps": 25, "warmup_steps": 10}
    assert rung.overridden == {"learning_rate", "warmup_steps"}


def test_an_override_of_args_replaces_the_flag_in_place() -> None:
    """An existing flag is replaced at its position, a new one is appended, and the figures' flags follow."""
    args = {"a": 1, "b": [2, 3], "c": None}
    data = spec(
        trainer__args=args, overrides={"v2-32": {"args": {"z": "new", "b": "one", "c": False}}}
    )
    first, second = planned(data).jobs
    figures = [
        (f"--batch_size={batch}", f"--train_steps={steps}", f"--learning_rate={rate}")
        for batch, steps, rate in ((1024, 4000, "0.1"), (4096, 1000, "0.4"))
    ]
    assert first.args == ("--a=1", "--b=2", "--b=3", "--c", *figures[0])
    assert second.args == ("--a=1", "--b=one", "--c=false", "--z=new", *figures[1])


def test_flags_have_a_fixed_order_and_configurable_names() -> None:
    """The order is batch, steps, learning rate, keys of steps; `flags` renames a flag, and null omits it."""
    data = spec(
        trainer__args={"x": 1},
        training__learning_rate=0.5,
        training__steps={"b_steps": 8, "a_steps": 4},
        training__flags={"batch_size": "train_batch_size", "a_steps": "a", "learning_rate": None},
    )
    assert planned(data, sizes=("v2-8",)).jobs[0].args == (
        *("--x=1", "--train_batch_size=1024", "--train_steps=4000"),
        *("--a=4", "--b_steps=8"),
    )
    epochs = spec(
        training__train_steps=WITHOUT,
        training__epochs=2.50,
        training__flags={"epochs": "num_epochs"},
    )
    assert planned(epochs, sizes=("v2-8",)).jobs[0].args[:2] == (
        "--batch_size=1024",
        "--num_epochs=2.5",
    )


def test_an_overridden_machine_changes_the_hosts() -> None:
    """v6e-8 is one host of eight chips, or two hosts of four with an override of the machine."""
    location = {"environments__dev__region": "us-east5", "training__tuned_on": "v6e-8"}
    default = planned(spec(sizes=["v6e-8"], **location)).jobs[0]
    overridden = planned(
        spec(sizes=["v6e-8"], overrides={"v6e-8": {"machine": "ct6e-standard-4t"}}, **location)
    ).jobs[0]
    assert [
        (job.slice.hosts, job.slice.chips_per_host, job.slice.cores)
        for job in (default, overridden)
    ] == [
        (1, 8, 8),
        (2, 4, 8),
    ]
