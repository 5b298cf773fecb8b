"""The longest time that a job can use its slice, and the most that it can cost, as far as its config limits them."""

import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any, Final, NamedTuple

from tpucfg.number_format import format_dollars, format_hours
from tpucfg.plan import Job
from tpucfg.results.cost import price_per_hour
from tpucfg.spec.project import Prices
from tpucfg.targets import RequestBody
from tpucfg.text_format import format_count
from tpucfg.yamldoc.document import KeyPath

_DURATION: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)s")
_SECONDS_PER_HOUR: Final = 3600
_NO_DURATION: Final = "set trainer.max_run_duration"
_FREE_ACTIONS: Final = ("RestartJobSetAndIgnoreMaxRestarts", "RestartJobAndIgnoreMaxRestarts")
"""The actions that restart pods without counting the restart: https://jobset.sigs.k8s.io/docs/concepts/."""
_EXECUTION_LIMIT: Final = "kueue.x-k8s.io/max-exec-time-seconds"
"""The label by which Kueue limits the time of a job with all restarts:
https://kueue.sigs.k8s.io/docs/reference/labels-and-annotations/."""


class RunLimit(NamedTuple):
    """The longest time that a job can use its slice."""

    seconds: Fraction | None
    """The limit of one attempt; None if there is none."""
    attempts: int | None = 1
    """The attempts that each have this limit; None if their number has no limit."""
    remedy: str = _NO_DURATION
    """What to do about a run without a limit, or its reason."""

    @property
    def hours(self) -> Fraction | None:
        """The limit of the whole run in hours; None if there is none."""
        if self.seconds is None or self.attempts is None:
            return None
        return self.seconds * self.attempts / _SECONDS_PER_HOUR


def run_limit(job: Job, body: RequestBody) -> RunLimit:
    """Return the longest time that a job can use its slice.

    Read from the request body if it has the limit, because the spec's `extra` can set the field too. The default of a
    service does not count as a limit: the spec does not contain it, and the service may change it.
    """
    reader = _READERS.get(job.target)
    return reader(job, body) if reader else RunLimit(None, remedy=f"{job.target} has no limit of its own")


def cost_limit_text(job: Job, body: RequestBody, prices: Prices) -> str:
    """Return the most that a run can cost and its factors, or why nothing bounds it."""
    limit, chips = run_limit(job, body), format_count(job.slice.chips, "chip")
    if limit.hours is None:
        return f"not bounded: {limit.remedy}"
    factors = f"{_time(job, limit)}{_attempts(limit)} × {chips}"
    hourly = price_per_hour(job.slice, prices, job.capacity.kind)
    if hourly is None:
        missing = f"no price for {job.slice.generation} {job.capacity.kind}"
        return f"at most {format_hours(limit.hours * job.slice.chips)} chip hours: {factors} ({missing})"
    return f"at most ${format_dollars(limit.hours * hourly)}: {factors} × ${format_dollars(hourly / job.slice.chips)}"


def _time(job: Job, limit: RunLimit) -> str:
    """Return the limit of one attempt, as the spec writes it if it comes from there."""
    duration, seconds = job.max_run_duration, limit.seconds or Fraction(0)
    return duration.text if duration and duration.seconds == seconds else f"{format_hours(seconds / 3600)}h"


def _attempts(limit: RunLimit) -> str:
    return "" if limit.attempts == 1 else f" × {limit.attempts} attempts"


def _field_limit(*path: str) -> Callable[[Job, RequestBody], RunLimit]:
    """Return a reader of a field that limits a whole job, with every attempt."""

    def read(_: Job, body: RequestBody) -> RunLimit:
        value = _value(body, path)
        duration = _DURATION.fullmatch(value) if isinstance(value, str) else None
        return RunLimit(Fraction(duration[1]) if duration else None)

    return read


def _start_script_limit(job: Job, _: RequestBody) -> RunLimit:
    """Return the limit of a slice that its own start-up script deletes; its restarts are within the limit."""
    return RunLimit(Fraction(job.max_run_duration.seconds) if job.max_run_duration else None)


def _jobset_limit(_: Job, body: RequestBody) -> RunLimit:
    """Return the limit of a JobSet: each restart of it creates new jobs, whose deadline starts anew."""
    total = _value(body, ("metadata", "labels", _EXECUTION_LIMIT))
    if isinstance(total, str) and total.isdecimal():
        return RunLimit(Fraction(total))
    deadlines = [*_deadlines(body)]
    if not deadlines or None in deadlines:
        return RunLimit(None)
    seconds = Fraction(max(deadline for deadline in deadlines if deadline is not None))
    policy = _value(body, ("spec", "failurePolicy")) or {}
    if any(rule.get("action") in _FREE_ACTIONS for rule in policy.get("rules", ())):
        return RunLimit(seconds, None, "a restart after a disruption is not counted, and has a deadline of its own")
    return RunLimit(seconds, int(policy.get("maxRestarts", 0)) + 1)


def _deadlines(body: RequestBody) -> Iterator[int | None]:
    """Yield the deadline in seconds of the jobs of each replicated job; None for one without a deadline."""
    for replicated in _value(body, ("spec", "replicatedJobs")) or ():
        yield _value(replicated, ("template", "spec", "activeDeadlineSeconds"))


def _value(value: Any, path: KeyPath) -> Any:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


_READERS: Final[Mapping[str, Callable[[Job, RequestBody], RunLimit]]] = {
    # https://cloud.google.com/vertex-ai/docs/reference/rest/v1/CustomJobSpec#Scheduling
    "vertex-ai": _field_limit("scheduling", "timeout"),
    # https://cloud.google.com/ai-platform/training/docs/reference/rest/v1/projects.jobs#Scheduling
    "ai-platform": _field_limit("trainingInput", "scheduling", "maxRunningTime"),
    "cloud-tpu": _start_script_limit,
    # https://kubernetes.io/docs/concepts/workloads/controllers/job/#job-termination-and-cleanup
    "gke": _jobset_limit,
}
"""By target, the reader of the field or setting that limits a job."""
