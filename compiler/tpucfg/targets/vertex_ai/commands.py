"""The commands that submit, watch and cancel a custom job, and its state."""

from collections.abc import Iterator, Mapping
from typing import Final

from tpucfg.plan import Job, job_labels
from tpucfg.plan.identities import repository_of
from tpucfg.targets.commands import Command, Submission
from tpucfg.targets.interface import labels_flag
from tpucfg.targets.live import (
    JSON,
    LOG_LIMIT,
    NOT_FOUND,
    UNKNOWN,
    LiveState,
    Question,
    Questions,
    State,
    mappings,
    text_at,
    time_at,
)

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
        notes=("replace JOB_ID with the job's id from the list", *_image_notes(job)),
        log=Command((*_GCLOUD, "stream-logs", "JOB_ID", *location)),
    )


def listing(job: Job) -> Command:
    """Return the command that lists the newest job of the name."""
    options = (f"--filter=displayName={job.name}", "--sort-by=~createTime", "--limit=1")
    return Command((*_GCLOUD, "list", *_location(job), *options))


def _location(job: Job) -> tuple[str, str]:
    return f"--project={job.environment.project}", f"--region={job.environment.region}"


def _image_notes(job: Job) -> Iterator[str]:
    """Yield the grant that an image of another project needs, and that the stack cannot make.

    The puller is the service's agent for custom code, whatever account the job has; it may read its own project:
    https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/general/custom-service-account.
    """
    repository, environment = repository_of(job.image), job.environment
    if (
        repository is None
        or repository.project == environment.project
        or not environment.grants_images
    ):
        return
    number = f"$(gcloud projects describe {environment.project} --format='value(projectNumber)')"
    yield (
        f"Vertex AI pulls {job.image} as an account of its own, which exists after the first custom job of "
        f"{environment.project}; let it read the repository once: gcloud artifacts repositories add-iam-policy-binding "
        f"{repository.name} --project={repository.project} --location={repository.location} "
        f'--role=roles/artifactregistry.reader --member="serviceAccount:service-{number}'
        '@gcp-sa-aiplatform-cc.iam.gserviceaccount.com"'
    )


# The state of a custom job: https://cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.customJobs.


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
    answer = yield Question((*listing(job).argv, JSON))
    if answer is None:
        return UNKNOWN
    newest = next(iter(mappings(answer)), None)
    if newest is None:
        return NOT_FOUND
    word = text_at(newest, "state")
    known = LiveState(
        _STATES.get(word, "unknown"),
        word,
        text_at(newest, "error", "message"),
        time_at(newest, "startTime"),
        time_at(newest, "endTime"),
    )
    if known.started is None:
        return known
    # https://cloud.google.com/vertex-ai/docs/training/view-logs
    id_ = text_at(newest, "name").rpartition("/")[2]
    query = f'resource.type="ml_job" AND resource.labels.job_id="{id_}"'
    # By default, the log of a day is read, and a run may take longer.
    options = (f"--project={job.environment.project}", "--freshness=30d", LOG_LIMIT, JSON)
    log = yield Question(("gcloud", "logging", "read", query, *options), is_log=True)
    return known._replace(log=log)
