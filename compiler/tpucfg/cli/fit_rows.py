"""The rungs of `tpucfg fit`, and what their results mean: the time, the cost and the length of a run."""

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from tpucfg.fit.fit_file import FitResult
from tpucfg.fit.forecast import StepInterval
from tpucfg.fit.launcher import Outcome
from tpucfg.fit.roofline import Run, lower_bound, run_of, utilization
from tpucfg.number_format import format_hours
from tpucfg.plan import Job
from tpucfg.results.cost import price_per_hour
from tpucfg.spec import Project


class RungRow(NamedTuple):
    """One rung, and what its result means."""

    outcome: Outcome
    bound: Fraction | None
    """The least seconds of a step."""
    forecast: StepInterval | None
    usd_per_hour: Fraction | None
    probe_steps: int | None

    @property
    def job(self) -> Job:
        """The rung's job."""
        return self.outcome.job

    @property
    def result(self) -> FitResult | None:
        """The result; None after a failure."""
        return self.outcome.result

    @property
    def ends(self) -> tuple[Fraction, ...]:
        """The seconds of a step at both ends of the forecast; else the least alone, if that is known."""
        if self.forecast:
            return (self.forecast.low, self.forecast.high)
        return () if self.bound is None else (self.bound,)

    def runs(self, steps: int | None) -> tuple[Run, ...]:
        """Return a run of that many steps, at both ends of the forecast or at the least."""
        runs = (run_of(seconds, steps, self.usd_per_hour) for seconds in self.ends)
        return tuple(run for run in runs if run)

    @property
    def rates(self) -> list[Fraction]:
        """The tokens or examples a second by the forecast, from low to high."""
        amount = Fraction(self.job.rung.batch_size * (self.job.rung.sequence_length or 1))
        return [amount / seconds for seconds in reversed(self.ends)] if self.forecast else []

    @property
    def shares(self) -> list[Fraction]:
        """The shares of the peak by the forecast, from low to high."""
        if self.forecast is None or self.result is None:
            return []
        shares = [utilization(self.result, self.job.slice, seconds) for seconds in reversed(self.ends)]
        return [share for share in shares if share is not None]

    @property
    def overlong(self) -> str:
        """The clause about a run that takes longer than its `max_run_duration`; empty for another one."""
        limit, runs = self.job.max_run_duration, self.runs(self.job.rung.train_steps)
        if limit is None or not runs or runs[0].hours * 3600 <= limit.seconds:
            return ""
        return f"takes at least {format_hours(runs[0].hours)} hours: longer than max_run_duration, {limit.text}"


class EnvironmentFits(NamedTuple):
    """The rungs of an environment, or of several whose tables and notes are equal."""

    names: tuple[str, ...]
    region: str
    target: str
    rows: tuple[RungRow, ...]

    @property
    def title(self) -> str:
        """The heading: `dev, staging: vertex-ai in us-central1`."""
        return f"{', '.join(self.names)}: {self.target} in {self.region}"


Forecasts = Mapping[str, Mapping[str, StepInterval]]
"""By environment and size."""


def rung_row(project: Project, outcome: Outcome, forecasts: Mapping[str, StepInterval]) -> RungRow:
    """Return a rung with the meaning of its result."""
    job = outcome.job
    price = price_per_hour(job.slice, project.prices, job.capacity.kind)
    bound = lower_bound(outcome.result, job.slice) if outcome.result and outcome.result.fits else None
    forecast = forecasts.get(job.size) if outcome.result else None
    return RungRow(outcome, bound, forecast, price, project.probe.steps if project.probe else None)
