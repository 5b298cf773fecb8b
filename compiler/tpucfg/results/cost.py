"""Hours and cost of a whole run on each rung: measured, or forecast from a measured rung."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from tpucfg.results.evaluation import RungEvaluation
from tpucfg.spec.project import Number

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


def costs(
    evaluations: Sequence[RungEvaluation], examples: Sequence[int | None], prices: Mapping[str, Number]
) -> tuple[Cost, ...]:
    """Return the cost of each rung of one ladder.

    Args:
        evaluations: The rungs, from small to large.
        examples: The examples of a whole run on each rung; None if they are not known.
        prices: Dollars per chip hour, by generation.
    """
    return tuple(
        _cost(index, evaluations, count, prices.get(evaluations[index].slice.generation))
        for index, count in enumerate(examples)
    )


def _cost(index: int, evaluations: Sequence[RungEvaluation], examples: int | None, price: Number | None) -> Cost:
    slice_ = evaluations[index].slice
    source = _source(index, evaluations)
    throughput = source.per_core * slice_.cores if source and source.per_core else None
    return Cost(
        usd_per_hour=slice_.chips * price.value if price else None,
        throughput=throughput,
        source=source.size if source else None,
        hours=examples / throughput / _SECONDS_PER_HOUR if examples is not None and throughput else None,
    )


def _source(index: int, evaluations: Sequence[RungEvaluation]) -> RungEvaluation | None:
    """Return the rung itself if it was measured, else the nearest measured rung below or, if there is none, above."""
    by_distance = [*reversed(evaluations[: index + 1]), *evaluations[index + 1 :]]
    # Chips of another generation have another speed, so their records predict nothing.
    generation = evaluations[index].slice.generation
    return next((rung for rung in by_distance if rung.slice.generation == generation and rung.throughput), None)
