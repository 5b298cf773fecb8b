"""The commands of a job, which use the REST API to start it, as no gcloud command reads the config.

See https://cloud.google.com/tpu/docs/queued-resources.
"""

from collections.abc import Iterator

from tpucfg.plan import Job
from tpucfg.targets.cloud_tpu.request import collection_url
from tpucfg.targets.commands import Command, Submission
from tpucfg.targets.hosts.startup import CONTAINER, end_notes


def submission(job: Job) -> Submission:
    """Return the commands that start, watch and delete a job."""
    place = location(job)
    gcloud = ("gcloud", "compute", "tpus", "queued-resources")
    post = ("curl", "--fail-with-body", "--silent", "--show-error", "--header", "Content-Type: application/json")
    url = f"{collection_url(job)}?queuedResourceId={job.name}"
    return Submission(
        start=Command((*post, "--data-binary", "@-", url), reads_config=True, config_format="json", token=True),
        watch=Command((*gcloud, "describe", job.name, *place)),
        deletes=(Command((*gcloud, "delete", job.name, *place, "--force")),),
        notes=(
            *end_notes(job),
            *_wait_notes(job),
            *_preemption_notes(job),
            f"once the state is ACTIVE, the program's output: {output_command(job).bash()}",
        ),
    )


def location(job: Job) -> tuple[str, str]:
    """Return the options for the project and the zone."""
    return (f"--project={job.environment.project}", f"--zone={job.zone}")


def _wait_notes(job: Job) -> Iterator[str]:
    """Yield a note about a request that nothing withdraws: https://cloud.google.com/tpu/docs/queued-resources."""
    if not job.options.get("max_wait"):
        yield (
            "the request waits for capacity without limit, and is billed once it is granted: set"
            " targets.cloud-tpu.max_wait to withdraw it"
        )


def _preemption_notes(job: Job) -> Iterator[str]:
    """Yield a note for spot machines: https://cloud.google.com/tpu/docs/spot."""
    if job.capacity.kind == "spot":
        yield "after a preemption the request is SUSPENDED and keeps its id: run the delete command, and start again"


def output_command(job: Job) -> Command:
    """Return the command that prints the program's output, on all hosts of the slice or of each slice."""
    log = f"--command=sudo docker logs --follow {CONTAINER}"
    several = job.slice.slices > 1
    group, nodes = ("queued-resources", ["--node=all"]) if several else ("tpu-vm", [])
    return Command(("gcloud", "compute", "tpus", group, "ssh", job.name, *location(job), *nodes, "--worker=all", log))
