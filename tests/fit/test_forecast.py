"""The interval of a step's time, from the ratios of published runs, and from records of a ladder."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fit_results import RESULT
from hlo_clock import ITERATIONS
from published import rows
from spec_factory import CATALOG
from tpucfg.catalog import Slice
from tpucfg.fit.fit_file import FitResult, StepForecast
from tpucfg.fit.forecast import (
    UNBOUNDED,
    StepInterval,
    lower_bound,
    published_rows,
    ratio_interval,
    step_forecasts,
    step_interval,
)
from tpucfg.fit.rung_fit import interval_text


def slice_of(size: str) -> Slice:
    """Return a slice of the catalog."""
    slice_ = CATALOG.find(size)
    assert slice_
    return slice_


def result(seconds: float, **changes: Any) -> FitResult:
    """Return a step that takes this time by the model."""
    return RESULT._replace(forecast=StepForecast(seconds, {"products": seconds}, **changes))


@pytest.fixture(autouse=True)
def published(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have seven runs on v5e, and as many on v6e that prove nothing."""
    every = (*rows("v5e"), *rows("v6e", used=True), *rows("v6e", reliable=False), *rows("v5p")[:2])
    monkeypatch.setattr("tpucfg.fit.forecast.published_rows", lambda: every)


def test_the_interval_is_that_of_the_generation() -> None:
    """Seven runs took 0.8 to 1.25 times as long as the model had it, half of them longer than it."""
    interval = step_interval(result(2.0), slice_of("v5litepod-16"))
    assert interval == StepInterval(
        Fraction("1.6"), Fraction(2), Fraction("2.5"), "7 published runs on v5e", 7
    )


def test_no_step_is_expected_faster_than_the_bound() -> None:
    """The work of the step takes 58.4 ms at the peak of 16 chips, whatever the model has it."""
    slice_ = slice_of("v5litepod-16")
    bound = lower_bound(RESULT, slice_)
    assert bound
    half_below, below = (step_interval(result(seconds), slice_) for seconds in (0.06, 0.01))
    assert half_below
    assert half_below[:3] == (bound, Fraction(0.06), Fraction(0.06) * Fraction("1.25"))
    assert below
    assert below[:3] == (bound, bound, bound)


def test_a_scaled_forecast_is_not_below_the_bound_either() -> None:
    """A record at the bound of a slower program would have the other step faster than the TPU can be."""
    slices = [slice_of(size) for size in ("v5litepod-16", "v5litepod-64")]
    bounds = [lower_bound(RESULT, slice_) for slice_ in slices]
    assert bounds[0]
    results = {slices[0].size: result(2.0), slices[1].size: result(0.1)}
    scaled = step_forecasts(slices, results, {slices[0].size: bounds[0]})[slices[1].size]
    assert scaled.low == bounds[1]


def test_a_record_faster_than_the_bound_counts_for_nothing() -> None:
    """It scales no forecast, and is none itself."""
    slices = [slice_of(size) for size in ("v5litepod-16", "v5litepod-64")]
    results = {slice_.size: result(2.0) for slice_ in slices}
    forecasts = step_forecasts(slices, results, {"v5litepod-16": Fraction("0.05")})
    assert {each.basis for each in forecasts.values()} == {"7 published runs on v5e"}


def test_the_time_of_a_loop_without_a_known_length_is_not_known() -> None:
    """The clock and the forecast have one word for it."""
    assert UNBOUNDED == ITERATIONS
    assert step_interval(result(1.0, uncounted=(ITERATIONS,)), slice_of("v5litepod-16")) is None


def test_few_runs_of_a_generation_take_those_of_all() -> None:
    """Runs by which a constant was chosen, and runs with arrays on the host, do not count; the words say so."""
    on_v6e, on_v5p = (step_interval(result(1.0), slice_of(size)) for size in ("v6e-16", "v5p-16"))
    assert on_v6e
    assert on_v5p
    assert (on_v6e.rows, on_v6e.basis) == (
        9,
        "9 published runs of all generations, as none of them are on v6e",
    )
    assert on_v5p.basis == "9 published runs of all generations, as 2 of them are on v5p"


def test_too_few_runs_tell_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A forecast without its error is none."""
    monkeypatch.setattr("tpucfg.fit.forecast.published_rows", lambda: rows("v5e")[:5])
    assert step_interval(result(1.0), slice_of("v5litepod-16")) is None


@pytest.mark.parametrize(
    "step", [result(1.0, is_reliable=False), result(0.0), RESULT._replace(forecast=None)]
)
def test_a_step_without_a_reliable_time_has_no_interval(step: FitResult) -> None:
    """With arrays on the host, nothing proves the time."""
    assert step_interval(step, slice_of("v5litepod-16")) is None


@given(st.lists(st.fractions(Fraction(1, 10), 10), min_size=1, max_size=60))
def test_the_interval_covers_four_of_five(ratios: list[Fraction]) -> None:
    """Also of the runs and a further one, from nine on; the median is between its ends."""
    low, middle, high = ratio_interval(ratios)
    assert low <= middle <= high
    inside = sum(low <= ratio <= high for ratio in ratios)
    assert inside >= Fraction(4, 5) * len(ratios)
    outside = (
        sum(ratio < low for ratio in sorted(ratios)[:: len(ratios)]) if len(ratios) < 19 else 0
    )
    assert outside == 0


def test_a_record_of_another_size_scales_the_forecast() -> None:
    """A step that took 1.5 times as long as the model had it does so on the next size, give or take two runs' ratio."""
    slices = [slice_of(size) for size in ("v5litepod-16", "v5litepod-64", "v6e-16")]
    results = {"v5litepod-16": result(2.0), "v5litepod-64": result(4.0), "v6e-16": result(1.0)}
    forecasts = step_forecasts(slices, results, {"v5litepod-16": Fraction(3)})
    assert forecasts["v5litepod-16"] == StepInterval(
        Fraction(3), Fraction(3), Fraction(3), "its record", 0
    )
    scaled = forecasts["v5litepod-64"]
    assert scaled.middle == 6
    assert Fraction("1.25") / Fraction("0.8") >= scaled.high / 6 > 1 > scaled.low / 6
    assert scaled.basis == "the record of v5litepod-16"
    assert forecasts["v6e-16"].basis.startswith("9 published runs of all generations")


def test_the_words_for_an_interval() -> None:
    """The unit stands once where both ends have it."""
    ends = [(Fraction(8), Fraction(12)), (Fraction(1, 2), Fraction(2)), (Fraction(3), Fraction(3))]
    words = [interval_text(StepInterval(low, low, high, "", 0)) for low, high in ends]
    assert words == ["8–12 s", "500 ms–2 s", "3 s"]


def test_the_published_runs_can_be_read() -> None:
    """Each run of the package's file has a positive time, and a size of the catalog."""
    for row in published_rows():
        assert slice_of(row.size).generation == row.generation
        assert row.ratio > 0
