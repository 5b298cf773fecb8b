"""The time of a step as an interval: the model's time of the compiled program, and the error of published runs.

The bound is the work of a step, counted low, divided by the peak of the catalog, so that no real step is faster. Most
take 1.5 to 3 times as long: what a step is expected to take is its forecast.

The model is wrong by some factor, which nothing but measured runs can tell. `published.yaml` has runs whose step times
others have published, with the model's time of the same program beside each; the interval covers the ratios of those
by which no constant of the model was chosen.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any, Final, NamedTuple

from tpucfg.catalog import Slice
from tpucfg.fit.fit_file import FitResult
from tpucfg.package_data import read_data
from tpucfg.text_format import format_count

# The bound: the least time that a step can take on a slice, and the share of its peak that a step reaches.

_TERA: Final = 10**12
_MAX_8_BIT_SPEEDUP: Final = 2
"""The most that 8-bit operations are faster than bf16 on any generation, for one whose 8-bit peak no page states."""


def lower_bound(result: FitResult, slice_: Slice) -> Fraction | None:
    """Return the least seconds of a compiled step on its slice; None if its work or the peak is not known."""
    return (
        _flops(result, slice_) / (slice_.peak_tflops * _TERA) or None
        if slice_.peak_tflops
        else None
    )


def utilization(result: FitResult, slice_: Slice, step_seconds: Fraction) -> Fraction | None:
    """Return the share of the slice's peak that a step reaches; None if no source states the peak.

    This is the MFU of https://arxiv.org/abs/2204.02311 (appendix B) for a step without rematerialization: products that
    a backward pass computes again are part of the compiled step, and count here.
    """
    bound = lower_bound(result, slice_)
    return bound and bound / step_seconds


class RunForecast(NamedTuple):
    """A whole run on a slice."""

    hours: Fraction
    usd: Fraction | None
    """None without a price."""


def run_of(
    step_seconds: Fraction, steps: int | None, usd_per_hour: Fraction | None
) -> RunForecast | None:
    """Return the hours and cost of a run; None if its steps are not known.

    Args:
        step_seconds: The time of one step.
        steps: The steps of the run; None if it is counted in epochs.
        usd_per_hour: The price of the whole slice; None if the spec has none.
    """
    if steps is None:
        return None
    hours = step_seconds * steps / 3600
    return RunForecast(hours, None if usd_per_hour is None else hours * usd_per_hour)


def _flops(result: FitResult, slice_: Slice) -> Fraction:
    """Return the FLOPs of a step in bf16 FLOPs of equal time: an 8-bit one counts less, by the ratio of the peaks."""
    speedup = Fraction(_MAX_8_BIT_SPEEDUP)
    if slice_.peak_tflops and slice_.peak_8bit_tflops:
        speedup = Fraction(slice_.peak_8bit_tflops, slice_.peak_tflops)
    return result.flops + result.flops_8bit / speedup


# The forecast: the model's time, and the error of published runs.

PUBLISHED: Final = Path(__file__).parent / "published.yaml"
"""The published runs."""
MIN_ROWS: Final = 6
"""With fewer rows of a generation, those of all generations count."""
UNBOUNDED: Final = "iterations of loops whose length is data"
"""The operation that a step with such a loop leaves out: without its number, no time is known."""
_OUTSIDE: Final = Fraction(1, 5)
"""The share of the runs that may lie outside the interval, half of it on each side."""


class PublishedRow(NamedTuple):
    """One published run, compiled again."""

    id: str
    generation: str
    size: str
    title: str
    seconds: Fraction
    """The published time of a step."""
    forecast: Fraction
    """The model's time of the program."""
    is_used: bool
    """True if it was looked at when a constant of the model was chosen."""
    is_reliable: bool
    """False for a program that keeps arrays in its host's memory."""

    @property
    def ratio(self) -> Fraction:
        """The published time as a multiple of the model's."""
        return self.seconds / self.forecast


class StepInterval(NamedTuple):
    """The time in which a step is expected, in seconds: at least four of five published runs lie in the interval."""

    low: Fraction
    middle: Fraction
    high: Fraction
    basis: str
    """The rows that it is from: `9 published runs on v5p`."""
    rows: int


@cache
def published_rows() -> tuple[PublishedRow, ...]:
    """Return the published runs that were compiled."""
    return tuple(_row(id_, data) for id_, data in read_data(PUBLISHED)["rows"].items())


def proving_rows() -> list[PublishedRow]:
    """Return the published runs that tell the error of the model."""
    return [row for row in published_rows() if row.is_reliable and not row.is_used]


def model_seconds(result: FitResult) -> Fraction | None:
    """Return the model's time of a step; None without a reliable one, or if a loop's length is data."""
    forecast = result.forecast
    if forecast is None or not forecast.is_reliable or UNBOUNDED in forecast.uncounted:
        return None
    return Fraction(forecast.seconds) or None


def step_interval(result: FitResult, slice_: Slice) -> StepInterval | None:
    """Return the time of a compiled step; None if it has no reliable forecast, or if too few runs tell its error."""
    model = model_seconds(result)
    rows, basis = _basis(slice_.generation)
    if model is None or len(rows) < MIN_ROWS:
        return None
    low, middle, high = (model * ratio for ratio in ratio_interval([row.ratio for row in rows]))
    return _not_below(
        lower_bound(result, slice_), StepInterval(low, middle, high, basis, len(rows))
    )


def sibling_interval(
    result: FitResult, slice_: Slice, sibling: FitResult, measured: Fraction, measured_on: Slice
) -> StepInterval | None:
    """Return the time of a step by a measured one of the same program on another size; None without a forecast.

    What the model gets wrong about a program, it gets wrong on each size of a generation in nearly the same way: the
    interval is that of the ratios of two published runs on one generation.

    Args:
        result: The step.
        slice_: Its slice.
        sibling: The measured step.
        measured: Its seconds.
        measured_on: Its slice.
    """
    own, other = model_seconds(result), model_seconds(sibling)
    # Either run of a pair may be the measured one.
    ratios = [
        a.ratio / b.ratio
        for a, b in permutations(proving_rows(), 2)
        if a.generation == b.generation
    ]
    pairs = len(ratios) // 2
    if own is None or other is None or pairs < MIN_ROWS:
        return None
    factor = measured * own / other
    low, _, high = (factor * ratio for ratio in ratio_interval(ratios))
    interval = StepInterval(low, factor, high, f"the record of {measured_on.size}", pairs)
    return _not_below(lower_bound(result, slice_), interval)


def step_forecasts(
    slices: Sequence[Slice], results: Mapping[str, FitResult], measured: Mapping[str, Fraction]
) -> Mapping[str, StepInterval]:
    """Return the time in which the step of each rung is expected, by size; without those that have no forecast.

    Args:
        slices: The rungs of one ladder, from small to large.
        results: Their compilations, by size.
        measured: The seconds of a step by a record, by size.
    """
    forecasts = {
        slice_.size: _forecast(index, slices, results, measured)
        for index, slice_ in enumerate(slices)
    }
    return {size: forecast for size, forecast in forecasts.items() if forecast}


def _forecast(
    index: int,
    slices: Sequence[Slice],
    results: Mapping[str, FitResult],
    measured: Mapping[str, Fraction],
) -> StepInterval | None:
    slice_ = slices[index]
    result = results.get(slice_.size)
    if result is None or not result.fits:
        return None
    for other in (
        *reversed(slices[: index + 1]),
        *slices[index + 1 :],
    ):  # the nearest one, from below first
        known, seconds = results.get(other.size), measured.get(other.size)
        if known is None or seconds is None or is_too_fast(known, other, seconds):
            continue
        if other.generation == slice_.generation and model_seconds(known):
            if other.size == slice_.size:
                return StepInterval(seconds, seconds, seconds, "its record", 0)
            return sibling_interval(result, slice_, known, seconds, other) or step_interval(
                result, slice_
            )
    return step_interval(result, slice_)


def is_too_fast(result: FitResult, slice_: Slice, seconds: Fraction) -> bool:
    """Return True for a measured step that is faster than the TPU can be."""
    bound = lower_bound(result, slice_)
    return bound is not None and seconds < bound


def _not_below(bound: Fraction | None, interval: StepInterval) -> StepInterval:
    """Return the interval without the times that no TPU reaches."""
    low, middle, high = (max(seconds, bound or seconds) for seconds in interval[:3])
    return interval._replace(low=low, middle=middle, high=high)


def ratio_interval(ratios: Sequence[Fraction]) -> tuple[Fraction, Fraction, Fraction]:
    """Return the bounds of at least four fifths of the ratios, with their median between.

    A further ratio lies below the k-th smallest of n with a chance of k / (n + 1). So from 9 ratios on, the interval
    contains a further one with a chance of at least 4/5; with the minimum of 6, the chance is 5/7. Below 19 ratios, the
    interval is their whole range.
    """
    ordered = sorted(ratios)
    count = len(ordered)
    cut = max(0, int((count + 1) * _OUTSIDE / 2) - 1)
    middle = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
    return ordered[cut], middle, ordered[count - 1 - cut]


def _basis(generation: str) -> tuple[Sequence[PublishedRow], str]:
    """Return the rows for a generation, and the words for them."""
    proving = proving_rows()
    own = [row for row in proving if row.generation == generation]
    if len(own) >= MIN_ROWS:
        return own, f"{format_count(len(own), 'published run')} on {generation}"
    every = format_count(len(proving), "published run")
    few = f"{len(own) or 'none'} of them {'is' if len(own) == 1 else 'are'}"
    return proving, f"{every} of all generations, as {few} on {generation}"


def _row(id_: str, data: Mapping[str, Any]) -> PublishedRow:
    return PublishedRow(
        id_,
        data["generation"],
        data["size"],
        data["title"],
        Fraction(str(data["step_seconds"])),
        Fraction(str(data["forecast_seconds"])),
        data["used_for_constants"],
        not data.get("host_offload", False),
    )
