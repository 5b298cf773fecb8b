"""Properties of every spec: examples, the batch per core, purity, and the order of keys."""

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from spec_factory import CATALOG, configs, planned, project, spec
from tpucfg.plan import Rung, ladder, plan
from tpucfg.spec.project import Project

SIZES = [slice_ for slice_ in CATALOG.all() if slice_.cores <= 4096]


@st.composite
def trainings(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a spec with figures tuned on any size, and a ladder of any sizes."""
    tuned_on = draw(st.sampled_from(SIZES))
    rungs = draw(
        st.lists(
            st.sampled_from(SIZES), min_size=1, max_size=5, unique_by=lambda slice_: slice_.cores
        )
    )
    training: dict[str, Any] = {
        "tuned_on": tuned_on.size,
        "batch_size": draw(st.integers(1, 4096)) * tuned_on.cores,
        "learning_rate_rule": draw(st.sampled_from(["keep", "linear", "sqrt"])),
        "steps": draw(
            st.dictionaries(
                st.sampled_from(["warmup_steps", "save_steps", "log_steps"]), st.integers(1, 10**6)
            )
        ),
        draw(st.sampled_from(["train_steps", "epochs"])): draw(st.integers(1, 10**6)),
    }
    if draw(st.booleans()):
        training["learning_rate"] = draw(st.floats(1e-6, 10))
    return spec(
        sizes=[slice_.size for slice_ in sorted(rungs, key=lambda slice_: slice_.cores)],
        training=training,
        trainer__args=draw(
            st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(["${size}", 1, None, True]))
        ),
        trainer__env=draw(
            st.dictionaries(st.sampled_from("ABC"), st.sampled_from(["x", "${cores}"]))
        ),
    )


def ladder_of(data: dict[str, Any]) -> tuple[Project, tuple[Rung, ...], Rung]:
    """Return the project, its rungs, and the rung of `tuned_on`."""
    project_ = project(data)
    (tuned,) = ladder(project_, CATALOG, [project_.training.tuned_on])
    return project_, ladder(project_, CATALOG, project_.environments["dev"].sizes), tuned


@given(trainings())
def test_examples_are_preserved(data: dict[str, Any]) -> None:
    """Every rung sees the examples that the run was tuned for, and less than one global batch more."""
    _, rungs, tuned = ladder_of(data)
    for rung in rungs:
        if rung.examples is None or tuned.examples is None:
            assert (rung.epochs, rung.examples) == (tuned.epochs, None)
        else:
            assert 0 <= rung.examples - tuned.examples < rung.batch_size


@given(trainings())
def test_the_batch_per_core_is_constant(data: dict[str, Any]) -> None:
    """The batch per core is an equal whole number on every rung, and no number of steps is zero."""
    project_, rungs, tuned = ladder_of(data)
    for rung in (tuned, *rungs):
        assert rung.per_core == tuned.per_core
        assert rung.per_core.denominator == 1
        assert all(count >= 1 for count in rung.steps.values())
        assert set(rung.steps) - {"train_steps"} == set(project_.training.steps)


@given(trainings(), st.data())
def test_an_overridden_batch_preserves_examples_too(
    data: dict[str, Any], draw: st.DataObject
) -> None:
    """The steps of a rung follow from its overridden batch."""
    assume("train_steps" in data["training"])
    size = draw.draw(st.sampled_from(data["sizes"]))
    cores = next(slice_.cores for slice_ in SIZES if slice_.size == size)
    data["overrides"] = {size: {"batch_size": draw.draw(st.integers(1, 10_000)) * cores}}
    _, rungs, _ = ladder_of(data)
    (examples,) = [rung.examples for rung in rungs if rung.size == size]
    assert examples is not None
    tuned = data["training"]["batch_size"] * data["training"]["train_steps"]
    assert 0 <= examples - tuned < data["overrides"][size]["batch_size"]


@given(trainings())
def test_a_plan_is_pure(data: dict[str, Any]) -> None:
    """Planning a project twice gives equal plans, and does not change the project."""
    planned_project, untouched = project(data), project(data)
    first = plan(planned_project, CATALOG)
    assert plan(planned_project, CATALOG) == first
    assert (
        planned_project.training,
        planned_project.base.trainer,
        planned_project.environments,
    ) == (
        untouched.training,
        untouched.base.trainer,
        untouched.environments,
    )


EXTRA: dict[str, Any] = {
    "vertex-ai": {
        "scheduling": {"maxWaitDuration": "60s", "restartJobOnWorkerRestart": False},
        "experiment": "a",
    },
    "cloud-tpu": {
        "queueingPolicy": {"validUntilDuration": "21600s"},
        "tpu": {"nodeSpec": [{"node": {"tags": ["b"]}}]},
    },
    "gke": {
        "spec": {"suspend": True, "network": {"subdomain": "a"}},
        "metadata": {"annotations": {"b": "1", "a": "2"}},
    },
    "ai-platform": {"labels": {"d": "1", "c": "2"}, "trainingInput": {"enableWebAccess": False}},
}


def with_many_keys(target: str) -> dict[str, Any]:
    """Return a spec with at least two keys in every mapping that the target uses."""
    labels = {"b": "1", "a": "2"}
    data = spec(
        target=target,
        sizes=["v3-8"],
        environments={
            name: {
                "project": f"my-project-{name}",
                "region": "europe-west4",
                "labels": labels,
                "protect": True,
            }
            for name in ("dev", "staging", "prod")
        },
        trainer={
            "image": "r.io/i:1",
            "args": {"z": 1, "y": None, "x": [2, 1]},
            "env": {"V": "1", "A": "2"},
        },
        training={
            "tuned_on": "v3-8",
            "batch_size": 1024,
            "train_steps": 4000,
            "learning_rate": 0.1,
            "steps": {"warmup_steps": 9, "save_steps": 8},
            "flags": {"batch_size": "b", "train_steps": "t"},
        },
        overrides={
            "v3-8": {
                "save_steps": 3,
                "warmup_steps": 2,
                "learning_rate": 0.2,
                "args": {"z": 5, "w": 6},
            }
        },
        targets={**{name: {} for name in EXTRA}, target: {"extra": EXTRA[target]}},
    )
    if target == "ai-platform":
        data["trainer"]["runtime"] = "2.2"
        del data["trainer"]["env"]
    return data


@pytest.mark.slow
@pytest.mark.parametrize("target", EXTRA)
@settings(max_examples=10)
@given(draw=st.data())
def test_the_order_of_keys_is_irrelevant(target: str, draw: st.DataObject) -> None:
    """Configs do not depend on the order of any keys except those of args."""
    data = with_many_keys(target)
    before = [(config.job.name, config.text) for config in configs(data)]
    assert len(before) == 3
    assert [(config.job.name, config.text) for config in configs(shuffled(data, draw))] == before


def test_the_order_of_args_is_kept() -> None:
    """Flags reach the program in the order in which they are written."""
    first, second = (
        planned(spec(trainer__args=args)).jobs[0].args
        for args in ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    )
    assert first[:2] == ("--a=1", "--b=2")
    assert second[:2] == ("--b=2", "--a=1")


def shuffled(value: Any, draw: st.DataObject, key: str = "") -> Any:
    """Return the data with the keys of every mapping but args in another order."""
    if isinstance(value, list):
        return [shuffled(item, draw) for item in value]
    if not isinstance(value, dict):
        return value
    keys = list(value) if key == "args" else draw.draw(st.permutations(list(value)))
    return {inner: shuffled(value[inner], draw, inner) for inner in keys}
