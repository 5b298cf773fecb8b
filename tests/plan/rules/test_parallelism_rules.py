"""Errors about replicas and batches that do not divide, each with an edit that resolves it."""

import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spec_factory import CATALOG, WITHOUT, document, finding_with_id, ids, planned, spec
from tpucfg.findings import Finding
from tpucfg.plan import plan
from tpucfg.spec.parse import parse_project

V5E = {
    "target": "gke",
    "environments__dev__region": "us-west4",
    "training__tuned_on": "v5litepod-256",
    "sizes": ["v5litepod-256"],
}


def findings_of(**changes: Any) -> list[Finding]:
    """Return the findings about parallelism of a spec on v5e."""
    return [
        finding
        for finding in planned(spec(**{**V5E, **changes})).findings
        if finding.id in {"TPU040", "TPU047", "TPU048"}
    ]


@pytest.mark.parametrize(
    ("change", "expected", "help_"),
    [
        (
            {"training__batch_size": 1020},
            "a batch of 1,020 does not divide over the 8 devices of v2-8: 127.5 examples each",
            "set training.batch_size to 1024 or 1016",
        ),
        (
            {"training__batch_size": 7},
            "a batch of 7 does not divide over the 8 devices of v2-8: 0.875 examples each",
            "set training.batch_size to 8",
        ),
        (
            {"overrides": {"v2-32": {"batch_size": 4000 + 1}}},
            "a batch of 4,001 does not divide over the 32 devices of v2-32: 125.031 examples each",
            "set overrides.v2-32.batch_size to 4032 or 4000",
        ),
        (
            {"training__model_parallel": 2, "training__grad_accum": 3},
            "a batch of 1,024 does not divide over the 4 replicas of 2 devices on v2-8 and 3 micro-batches: 85.3333",
            "set training.batch_size to 1032 or 1020",
        ),
        (
            {"overrides": {"v2-32": {"grad_accum": 3}}},
            "a batch of 4,096 does not divide over the 32 devices of v2-32 and 3 micro-batches: 42.6667 examples each",
            "set overrides.v2-32.grad_accum to 4",
        ),
        (
            {
                "training__tuned_on": "v2-128",
                "training__batch_size": 1152,
                "overrides": {"v2-8": {"grad_accum": 2}},
            },
            "a batch of 72 does not divide over the 8 devices of v2-8 and 2 micro-batches: 4.5 examples each",
            "set overrides.v2-8.grad_accum to 3",
        ),
    ],
)
def test_a_batch_must_divide(change: dict[str, Any], expected: str, help_: str) -> None:
    """The micro-batch of a replica must be a whole number; the help has the nearest valid values."""
    result = planned(spec(**change))
    finding = finding_with_id("TPU040", result.findings)
    assert (finding.message[: len(expected)], finding.help) == (expected, help_)
    assert result.jobs == ()


def test_a_batch_of_fewer_examples_than_devices_may_be_right() -> None:
    """128 examples on 256 chips are 2 for each of 64 replicas, and half an example where nothing is shared."""
    assert findings_of(training__batch_size=128, training__model_parallel=4) == []
    (finding,) = findings_of(training__batch_size=128)
    assert finding.message.endswith("256 devices of v5litepod-256: 0.5 examples each")
    assert "model_parallel" in finding.details[0]


def test_a_device_may_have_two_cores() -> None:
    """A chip of TPU v4 is one JAX device, so that 4 examples divide over the 8 cores of v4-8."""
    location = {
        "target": "cloud-tpu",
        "environments__dev__region": "us-central2",
        "sizes": ["v4-8"],
    }
    assert (
        planned(spec(training__tuned_on="v4-8", training__batch_size=4, **location)).findings == ()
    )
    assert ids(
        planned(spec(training__tuned_on="v4-8", training__batch_size=2, **location)).findings
    ) == ["TPU040"]


def test_a_batch_must_divide_on_every_rung() -> None:
    """The help divides on `tuned_on` and on the rungs whose batch follows from it; all of them are one finding."""
    sizes = ["v5litepod-16", "v5litepod-64", "v5litepod-256"]
    overrides = {size: {"model_parallel": 1} for size in sizes[:2]}
    settings = {"sizes": sizes, "training__model_parallel": 4, "overrides": overrides}
    (finding,) = findings_of(training__batch_size=64, **settings)
    assert finding.message.startswith(
        "a batch of 4 does not divide over the 16 devices of v5litepod-16"
    )
    assert (finding.details, finding.help) == (
        ("nor on v5litepod-64",),
        "set training.batch_size to 256",
    )
    assert findings_of(training__batch_size=256, **settings) == []


@pytest.mark.parametrize(
    ("change", "expected", "help_"),
    [
        (
            {"training__model_parallel": 3},
            "model_parallel 3 does not divide the 256 JAX devices of v5litepod-256",
            "set training.model_parallel to 2 or 4",
        ),
        (
            {"training__model_parallel": 512},
            "model_parallel 512 does not divide the 256 JAX devices of v5litepod-256",
            "set training.model_parallel to 256",
        ),
        (
            {"training__model_parallel": 16, "sizes": ["v5litepod-8", "v5litepod-256"]},
            "model_parallel 16 does not divide the 8 JAX devices of v5litepod-8",
            "set overrides.v5litepod-8.model_parallel to 8",
        ),
        (
            {"overrides": {"v5litepod-256": {"model_parallel": 6}}},
            "model_parallel 6 does not divide the 256 JAX devices of v5litepod-256",
            "set overrides.v5litepod-256.model_parallel to 4 or 8",
        ),
        (
            {
                "training__model_parallel": 512,
                "sizes": ["v5litepod-256x2"],
                "training__tuned_on": "v5litepod-256x2",
            },
            "model_parallel 512 does not divide the 256 JAX devices of one slice of v5litepod-256x2",
            "set training.model_parallel to 256",
        ),
    ],
)
def test_replicas_do_not_span_slices(change: dict[str, Any], expected: str, help_: str) -> None:
    """The devices of one slice must be a multiple of `model_parallel`; the help has the nearest divisors."""
    (finding,) = findings_of(**change)
    assert (finding.id, finding.message, finding.help) == ("TPU048", expected, help_)


def test_a_kept_batch_that_does_not_divide_is_an_error() -> None:
    """With the rule `keep`, the help sets accumulation where that divides the batch, and else larger replicas."""
    keep = {"training__batch_rule": "keep", "training__tuned_on": "v5litepod-16"}
    sizes = ["v5litepod-16", "v5litepod-32", "v5litepod-64"]
    (finding,) = findings_of(sizes=sizes, training__batch_size=32, **keep)
    assert (
        finding.message
        == "a batch of 32 does not divide over the 64 devices of v5litepod-64: 0.5 examples each"
    )
    assert (
        finding.help == "set overrides.v5litepod-64.model_parallel to 2, or leave v5litepod-64 out"
    )
    # 5 micro-batches of 4 examples become 3 on twice the devices, which 10 examples do not divide into.
    (finding,) = findings_of(
        sizes=sizes[:2], training__batch_size=320, training__grad_accum=5, **keep
    )
    assert (
        "32 devices of v5litepod-32 and 3 micro-batches: 3.33333 examples each" in finding.message
    )
    assert finding.help == "set overrides.v5litepod-32.grad_accum to 5"


@pytest.mark.parametrize(
    "change",
    [
        {"training__batch_sise": 5, "overrides": {"v4-8": {"batch_size": 6}}},
        {"overrides": {"v4-8": {"model_parallel": "2", "batch_size": 6}}},
        {"sizes": "v4-8"},
        {"environments": {"dev": {"project": "my-project-dev"}}},
    ],
)
def test_a_broken_section_causes_no_error_about_figures(change: dict[str, Any]) -> None:
    """Four examples divide over the devices of v4-8, and not over those of the stand-in for a broken section."""
    data = spec(target="cloud-tpu", environments__dev__region="us-central2", sizes=["v4-8"])
    data["training"] = {
        "tuned_on": "v4-8",
        "batch_size": 4,
        "train_steps": 1000,
        "model_parallel": 1,
    }
    for path, value in change.items():
        section, _, key = path.partition("__")
        data[section] = data[section] | {key: value} if key else value
    parsed = parse_project(document(data))
    findings = (
        [*parsed.findings, *plan(parsed.project, CATALOG).findings]
        if parsed.project
        else parsed.findings
    )
    assert findings
    assert "TPU040" not in ids(tuple(findings))


@st.composite
def changes(draw: st.DrawFn) -> dict[str, Any]:
    """Draw settings of parallelism, most of which do not divide."""
    sizes = ["v5litepod-8", "v5litepod-16", "v5litepod-64", "v5litepod-256"]
    number = st.integers(1, 24)
    override = st.fixed_dictionaries(
        {},
        optional={
            "grad_accum": number,
            "model_parallel": number,
            "batch_size": st.integers(1, 3000),
        },
    )
    return {
        "sizes": sizes,
        "training__tuned_on": draw(st.sampled_from(sizes)),
        "training__batch_size": draw(st.integers(1, 3000)),
        "training__batch_rule": draw(st.sampled_from(["keep", "per_core"])),
        "training__grad_accum": draw(number | st.just(WITHOUT)),
        "training__model_parallel": draw(st.sampled_from([1, 2, 3, 4, 8, 16])),
        "overrides": draw(
            st.dictionaries(st.sampled_from(sizes), override.filter(bool), max_size=2)
        ),
    }


@given(changes())
def test_a_plan_has_whole_replicas_or_an_error(change: dict[str, Any]) -> None:
    """Without an error every rung has whole replicas and micro-batches; with one, no rung is planned."""
    data = spec(**{**V5E, **change})
    result = planned(data)
    errors = [finding for finding in result.findings if finding.level == "error"]
    assert {finding.id for finding in errors} <= {"TPU040", "TPU048"}
    assert bool(errors) == (not result.jobs)
    for job in result.jobs:
        rung, slice_ = job.rung, job.slice
        assert slice_.devices // slice_.slices % rung.model_parallel == 0
        assert (
            rung.batch_size % (slice_.devices // rung.model_parallel * (rung.grad_accum or 1)) == 0
        )


@given(changes())
@example(
    {
        "sizes": ["v5litepod-64"],
        "training__tuned_on": "v5litepod-64",
        "training__model_parallel": 3,
        "overrides": {"v5litepod-64": {"model_parallel": 3}},
    }
)
def test_the_help_resolves_each_error(change: dict[str, Any]) -> None:
    """The first edit of a help line removes its finding."""
    data = spec(**{**V5E, **change})
    before = planned(data).findings
    for finding in before:
        match = re.match(r"set (?:(training)|overrides\.([\w-]+))\.(\w+) to (\d+)", finding.help)
        if finding.id not in {"TPU040", "TPU048"} or match is None:
            assert finding.level != "error" or finding.help.startswith("leave ")
            continue
        training, size, key, value = match.groups()
        edited = spec(**{**V5E, **change})
        section = (
            edited["training"]
            if training
            else edited.setdefault("overrides", {}).setdefault(size, {})
        )
        section[key] = int(value)
        assert occurrences(finding, planned(edited).findings) < occurrences(finding, before)


def occurrences(finding: Finding, findings: tuple[Finding, ...]) -> int:
    """Return how many findings have the message: `tuned_on` and an override may have the same mistake."""
    return [other.message for other in findings].count(finding.message)


@given(st.integers(1, 10**15), st.sampled_from(["keep", "per_core"]), st.integers(1, 10**15))
@example(64 * (10**12 + 39), "keep", 2)
def test_numbers_of_any_size_are_judged(batch: int, rule: str, grad_accum: int) -> None:
    """A batch of fifteen digits is judged in the time of a small one, also if only a large prime divides it."""
    sizes = ["v5litepod-64", "v5litepod-256"]
    overrides = {"v5litepod-64": {"grad_accum": grad_accum}}
    for finding in findings_of(
        sizes=sizes, overrides=overrides, training__batch_size=batch, training__batch_rule=rule
    ):
        assert finding.help
