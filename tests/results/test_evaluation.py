"""Where rungs stand: scaling, the metric, and the gate."""

from fractions import Fraction

import pytest

from spec_factory import CATALOG
from tpucfg.results import Record, RungEvaluation, evaluate_rungs
from tpucfg.spec.project import Gate

GATE = Gate(0.8, "accuracy", "max", 0.01)
SCALING = Gate(0.8, None, None, None)
SIZES = ("v2-8", "v2-32", "v2-128")


def ladder(gate: Gate | None, **metrics: dict[str, float]) -> tuple[RungEvaluation, ...]:
    """The ladder with what was recorded, by size: `v2_8={...}`."""
    slices = [slice_ for size in SIZES if (slice_ := CATALOG.find(size))]
    recorded = {size: metrics[size.replace("-", "_")] for size in SIZES if size.replace("-", "_") in metrics}
    return evaluate_rungs(slices, {size: Record("mnist", size, found) for size, found in recorded.items()}, gate)


def measured(throughput: float, accuracy: float) -> dict[str, float]:
    """A record with both metrics."""
    return {"examples_per_second": throughput, "accuracy": accuracy}


def exactly(text: str) -> Fraction:
    """The number, not its float."""
    return Fraction(text)


def whys(standing: RungEvaluation) -> list[str]:
    """Why a rung has not passed."""
    return [it.why for it in standing.shortfalls]


def test_scaling_is_per_core_against_the_rung_below() -> None:
    """Four times the cores with 3.6 times the throughput is 90%, exactly."""
    first, second, third = ladder(SCALING, v2_8={"examples_per_second": 1000}, v2_32={"examples_per_second": 3600})
    assert (first.efficiency, first.per_core) == (None, exactly("125"))
    assert (second.efficiency, second.per_core) == (exactly("9/10"), exactly("225/2"))
    assert (third.efficiency, third.throughput, third.per_core) == (None, None, None)
    assert [it.passed for it in (first, second, third)] == [True, True, False]


def test_at_the_threshold_is_enough() -> None:
    """0.97 to 0.96 is a drop of 0.01, although floats make it more, and 80% of linear is 80%."""
    _, second, _ = ladder(GATE, v2_8=measured(1000, 0.97), v2_32=measured(3200, 0.96))
    assert (second.worse, second.passed) == (exactly("1/100"), True)
    _, second, _ = ladder(GATE, v2_8=measured(1000, 0.97), v2_32=measured(3199.9, 0.9599))
    assert whys(second) == [
        "v2-32 scales to 79.9% of v2-8, and the gate asks for 80%",
        "accuracy is 0.9599 on v2-32 and 0.97 on v2-8: 0.0101 worse, and the gate allows 0.01",
    ]
    assert [it.path for it in second.shortfalls] == [("gate", "min_scaling_efficiency"), ("gate", "max_drop")]
    assert not any(it.missing for it in second.shortfalls)


def test_a_smaller_metric_can_be_the_better_one() -> None:
    """With the goal min, more is worse."""
    gate = Gate(0.8, "loss", "min", 0.05)
    first = {"examples_per_second": 1000, "loss": 0.2}
    for loss, passed in ((0.25, True), (0.1, True), (0.26, False)):
        _, second, _ = ladder(gate, v2_8=first, v2_32={"examples_per_second": 4000, "loss": loss})
        assert second.passed is passed


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (None, None, ["nothing is recorded for v2-32"]),
        ({"accuracy": 0.9}, measured(1, 0.9), ["v2-32 has no examples_per_second of v2-8 to be compared with"]),
        ({"examples_per_second": 1}, measured(4, 0.9), ["v2-32 has no accuracy of v2-8 to be compared with"]),
        (measured(1, 0.9), {"accuracy": 0.9}, ["examples_per_second is not recorded for v2-32"]),
        (measured(1, 0.9), {"examples_per_second": 4}, ["accuracy is not recorded for v2-32"]),
    ],
)
def test_what_is_not_recorded_has_not_passed(
    first: dict[str, float] | None, second: dict[str, float] | None, expected: list[str]
) -> None:
    """A missing metric is no passing one, on the rung itself and on the one that it is compared with."""
    given = {key: value for key, value in (("v2_8", first), ("v2_32", second)) if value is not None}
    standing = ladder(GATE, **given)[1]
    assert whys(standing) == expected
    assert all(it.missing in SIZES for it in standing.shortfalls)


def test_without_a_gate_nothing_is_asked() -> None:
    """Everything passes, and what was recorded is still worked out."""
    standing = ladder(None, v2_8=measured(1000, 0.9), v2_32=measured(1000, 0.1))
    assert [it.passed for it in standing] == [True, True, True]
    assert standing[1].efficiency == exactly("1/4")


def test_the_first_rung_is_compared_with_nothing() -> None:
    """It has passed once what the next is compared with is recorded."""
    assert ladder(GATE)[0].passed is False
    assert ladder(GATE, v2_8={"examples_per_second": 1})[0].passed is False
    assert ladder(GATE, v2_8=measured(1, 0.1))[0].passed is True
