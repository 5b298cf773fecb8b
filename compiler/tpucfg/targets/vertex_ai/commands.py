"""The commands that submit, watch and cancel a job."""

from tpucfg.plan import Job, job_labels
from tpucfg.targets.common import labels_flag
from tpucfg.targets.interface import Command, Submission


def submission(job: Job) -> Submission:
    """Return gcloud's commands."""
    location = (f"--project={job.environment.project}", f"--region={job.environment.region}")
    gcloud = ("gcloud", "ai", "custom-jobs")
    # A CustomJobSpec has no labels.
    options = (f"--display-name={job.name}", labels_flag(job_labels(job)), "--config=/dev/stdin")
    listing = (*gcloud, "list", *location, f"--filter=displayName={job.name}", "--sort-by=~createTime", "--limit=1")
    return Submission(
        start=Command((*gcloud, "create", *location, *options), reads_config=True),
        watch=Command(listing),
        deletes=(Command((*gcloud, "cancel", "JOB_ID", *location)),),
        notes=("replace JOB_ID with the job's id from the list",),
        log=Command((*gcloud, "stream-logs", "JOB_ID", *location)),
    )
