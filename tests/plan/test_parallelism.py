"""Replicas, micro-batches and tokens of rungs, compared with published numbers and with an independent calculation."""

from fractions import Fraction
from itertools import count
from typing import Any, Final

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from spec_factory import CATALOG, WITHOUT, finding_with_id, ids, loaded, planned, project, spec
from tpucfg.plan import Rung, ladder
from tpucfg.plan.rung import rung_figures
from tpucfg.spec.project import overridable

FUJI: dict[str, Any] = {
    "tuned_on": "v5litepod-256",
    "batch_size": 1024,
    "batch_rule": "keep",
    "grad_accum": 4,
    "sequence_length": 4096,
    "train_tokens": 2 * 10**12,
    "learning_rate": 3e-4,
    "learning_rate_rule": "sqrt",
    "steps": {"warmup_steps": 2000},
}
"""A model like Fuji 7B, with 4 Mi tokens in a step and four micro-batches on one slice:
https://github.com/apple/axlearn/blob/34aed43/axlearn/experiments/text/gpt/fuji.py."""


def rungs(*sizes: str, overrides: Any = None, **training: Any) -> list[Rung]:
    """Return the rungs of a spec with these sizes and settings of training."""
    data = spec(sizes=list(sizes), training=training, overrides=overrides or {}, target="gke")
    return list(ladder(project(data), CATALOG, sizes))


def test_more_slices_accumulate_less() -> None:
    """Batch, steps and rate stay, and four micro-batches on one slice are two on two slices and one on four."""
    sizes = ["v5litepod-64", "v5litepod-256", "v5litepod-256x2", "v5litepod-256x4"]
    ladder_rungs = rungs(*sizes, **FUJI)
    splits: list[Any] = [
        (rung.data_parallel, rung.grad_accum, rung.micro_batch) for rung in ladder_rungs
    ]
    assert splits == [(64, 16, 1), (256, 4, 1), (512, 2, 1), (1024, 1, 1)]
    # 2e12 / (4096 * 1024) is 476,837.16.
    figures: Any = {
        (rung.batch_size, rung.train_steps, rung.learning_rate, rung.scale) for rung in ladder_rungs
    }
    assert figures == {(1024, 476_838, "0.0003", 1)}
    assert {rung.tokens for rung in ladder_rungs} == {476_838 * 4096 * 1024}


def test_a_batch_may_stay_without_accumulation() -> None:
    """MaxText's GPT-3 has 4, 2 and 1 sequences for each chip, and 2,048 in all.

    The scripts of https://github.com/AI-Hypercomputer/maxtext/tree/e591f30/src/maxtext/configs/tpu/v5p/gpt3_175b.
    """
    sizes = ["v5p-1024", "v5p-2048", "v5p-4096"]
    settings = {
        "tuned_on": "v5p-1024",
        "batch_size": 2048,
        "batch_rule": "keep",
        "train_steps": 1000,
    }
    ladder_rungs = rungs(*sizes, **settings)
    splits: list[Any] = [
        (rung.batch_size, rung.micro_batch, rung.grad_accum) for rung in ladder_rungs
    ]
    assert splits == [
        *((2048, 4, None), (2048, 2, None), (2048, 1, None)),
    ]


def test_a_smaller_slice_accumulates_and_its_program_gets_the_flag() -> None:
    """Without `grad_accum` in the spec, only a rung that has to accumulate has the flag."""
    settings = {
        "tuned_on": "v5litepod-256",
        "batch_size": 1024,
        "batch_rule": "keep",
        "train_steps": 100,
    }
    small, tuned = rungs("v5litepod-64", "v5litepod-256", **settings)
    assert dict(rung_figures(small)) == {
        "batch_size": "1024",
        "grad_accum": "4",
        "train_steps": "100",
    }
    assert dict(rung_figures(tuned)) == {"batch_size": "1024", "train_steps": "100"}


def test_a_growing_batch_keeps_accumulation() -> None:
    """By default the batch grows with the cores of all slices, and each rung has the tuned micro-batches."""
    settings = {
        "tuned_on": "v6e-16",
        "batch_size": 128,
        "grad_accum": 4,
        "model_parallel": 2,
        "train_steps": 1000,
    }
    ladder_rungs = rungs("v6e-16", "v6e-16x2", "v6e-256", **settings)
    assert [
        (rung.batch_size, rung.train_steps, rung.data_parallel, rung.grad_accum)
        for rung in ladder_rungs
    ] == [
        *((128, 1000, 8, 4), (256, 500, 16, 4), (2048, 63, 128, 4)),
    ]
    assert {rung.micro_batch for rung in ladder_rungs} == {4}


def test_tokens_follow_from_each_batch() -> None:
    """A run of tokens has the fewest steps that see them all, by the batch of the rung."""
    settings = {
        "tuned_on": "v6e-16",
        "batch_size": 16,
        "sequence_length": 100,
        "train_tokens": 1_000_001,
    }
    first, second, own = rungs(
        "v6e-16", "v6e-32", "v6e-64", overrides={"v6e-64": {"batch_size": 128}}, **settings
    )
    assert [rung.train_steps for rung in (first, second, own)] == [626, 313, 79]
    assert first.tokens == 626 * 1600
    assert own.scale == 8


def test_a_figure_may_stay_on_every_rung() -> None:
    """`scale: false` keeps a figure; an override of a rung replaces it there."""
    steps = {"a": 500, "b": {"value": 500, "scale": False}, "c": {"value": 500, "scale": True}}
    settings = {"tuned_on": "v6e-16", "batch_size": 16, "train_steps": 4000, "steps": steps}
    _, second = rungs("v6e-16", "v6e-64", **settings)
    assert second.steps == {"train_steps": 1000, "a": 125, "b": 500, "c": 125}
    _, second = rungs("v6e-16", "v6e-64", overrides={"v6e-64": {"b": 7}}, **settings)
    assert (second.steps["b"], set(second.overridden)) == (7, {"b"})


def test_an_override_changes_parallelism_and_nothing_else() -> None:
    """Accumulation and replicas of a rung can be set; batch, steps and rate do not follow from them."""
    settings = {"tuned_on": "v6e-16", "batch_size": 128, "train_steps": 1000, "learning_rate": 0.1}
    (plain,) = rungs("v6e-64", **settings)
    (rung,) = rungs(
        "v6e-64", overrides={"v6e-64": {"grad_accum": 2, "model_parallel": 4}}, **settings
    )
    assert (rung.data_parallel, rung.grad_accum, int(rung.micro_batch)) == (16, 2, 16)
    assert (rung.batch_size, rung.steps, rung.learning_rate, rung.scale) == (
        *(plain.batch_size, plain.steps, plain.learning_rate, plain.scale),
    )
    assert rung.overridden == {"grad_accum", "model_parallel"}


def test_flags_and_placeholders_have_the_values_of_the_rung() -> None:
    """The flag of accumulation follows that of the batch, by the name of the spec; every placeholder has its value."""
    names = (
        "chips",
        "slices",
        "topology",
        "data_parallel",
        "model_parallel",
        "grad_accum",
        "sequence_length",
        "hosts",
    )
    training = {**FUJI, "model_parallel": 2, "flags": {"grad_accum": "accum"}}
    data = spec(
        target="gke",
        environments__dev__region="us-west4",
        sizes=["v5litepod-256x2"],
        training=training,
        trainer__args={name: f"${{{name}}}" for name in names},
    )
    (job,) = planned(data).jobs
    assert job.args == (
        *(
            "--chips=512",
            "--slices=2",
            "--topology=16x16",
            "--data_parallel=256",
            "--model_parallel=2",
        ),
        *("--grad_accum=2", "--sequence_length=4096", "--hosts=128"),
        *(
            "--batch_size=1024",
            "--accum=2",
            "--train_steps=476838",
            "--learning_rate=0.0003",
            "--warmup_steps=2000",
        ),
    )


def test_an_unset_accumulation_has_a_placeholder_and_no_flag() -> None:
    """Without the setting, the placeholder is 1 and the program gets no flag of its own."""
    (job,) = planned(spec(sizes=["v2-8"], trainer__args={"accum": "${grad_accum}"})).jobs
    assert job.args == (
        "--accum=1",
        "--batch_size=1024",
        "--train_steps=4000",
        "--learning_rate=0.1",
    )


@pytest.mark.parametrize(
    ("layer", "path"),
    [
        ({"trainer__args": {"a": ["x", "${sequence_length}"]}}, "trainer.args.a[1]"),
        ({"trainer__env": {"A": "a ${sequence_length} b"}}, "trainer.env.A"),
        (
            {"environments__dev__trainer": {"env": {"A": "${sequence_length}"}}},
            "environments.dev.trainer.env.A",
        ),
        ({"overrides": {"v2-32": {"args": {"a": "${sequence_length}"}}}}, "overrides.v2-32.args.a"),
    ],
)
def test_a_placeholder_without_a_value_is_an_error(layer: dict[str, Any], path: str) -> None:
    """In each layer the error names the text, once for all rungs; the edit of its help resolves it."""
    finding = finding_with_id("TPU113", planned(spec(**layer)).findings)
    assert finding.message.startswith(
        f"{path} has ${{sequence_length}}, but training.sequence_length is not set"
    )
    assert planned(spec(**layer, training__sequence_length=2048)).findings == ()


def test_an_escaped_placeholder_needs_no_value() -> None:
    """`$${sequence_length}` is the text `${sequence_length}`."""
    result = planned(spec(sizes=["v2-8"], trainer__args={"a": "$${sequence_length}"}))
    assert result.findings == ()
    assert result.jobs[0].args[0] == "--a=${sequence_length}"


def test_names_of_settings_are_reserved() -> None:
    """Flags, overrides and layers refer to settings by their names, which no figure of `steps` may have."""
    for name in (
        *overridable(),
        "overrides",
        "batch_size",
        "grad_accum",
        "train_steps",
        "epochs",
        "learning_rate",
    ):
        _, findings = loaded(spec(training__steps={name: 5}))
        assert ids(findings) == ["TPU007"], name


# An independent calculation: sizes are read from their names, and every rule is a search instead of a formula.

DEVICES: dict[str, Any] = {
    "v2": 1,
    "v3": 1,
    "v4": Fraction(1, 2),
    "v5litepod": 1,
    "v5p": Fraction(1, 2),
    "v6e": 1,
    "tpu7x": 1,
}
"""JAX devices for each unit of the number in a name, which counts cores: v5e and v6e chips have one."""
SIZES = [
    "v2-8",
    "v3-32",
    "v4-8",
    "v4-64",
    "v5litepod-16",
    "v5litepod-64",
    "v5p-16",
    "v6e-16",
    "v6e-64",
    "tpu7x-32",
]
SLICED = ["v4-64x2", "v5litepod-16x3", "v5litepod-64x2", "v6e-64x4", "tpu7x-32x5"]


def units(size: str) -> tuple[str, int, int]:
    """Return the prefix, the number of a slice and the slices of a size."""
    prefix, _, number = size.rpartition("-")
    one, _, slices = number.partition("x")
    return prefix, int(one), int(slices or 1)


def devices(size: str) -> int:
    """Return the JAX devices of all slices."""
    prefix, number, slices = units(size)
    return int(DEVICES[prefix] * number) * slices


def cores(size: str) -> int:
    """Return the cores of all slices."""
    _, number, slices = units(size)
    return number * slices


@st.composite
def settings(draw: st.DrawFn) -> tuple[dict[str, Any], str]:
    """Draw settings whose tuned batch divides, and the size of a rung."""
    tuned_on = draw(st.sampled_from([*SIZES, *SLICED]))
    model_parallel = draw(st.sampled_from([1, 2, 4]))
    grad_accum: Any = draw(st.sampled_from([WITHOUT, 1, 2, 3, 4, 6, 12]))
    micro_batch = draw(st.integers(1, 12))
    replicas = devices(tuned_on) // model_parallel
    training = {
        "tuned_on": tuned_on,
        "batch_size": replicas * micro_batch * (1 if grad_accum is WITHOUT else grad_accum),
        "batch_rule": draw(st.sampled_from(["keep", "per_core"])),
        "grad_accum": grad_accum,
        "model_parallel": model_parallel,
        "sequence_length": draw(st.integers(1, 10_000)),
        draw(st.sampled_from(["train_tokens", "train_steps"])): draw(st.integers(1, 10**9)),
        "steps": {"warmup": draw(st.integers(1, 10**6)), "save": {"value": 77, "scale": False}},
    }
    return {key: value for key, value in training.items() if value is not WITHOUT}, draw(
        st.sampled_from([*SIZES, *SLICED])
    )


STEPS: Final = {"warmup": 1, "save": {"value": 77, "scale": False}}
KEPT: Final = {"batch_rule": "keep", "sequence_length": 1, "train_tokens": 1}


@given(settings())
@example(({**FUJI, "steps": STEPS}, "v5litepod-64x2"))
@example(({**KEPT, "tuned_on": "v5p-16", "batch_size": 16, "steps": STEPS}, "v5litepod-16"))
def test_figures_equal_an_independent_calculation(drawn: tuple[dict[str, Any], str]) -> None:
    """Batch, accumulation and steps have the values that a search finds, or the batch does not divide."""
    training, size = drawn
    assume(devices(size) // units(size)[2] % training.get("model_parallel", 1) == 0)
    (rung,) = rungs(size, **training)
    keep, tuned_batch, tuned_on = (
        training["batch_rule"] == "keep",
        training["batch_size"],
        training["tuned_on"],
    )
    model_parallel, tuned_accum = training.get("model_parallel", 1), training.get("grad_accum", 1)
    k = Fraction(1) if keep else Fraction(cores(size), cores(tuned_on))
    batch = tuned_batch * k
    replicas = Fraction(devices(size), model_parallel)
    tuned_micro = Fraction(tuned_batch * model_parallel, devices(tuned_on) * tuned_accum)
    accum = (
        tuned_accum
        if not keep
        else next(n for n in count(1) if batch / (replicas * n) <= tuned_micro)
    )
    is_even = batch.denominator == 1 and (batch / (replicas * accum)).denominator == 1
    findings = planned(spec(sizes=[size], training=training, target="gke")).findings
    assert ("TPU040" not in ids(findings)) == is_even
    if not is_even:
        return
    split: tuple[Any, ...] = (rung.batch_size, rung.data_parallel, rung.grad_accum or 1)
    assert split == (batch, replicas, accum)
    assert rung.micro_batch == batch / replicas / accum
    assert rung.micro_batch <= tuned_micro or not keep
    assert (rung.grad_accum is None) == ("grad_accum" not in training and accum == 1)
    assert rung.steps["save"] == 77
    assert (rung.steps["warmup"] - 1) * k < training["steps"]["warmup"] <= rung.steps["warmup"] * k
    seen = rung.steps["train_steps"] * batch * training["sequence_length"]
    tokens = (
        training.get("train_tokens")
        or training["train_steps"] * tuned_batch * training["sequence_length"]
    )
    assert tokens <= seen < tokens + batch * training["sequence_length"]
    assert (rung.tokens, rung.scale) == (seen, k)
    # A device of v5p has two cores, and one of v5e has one: half of its examples are as much work for a core.
    per_core, tuned_per_core = (
        batch / (accum * cores(size)),
        Fraction(tuned_batch, tuned_accum * cores(tuned_on)),
    )
    warns = keep and rung.micro_batch < tuned_micro and per_core != tuned_per_core
    assert ("TPU047" in ids(findings)) == warns
