"""The state of a job: https://cloud.google.com/ai-platform/training/docs/reference/rest/v1/projects.jobs#State."""

from collections.abc import Mapping
from typing import Final

from tpucfg.plan import Job
from tpucfg.targets.ai_platform.commands import job_id
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

_STATES: Final[Mapping[str, State]] = {
    "QUEUED": "waiting",
    "PREPARING": "waiting",
    "RUNNING": "running",
    "SUCCEEDED": "succeeded",
    "FAILED": "failed",
    "CANCELLING": "ending",
    "CANCELLED": "stopped",
}


def questions(job: Job) -> Questions:
    """Ask for the job, whose id is used only once, then for its log."""
    project, id_ = job.environment.project, job_id(job)
    options = (f"--project={project}", f"--filter=jobId={id_}", "--limit=1", JSON)
    found = yield Question(Command(("gcloud", "ai-platform", "jobs", "list", *options)))
    if found is None:
        return UNKNOWN
    one = next(iter(mappings(found)), None)
    if one is None:
        return NOT_FOUND
    state = text_at(one, "state")
    times = time_at(one, "startTime"), time_at(one, "endTime")
    known = LiveState(state_of(_STATES, state), state, text_at(one, "errorMessage"), *times)
    if not known.started:
        return known
    query = f'resource.type="ml_job" AND resource.labels.job_id="{id_}"'
    return known._replace(log=(yield Question(logging_command(project, query), is_log=True)))
