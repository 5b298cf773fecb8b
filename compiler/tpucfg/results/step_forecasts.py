"""The forecast of each rung's step beside the records of the ladder, which are better evidence than published runs."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from tpucfg.catalog import Slice
from tpucfg.fit.fit_file import FitResult
from tpucfg.fit.forecast import StepInterval, is_too_fast, model_seconds, sibling_interval, step_interval
from tpucfg.plan import Rung
from tpucfg.results.evaluation import RungEvaluation


def measured_steps(rungs: Sequence[Rung], evaluations: Sequence[RungEvaluation]) -> Mapping[str, Fraction]:
    """Return the seconds of a step by the record of each rung, without records of other programs."""
    return {
        rung.size: rung.batch_size / each.throughput
        for rung, each in zip(rungs, evaluations, strict=True)
        if each.throughput and not each.is_other
    }


def step_forecasts(
    slices: Sequence[Slice], results: Mapping[str, FitResult], measured: Mapping[str, Fraction]
) -> Mapping[str, StepInterval]:
    """Return the time in which the step of each rung is expected, by size; without those that have no forecast.

    Args:
        slices: The rungs of one ladder, from small to large.
        results: Their compilations, by size.
        measured: The seconds of a step by a record, by size.
    """
    forecasts = {slice_.size: _forecast(index, slices, results, measured) for index, slice_ in enumerate(slices)}
    return {size: forecast for size, forecast in forecasts.items() if forecast}


def _forecast(
    index: int, slices: Sequence[Slice], results: Mapping[str, FitResult], measured: Mapping[str, Fraction]
) -> StepInterval | None:
    slice_ = slices[index]
    result = results.get(slice_.size)
    if result is None or not result.fits:
        return None
    for other in (*reversed(slices[: index + 1]), *slices[index + 1 :]):  # the nearest one, from below first
        known, seconds = results.get(other.size), measured.get(other.size)
        if known is None or seconds is None or is_too_fast(known, other, seconds):
            continue
        if other.generation == slice_.generation and model_seconds(known):
            if other.size == slice_.size:
                return _exact(seconds)
            return sibling_interval(result, slice_, known, seconds, other) or step_interval(result, slice_)
    return step_interval(result, slice_)


def _exact(seconds: Fraction) -> StepInterval:
    return StepInterval(seconds, seconds, seconds, "its record", 0)
