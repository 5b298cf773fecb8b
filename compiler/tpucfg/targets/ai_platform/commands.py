"""The commands of gcloud that submit, watch and cancel a job."""

from collections.abc import Iterator, Mapping
from typing import Any

from tpucfg.plan import Job, job_labels
from tpucfg.targets.ai_platform.request import is_uploaded
from tpucfg.targets.commands import Command, Submission
from tpucfg.targets.extra import merged_request_body
from tpucfg.targets.interface import labels_flag, without_empty


def submission(job: Job) -> Submission:
    """Return gcloud's commands, with flags for the fields of the config that gcloud ignores."""
    # gcloud ignores packageUris of the file. Without --scale-tier it reads --config twice: the second time, the pipe is
    # empty, and it silently submits a job without a TPU. With CUSTOM, --scale-tier needs --master-machine-type.
    body = merged_request_body(job).body
    training = body["trainingInput"]
    id_, project = job_id(job), f"--project={job.environment.project}"
    jobs, args = ("gcloud", "ai-platform", "jobs"), training.get("args", [])
    flags = {
        "staging-bucket": f"gs://{job.bucket}",
        "config": "/dev/stdin",
        **_package_flags(job, training),
    } | without_empty(
        **{"scale-tier": training["scaleTier"], "master-machine-type": training.get("masterType")},
        region=training["region"],
    )
    # This flag replaces the labels of the file.
    labels = labels_flag({**body.get("labels", {}), **job_labels(job)})
    options = (*(f"--{flag}={value}" for flag, value in flags.items()), labels)
    start = (*jobs, "submit", "training", id_, project, *options)
    return Submission(
        start=Command((*start, *(("--", *args) if args else ())), reads_config=True),
        watch=Command((*jobs, "stream-logs", id_, project)),
        deletes=(Command((*jobs, "cancel", id_, project)),),
        notes=tuple(_notes(job)),
    )


def job_id(job: Job) -> str:
    """Return the id of the job, which has no dashes."""
    return job.name.replace("-", "_")


def _package_flags(job: Job, training: Mapping[str, Any]) -> dict[str, Any]:
    if job.image:
        return {}
    return without_empty(
        **{
            "package-path": None if is_uploaded(job.package) else job.package,
            "packages": ",".join(training.get("packageUris", ())),
            "module-name": training.get("pythonModule"),
            "runtime-version": training.get("runtimeVersion"),
            "python-version": training.get("pythonVersion"),
        }
    )


def _notes(job: Job) -> Iterator[str]:
    yield "the service accepts a job id only once: start each further run of this size with its own --run"
    if job.package and not is_uploaded(job.package):
        yield f"gcloud builds {job.package} with the setup.py next to it: run this in the folder that contains both"


# The state of a job: https://cloud.google.com/ai-platform/training/docs/reference/rest/v1/projects.jobs#State.
