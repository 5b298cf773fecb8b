"""The state of a job: https://cloud.google.com/ai-platform/training/docs/reference/rest/v1/projects.jobs#State."""

from collections.abc import Mapping
from typing import Final

from tpucfg.plan import Job
from tpucfg.targets.ai_platform.commands import job_id
from tpucfg.targets.commands import Command
from tpucfg.targets.live import Questions, State, logged_job

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
    """Return the questions about the job, whose id is used only once."""
    project, id_ = job.environment.project, job_id(job)
    options = (f"--project={project}", f"--filter=jobId={id_}", "--limit=1")
    listing = Command(("gcloud", "ai-platform", "jobs", "list", *options))
    return logged_job(listing, project, _STATES, ("errorMessage",), lambda _: id_)
