"""Hours and cost of a whole run on each rung: measured, or forecast from a rung that was."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from tpucfg.results.evaluation import RungEvaluation
from tpucfg.spec.project import Number

_SECONDS = 3600


class Cost(NamedTuple):
    """What a run on one rung takes. None stands for what cannot be known."""

    usd_per_hour: Fraction | None
    """Of the whole slice; None where the spec has no price for its generation."""
    throughput: Fraction | None
    """Examples per second: as recorded, or by linear scaling."""
    source: str | None
    """The size whose record it comes from: its own where it was measured."""
    hours: Fraction | None
    """None where no rung of the generation was measured, or the run is counted in epochs."""

    @property
    def usd(self) -> Fraction | None:
        """Of the whole run."""
        return None if self.hours is None or self.usd_per_hour is None else self.hours * self.usd_per_hour


def costs(
    standings: Sequence[RungEvaluation], examples: Sequence[int | None], prices: Mapping[str, Number]
) -> tuple[Cost, ...]:
    """The cost of each rung of one ladder. `examples`: of the whole run, by rung; None where it is not known."""
    return tuple(
        _cost(at, standings, seen, prices.get(standings[at].slice.generation)) for at, seen in enumerate(examples)
    )


def _cost(at: int, standings: Sequence[RungEvaluation], examples: int | None, price: Number | None) -> Cost:
    slice_ = standings[at].slice
    source = _source(at, standings)
    throughput = source.per_core * slice_.cores if source and source.per_core else None
    return Cost(
        usd_per_hour=slice_.chips * price.value if price else None,
        throughput=throughput,
        source=source.size if source else None,
        hours=examples / throughput / _SECONDS if examples is not None and throughput else None,
    )


def _source(at: int, standings: Sequence[RungEvaluation]) -> RungEvaluation | None:
    """The rung itself, or the nearest one below, or above, of the same chips that was measured."""
    nearest = [*reversed(standings[: at + 1]), *standings[at + 1 :]]
    same = (it for it in nearest if it.slice.generation == standings[at].slice.generation)
    return next((it for it in same if it.throughput), None)
