"""The commands that submit, watch and cancel a job."""

from typing import Final

from tpucfg.plan import Job, job_labels
from tpucfg.targets.common import labels_flag
from tpucfg.targets.interface import Command, Submission

_GCLOUD: Final = ("gcloud", "ai", "custom-jobs")


def submission(job: Job) -> Submission:
    """Return gcloud's commands."""
    location = _location(job)
    # A CustomJobSpec has no labels.
    options = (f"--display-name={job.name}", labels_flag(job_labels(job)), "--config=/dev/stdin")
    return Submission(
        start=Command((*_GCLOUD, "create", *location, *options), reads_config=True),
        watch=listing(job),
        deletes=(Command((*_GCLOUD, "cancel", "JOB_ID", *location)),),
        notes=("replace JOB_ID with the job's id from the list",),
        log=Command((*_GCLOUD, "stream-logs", "JOB_ID", *location)),
    )


def listing(job: Job) -> Command:
    """Return the command that lists the newest job of the name."""
    options = (f"--filter=displayName={job.name}", "--sort-by=~createTime", "--limit=1")
    return Command((*_GCLOUD, "list", *_location(job), *options))


def _location(job: Job) -> tuple[str, str]:
    return f"--project={job.environment.project}", f"--region={job.environment.region}"
