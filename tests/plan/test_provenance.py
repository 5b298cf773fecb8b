"""Provenance of figures: every derivation begins at a line of the spec and ends with the figure."""

from typing import Any

import pytest

from spec_factory import CATALOG, WITHOUT, project, spec
from tpucfg.plan import ladder
from tpucfg.plan.provenance import DERIVED, Reason, derived_reasons, figure_reasons
from tpucfg.plan.rung import rung_figures

SPEC = spec(
    sizes=["v2-8", "v2-32", "v2-128"],
    trainer__args={"data_dir": "${bucket}/data"},
    training__learning_rate=0.1,
    training__learning_rate_rule="linear",
    training__steps={"warmup_steps": 201},
    overrides={"v2-128": {"batch_size": 8192, "learning_rate": 0.5, "args": {"data_dir": "/mine"}}},
)


def chain(size: str, key: str, data: Any = SPEC) -> list[Reason]:
    """Return the reasons for one figure."""
    project_ = project(data)
    tuned_on, rung = ladder(project_, CATALOG, [project_.training.tuned_on, size])
    return list(figure_reasons(project_, tuned_on.slice, rung, key))


@pytest.mark.parametrize(
    ("size", "key", "words"),
    [
        (
            "v2-32",
            "batch_size",
            ["1024", "v2-8 has 8 cores", "v2-32 has 32 cores", "k = 32 / 8 = 4", "128"],
        ),
        ("v2-32", "train_steps", ["4000", "k = 32 / 8 = 4", "1000"]),
        ("v2-32", "warmup_steps", ["201", "k = 32 / 8 = 4", "51", "rounded up from 50.25"]),
        ("v2-32", "learning_rate", ["0.1", "linear", "0.4"]),
        ("v2-128", "train_steps", ["8192", "k = 8192 / 1024 = 8", "500"]),
        ("v2-128", "learning_rate", ["override", "0.5"]),
        ("v2-128", "batch_size", ["override", "8192"]),
    ],
)
def test_a_derivation_has_its_numbers(size: str, key: str, words: list[str]) -> None:
    """The reasons have the figures of the spec, the catalog, the rule and the result."""
    text = "\n".join(reason.text for reason in chain(size, key))
    assert [word for word in words if word not in text] == []


def test_the_examples_of_a_step_are_kept() -> None:
    """The batch of a device is that of a micro-batch, so that a step with two of them keeps twice as many examples."""
    batch = {
        "batch_size": WITHOUT,
        "per_device_batch_size": 0.5,
        "grad_accum": 2,
        "model_parallel": 2,
    }
    reasons = chain(
        "v2-32", "batch_size", spec(**{f"training__{key}": value for key, value in batch.items()})
    )
    assert reasons[1].text == "the batch of v2-8: 0.5 × 8 devices × 2 = 8"
    assert reasons[-1].text == "a step keeps its examples per device, 1: 8 × 4 = 32"


@pytest.mark.parametrize("size", ["v2-8", "v2-32", "v2-128"])
def test_every_figure_has_a_derivation(size: str) -> None:
    """The first reason is located in the spec, and the last one has the value that the program gets."""
    project_ = project(SPEC)
    (rung,) = ladder(project_, CATALOG, [size])
    for key, value in rung_figures(rung):
        reasons = chain(size, key)
        assert reasons[0].location is not None
        assert value in reasons[-1].text


KEPT = spec(
    sizes=["v5litepod-16", "v5litepod-32"],
    environments__dev__region="us-west4",
    target="gke",
    training={
        "tuned_on": "v5litepod-16",
        "batch_size": 128,
        "batch_rule": "keep",
        "grad_accum": 4,
        "model_parallel": 2,
        "sequence_length": 1000,
        "train_tokens": 10_000_001,
        "learning_rate": 0.1,
        "steps": {"warmup_steps": 20, "save_steps": {"value": 5, "scale": False}},
    },
)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (
            "batch_size",
            ["training.batch_size: 128", "training.batch_rule: keep", "stays on every rung", "128"],
        ),
        (
            "grad_accum",
            [
                *(
                    "training.grad_accum: 4",
                    "training.batch_rule: keep",
                    "training.tuned_on: v5litepod-16",
                ),
                *(
                    "v5litepod-16 has 16 JAX devices",
                    "16 / 2 = 8 replicas",
                    "128 / (8 × 4) = 4 examples",
                ),
                *(
                    "v5litepod-32 has 32 JAX devices",
                    "32 / 2 = 16 replicas",
                    "at most 4 examples: 128 / 16 = 8, in 2",
                ),
            ],
        ),
        (
            "train_steps",
            [
                *(
                    "training.train_tokens: 10000001",
                    "training.sequence_length: 1000",
                    "training.batch_rule: keep",
                ),
                "10000001 / (1000 × 128) = 79, rounded up from 78.1250078125",
            ],
        ),
        ("learning_rate", ["training.learning_rate: 0.1", "with it steps and learning rate: 0.1"]),
        ("warmup_steps", ["training.steps.warmup_steps: 20", "training.batch_rule: keep"]),
        (
            "save_steps",
            ["training.steps.save_steps.value: 5", "scale: false keeps it on every rung: 5"],
        ),
    ],
)
def test_a_batch_that_stays_has_reasons(key: str, words: list[str]) -> None:
    """The derivation has the rule, the devices of both sizes and the micro-batches, with the sources of the rules."""
    reasons = chain("v5litepod-32", key, KEPT)
    text = "\n".join(reason.text for reason in reasons)
    assert [word for word in words if word not in text] == []
    assert reasons[0].location is not None
    for reason in reasons:
        assert (
            not reason.source
            or reason.source.startswith("https://")
            or reason.source in CATALOG.sources
        )


@pytest.mark.parametrize(
    ("name", "last"),
    [
        ("model_parallel", "model_parallel of v5litepod-32: 2"),
        ("data_parallel", "data_parallel of v5litepod-32: 16"),
        ("micro_batch", "examples of one replica at a time: 128 / (16 × 2) = 4"),
    ],
)
def test_columns_of_the_ladder_have_reasons(name: str, last: str) -> None:
    """The numbers that the ladder shows beside the figures begin at the devices of the rung."""
    project_ = project(KEPT)
    tuned_on, rung = ladder(project_, CATALOG, [project_.training.tuned_on, "v5litepod-32"])
    reasons = list(derived_reasons(project_, tuned_on.slice, rung, name))
    assert name in DERIVED
    assert (reasons[0].text, reasons[-1].text) == ("v5litepod-32 has 32 JAX devices", last)


def test_accumulation_without_a_setting_has_reasons() -> None:
    """On a rung that has to accumulate, the derivation begins at the rule."""
    data = {**KEPT, "training": {**KEPT["training"], "tuned_on": "v5litepod-32"}}
    del data["training"]["grad_accum"]
    reasons = chain("v5litepod-16", "grad_accum", data)
    assert reasons[0].text == "training.batch_rule: keep"
    assert reasons[-1].text.endswith("at most 8 examples: 128 / 8 = 16, in 2")


def test_accumulation_that_stays_has_a_reason() -> None:
    """By default accumulation is equal on every rung, and tokens are divided by the rung's own batch."""
    data = spec(training={**KEPT["training"], "batch_rule": "per_core"})
    data |= {key: KEPT[key] for key in ("sizes", "target", "environments")}
    assert chain("v5litepod-32", "grad_accum", data)[-1].text.endswith("accumulation stays: 4")
    steps = [reason.text for reason in chain("v5litepod-32", "train_steps", data)]
    assert "k = 32 / 16 = 2" in steps
    assert steps[-1].startswith(
        "tokens of the run / tokens of a step: 10000001 / (1000 × 256) = 40"
    )


def test_epochs_have_reasons() -> None:
    """Epochs are equal on every rung, and the reason has a source."""
    (line, rule) = chain(
        "v2-32", "epochs", spec(training__train_steps=WITHOUT, training__epochs=2.5)
    )
    assert "2.5" in line.text
    assert "the same on every rung" in rule.text
    assert rule.source.startswith("https://")


def test_rules_have_public_sources() -> None:
    """The source of a reason is a public URL or a source of the catalog."""
    for reason in chain("v2-32", "learning_rate"):
        assert (
            not reason.source
            or reason.source.startswith("https://")
            or reason.source in CATALOG.sources
        )
