"""The commands of a job, which use the REST API to create its objects, as gcloud builds requests of its own.

See https://docs.cloud.google.com/tpu/docs/tpus-and-migs.
"""

from collections.abc import Iterator

from tpucfg.plan.job import Job
from tpucfg.targets.compute_engine.creations import creations, delete_command
from tpucfg.targets.compute_engine.machine import DEFAULT_DISK_GB, wait_parameters
from tpucfg.targets.compute_engine.paths import GROUP, POLICY, TEMPLATE, slice_key
from tpucfg.targets.compute_engine.request import request_body
from tpucfg.targets.compute_engine.startup import LOG_LABEL
from tpucfg.targets.hosts.notes import end_notes
from tpucfg.targets.interface import Command, Submission


def submission(job: Job) -> Submission:
    """Return the commands that create, watch and delete the job's objects."""
    body = request_body(job)
    gcloud = ("gcloud", "compute", *(("instance-groups", "managed") if GROUP in body else ("instances",)))
    location = (f"--project={job.environment.project}", f"--zone={job.zone}")
    return Submission(
        start=creations(job, body),
        watch=Command((*gcloud, "list-instances" if GROUP in body else "describe", job.name, *location)),
        delete=delete_command(job, slice_key(job)),
        notes=(
            *end_notes(job),
            *(_group_notes(job) if GROUP in body else _instance_notes(job)),
            *_network_notes(job),
            _log_note(),
        ),
        log=_log(job, "--freshness=30d"),
        log_since=lambda time: _log(job, since=time),
    )


def _log(job: Job, *options: str, since: str = "") -> Command:
    """Return the command that prints the program's output: `tpucfg record --from` reads it.

    The hosts of a start have nothing in common that is known before it, so a time separates it from earlier ones.
    gcloud's default is the last day, and a run may take longer; it ignores `--freshness` beside a time in the query:
    https://cloud.google.com/sdk/gcloud/reference/logging/read.
    """
    project = job.environment.project
    entries = f'logName="projects/{project}/logs/gcplogs-docker-driver"'
    query = f'{entries} AND jsonPayload.container.metadata."{LOG_LABEL}"="{job.name}"'
    query += f' AND timestamp>="{since}"' if since else ""
    return Command(("gcloud", "logging", "read", query, f"--project={project}", "--format=json", *options))


def _log_note() -> str:
    return (
        'the log has all runs of this name: for `tpucfg record`, add AND timestamp>="START" to its query, with the time'
        " of this start, or give each run its own name with --run"
    )


def _group_notes(job: Job) -> Iterator[str]:
    """Yield notes about the hosts of a group, and about what outlives it: a later start reuses it if it is equal."""
    errors = ("gcloud", "compute", "instance-groups", "managed", "list-errors", job.name)
    location = (f"--project={job.environment.project}", f"--zone={job.zone}")
    disk_gb = job.options.get("disk_gb") or DEFAULT_DISK_GB
    addresses = "" if job.options.get("external_ips") is False else f" and {job.slice.hosts} external addresses"
    yield (
        f"a group is created before its {job.slice.hosts} hosts, which need quota for {job.slice.hosts * disk_gb:,} GB"
        f" of disk{addresses} beside the TPUs; why hosts are missing: {Command((*errors, *location)).bash()}"
    )
    commands = " && ".join(delete_command(job, key).bash() for key in (TEMPLATE, POLICY))
    yield f"template and policy cost nothing and stay; to start a changed job of this name: {commands}"


def _instance_notes(job: Job) -> Iterator[str]:
    """Yield a note about an instance that waits for capacity.

    See https://cloud.google.com/compute/docs/instances/about-flex-start-vms.
    """
    if parameters := wait_parameters(job):
        hours = int(parameters["requestValidForDuration"]["seconds"]) // 3600
        yield (
            f"without capacity, the request ends after {hours} hours, and the instance is gone without an error:"
            " submit it again"
        )


def _network_notes(job: Job) -> Iterator[str]:
    if job.options.get("external_ips") is False:
        yield "the hosts install Docker from Ubuntu's servers, which they reach by Cloud NAT only"
