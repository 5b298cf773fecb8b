"""The state of a custom job: https://cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.customJobs."""

from collections.abc import Mapping
from typing import Final

from tpucfg.plan import Job
from tpucfg.targets.live import Questions, State, logged_job, text_at
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
    """Return the questions about the newest job of the name, whose log has the number in its full name."""
    error, project = ("error", "message"), job.environment.project
    return logged_job(listing(job), project, _STATES, error, lambda each: text_at(each, "name").rpartition("/")[2])
