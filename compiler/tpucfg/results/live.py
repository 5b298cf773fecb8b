"""The progress of submitted jobs: their state, their steps and their cost so far."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime
from fractions import Fraction
from io import StringIO
from itertools import pairwise
from math import isfinite
from statistics import median
from typing import Any, Final, NamedTuple

from tpucfg.plan import Job
from tpucfg.results.cost import price_per_hour, run_limit
from tpucfg.results.log_metrics import (
    MAX_ENTRY_LENGTH,
    SHOWN_STEP,
    LogObject,
    LogTimestamp,
    TruncatedLogError,
    iter_log_objects,
)
from tpucfg.results.service_client import Answers, ServiceClient, Unanswered
from tpucfg.spec import Project
from tpucfg.spec.presets import StepLine
from tpucfg.targets import RequestBody
from tpucfg.targets.live import LOG_LINES, LiveState

_JOBS_AT_ONCE: Final = 8
_SECONDS_PER_HOUR: Final = 3600


class LiveJob(NamedTuple):
    """One job with its state, its progress and its cost."""

    job: Job
    state: LiveState
    unanswered: tuple[Unanswered, ...]
    """The questions that its service did not answer."""
    step: int | None
    """The last step that its log has."""
    step_seconds: Fraction | None
    """The time of the median step at the end of the log."""
    usd: Fraction | None
    """The price of the machines until now, or until the end; None before their start, and without a price."""
    max_usd: Fraction | None
    """The most that the job can cost; None if nothing bounds it, and without a price."""


def live_jobs(project: Project, bodies: Sequence[tuple[Job, RequestBody]], now: datetime) -> list[LiveJob]:
    """Ask the services about jobs, several at once, and return what is known of each, in their order.

    Args:
        project: The project.
        bodies: The jobs, with their request bodies, which have the limits of the runs.
        now: The time until which a running job is charged.
    """
    # Closed before the pool, which waits for its threads: an interrupt ends the clients at once.
    with ThreadPoolExecutor(_JOBS_AT_ONCE) as pool, closing(ServiceClient()) as client:
        asked = [pool.submit(client.ask, job) for job, _ in bodies]
        answers = [each.result() for each in asked]
    return [live_job(project, job, body, answer, now) for (job, body), answer in zip(bodies, answers, strict=True)]


def live_job(project: Project, job: Job, body: RequestBody, answers: Answers, now: datetime) -> LiveJob:
    """Return the progress and the cost of a job, from the answers of its service."""
    state, unanswered = answers
    preset = project.training.preset
    form = preset.step_line if preset else SHOWN_STEP
    progress = log_progress(state.log or "", form)
    if not progress.is_whole:
        unanswered += (Unanswered("the client printed half a list of log entries: the last steps may be missing"),)
    elif progress.step is None and (state.log or "").strip() not in ("", "[]"):
        example = "completed step: 100, seconds: …" if preset else 'step 100 of 4,000: …, or {"step": 100}'
        message = f"none of the last {LOG_LINES} lines of its log has a step: print lines such as {example}"
        unanswered += (Unanswered(message),)
    hourly = price_per_hour(job.slice, project.prices, job.capacity.kind)
    limit = run_limit(job, body).hours
    return LiveJob(
        job,
        state,
        unanswered,
        progress.step,
        progress.seconds,
        usd=None if hourly is None or state.started is None else hourly * _hours(state.started, state.ended or now),
        max_usd=None if hourly is None or limit is None else hourly * limit,
    )


def _hours(start: datetime, end: datetime) -> Fraction:
    return Fraction(max(0, round((end - start).total_seconds())), _SECONDS_PER_HOUR)


# The progress in the end of a log: the last step, and the time of a step.


_STEP: Final = "step"
_MAX_STEP: Final = 10**12


class Progress(NamedTuple):
    """The progress that a log shows."""

    step: int | None = None
    """The latest step; None if no line has one."""
    seconds: Fraction | None = None
    """The time of the median step; None if no two lines tell."""
    is_whole: bool = True
    """False for a list of entries that breaks off."""


class _Line(NamedTuple):
    """The line of a step."""

    timestamp: LogTimestamp
    step: int
    seconds: float | None
    """The time of the step, if the line has it."""


def log_progress(log: str, form: StepLine) -> Progress:
    """Return the progress in a log: of lines of steps in a form, or of lines of JSON with a `step`."""
    text = StringIO(log)
    lines: list[_Line] = []
    is_whole = True
    try:
        for each in iter_log_objects(text.readline(MAX_ENTRY_LENGTH), text, (_STEP,), form):
            step = each.data.get(_STEP)
            if isinstance(step, float) and isfinite(step) and 0 <= step <= _MAX_STEP:
                lines.append(_Line(each.timestamp, int(step), _seconds(each)))
    except TruncatedLogError:
        is_whole = False
    if not lines:
        return Progress(is_whole=is_whole)
    # Stable: lines without a time, or of one entry, keep their order. gcloud prints the newest entries first.
    lines.sort(key=lambda line: line.timestamp)
    return Progress(lines[-1].step, _step_seconds(lines, form.warm_up), is_whole)


def _seconds(each: LogObject) -> float | None:
    value: Any = each.data.get("seconds") if each.is_step else None
    return value if isinstance(value, float) and 0 < value < _MAX_STEP else None


def _step_seconds(lines: list[_Line], warm_up: int) -> Fraction | None:
    """Return the time of the median step: as printed, or from the times of lines whose steps follow each other.

    A median leaves out single steps that compile; a restart begins at an earlier step.
    """
    printed = [line.seconds for line in lines if line.seconds and line.step >= warm_up]
    between = [
        (_moment(after) - _moment(before)) / (after.step - before.step)
        for before, after in pairwise(line for line in lines if line.timestamp.fraction)
        if after.step > before.step
    ]
    times = printed or between
    return Fraction(median(times)).limit_denominator(_MAX_STEP) if times and median(times) > 0 else None


def _moment(line: _Line) -> float:
    return line.timestamp.second.timestamp() + float(f"0.{line.timestamp.fraction}")
