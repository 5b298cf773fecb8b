"""The commands of a job, which use the REST API to start it, as no gcloud command reads the config.

See https://cloud.google.com/tpu/docs/queued-resources.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from tpucfg.plan import Job
from tpucfg.targets.cloud_tpu.request import collection_url
from tpucfg.targets.commands import Command, Submission
from tpucfg.targets.hosts import CONTAINER, end_notes
from tpucfg.targets.live import (
    JSON,
    NOT_FOUND,
    UNKNOWN,
    LiveState,
    Question,
    Questions,
    State,
    earliest,
    mappings,
    text_at,
    time_at,
)


def submission(job: Job) -> Submission:
    """Return the commands that start, watch and delete a job."""
    place = location(job)
    gcloud = ("gcloud", "compute", "tpus", "queued-resources")
    post = (
        "curl",
        "--fail-with-body",
        "--silent",
        "--show-error",
        "--header",
        "Content-Type: application/json",
    )
    url = f"{collection_url(job)}?queuedResourceId={job.name}"
    return Submission(
        start=Command(
            (*post, "--data-binary", "@-", url), reads_config=True, config_format="json", token=True
        ),
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
    return Command(
        (
            "gcloud",
            "compute",
            "tpus",
            group,
            "ssh",
            job.name,
            *location(job),
            *nodes,
            "--worker=all",
            log,
        )
    )


# The state of a queued resource and its nodes:
# https://cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.queuedResources#State_1
# https://cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.nodes#State


_STATES: Final[Mapping[str, State]] = {
    "CREATING": "waiting",
    "ACCEPTED": "waiting",
    "WAITING_FOR_RESOURCES": "waiting",
    "PROVISIONING": "waiting",
    "ACTIVE": "running",
    "DELETING": "ending",
    "SUSPENDING": "ending",
    "SUSPENDED": "stopped",
    "FAILED": "failed",
}
_STOPPED: Final = "its machines are gone, after a preemption or a failure: delete the request, and submit it again"
"""https://cloud.google.com/tpu/docs/queued-resources#request-states."""


def questions(job: Job) -> Questions:
    """Ask for the request, then for its nodes. Their log is on them, where no read-only command gets it."""
    tpus, options = ("gcloud", "compute", "tpus"), (*location(job), JSON)
    answer = yield Question(
        (*tpus, "queued-resources", "list", f"--filter=name~/{job.name}$", *options)
    )
    if answer is None:
        return UNKNOWN
    request = next(iter(mappings(answer)), None)
    if request is None:
        return NOT_FOUND
    word = text_at(request, "state", "state")
    state = _STATES.get(word, "unknown")
    reason = text_at(request, "state", "failedData", "error", "message")
    known = LiveState(state, word, reason or (_STOPPED if state == "stopped" else ""))
    if state == "waiting" and word != "PROVISIONING":
        return known
    listed = yield Question(
        (*tpus, "tpu-vm", "list", f"--filter=queuedResource~/{job.name}$", *options)
    )
    nodes = mappings(listed)
    unhealthy = (text_at(node, "healthDescription") for node in nodes)
    return known._replace(
        started=earliest(time_at(node, "createTime") for node in nodes),
        reason=known.reason or next(filter(None, unhealthy), ""),
        log_command=output_command(job) if state == "running" else None,
    )
