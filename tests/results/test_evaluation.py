"""Evaluation of rungs: scaling, the metric, and the gate."""

from fractions import Fraction

import pytest

from spec_factory import CATALOG
from tpucfg.results.evaluation import RungEvaluation, RungRecords, evaluate_rungs
from tpucfg.results.records import Record
from tpucfg.spec.project import Gate

GATE = Gate(0.8, "accuracy", "max", 0.01)
SCALING = Gate(0.8, None, None, None)
SIZES = ("v2-8", "v2-32", "v2-128")
BELOW = "v2-8, which v2-32 is compared with"


def ladder(gate: Gate | None, **metrics: dict[str, float]) -> tuple[RungEvaluation, ...]:
    """Return the evaluation of a ladder with these records, by size: `v2_8={...}`."""
    slices = [slice_ for size in SIZES if (slice_ := CATALOG.find(size))]
    recorded = {
        size: metrics[size.replace("-", "_")] for size in SIZES if size.replace("-", "_") in metrics
    }
    records = {
        size: RungRecords(Record("mnist", size, values)) for size, values in recorded.items()
    }
    return evaluate_rungs(slices, records, gate)


def measured(throughput: float, accuracy: float) -> dict[str, float]:
    """Return a record with both metrics."""
    return {"examples_per_second": throughput, "accuracy": accuracy}


def exactly(text: str) -> Fraction:
    """Return the number exactly, not its float."""
    return Fraction(text)


def reasons(rung: RungEvaluation) -> list[str]:
    """Return why a rung has not passed."""
    return [shortfall.reason for shortfall in rung.shortfalls]


def test_scaling_is_per_core_against_the_rung_below() -> None:
    """Four times the cores with 3.6 times the throughput is exactly 90%."""
    first, second, third = ladder(
        SCALING, v2_8={"examples_per_second": 1000}, v2_32={"examples_per_second": 3600}
    )
    assert (first.efficiency, first.per_core) == (None, exactly("125"))
    assert (second.efficiency, second.per_core) == (exactly("9/10"), exactly("225/2"))
    assert (third.efficiency, third.throughput, third.per_core) == (None, None, None)
    assert [rung.passed for rung in (first, second, third)] == [True, True, False]


def test_a_value_at_the_threshold_passes() -> None:
    """Thresholds are exact: 0.97 to 0.96 is a drop of 0.01, although the floats differ by more."""
    _, second, _ = ladder(GATE, v2_8=measured(1000, 0.97), v2_32=measured(3200, 0.96))
    assert (second.metric_drop, second.passed) == (exactly("1/100"), True)
    _, second, _ = ladder(GATE, v2_8=measured(1000, 0.97), v2_32=measured(3199.9, 0.9599))
    assert reasons(second) == [
        "v2-32 scales to 79.9% of v2-8, and the gate requires 80%",
        "accuracy is 0.9599 on v2-32 and 0.97 on v2-8: 0.0101 worse, and the gate allows 0.01",
    ]
    assert [shortfall.path for shortfall in second.shortfalls] == [
        ("gate", "min_scaling_efficiency"),
        ("gate", "max_drop"),
    ]
    assert not any(shortfall.unrecorded_size for shortfall in second.shortfalls)


def test_a_metric_may_be_minimized() -> None:
    """With the goal min, a higher value is worse."""
    gate = Gate(0.8, "loss", "min", 0.05)
    first = {"examples_per_second": 1000, "loss": 0.2}
    for loss, passed in ((0.25, True), (0.1, True), (0.26, False)):
        _, second, _ = ladder(gate, v2_8=first, v2_32={"examples_per_second": 4000, "loss": loss})
        assert second.passed is passed


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (None, None, ["nothing is recorded for v2-32"]),
        (
            {"accuracy": 0.9},
            measured(1, 0.9),
            ["examples_per_second is not recorded for v2-8, which v2-32 is compared with"],
        ),
        (
            {"examples_per_second": 1},
            measured(4, 0.9),
            [f"accuracy is not recorded for {BELOW}"],
        ),
        (measured(1, 0.9), {"accuracy": 0.9}, ["examples_per_second is not recorded for v2-32"]),
        (measured(1, 0.9), {"examples_per_second": 4}, ["accuracy is not recorded for v2-32"]),
    ],
)
def test_a_missing_metric_does_not_pass(
    first: dict[str, float] | None, second: dict[str, float] | None, expected: list[str]
) -> None:
    """A missing metric is a shortfall, on the rung itself and on the rung that it is compared with."""
    records = {
        key: value for key, value in (("v2_8", first), ("v2_32", second)) if value is not None
    }
    rung = ladder(GATE, **records)[1]
    assert reasons(rung) == expected
    assert all(shortfall.unrecorded_size in SIZES for shortfall in rung.shortfalls)


def test_without_a_gate_every_rung_passes() -> None:
    """Without a gate every rung passes, and its efficiency is still computed."""
    rungs = ladder(None, v2_8=measured(1000, 0.9), v2_32=measured(1000, 0.1))
    assert [rung.passed for rung in rungs] == [True, True, True]
    assert rungs[1].efficiency == exactly("1/4")


def test_the_first_rung_is_compared_with_nothing() -> None:
    """The first rung passes once every metric that the second is compared with is recorded."""
    assert ladder(GATE)[0].passed is False
    assert ladder(GATE, v2_8={"examples_per_second": 1})[0].passed is False
    assert ladder(GATE, v2_8=measured(1, 0.1))[0].passed is True


def probe(size: str, throughput: float) -> Record:
    """Return the record of a probe."""
    return Record("mnist", size, {"examples_per_second": throughput}, is_probe=True)


def test_a_probe_decides_the_scaling_and_a_whole_run_the_metric() -> None:
    """A whole run's throughput, which its evaluations and checkpoints slow down, gives way to that of a probe."""
    slices = [slice_ for size in SIZES[:2] if (slice_ := CATALOG.find(size))]
    records = {
        "v2-8": RungRecords(Record("mnist", "v2-8", measured(900, 0.97)), probe("v2-8", 1000)),
        "v2-32": RungRecords(None, probe("v2-32", 3600)),
    }
    first, second = evaluate_rungs(slices, records, GATE)
    assert (first.throughput, first.metric, first.passed) == (
        exactly("1000"),
        exactly("0.97"),
        True,
    )
    assert (second.efficiency, second.metric) == (exactly("9/10"), None)
    assert reasons(second) == ["accuracy is not recorded for v2-32 by a whole run"]
    assert second.shortfalls[0].is_of_metric
    assert evaluate_rungs(slices, records, GATE.for_probes)[1].passed


def test_a_gate_may_ask_for_a_record_of_the_image_alone() -> None:
    """Any record of the job's image opens the next rung."""
    gate = Gate(None, None, None, None, same_image=True)
    assert reasons(ladder(gate)[0]) == ["nothing is recorded for v2-8"]
    assert ladder(gate, v2_8={"examples_per_second": 1})[0].passed


def test_a_record_of_another_program_does_not_pass() -> None:
    """It is neither good enough itself, nor is another rung compared with it."""
    slices = [slice_ for size in SIZES[:2] if (slice_ := CATALOG.find(size))]
    other = RungRecords(None, None, probe("v2-8", 1000), ("batch_size was 256, now 512",))
    first, second = evaluate_rungs(
        slices, {"v2-8": other, "v2-32": RungRecords(None, probe("v2-32", 4000))}, SCALING
    )
    assert (first.throughput, first.is_other) == (exactly("1000"), True)
    assert reasons(first) == [
        "v2-8 was recorded with another program (batch_size was 256, now 512)"
    ]
    assert reasons(second) == [
        "v2-8, which v2-32 is compared with, was recorded with another program (batch_size was 256, now 512)"
    ]
