"""The commands of a job, which use the REST API to create its objects, as gcloud builds requests of its own.

See https://docs.cloud.google.com/tpu/docs/tpus-and-migs.
"""

from collections.abc import Iterator

from tpucfg.plan.job import Job
from tpucfg.targets.compute_engine.paths import API, DOCUMENTS, GROUP, collection_path, region_of
from tpucfg.targets.compute_engine.request import content_of, request_body
from tpucfg.targets.compute_engine.startup import LOG_LABEL
from tpucfg.targets.creations import Creation, Creations
from tpucfg.targets.hosts.notes import end_notes
from tpucfg.targets.interface import Command, Submission


def submission(job: Job) -> Submission:
    """Return the commands that create, watch and delete the job's objects."""
    body = request_body(job)
    gcloud = ("gcloud", "compute", *(("instance-groups", "managed") if GROUP in body else ("instances",)))
    location = (f"--project={job.environment.project}", f"--zone={job.zone}")
    return Submission(
        start=Creations(tuple(_creation(job, key) for key in DOCUMENTS if key in body)),
        watch=Command((*gcloud, "list-instances" if GROUP in body else "describe", job.name, *location)),
        delete=Command((*gcloud, "delete", job.name, *location)),
        notes=(*end_notes(job), *(_leftover_notes(job) if GROUP in body else ()), *_network_notes(job)),
        log=_log(job),
    )


def _creation(job: Job, key: str) -> Creation:
    return Creation(key, f"{API}/{collection_path(job, key)}", job.name, content_of(job, key))


def _log(job: Job) -> Command:
    """Return the command that prints the program's output: `tpucfg record --from` reads it."""
    project = job.environment.project
    entries = f'logName="projects/{project}/logs/gcplogs-docker-driver"'
    query = f'{entries} AND jsonPayload.container.metadata."{LOG_LABEL}"="{job.name}"'
    # The default is one day, and a run may take longer.
    return Command(("gcloud", "logging", "read", query, f"--project={project}", "--format=json", "--freshness=30d"))


def _leftover_notes(job: Job) -> Iterator[str]:
    """Yield a note about the objects that outlive the group: a later start reuses them if they are equal."""
    from shlex import join

    location = (f"--project={job.environment.project}", f"--region={region_of(job)}")
    commands = [
        join(("gcloud", "compute", group, "delete", job.name, *location))
        for group in ("instance-templates", "resource-policies")
    ]
    yield f"template and policy cost nothing and stay; to start a changed job of this name: {' && '.join(commands)}"


def _network_notes(job: Job) -> Iterator[str]:
    if job.options.get("external_ips") is False:
        yield "the hosts install Docker from Ubuntu's servers, which they reach by Cloud NAT only"
