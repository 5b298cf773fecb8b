"""Hours and cost of a whole run on each rung: measured, or forecast from a measured rung."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from tpucfg.catalog import Slice
from tpucfg.results.evaluation import RungEvaluation
from tpucfg.spec import CapacityKind, Prices

_SECONDS_PER_HOUR: Final = 3600


class Cost(NamedTuple):
    """The duration and cost of a run on one rung; None for a value that is not known."""

    usd_per_hour: Fraction | None
    """The price of the whole slice; None if the spec has no price for its generation."""
    throughput: Fraction | None
    """Examples per second: as recorded, or by linear scaling."""
    source: str | None
    """The size whose record the throughput is based on: its own if it was measured."""
    hours: Fraction | None
    """None if no rung of the generation was measured, or the run is counted in epochs."""

    @property
    def usd(self) -> Fraction | None:
        """The cost of the whole run."""
        return None if self.hours is None or self.usd_per_hour is None else self.hours * self.usd_per_hour


class Forecast(NamedTuple):
    """The throughput of a rung."""

    throughput: Fraction
    """Examples per second of the whole slice."""
    source: str
    """The size whose record it is based on: its own if it was measured."""


def costs(
    evaluations: Sequence[RungEvaluation],
    examples: Sequence[int | None],
    prices: Prices,
    capacities: Sequence[CapacityKind],
) -> tuple[Cost, ...]:
    """Return the cost of each rung of one ladder.

    Args:
        evaluations: The rungs, from small to large.
        examples: The examples of a whole run on each rung; None if they are not known.
        prices: Dollars per chip hour, by generation and capacity.
        capacities: The capacity of each rung.
    """
    measured = {rung.size: rung.throughput for rung in evaluations if rung.throughput}
    forecasts = forecast_throughputs([rung.slice for rung in evaluations], measured)
    return tuple(
        _cost(forecasts.get(rung.size), count, price_per_hour(rung.slice, prices, capacity))
        for rung, count, capacity in zip(evaluations, examples, capacities, strict=True)
    )


def forecast_throughputs(slices: Sequence[Slice], measured: Mapping[str, Fraction]) -> Mapping[str, Forecast]:
    """Return the throughput of each rung as measured, or by linear scaling; without those that cannot be forecast.

    Args:
        slices: The rungs, from small to large.
        measured: Examples per second, above zero, by size.
    """
    sources = {slice_.size: _source(index, slices, measured) for index, slice_ in enumerate(slices)}
    return {
        slice_.size: Forecast(measured[source.size] / source.cores * slice_.cores, source.size)
        for slice_ in slices
        if (source := sources[slice_.size])
    }


def run_hours(examples: int | None, throughput: Fraction | None) -> Fraction | None:
    """Return the duration of a run; None if either is not known."""
    return examples / throughput / _SECONDS_PER_HOUR if examples is not None and throughput else None


def price_per_hour(slice_: Slice, prices: Prices, capacity: CapacityKind) -> Fraction | None:
    """Return the price of the whole slice; None if the spec has none for its generation at this capacity."""
    price = prices.get(slice_.generation, {}).get(capacity)
    return slice_.chips * price.value if price else None


def _cost(forecast: Forecast | None, examples: int | None, usd_per_hour: Fraction | None) -> Cost:
    throughput = forecast.throughput if forecast else None
    return Cost(
        usd_per_hour=usd_per_hour,
        throughput=throughput,
        source=forecast.source if forecast else None,
        hours=run_hours(examples, throughput),
    )


def _source(index: int, slices: Sequence[Slice], measured: Mapping[str, Fraction]) -> Slice | None:
    """Return the rung itself if it was measured, else the nearest measured rung below or, if there is none, above."""
    by_distance = [*reversed(slices[: index + 1]), *slices[index + 1 :]]
    # Chips of another generation have another speed, so their records predict nothing.
    generation = slices[index].generation
    return next((rung for rung in by_distance if rung.generation == generation and rung.size in measured), None)
