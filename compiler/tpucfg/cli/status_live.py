"""The part of `tpucfg status --live` that shows what the services print about the jobs."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tpucfg.cli.interrupts import terminations_as_interrupts
from tpucfg.cli.rung_columns import interval_data, step_bound
from tpucfg.cli.table import Column
from tpucfg.number_format import UNKNOWN, format_dollars, format_rounded, to_json_number
from tpucfg.paths import grouped
from tpucfg.plan import Job
from tpucfg.results.gate import PROBE_OPTION, NextStep, command_line
from tpucfg.results.ladder_status import LadderStatus
from tpucfg.results.live import LiveJob, live_jobs, shown
from tpucfg.spec import Project
from tpucfg.targets import RequestBody
from tpucfg.text_format import listed

if TYPE_CHECKING:
    from tpucfg.fit.forecast import StepInterval

_REASONS: Final = {"waiting": "waits", "failed": "has failed", "stopped": "was stopped"}
"""The verb before a reason, by state."""


class LiveJobs(NamedTuple):
    """The jobs of one environment, with what its service prints about them."""

    environment: str
    jobs: tuple[LiveJob, ...]
    asked: datetime
    spec: Path

    @property
    def title(self) -> str:
        """The heading: `dev, live at 2026-03-01 12:00 UTC`."""
        return f"{self.environment}, live at {self.asked:%Y-%m-%d %H:%M} UTC"

    def columns(self, ladder: LadderStatus) -> list[Column]:
        """Return the columns, without those that no job has a value for."""
        jobs = self.jobs
        columns = [
            Column("job", [each.job.name for each in jobs]),
            Column("state", [_state(each) for each in jobs]),
            Column("step", [_steps(each) for each in jobs]),
            Column("s/step", [_rounded(each.step_seconds) for each in jobs]),
        ]
        bounds = [_bound(each, ladder) for each in jobs]
        if any(bounds):
            columns.append(Column("bound", [_rounded(bound) for bound in bounds]))
        intervals = [_interval(each, ladder) for each in jobs]
        if any(intervals):
            columns.append(Column("forecast", [_seconds(interval) for interval in intervals]))
        if any(each.usd is not None for each in jobs):
            columns.append(Column("USD so far", [format_dollars(each.usd) for each in jobs]))
            columns.append(Column("of at most", [_most(each) for each in jobs]))
        if any(each.state.restarts is not None for each in jobs):
            restarts = [each.state.restarts for each in jobs]
            columns.append(Column("restarts", [UNKNOWN if number is None else f"{number:,}" for number in restarts]))
        return columns

    @property
    def lines(self) -> list[NextStep]:
        """The lines below the columns: reasons, then the questions that were not answered, once for all jobs."""
        lines = [line for each in self.jobs for line in _lines(each, self.spec)]
        unanswered = ((text, (each.job.name, command)) for each in self.jobs for text, command in each.unanswered)
        for message, questions in grouped(unanswered).items():
            names, command = listed([name for name, _ in questions]), questions[0][1]
            lines.append(NextStep(f"{names}: {message}" + ("; try" if command else ""), command))
        return lines

    def data(self, ladder: LadderStatus) -> list[dict[str, Any]]:
        """Return the jobs as data for JSON; an unknown value is None."""
        return [_data(each, ladder) for each in self.jobs]


def ask(project: Project, bodies: Sequence[tuple[Job, RequestBody]], spec: Path) -> Mapping[str, LiveJobs]:
    """Return what the services print about the selected jobs, by environment."""
    now = datetime.now(UTC)
    with terminations_as_interrupts():  # which ends the clients, too
        by_environment = grouped((each.job.environment.name, each) for each in live_jobs(project, bodies, now))
    return {name: LiveJobs(name, tuple(jobs), now, spec) for name, jobs in by_environment.items()}


def _lines(each: LiveJob, spec: Path) -> Iterator[NextStep]:
    job, state = each.job, each.state
    if state.reason:
        yield NextStep(f"{job.name} {_REASONS.get(state.state, 'reports')}: {shown(state.reason)}")
    if state.state == "not found":
        options = [*(("--run", job.run) if job.run else ()), *((PROBE_OPTION,) if job.whole else ())]
        command = command_line("submit", job.environment.name, job.size, spec, *options)
        reasons = "not started, or deleted" if job.run else "not started, deleted, or started with --run"
        yield NextStep(f"{job.name} is not there ({reasons}); start it with", command)
    if state.log_command:
        yield NextStep(f"{job.name} has its log on its machines", state.log_command.bash())


def _data(each: LiveJob, ladder: LadderStatus) -> dict[str, Any]:
    state, bound = each.state, _bound(each, ladder)
    return {
        "job": each.job.name,
        "size": each.job.size,
        "run": each.job.run,
        "probe": each.job.whole is not None,
        "state": state.state,
        "service_state": shown(state.service_state) or None,
        "reason": shown(state.reason) or None,
        "step": each.step,
        "steps": each.job.rung.train_steps,
        "seconds_per_step": to_json_number(each.step_seconds),
        "least_step_seconds": to_json_number(bound),
        "forecast_step_seconds": interval_data(_interval(each, ladder)),
        "started": state.started.isoformat() if state.started else None,
        "ended": state.ended.isoformat() if state.ended else None,
        "usd_so_far": to_json_number(each.usd),
        "usd_at_most": to_json_number(each.max_usd),
        "restarts": state.restarts,
        "unanswered": [question._asdict() for question in each.unanswered],
    }


def _state(each: LiveJob) -> str:
    word = shown(each.state.service_state)
    return f"{each.state.state} ({word})" if word else each.state.state


def _steps(each: LiveJob) -> str:
    if each.step is None:
        return UNKNOWN
    steps = each.job.rung.train_steps
    return f"{each.step:,}" if steps is None else f"{each.step:,} of {steps:,}"


def _rounded(value: Fraction | None) -> str:
    return UNKNOWN if value is None else format_rounded(value)


def _most(each: LiveJob) -> str:
    return UNKNOWN if each.usd is None else "not bounded" if each.max_usd is None else format_dollars(each.max_usd)


def _seconds(interval: "StepInterval | None") -> str:
    return UNKNOWN if interval is None else f"{format_rounded(interval.low)}–{format_rounded(interval.high)}"


def _bound(each: LiveJob, ladder: LadderStatus) -> Fraction | None:
    return step_bound(each.job.rung, ladder.fit(each.job.size))


def _interval(each: LiveJob, ladder: LadderStatus) -> "StepInterval | None":
    """Return the forecast of a step; None without one."""
    return ladder.forecasts.get(each.job.size)
