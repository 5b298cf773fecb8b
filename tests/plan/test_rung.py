"""A size of the ladder becomes a rung: the published example, overrides, and what holds for every spec."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from making import CATALOG, WITHOUT, configs, planned, project, spec
from tpucfg.plan import Rung, ladder, plan
from tpucfg.spec.model import Project


def rungs(*sizes: str, **changes: Any) -> list[Rung]:
    """The rungs of a spec with these sizes."""
    made = project(spec(sizes=list(sizes), **changes))
    return list(ladder(made, CATALOG, sizes))


def test_the_published_example() -> None:
    """A batch of 1,024 on v2-8 is 4,096 on v2-32; 100 steps of 1,000 are 25 of 4,000; epochs stay as they are.

    The figures of https://cloud.google.com/tpu/docs/training-on-tpu-pods.
    """
    (pod,) = rungs("v2-32", training__batch_size=1024)
    assert pod.batch_size == 4096
    (pod,) = rungs("v2-32", training__batch_size=1000, training__train_steps=100)
    assert (pod.train_steps, pod.batch_size, pod.examples) == (25, 4000, 100_000)
    (pod,) = rungs("v2-32", training__train_steps=WITHOUT, training__epochs=10)
    assert (pod.epochs, pod.train_steps, pod.examples) == ("10", None, None)


def test_a_ladder_up() -> None:
    """Every figure of four rungs, with the linear rule."""
    steps = {"warmup_steps": 200, "save_checkpoints_steps": 500}
    training = {"training__learning_rate": 0.1, "training__learning_rate_rule": "linear", "training__steps": steps}
    found = rungs("v2-8", "v2-32", "v2-128", "v2-512", **training)
    assert [(it.batch_size, it.train_steps, it.learning_rate, it.steps["warmup_steps"]) for it in found] == [
        (1024, 4000, "0.1", 200),
        (4096, 1000, "0.4", 50),
        (16384, 250, "1.6", 13),
        (65536, 63, "6.4", 4),
    ]
    assert [it.per_core for it in found] == [128, 128, 128, 128]
    assert [it.examples for it in found] == [4_096_000, 4_096_000, 4_096_000, 4_128_768]


def test_a_ladder_down() -> None:
    """Figures tuned on a large slice are as good for a small one: the batch shrinks and the steps grow."""
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


def test_a_scale_that_is_no_power_of_two() -> None:
    """From 384 cores to 128 the scale is a third, and still whole where the batch is whole on a core."""
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


def test_steps_that_do_not_divide() -> None:
    """1,001 steps divided by 4 are 251: 3,072 examples more than on the first rung, less than one global batch."""
    first, second = rungs("v2-8", "v2-32", training__train_steps=1001)
    assert second.train_steps == 251
    assert first.examples is not None
    assert second.examples is not None
    assert second.examples - first.examples == 3072


def test_a_number_that_does_not_change_stays_as_it_was_written() -> None:
    """On the size it was tuned on, and under the rule `keep`, a learning rate is the spec's own text."""
    for rule in ("linear", "sqrt"):
        assert (
            rungs("v2-8", training__learning_rate=1e-05, training__learning_rate_rule=rule)[0].learning_rate == "1e-05"
        )
    assert [it.learning_rate for it in rungs("v2-8", "v2-32", training__learning_rate=1e-05)] == ["1e-05", "1e-05"]
    assert rungs("v2-32")[0].learning_rate is None


def test_a_batch_override_changes_what_follows_from_the_batch() -> None:
    """Half the batch that the cores would give is half the scale, for steps and learning rate alike."""
    steps = {"warmup_steps": 200, "eval_steps": 7}
    training = {"training__learning_rate": 0.1, "training__learning_rate_rule": "linear", "training__steps": steps}
    (rung,) = rungs("v2-128", overrides={"v2-128": {"batch_size": 8192}}, **training)
    assert [rung.cores_scale, rung.scale, rung.batch_size] == [16, 8, 8192]
    assert (rung.train_steps, rung.learning_rate) == (500, "0.8")
    assert rung.steps == {"train_steps": 500, "eval_steps": 1, "warmup_steps": 25}
    assert rung.per_core == 64
    assert rung.overridden == {"batch_size"}


def test_other_overrides_are_taken_as_they_are() -> None:
    """A learning rate with its own digits, and any key of steps; what is not named follows the scale."""
    override = {"learning_rate": 0.25, "warmup_steps": 10}
    (rung,) = rungs(
        "v2-32",
        training__learning_rate=0.1,
        training__learning_rate_rule="linear",
        training__steps={"warmup_steps": 200, "save_steps": 100},
        overrides={"v2-32": override},
    )
    assert [rung.scale, rung.batch_size, rung.train_steps, rung.learning_rate] == [4, 4096, 1000, "0.25"]
    assert rung.steps == {"train_steps": 1000, "save_steps": 25, "warmup_steps": 10}
    assert rung.overridden == {"learning_rate", "warmup_steps"}


def test_an_override_of_args_takes_its_flag_s_place() -> None:
    """A flag that the trainer has is replaced where it stands, a new one comes last, and the figures follow."""
    args = {"a": 1, "b": [2, 3], "c": None}
    data = spec(trainer__args=args, overrides={"v2-32": {"args": {"z": "new", "b": "one", "c": False}}})
    first, second = planned(data).jobs
    figures = ("--batch_size=1024", "--train_steps=4000"), ("--batch_size=4096", "--train_steps=1000")
    assert first.args == ("--a=1", "--b=2", "--b=3", "--c", *figures[0])
    assert second.args == ("--a=1", "--b=one", "--c=false", "--z=new", *figures[1])


def test_the_order_and_the_names_of_the_flags() -> None:
    """Batch, steps, learning rate, then the keys of steps; `flags` renames one, and null leaves it out."""
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
    epochs = spec(training__train_steps=WITHOUT, training__epochs=2.50, training__flags={"epochs": "num_epochs"})
    assert planned(epochs, sizes=("v2-8",)).jobs[0].args == ("--batch_size=1024", "--num_epochs=2.5")


def test_another_machine_of_the_same_size() -> None:
    """v6e-8 is one machine of eight chips, or two of four where the override says so."""
    where = {"environments__dev__region": "us-east5", "training__tuned_on": "v6e-8"}
    one = planned(spec(sizes=["v6e-8"], **where)).jobs[0]
    two = planned(spec(sizes=["v6e-8"], overrides={"v6e-8": {"machine": "ct6e-standard-4t"}}, **where)).jobs[0]
    assert [(job.slice.hosts, job.slice.chips_per_host, job.slice.cores) for job in (one, two)] == [
        (1, 8, 8),
        (2, 4, 8),
    ]


SIZES = [found for found in CATALOG.all() if found.cores <= 4096]


@st.composite
def trainings(draw: st.DrawFn) -> dict[str, Any]:
    """A spec with figures that were tuned anywhere and a ladder of any sizes."""
    tuned_on = draw(st.sampled_from(SIZES))
    climbed = draw(st.lists(st.sampled_from(SIZES), min_size=1, max_size=5, unique_by=lambda it: it.cores))
    training: dict[str, Any] = {
        "tuned_on": tuned_on.size,
        "batch_size": draw(st.integers(1, 4096)) * tuned_on.cores,
        "learning_rate_rule": draw(st.sampled_from(["keep", "linear", "sqrt"])),
        "steps": draw(
            st.dictionaries(st.sampled_from(["warmup_steps", "save_steps", "log_steps"]), st.integers(1, 10**6))
        ),
        draw(st.sampled_from(["train_steps", "epochs"])): draw(st.integers(1, 10**6)),
    }
    if draw(st.booleans()):
        training["learning_rate"] = draw(st.floats(1e-6, 10))
    return spec(
        sizes=[it.size for it in sorted(climbed, key=lambda it: it.cores)],
        training=training,
        trainer__args=draw(st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(["${size}", 1, None, True]))),
        trainer__env=draw(st.dictionaries(st.sampled_from("ABC"), st.sampled_from(["x", "${cores}"]))),
    )


def climbed(data: dict[str, Any]) -> tuple[Project, tuple[Rung, ...], Rung]:
    """The project, its rungs, and the rung that it was tuned on."""
    made = project(data)
    (tuned,) = ladder(made, CATALOG, [made.training.tuned_on])
    return made, ladder(made, CATALOG, made.environments["dev"].sizes), tuned


@given(trainings())
def test_examples_are_preserved(data: dict[str, Any]) -> None:
    """Every rung sees the examples that the run was tuned for, and less than one global batch more."""
    _, found, tuned = climbed(data)
    for rung in found:
        if rung.examples is None or tuned.examples is None:
            assert (rung.epochs, rung.examples) == (tuned.epochs, None)
        else:
            assert 0 <= rung.examples - tuned.examples < rung.batch_size


@given(trainings())
def test_the_batch_per_core_is_constant(data: dict[str, Any]) -> None:
    """It is a whole number, the same on every rung, and no count of steps is ever zero."""
    made, found, tuned = climbed(data)
    for rung in (tuned, *found):
        assert rung.per_core == tuned.per_core
        assert rung.per_core.denominator == 1
        assert all(count >= 1 for count in rung.steps.values())
        assert set(rung.steps) - {"train_steps"} == set(made.training.steps)


@given(trainings(), st.data())
def test_an_overridden_batch_preserves_examples_too(data: dict[str, Any], draw: st.DataObject) -> None:
    """Whatever batch a rung is given, its steps follow from that batch."""
    assume("train_steps" in data["training"])
    size = draw.draw(st.sampled_from(data["sizes"]))
    cores = next(found.cores for found in SIZES if found.size == size)
    data["overrides"] = {size: {"batch_size": draw.draw(st.integers(1, 10_000)) * cores}}
    _, found, _ = climbed(data)
    (examples,) = [rung.examples for rung in found if rung.size == size]
    assert examples is not None
    tuned = data["training"]["batch_size"] * data["training"]["train_steps"]
    assert 0 <= examples - tuned < data["overrides"][size]["batch_size"]


@given(trainings())
def test_a_plan_is_pure(data: dict[str, Any]) -> None:
    """The same project gives the same plan again, and planning changes nothing in it."""
    made, untouched = project(data), project(data)
    first = plan(made, CATALOG)
    assert plan(made, CATALOG) == first
    assert (made.training, made.trainer, made.environments) == (
        untouched.training,
        untouched.trainer,
        untouched.environments,
    )


EXTRA: dict[str, Any] = {
    "vertex-ai": {"scheduling": {"timeout": "60s", "disableRetries": True}, "experiment": "a", "enableWebAccess": True},
    "cloud-tpu": {"queueingPolicy": {"validUntilDuration": "21600s"}, "guaranteed": {"minDuration": "60s"}},
    "gke": {"spec": {"ttlSecondsAfterFinished": 1, "suspend": True}, "metadata": {"annotations": {"b": "1", "a": "2"}}},
    "ai-platform": {"labels": {"d": "1", "c": "2"}, "trainingInput": {"enableWebAccess": False}},
}


def with_many_keys(target: str) -> dict[str, Any]:
    """A spec with at least two keys in every mapping that the target has a use for."""
    labels = {"b": "1", "a": "2"}
    made = spec(
        target=target,
        sizes=["v3-8"],
        environments={
            name: {"project": f"my-project-{name}", "region": "europe-west4", "labels": labels, "protect": True}
            for name in ("dev", "staging", "prod")
        },
        trainer={"image": "r/i:1", "args": {"z": 1, "y": None, "x": [2, 1]}, "env": {"B": "1", "A": "2"}},
        training={
            "tuned_on": "v3-8",
            "batch_size": 1024,
            "train_steps": 4000,
            "learning_rate": 0.1,
            "steps": {"warmup_steps": 9, "save_steps": 8},
            "flags": {"batch_size": "b", "train_steps": "t"},
        },
        overrides={"v3-8": {"save_steps": 3, "warmup_steps": 2, "learning_rate": 0.2, "args": {"z": 5, "w": 6}}},
        targets={**{name: {} for name in EXTRA}, target: {"extra": EXTRA[target]}},
    )
    if target == "ai-platform":
        made["trainer"]["runtime"] = "2.2"
        del made["trainer"]["env"]
    return made


@pytest.mark.parametrize("target", EXTRA)
@settings(max_examples=30)
@given(draw=st.data())
def test_the_order_of_keys_means_nothing(target: str, draw: st.DataObject) -> None:
    """In whatever order a spec's keys stand, its configs are the same to the byte; args alone are an ordered list."""
    data = with_many_keys(target)
    before = [(config.job.name, config.text) for config in configs(data)]
    assert len(before) == 3
    assert [(config.job.name, config.text) for config in configs(shuffled(data, draw))] == before


def test_the_order_of_args_means_something() -> None:
    """Flags reach the program in the order in which they are written."""
    one, other = (planned(spec(trainer__args=args)).jobs[0].args for args in ({"a": 1, "b": 2}, {"b": 2, "a": 1}))
    assert one[:2] == ("--a=1", "--b=2")
    assert other[:2] == ("--b=2", "--a=1")


def shuffled(value: Any, draw: st.DataObject, key: str = "") -> Any:
    """The same data with the keys of every mapping in another order, but for args."""
    if isinstance(value, list):
        return [shuffled(item, draw) for item in value]
    if not isinstance(value, dict):
        return value
    keys = list(value) if key == "args" else draw.draw(st.permutations(list(value)))
    return {inner: shuffled(value[inner], draw, inner) for inner in keys}
