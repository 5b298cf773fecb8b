"""Each warning at its threshold, just below and just above it, with its numbers in the message."""

import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spec_factory import WITHOUT, finding_with_id, ids, missing_words, planned, spec
from tpucfg.findings import Finding

V4 = {"target": "cloud-tpu", "environments__dev__region": "us-central2"}


def warnings_of(*sizes: str, tuned_on: Any = "v2-8", **changes: Any) -> tuple[Finding, ...]:
    """Return the findings of a plan with these rungs; the small spec itself has none."""
    changes["training__tuned_on"] = tuned_on
    return planned(spec(sizes=list(sizes), **changes)).findings


def only_finding(id_: str, expected: str | None, findings: tuple[Finding, ...]) -> Finding | None:
    """Return the only finding, which has this id and contains this text; None if no finding is expected."""
    assert ids(findings) == ([id_] if expected else [])
    assert [missing_words(finding, expected or "") for finding in findings] == [
        [] for _ in findings
    ]
    return findings[0] if findings else None


def test_a_moderate_ladder_has_no_warning() -> None:
    """A ladder of four times the batch and 1,000 steps has no warning."""
    assert warnings_of("v2-8", "v2-32") == ()


@pytest.mark.parametrize(
    ("sizes", "tuned_on", "expected"),
    [
        (("v2-128",), "v2-32", None),  # 4 times
        (("v4-896",), "v4-128", None),  # 7 times
        (("v2-256",), "v2-32", "8,192 (8×) on v2-256"),
        (("v4-1152",), "v4-128", "9,216 (9×) on v4-1152"),
        (("v2-128", "v2-256", "v2-512"), "v2-32", "8,192 (8×) on v2-256, 16,384 (16×) on v2-512"),
    ],
)
def test_a_batch_of_eight_times_the_tuned_one_is_a_warning(
    sizes: tuple[str, ...], tuned_on: str, expected: str | None
) -> None:
    """The warning begins at eight times the tuned batch, and has the batch and the factor of every such rung."""
    location = V4 if "v4" in tuned_on else {}
    findings = warnings_of(*sizes, tuned_on=tuned_on, **location)
    only_finding("TPU041", expected and f"from 1,024 to {expected}", findings)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [(397, None), (400, None), (396, "99 steps on v2-32"), (4, "4 steps on v2-8, 1 step on v2-32")],
)
def test_fewer_than_a_hundred_steps_are_a_warning(steps: int, expected: str | None) -> None:
    """The help has the smallest number of steps that resolves the warning."""
    if finding := only_finding(
        "TPU042", expected, warnings_of("v2-8", "v2-32", training__train_steps=steps)
    ):
        assert missing_words(finding, "train_steps to 397 or more") == []


@pytest.mark.parametrize(
    ("warmup", "expected"),
    [
        (999, None),
        (1000, None),
        (1001, "25% on v2-8, 25.1% on v2-32 (1,001 of 4,000 steps"),
        (2000, "50% on v2-8, 50% on v2-32 (2,000 of 4,000 steps"),
    ],
)
def test_a_long_warm_up_is_a_warning(warmup: int, expected: str | None) -> None:
    """The warning begins above a quarter of the run, and has the share on each rung and the steps of the first."""
    steps = {"lr_Warmup_steps": warmup, "other_steps": 3999}
    if finding := only_finding(
        "TPU043", expected, warnings_of("v2-8", "v2-32", training__steps=steps)
    ):
        assert missing_words(finding, "lr_Warmup_steps to 1000 or less") == []


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        (3999, None),
        (4000, None),
        (4001, "4,001 of 4,000 steps on v2-8, 1,001 of 1,000 steps on v2-32"),
    ],
)
def test_a_checkpoint_after_the_end_is_a_warning(interval: int, expected: str | None) -> None:
    """An interval as long as the run saves one checkpoint, at its end; a longer one is a warning."""
    steps = {"save_Checkpoints_steps": interval, "other_steps": 9000}
    if finding := only_finding(
        "TPU044", expected, warnings_of("v2-8", "v2-32", training__steps=steps)
    ):
        assert missing_words(finding, "save_Checkpoints_steps to 4000 or less") == []


@given(
    st.integers(1, 10**6),
    st.integers(1, 10**6),
    st.integers(1, 10**6),
    st.sampled_from(["v2-32", "v2-512"]),
)
@example(100, 100, 100, "v2-32")
def test_the_number_in_the_help_is_the_bound(
    steps: int, warmup: int, interval: int, size: str
) -> None:
    """The number in the help resolves the warning; one step further, the warning is back."""

    def warning_text(**figures: int) -> str:
        settings = {
            "train_steps": steps,
            "warmup_steps": warmup,
            "checkpoint_steps": interval,
            **figures,
        }
        train_steps = settings.pop("train_steps")
        findings = warnings_of(
            "v2-8", size, training__train_steps=train_steps, training__steps=settings
        )
        return "".join(f"{finding.id}: {finding.help}\n" for finding in findings)

    for id_, key, number, end in re.findall(
        r"(TPU04[234]): .*?(\w+) to (\d+) or (more|less)", warning_text()
    ):
        further = int(number) + (1 if end == "less" else -1)
        assert id_ not in warning_text(**{key: int(number)})
        assert further < 1 or id_ in warning_text(**{key: further})


@pytest.mark.parametrize(
    ("sizes", "tuned_on", "expected"),
    [
        (("v4-896",), "v4-512", None),  # 1.75 times
        (("v4-1024",), "v4-512", "2× on v4-1024"),
        (("v4-512", "v4-1024", "v4-2048"), "v4-512", "2× on v4-1024, 4× on v4-2048"),
    ],
)
def test_a_kept_learning_rate_is_a_warning(
    sizes: tuple[str, ...], tuned_on: str, expected: str | None
) -> None:
    """With the rule `keep`, or with the program's own rate, the warning begins at twice the batch."""
    for rate, message in (
        (0.1, "is kept at 0.1 while the batch grows"),
        (WITHOUT, "no learning rate, and the batch grows"),
    ):
        changes = {"training__learning_rate": rate, "training__learning_rate_rule": "keep", **V4}
        only_finding(
            "TPU045",
            expected and f"{message} {expected}",
            warnings_of(*sizes, tuned_on=tuned_on, **changes),
        )


def test_a_kept_learning_rate_may_be_right() -> None:
    """No warning with another rule, with an override of the rate, or on a smaller slice."""
    for rule in ("linear", "sqrt"):
        assert warnings_of("v2-8", "v2-32", training__learning_rate_rule=rule) == ()
    for rate in (0.1, WITHOUT):
        kept = {"training__learning_rate": rate, "training__learning_rate_rule": "keep"}
        assert (
            warnings_of("v2-8", "v2-32", overrides={"v2-32": {"learning_rate": 0.2}}, **kept) == ()
        )
        assert warnings_of("v2-8", tuned_on="v2-128", **kept) == ()


def test_a_kept_learning_rate_is_located_at_the_rule() -> None:
    """The location is the rule, or the learning rate if the spec has no rule."""
    written = {
        "learning_rate_rule": "keep",
        "tuned_on": "v2-8",
        "batch_size": 8,
        "train_steps": 4000,
        "learning_rate": 1,
    }
    for training in (
        written,
        {key: value for key, value in written.items() if key != "learning_rate_rule"},
    ):
        plan = planned(spec(training=training))
        key = "learning_rate_rule" if "learning_rate_rule" in training else "learning_rate"
        assert finding_with_id(
            "TPU045", plan.findings
        ).location == plan.project.document.value_location(("training", key))


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        (("v2-8",), None),
        (("v3-8",), "not those of v3-8"),
        (("v2-8", "v3-32"), "not those of v3-32"),
        (("v3-8", "v3-32"), "not those of v3-8, v3-32"),
    ],
)
def test_another_generation_is_a_warning(sizes: tuple[str, ...], expected: str | None) -> None:
    """The warning names the rungs of another generation than that of `tuned_on`."""
    findings = warnings_of(*sizes, environments__dev__region="europe-west4")
    only_finding(
        "TPU046", expected, tuple(finding for finding in findings if finding.id == "TPU046")
    )


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        (4096, None),
        (
            4064,
            "falls from 128 to 127 on v2-32, so the devices have less work and scaling is not linear",
        ),
        (4128, None),
        (
            32,
            "falls from 128 to 1 on v2-32, so the devices have less work and scaling is not linear",
        ),
    ],
)
def test_an_overridden_batch_per_device_is_a_warning(batch: int, expected: str | None) -> None:
    """A batch as large as the scaled one, or larger, has no warning; a smaller one has, with its consequence."""
    findings = warnings_of("v2-8", "v2-32", overrides={"v2-32": {"batch_size": batch}})
    if warning := only_finding("TPU047", expected, findings):
        assert missing_words(warning, "overrides.v2-32.batch_size", "4096") == []


@pytest.mark.parametrize(
    "key",
    [
        *(
            "save_checkpoints_steps",
            "checkpoint_period",
            "checkpoint_interval",
            "ckpt_steps",
            "local-checkpoint-period",
        ),
        *(
            "save_steps",
            "save_interval_steps",
            "save_interval",
            "save_every_n_steps",
            "Trainer.Save_Steps",
        ),
    ],
)
def test_common_names_of_checkpoint_intervals_are_known(key: str) -> None:
    """An interval of any of these names is checked, with dashes, dots and capitals as the program writes it."""
    steps = {key.lower() if "-" in key else key: 4001}
    only_finding(
        "TPU044",
        f"{next(iter(steps))} is longer than the run",
        warnings_of("v2-8", training__steps=steps),
    )


@pytest.mark.parametrize(
    "key",
    [
        "eval_steps",
        "save_summary_steps",
        "log_every_n_steps",
        "keep_ckpt_steps",
        "keep_every_n_steps",
    ],
)
def test_other_intervals_may_be_longer_than_the_run(key: str) -> None:
    """Losing logs or an evaluation is harmless."""
    assert warnings_of("v2-8", training__steps={key: 4001}) == ()


def test_a_constant_interval_is_compared_with_each_run() -> None:
    """With `scale: false` the interval is that of the spec, and the help has the steps of the shortest run."""
    steps = {"save_steps": {"value": 1001, "scale": False}}
    finding = only_finding(
        "TPU044",
        "1,001 of 1,000 steps on v2-32",
        warnings_of("v2-8", "v2-32", training__steps=steps),
    )
    assert finding is not None
    assert finding.help == "set training.steps.save_steps.value to 1000 or less, or train longer"
    steps = {"save_steps": {"value": 1000, "scale": False}}
    assert warnings_of("v2-8", "v2-32", training__steps=steps) == ()


@given(st.integers(1, 10**9), st.integers(1, 5000))
def test_the_help_about_few_steps_may_be_about_tokens(tokens: int, length: int) -> None:
    """The number of tokens in the help resolves the warning; with one token less, it is back."""

    def few_steps(tokens: int) -> list[Finding]:
        training = {
            "tuned_on": "v2-8",
            "batch_size": 8,
            "sequence_length": length,
            "train_tokens": tokens,
        }
        findings = planned(spec(sizes=["v2-8", "v2-32"], training=training)).findings
        return [finding for finding in findings if finding.id == "TPU042"]

    for finding in few_steps(tokens):
        match = re.match(r"set training.train_tokens to (\d+) or more", finding.help)
        assert match
        assert few_steps(int(match[1])) == []
        assert few_steps(int(match[1]) - 1)


V5E = {"target": "cloud-tpu", "environments__dev__region": "us-west4", "tuned_on": "v5litepod-16"}


def test_a_kept_batch_with_less_work_for_each_device_is_a_warning() -> None:
    """One warning has all rungs on which the micro-batch shrinks; TPU041 and TPU045 are silent."""
    training = {
        "training__batch_rule": "keep",
        "training__learning_rate": 0.1,
        "training__grad_accum": 2,
    }
    sizes = ("v5litepod-16", "v5litepod-32", "v5litepod-64", "v5litepod-128")
    finding = only_finding(
        "TPU047",
        "the micro-batch of a replica falls from 32 to 16 on v5litepod-64, 8 on v5litepod-128, so the devices have",
        warnings_of(*sizes, **training, **V5E),
    )
    assert finding is not None
    assert finding.help.startswith("set training.batch_rule to per_core")


def test_replicas_that_grow_with_their_examples_have_equal_work() -> None:
    """Twice the devices with twice the examples of a replica are no change of the work of a device."""
    overrides = {"v5litepod-32": {"model_parallel": 2}}
    assert warnings_of("v5litepod-16", "v5litepod-32", overrides=overrides, **V5E) == ()


@pytest.mark.parametrize(
    ("override", "expected", "help_"),
    [
        ({"grad_accum": 2}, None, ""),
        (
            {"grad_accum": 4},
            "falls from 32 to 16 on v5litepod-32",
            "set overrides.v5litepod-32.grad_accum to 2",
        ),
        (
            {"batch_size": 1024},
            "falls from 32 to 16 on v5litepod-32",
            "set overrides.v5litepod-32.batch_size to 2048",
        ),
        ({"batch_size": 1024, "grad_accum": 1}, None, ""),
    ],
)
def test_an_overridden_micro_batch_is_a_warning(
    override: dict[str, int], expected: str | None, help_: str
) -> None:
    """Accumulation of a rung is compared with the tuned micro-batch, and the help restores it."""
    training = {"training__grad_accum": 2, "overrides": {"v5litepod-32": override}}
    finding = only_finding(
        "TPU047", expected, warnings_of("v5litepod-16", "v5litepod-32", **training, **V5E)
    )
    assert (
        finding is None
        or finding.help == f"{help_} to keep the micro-batch of a replica, or allow TPU047"
    )


def test_a_run_of_epochs_has_no_warning_about_steps() -> None:
    """The steps of an epoch are unknown, so no warning is about a share of the run."""
    epochs = {"training__train_steps": WITHOUT, "training__epochs": 1}
    assert (
        warnings_of(
            "v2-8",
            "v2-32",
            training__steps={"warmup_steps": 10**6, "checkpoint_steps": 10**6},
            **epochs,
        )
        == ()
    )


def test_warnings_are_about_the_selected_rungs() -> None:
    """A rung that is not selected has no warning."""
    data = spec(
        sizes=["v2-8", "v2-32", "v2-512"],
        training__learning_rate_rule="keep",
        overrides={"v2-512": {"batch_size": 512, "args": {"data": "gs://elsewhere/data"}}},
    )
    assert planned(data, sizes=("v2-8",)).findings == ()
    assert ids(planned(data, sizes=("v2-32",)).findings) == ["TPU045"]
    assert set(ids(planned(data, sizes=("v2-512",)).findings)) == {"TPU031", "TPU047"}
