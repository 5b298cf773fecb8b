"""Hours and cost of a run: measured, forecast from a measured rung, and the most that its config allows."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Final, NamedTuple

from tpucfg.catalog import Slice
from tpucfg.number_format import format_dollars, format_number, format_rounded
from tpucfg.paths import value_at
from tpucfg.plan import Job
from tpucfg.results.evaluation import RungEvaluation
from tpucfg.spec import CapacityKind, Prices, Settings
from tpucfg.targets import RequestBody
from tpucfg.text_format import format_count

SECONDS_PER_HOUR: Final = 3600


class Cost(NamedTuple):
    """The duration and cost of a run on one rung; None for a value that is not known."""

    usd_per_hour: Fraction | None
    """The price of the whole slice; None if the spec has no price for its generation."""
    source: str | None
    """The size whose record the hours are based on: its own if it was measured."""
    hours: Fraction | None
    """None if no rung of the generation was measured, or the run is counted in epochs."""
    limit_hours: Fraction | None = None
    """The `max_run_duration` of one submission; None if nothing ends it."""
    forecast_hours: Fraction | None = None
    """The most that the compiled step is expected to take; None if it is not known, or a record of this program is."""
    is_of_other: bool = False
    """True if the record is of another program: its hours are shown, and do not count for a gate."""

    @property
    def submission_usd(self) -> Fraction | None:
        """The most that one submission costs without restarts: by its hours or by its limit, whichever is less."""
        expected = self.forecast_hours if self.hours is None or self.is_of_other else self.hours
        hours = [hours for hours in (expected, self.limit_hours) if hours is not None]
        return min(hours) * self.usd_per_hour if hours and self.usd_per_hour is not None else None

    @property
    def usd(self) -> Fraction | None:
        """The cost of the whole run."""
        return (
            None
            if self.hours is None or self.usd_per_hour is None
            else self.hours * self.usd_per_hour
        )


class ThroughputForecast(NamedTuple):
    """The throughput of a rung."""

    throughput: Fraction
    """Examples per second of the whole slice."""
    source: str
    """The size whose record it is based on: its own if it was measured."""


def costs(
    evaluations: Sequence[RungEvaluation],
    examples: Sequence[int | None],
    prices: Prices,
    settings: Sequence[Settings],
    slowest: Mapping[str, Fraction] = MappingProxyType({}),
) -> tuple[Cost, ...]:
    """Return the cost of each rung of one ladder.

    Args:
        evaluations: The rungs, from small to large.
        examples: The examples of a whole run on each rung; None if they are not known.
        prices: Dollars per chip hour, by generation and capacity.
        settings: The settings of each rung, of which the capacity decides the price.
        slowest: The least examples per second that the compiled step is expected to reach, by size.
    """
    slices = [rung.slice for rung in evaluations]
    measured = {rung.size: rung.throughput for rung in evaluations if rung.throughput}
    others = {rung.size for rung in evaluations if rung.is_other}
    # A record of another program is evidence only where no rung has one of this program.
    of_this = forecast_throughputs(
        slices, {size: rate for size, rate in measured.items() if size not in others}
    )
    forecasts = {**forecast_throughputs(slices, measured), **of_this}
    known: list[Cost] = []
    for rung, count, each in zip(evaluations, examples, settings, strict=True):
        forecast, duration = forecasts.get(rung.size), each.trainer.max_run_duration
        is_measured = rung.size in of_this
        cost = Cost(
            price_per_hour(rung.slice, prices, each.capacity.kind),
            forecast.source if forecast else None,
            run_hours(count, forecast.throughput if forecast else None),
            Fraction(duration.seconds, SECONDS_PER_HOUR) if duration else None,
            None if is_measured else run_hours(count, slowest.get(rung.size)),
            is_of_other=forecast is not None and not is_measured,
        )
        known.append(cost)
    return tuple(known)


def forecast_throughputs(
    slices: Sequence[Slice], measured: Mapping[str, Fraction]
) -> Mapping[str, ThroughputForecast]:
    """Return the throughput of each rung as measured, or by linear scaling; without those that cannot be forecast.

    Args:
        slices: The rungs, from small to large.
        measured: Examples per second, above zero, by size.
    """
    sources = {slice_.size: _source(index, slices, measured) for index, slice_ in enumerate(slices)}
    return {
        slice_.size: ThroughputForecast(
            measured[source.size] / source.cores * slice_.cores, source.size
        )
        for slice_ in slices
        if (source := sources[slice_.size])
    }


def run_hours(examples: int | None, throughput: Fraction | None) -> Fraction | None:
    """Return the duration of a run; None if either is not known."""
    return examples / throughput / SECONDS_PER_HOUR if examples is not None and throughput else None


def price_per_hour(slice_: Slice, prices: Prices, capacity: CapacityKind) -> Fraction | None:
    """Return the price of the whole slice; None if the spec has none for its generation at this capacity."""
    price = prices.get(slice_.generation, {}).get(capacity)
    return slice_.chips * price.value if price else None


def _source(index: int, slices: Sequence[Slice], measured: Mapping[str, Fraction]) -> Slice | None:
    """Return the rung itself if it was measured, else the nearest measured rung below or, if there is none, above."""
    by_distance = [*reversed(slices[: index + 1]), *slices[index + 1 :]]
    # Chips of another generation have another speed, so their records predict nothing.
    generation = slices[index].generation
    return next(
        (rung for rung in by_distance if rung.generation == generation and rung.size in measured),
        None,
    )


NO_DURATION: Final = "set trainer.max_run_duration"
"""The reason why not even an attempt has a limit."""
FREE_RESTARTS: Final = "a restart after a disruption is not counted"
"""The reason why attempts have a limit and the whole run has none."""
_FREE_ACTIONS: Final = ("RestartJobSetAndIgnoreMaxRestarts", "RestartJobAndIgnoreMaxRestarts")
"""The actions that restart pods without counting the restart: https://jobset.sigs.k8s.io/docs/concepts/."""
_EXECUTION_LIMIT: Final = "kueue.x-k8s.io/max-exec-time-seconds"
"""The label by which Kueue limits the time of a job with all of its restarts:
https://kueue.sigs.k8s.io/docs/reference/labels-and-annotations/."""


class RunLimit(NamedTuple):
    """The longest time that a job can use its slice."""

    seconds: Fraction | None
    """The limit of one attempt; None if there is none."""
    attempts: int = 1
    """The attempts that are counted; each has this limit."""
    unbounded: str = ""
    """The reason why the whole run has no limit, or what would set one; empty if it has a limit."""

    @property
    def hours(self) -> Fraction | None:
        """The limit of the whole run in hours; None if there is none."""
        return None if self.unbounded else self.counted_hours

    @property
    def counted_hours(self) -> Fraction | None:
        """The limit of all counted attempts in hours; None if there is none."""
        return None if self.seconds is None else self.seconds * self.attempts / SECONDS_PER_HOUR


def run_limit(job: Job, body: RequestBody) -> RunLimit:
    """Return the longest time that a job can use its slice.

    Every target renders `max_run_duration` as the limit of all attempts, and `extra` cannot set another one. Only each
    restart of a JobSet has it anew. The default of a service does not count as a limit: the spec does not contain it,
    and the service may change it.
    """
    if job.max_run_duration is None:
        return RunLimit(None, unbounded=NO_DURATION)
    seconds = Fraction(job.max_run_duration.seconds)
    policy = value_at(body, ("spec", "failurePolicy"))
    if policy is None or value_at(body, ("metadata", "labels", _EXECUTION_LIMIT)):
        return RunLimit(seconds)
    is_free = any(rule.get("action") in _FREE_ACTIONS for rule in policy.get("rules", ()))
    return RunLimit(
        seconds, int(policy.get("maxRestarts", 0)) + 1, FREE_RESTARTS if is_free else ""
    )


def cost_limit_text(job: Job, body: RequestBody, prices: Prices) -> str:
    """Return the most that a run can cost with its factors; or why it is not bounded, and what is known then."""
    limit = run_limit(job, body)
    if job.max_run_duration is None or limit.counted_hours is None:
        return f"not bounded: {limit.unbounded}"
    chips, hourly = job.slice.chips, price_per_hour(job.slice, prices, job.capacity.kind)
    attempts = "" if limit.attempts == 1 else f" × {limit.attempts} attempts"
    factors = f"{job.max_run_duration.text}{attempts} × {format_count(chips, 'chip')}"
    if hourly is None:
        missing = f"no price for {job.slice.generation} {job.capacity.kind}"
        text = f"at most {format_rounded(limit.counted_hours * chips)} chip hours: {factors} ({missing})"
    else:
        dollars = format_dollars(limit.counted_hours * hourly)
        text = f"at most ${dollars}: {factors} × ${format_number(hourly / chips)}"
    return f"not bounded: {limit.unbounded}; without any, {text}" if limit.unbounded else text
