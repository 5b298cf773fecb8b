"""The state of the instances of a job, which its labels find, and of the group that creates them.

https://cloud.google.com/compute/docs/instances/instance-lifecycle
https://cloud.google.com/sdk/gcloud/reference/compute/instance-groups/managed/list-errors
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tpucfg.plan import Job, job_labels
from tpucfg.targets.compute_engine.commands import log_command
from tpucfg.targets.compute_engine.request import GROUP, slice_key
from tpucfg.targets.live import (
    JSON,
    LOG_LIMIT,
    NOT_FOUND,
    UNKNOWN,
    LiveState,
    Question,
    Questions,
    State,
    earliest,
    mappings,
    text_at,
    time_at,
)

_STATES: Final[Mapping[str, State]] = {
    "PENDING": "waiting",
    "PROVISIONING": "waiting",
    "STAGING": "waiting",
    "REPAIRING": "waiting",
    "RUNNING": "running",
    "PENDING_STOP": "ending",
    "STOPPING": "ending",
    "SUSPENDING": "ending",
    "DEPROVISIONING": "ending",
    "SUSPENDED": "stopped",
    "STOPPED": "stopped",
    "TERMINATED": "stopped",
}


def questions(job: Job) -> Questions:
    """Ask for the instances, for the errors of their group if some are missing, then for the log."""
    project, zone = f"--project={job.environment.project}", job.zone
    labels = " AND ".join(f"labels.{key}={value}" for key, value in job_labels(job).items() if key.startswith("tpucfg"))
    options = (project, f"--zones={zone}", f"--filter={labels}", JSON)
    answer = yield Question(("gcloud", "compute", "instances", "list", *options))
    if answer is None:
        return UNKNOWN
    instances = mappings(answer)
    known = _state(job, instances)
    if len(instances) < job.slice.hosts and slice_key(job) == GROUP:
        managed = ("gcloud", "compute", "instance-groups", "managed")
        group = (project, f"--zones={zone}", f"--filter=name={job.name}", JSON)
        if mappings((yield Question((*managed, "list", *group)))):
            newest = (project, f"--zone={zone}", "--sort-by=~timestamp", "--limit=1", JSON)
            errors = yield Question((*managed, "list-errors", job.name, *newest))
            reason = next((text_at(error, "error", "message") for error in mappings(errors)), "")
            known = known._replace(state="waiting", reason=reason)
    if known.state in ("not found", "waiting"):
        return known
    # The log has all jobs of the name, also earlier ones.
    since = known.started.isoformat() if known.started else ""
    return known._replace(log=(yield Question(log_command(job, LOG_LIMIT, since=since).argv, is_log=True)))


def _state(job: Job, instances: Sequence[dict[str, Any]]) -> LiveState:
    """Return the state of instances: the least advanced of them decides, as the program needs all."""
    if not instances:
        return NOT_FOUND
    words = [text_at(instance, "status") for instance in instances]
    states = [_STATES.get(word, "unknown") for word in words]
    order: tuple[State, ...] = ("unknown", "stopped", "ending", "waiting", "running")
    state = next(each for each in order if each in states)
    word = words[states.index(state)]
    if job.slice.hosts > 1:
        word = f"{word}, {states.count('running')} of {job.slice.hosts} hosts run"
    started = earliest(
        time_at(instance, "lastStartTimestamp") or time_at(instance, "creationTimestamp") for instance in instances
    )
    return LiveState(state, word, started=started)
