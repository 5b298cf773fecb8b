"""The state of a custom job: https://cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.customJobs."""

from collections.abc import Mapping
from typing import Final

from tpucfg.plan import Job
from tpucfg.targets.interface import Command
from tpucfg.targets.live import (
    JSON,
    NOT_FOUND,
    UNKNOWN,
    LiveState,
    Question,
    Questions,
    State,
    logging_command,
    mappings,
    state_of,
    text_at,
    time_at,
)
from tpucfg.targets.vertex_ai.commands import listing

_STATES: Final[Mapping[str, State]] = {
    "JOB_STATE_QUEUED": "waiting",
    "JOB_STATE_PENDING": "waiting",
    "JOB_STATE_PAUSED": "waiting",
    "JOB_STATE_RUNNING": "running",
    "JOB_STATE_UPDATING": "running",
    "JOB_STATE_CANCELLING": "ending",
    "JOB_STATE_SUCCEEDED": "succeeded",
    "JOB_STATE_PARTIALLY_SUCCEEDED": "succeeded",
    "JOB_STATE_FAILED": "failed",
    "JOB_STATE_EXPIRED": "failed",
    "JOB_STATE_CANCELLED": "stopped",
}
"""https://cloud.google.com/vertex-ai/docs/reference/rest/v1/JobState."""


def questions(job: Job) -> Questions:
    """Ask for the newest job of the name, then for its log."""
    found = yield Question(Command((*listing(job).argv, JSON)))
    if found is None:
        return UNKNOWN
    newest = next(iter(mappings(found)), None)
    if newest is None:
        return NOT_FOUND
    state = text_at(newest, "state")
    known = LiveState(
        state_of(_STATES, state),
        state,
        text_at(newest, "error", "message"),
        time_at(newest, "startTime"),
        time_at(newest, "endTime"),
    )
    if not known.started:
        return known
    # https://cloud.google.com/vertex-ai/docs/training/view-logs: the log's resource is named by the job's number.
    query = f'resource.type="ml_job" AND resource.labels.job_id="{text_at(newest, "name").rpartition("/")[2]}"'
    log = yield Question(logging_command(job.environment.project, query), is_log=True)
    return known._replace(log=log)
