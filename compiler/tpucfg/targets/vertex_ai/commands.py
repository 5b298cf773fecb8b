"""The commands that submit, watch and cancel a job."""

from tpucfg.plan import Job
from tpucfg.targets.interface import Command, Submission


def submission(job: Job) -> Submission:
    """Return gcloud's commands; labels are a flag, as a CustomJobSpec has none."""
    location = (f"--project={job.environment.project}", f"--region={job.environment.region}")
    labels = ",".join(f"{key}={value}" for key, value in job.environment.labels.items())
    gcloud = ("gcloud", "ai", "custom-jobs")
    start = (*gcloud, "create", *location, f"--display-name={job.name}", "--config=/dev/stdin")
    listing = (*gcloud, "list", *location, f"--filter=displayName={job.name}", "--sort-by=~createTime", "--limit=1")
    return Submission(
        start=Command((*start, *((f"--labels={labels}",) if labels else ())), reads_config=True),
        watch=Command(listing),
        deletes=(Command((*gcloud, "cancel", "JOB_ID", *location)),),
        notes=("replace JOB_ID with the job's id from the list",),
        log=Command((*gcloud, "stream-logs", "JOB_ID", *location)),
    )
