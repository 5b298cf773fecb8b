"""The state of a queued resource and its nodes.

https://cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.queuedResources#State_1
https://cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.nodes#State
"""

from collections.abc import Mapping
from typing import Final

from tpucfg.plan import Job
from tpucfg.targets.cloud_tpu.commands import location, output_command
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
    answer = yield Question((*tpus, "queued-resources", "list", f"--filter=name~/{job.name}$", *options))
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
    listed = yield Question((*tpus, "tpu-vm", "list", f"--filter=queuedResource~/{job.name}$", *options))
    nodes = mappings(listed)
    unhealthy = (text_at(node, "healthDescription") for node in nodes)
    return known._replace(
        started=earliest(time_at(node, "createTime") for node in nodes),
        reason=known.reason or next(filter(None, unhealthy), ""),
        log_command=output_command(job) if state == "running" else None,
    )
