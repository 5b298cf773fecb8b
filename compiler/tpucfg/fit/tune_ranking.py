"""The order of the candidates that fit by the cost of a run, as far as the error of the forecast lets one be known."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Final, Literal, NamedTuple

from tpucfg.catalog import Slice
from tpucfg.fit.fit_file import FitResult
from tpucfg.fit.forecast import (
    MIN_ROWS,
    StepInterval,
    is_too_fast,
    lower_bound,
    proving_rows,
    ratio_interval,
    sibling_interval,
    step_interval,
)
from tpucfg.fit.tune_candidates import step_key
from tpucfg.fit.tune_search import Trial
from tpucfg.paths import grouped
from tpucfg.text_format import format_count, listed

_STEPS_WITHOUT_END: Final = 1000
"""The steps that are compared where a run is counted in epochs."""

Unit = Literal["USD", "chip hours"]


class Row(NamedTuple):
    """A candidate that fits, with its cost."""

    trial: Trial
    result: FitResult
    interval: StepInterval | None
    """The time of a step: measured, scaled from a measured one, or forecast; None if none is known."""
    bound: Fraction | None
    """The least seconds of a step."""
    per_second: Fraction
    """The price of a second of a step over the whole run, in the unit of the ranking."""
    rank: int | None = None
    """1, and one more for each candidate that is certainly cheaper; None without an interval."""

    @property
    def slice(self) -> Slice:
        """The slice that it runs on."""
        return self.trial.outcome.job.slice

    @property
    def is_measured(self) -> bool:
        """True if a record has the time of the step."""
        return self.interval is not None and not self.interval.basis

    @property
    def costs(self) -> tuple[Fraction, Fraction, Fraction] | None:
        """The least, the middle and the highest cost of the run."""
        if self.interval is None:
            return None
        low, middle, high = self.interval[:3]
        return low * self.per_second, middle * self.per_second, high * self.per_second

    @property
    def least(self) -> Fraction | None:
        """The cost by the bound."""
        return self.bound * self.per_second if self.bound else None


class Ranking(NamedTuple):
    """The candidates of one global batch."""

    batch_size: int
    rows: tuple[Row, ...]
    """The cheapest first; without intervals, by the bound."""
    unit: Unit
    is_of_run: bool
    """False if the costs are those of a thousand steps, as the run is counted in epochs."""
    notes: tuple[str, ...]


def rank(
    trials: Sequence[Trial], usd_per_hour: Mapping[str, Fraction | None], measured: Mapping[str, Fraction]
) -> tuple[Ranking, ...]:
    """Return the candidates that fit in order, for each global batch.

    Args:
        trials: The trials of a search.
        usd_per_hour: The price of each size.
        measured: The seconds of a step of the candidates that a record is of, by their steps.
    """
    fitting = [trial for trial in trials if trial.result and trial.result.fits]
    by_batch = grouped((trial.outcome.job.rung.batch_size, trial) for trial in fitting)
    unpriced = sorted({t.outcome.job.slice.generation for t in fitting if usd_per_hour.get(t.outcome.job.size) is None})
    unit: Unit = "chip hours" if unpriced else "USD"
    notes = (f"by chip hours, as the spec has no price of {', '.join(unpriced)} at this capacity",) if unpriced else ()
    recorded = [(t, seconds) for t in fitting if (seconds := measured.get(step_key(t.candidate)))]
    known = [(t, seconds) for t, seconds in recorded if not _is_too_fast(t, seconds)]
    if wrong := dict.fromkeys(t.outcome.job.size for t, seconds in recorded if _is_too_fast(t, seconds)):
        notes = (*notes, f"not by the record of {listed(list(wrong))}, which is faster than the TPU can be")
    return tuple(
        order_rows(batch, [row for trial in each if (row := _row(trial, usd_per_hour, known, unit))], unit, notes)
        for batch, each in by_batch.items()
    )


def _is_too_fast(trial: Trial, seconds: Fraction) -> bool:
    return trial.result is not None and is_too_fast(trial.result, trial.outcome.job.slice, seconds)


def _row(
    trial: Trial, usd_per_hour: Mapping[str, Fraction | None], known: Sequence[tuple[Trial, Fraction]], unit: Unit
) -> Row | None:
    job, result = trial.outcome.job, trial.result
    if result is None:
        return None
    price = usd_per_hour.get(job.size) if unit == "USD" else None
    hours = Fraction(job.rung.train_steps or _STEPS_WITHOUT_END, 3600)
    per_second = (job.slice.chips if price is None else price) * hours
    return Row(trial, result, _interval(trial, result, known), lower_bound(result, job.slice), per_second)


def _interval(trial: Trial, result: FitResult, known: Sequence[tuple[Trial, Fraction]]) -> StepInterval | None:
    """Return the time of a step: its record's, or by a record of its generation, or by published runs."""
    slice_, scaled = trial.outcome.job.slice, None
    for other, seconds in known:
        if other is trial:
            return StepInterval(seconds, seconds, seconds, "", 1)
        if other.result and other.outcome.job.slice.generation == slice_.generation:
            scaled = scaled or sibling_interval(result, slice_, other.result, seconds, other.outcome.job.slice)
    return scaled or step_interval(result, slice_)


def order_rows(batch: int, rows: Sequence[Row], unit: Unit, notes: tuple[str, ...] = ()) -> Ranking:
    """Return the rows of one batch with their ranks, the cheapest first."""
    ranked = [
        row._replace(rank=1 + sum(_is_cheaper(other, row) for other in rows) if row.interval else None) for row in rows
    ]
    ranked.sort(key=lambda row: (row.rank is None, row.rank or 0, row.costs[1] if row.costs else row.least or 0))
    is_of_run = all(row.trial.outcome.job.rung.train_steps for row in rows)
    bases = dict.fromkeys(row.interval.basis for row in ranked if row.interval and not row.is_measured)
    basis = (f"step is by {'; '.join(bases)}",) if bases else ()
    return Ranking(batch, tuple(ranked), unit, is_of_run, (*notes, *basis, *_unproven(ranked)))


def _is_cheaper(row: Row, other: Row) -> bool:
    """Return True if a candidate is cheaper than another whatever the error of both forecasts."""
    if row.costs is None or other.costs is None or row is other:
        return False
    if row.costs[2] < other.costs[0]:
        return True
    if row.is_measured or other.is_measured or row.slice.generation != other.slice.generation:
        return False
    ratios = pair_ratios(row.slice.generation)
    return len(ratios) >= 2 * MIN_ROWS and row.costs[1] * ratio_interval(ratios)[2] < other.costs[1]


def pair_ratios(generation: str) -> tuple[Fraction, ...]:
    """Return how far the ratio of two forecasts was off, for each pair of published runs of one program; both ways."""
    rows = [row for row in proving_rows() if row.generation == generation]
    pairs = [pair for pair in combinations(rows, 2) if pair[0].title == pair[1].title]
    return tuple(ratio for first, second in pairs for ratio in (first.ratio / second.ratio, second.ratio / first.ratio))


def _unproven(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the sentences about the generations whose candidates have no order among each other."""
    equal = [row for row in rows if row.rank is not None and not row.is_measured]
    generations = dict.fromkeys(row.slice.generation for row in equal)
    return tuple(
        f"order not proven on {name}: {format_count(len(pair_ratios(name)) // 2, 'pair')} of published runs of one "
        f"program, and {MIN_ROWS} are needed; candidates whose intervals overlap are equal"
        for name in generations
        if sum(row.slice.generation == name for row in equal) > 1 and len(pair_ratios(name)) < 2 * MIN_ROWS
    )
