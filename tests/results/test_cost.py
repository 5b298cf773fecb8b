"""Hours and cost: measured, or forecast by linear scaling from the nearest measured rung."""

from fractions import Fraction
from typing import Any

from spec_factory import CATALOG, project, spec
from tpucfg.plan.job import SpeedSettings
from tpucfg.results.cost import Cost, costs
from tpucfg.results.evaluation import RungRecords, evaluate_rungs, records_of_programs
from tpucfg.results.records import Record, Results
from tpucfg.spec.project import Number, Prices

PRICES: Prices = {
    "v2": {"on-demand": Number(Fraction(3, 2), "1.5"), "spot": Number(Fraction(1, 2), "0.5")}
}
SIZES = ("v2-8", "v2-32", "v2-128")
HOUR = 3600


def ladder_costs(
    sizes: tuple[str, ...] = SIZES,
    *,
    examples: int | None = 1000 * HOUR,
    capacity: Any = "on-demand",
    limit: str | None = None,
    **throughput: float,
) -> tuple[Cost, ...]:
    """Return the costs of a ladder with these throughputs, by size: `v2_8=1000`."""
    slices = [slice_ for size in sizes if (slice_ := CATALOG.find(size))]
    records = {
        size: RungRecords(
            Record("mnist", size, {"examples_per_second": throughput[size.replace("-", "_")]})
        )
        for size in sizes
        if size.replace("-", "_") in throughput
    }
    trainer = {"max_run_duration": limit} if limit else {}
    settings = project(
        spec(capacity=capacity, **{f"trainer__{key}": value for key, value in trainer.items()})
    ).base
    return costs(
        evaluate_rungs(slices, records, None),
        [examples] * len(slices),
        PRICES,
        [settings] * len(slices),
    )


def test_hours_are_measured_or_forecast() -> None:
    """4 chips for one hour at 1.50 cost 6.00; by linear scaling, four times the chips need a quarter of the time."""
    first, second, third = ladder_costs(v2_8=1000)
    assert first == Cost(Fraction(6), "v2-8", Fraction(1))
    assert [first.usd, second.usd, third.usd] == [Fraction(6)] * 3
    assert second == Cost(Fraction(24), "v2-8", Fraction(1, 4))
    assert (third.hours, third.source) == (Fraction(1, 16), "v2-8")


def test_the_price_is_that_of_the_capacity() -> None:
    """An hour costs what the spec has for the capacity; without a price for it, the cost is None."""
    reserved = {"reservation": "mine"}
    assert [cost.usd_per_hour for cost in ladder_costs(capacity="spot")] == [2, 8, 32]
    assert {cost.usd_per_hour for cost in ladder_costs(capacity=reserved)} == {None}


def test_a_rung_below_is_preferred_to_one_above() -> None:
    """A forecast is based on the nearest measured rung below, else on the nearest above."""
    assert [cost.source for cost in ladder_costs(v2_32=3000)] == ["v2-32", "v2-32", "v2-32"]
    assert [cost.source for cost in ladder_costs(v2_8=1000, v2_128=9000)] == [
        "v2-8",
        "v2-8",
        "v2-128",
    ]
    assert [cost.source for cost in ladder_costs(v2_8=1000, v2_32=3000)] == [
        "v2-8",
        "v2-32",
        "v2-32",
    ]
    assert ladder_costs(v2_32=3000)[0].hours == Fraction(4, 3)


def test_another_generation_predicts_nothing() -> None:
    """A record of another generation gives no forecast: its chips have another speed and price."""
    small, large = ladder_costs(("v2-8", "v3-32"), v2_8=1000)
    assert small.usd == 6
    assert large == Cost(None, None, None)


def test_unknown_hours_are_none() -> None:
    """Without a record, or in epochs, hours and cost are None; the price of an hour is still known."""
    for unknown in (ladder_costs(), ladder_costs(examples=None, v2_8=1000)):
        assert [cost.usd_per_hour for cost in unknown] == [6, 24, 96]
        assert {(cost.hours, cost.usd) for cost in unknown} == {(None, None)}


def test_a_submission_costs_no_more_than_its_limit_lets_it() -> None:
    """`max_run_duration` bounds one submission, whether or not the hours of the whole run are known."""
    assert [cost.submission_usd for cost in ladder_costs(limit="30m")] == [3, 12, 48]
    assert [cost.submission_usd for cost in ladder_costs(limit="30m", v2_8=1000)] == [3, 6, 6]
    assert [
        cost.submission_usd for cost in ladder_costs(limit="30m", capacity={"reservation": "mine"})
    ] == [None] * 3
    assert [cost.submission_usd for cost in ladder_costs()] == [None] * 3


def test_a_record_of_another_program_is_shown_and_does_not_count_for_a_gate() -> None:
    """Its hours are by its tokens: four times the sequence length takes four times as long; the gate knows no cost."""
    slices = [slice_ for size in ("v2-8", "v2-32") if (slice_ := CATALOG.find(size))]
    measured = Record(
        "chat",
        "v2-8",
        {"examples_per_second": 1000},
        program={"figures": {"sequence_length": 2048}},
    )
    program = SpeedSettings(None, (), (), {}, {"sequence_length": 8192})
    records = records_of_programs(Results("f", "", (measured,)), "chat", {"v2-8": program})
    settings = project(spec()).base

    def both(slowest: dict[str, Fraction]) -> tuple[Cost, ...]:
        evaluations = evaluate_rungs(slices, records, None)
        return costs(evaluations, [1000 * HOUR] * 2, PRICES, [settings] * 2, slowest)

    assert [cost.hours for cost in both({})] == [4, 1]
    assert [cost.submission_usd for cost in both({})] == [None, None]
    assert [cost.submission_usd for cost in both({"v2-8": Fraction(500)})] == [12, None]
