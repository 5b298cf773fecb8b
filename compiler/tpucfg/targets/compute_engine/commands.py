"""The commands of a job, which use the REST API to create its objects, as gcloud builds requests of its own.

A request is answered by an operation, which may fail after the request was accepted. A request to `/wait` below the
operation's URL returns it when it has ended, or after two minutes, with its state as it then is:
https://cloud.google.com/compute/docs/reference/rest/v1/zoneOperations/wait.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tpucfg.plan import Job, job_labels
from tpucfg.targets.commands import Command, Creation, Creations, Operation, Submission
from tpucfg.targets.compute_engine.request import (
    API,
    DEFAULT_DISK_GB,
    DOCUMENTS,
    GROUP,
    INSTANCE,
    LOG_LABEL,
    POLICY,
    TEMPLATE,
    collection_path,
    object_url,
    place_of,
    request_body,
    slice_key,
    wait_parameters,
)
from tpucfg.targets.hosts import end_notes
from tpucfg.targets.interface import RequestBody
from tpucfg.targets.live import (
    JSON,
    LOG_LIMIT,
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
from tpucfg.text_format import format_count

_CURL: Final = ("curl", "--silent", "--show-error", "--max-time", "180")
"""Prints the answer, of a refused request too; a wait takes two minutes."""
_WITH_STATUS: Final = (*_CURL, "--write-out", "\\n%{http_code}\\n")
_JSON: Final = ("--header", "Content-Type: application/json")
_MAX_WAITS: Final = 5
_COMMAND_GROUPS: Final = {
    POLICY: ("resource-policies",),
    TEMPLATE: ("instance-templates",),
    GROUP: ("instance-groups", "managed"),
    INSTANCE: ("instances",),
}
"""The words of `gcloud compute` for each kind of object."""


def submission(job: Job) -> Submission:
    """Return the commands that create, watch and delete the job's objects."""
    body = request_body(job)
    gcloud = (
        "gcloud",
        "compute",
        *(("instance-groups", "managed") if GROUP in body else ("instances",)),
    )
    # The description of an instance has its start-up script.
    watch = (
        ("list-instances", job.name)
        if GROUP in body
        else ("describe", job.name, "--format=value(status)")
    )
    return Submission(
        start=creations(job, body),
        watch=Command((*gcloud, *watch, *_location(job))),
        deletes=(delete_command(job, slice_key(job)),),
        notes=(*end_notes(job), *_notes(job, body)),
        log=log_command(job, "--freshness=30d"),
        log_since=lambda time: log_command(job, since=time),
    )


def _location(job: Job) -> tuple[str, str]:
    return f"--project={job.environment.project}", f"--zone={job.zone}"


def log_command(job: Job, *options: str, since: str = "") -> Command:
    """Return the command that prints the program's output: `tpucfg record --from` reads it.

    The hosts of a start have nothing in common that is known before it, so a time separates it from earlier ones.
    gcloud's default is the last day, and a run may take longer; it ignores `--freshness` beside a time in the query:
    https://cloud.google.com/sdk/gcloud/reference/logging/read.
    """
    project = job.environment.project
    query = f'logName="projects/{project}/logs/gcplogs-docker-driver" AND {_label_query(job)}'
    query += f' AND timestamp>="{since}"' if since else ""
    return Command(
        ("gcloud", "logging", "read", query, f"--project={project}", "--format=json", *options)
    )


def _label_query(job: Job) -> str:
    """Return the query for what the containers of all runs of a job have printed."""
    return f'jsonPayload.container.metadata."{LOG_LABEL}"="{job.name}"'


def _notes(job: Job, body: RequestBody) -> Iterator[str]:
    """Yield what is charged beside the TPUs, the commands that explain a failing start, and what to know of its log.

    An instance waits for capacity: https://cloud.google.com/compute/docs/instances/about-flex-start-vms. The output of
    the start-up script is in the serial port's:
    https://cloud.google.com/compute/docs/instances/startup-scripts/linux#viewing-output.
    """
    hosts, is_closed = job.slice.hosts, job.options.get("external_ips") is False
    if INSTANCE in body and (wait := wait_parameters(job)):
        hours = int(wait["requestValidForDuration"]["seconds"]) // 3600
        yield (
            f"without capacity, the request ends after {hours} hours, and the instance is gone without an error:"
            " submit it again"
        )
    addresses = "" if is_closed else f" and {format_count(hosts, 'public IP')}"
    disk_gb = hosts * (job.options.get("disk_gb") or DEFAULT_DISK_GB)
    yield f"not in this cost, and in quotas of their own: {disk_gb:,} GB of disk{addresses}"
    if GROUP in body:
        errors = (
            "gcloud",
            "compute",
            "instance-groups",
            "managed",
            "list-errors",
            job.name,
            *_location(job),
        )
        yield f"if hosts are missing: {Command(errors).bash()}"
    host = "HOST" if GROUP in body else job.name
    serial = ("gcloud", "compute", "instances", "get-serial-port-output", host, *_location(job))
    yield f"if a host does not start the program: {Command(serial).bash()}"
    if is_closed:
        yield "the hosts install Docker from Ubuntu's servers, which they reach by Cloud NAT only"
    options = (f"--project={job.environment.project}", "--order=asc", "--freshness=1h")
    words = (
        "gcloud",
        "logging",
        "read",
        _label_query(job),
        *options,
        "--format=value(timestamp,jsonPayload.message)",
    )
    yield f"to read the last hour: {Command(words).bash()}"
    yield 'the log has all runs of this name: for `tpucfg record`, add AND timestamp>="START", or submit with --run'
    if GROUP in body:
        yield (
            "policy and template cost nothing and stay, for the next start; a changed job needs a name of its own with"
            " --run"
        )


# The requests that create the objects


def creations(job: Job, body: RequestBody) -> Creations:
    """Return the creation of each object of a request body, in the order in which they refer to each other."""
    steps = tuple(_creation(job, key, body) for key in DOCUMENTS if key in body)
    return Creations(steps, _wait, _operation, _MAX_WAITS)


def delete_command(job: Job, key: str) -> Command:
    """Return the command of gcloud that deletes an object of a job."""
    kind, place = place_of(job, key)
    words = ("gcloud", "compute", *_COMMAND_GROUPS[key], "delete", job.name)
    return Command((*words, f"--project={job.environment.project}", f"--{kind}={place}"))


def _without_question(command: Command) -> Command:
    """Return a command of gcloud that asks nothing: a question would read the next of several lines that are pasted."""
    return Command((*command.argv, "--quiet"))


def _creation(job: Job, key: str, body: RequestBody) -> Creation:
    collection = f"{API}/{collection_path(job, key)}"
    url = object_url(job, key)
    post = (*_WITH_STATUS, *_JSON, "--data-binary", "@-", collection)
    return Creation(
        document=key,
        name=job.name,
        find=Command((*_WITH_STATUS, url), token=True),
        create=Command(post, reads_config=True, config_format="json", token=True),
        undo=Command((*_WITH_STATUS, "--request", "DELETE", url), token=True),
        delete=_without_question(delete_command(job, key)),
        content=body[key].get("description", ""),
    )


def _wait(operation_url: str) -> Command:
    return Command((*_WITH_STATUS, "--data", "", f"{operation_url}/wait"), token=True)


def _operation(answer: Mapping[str, Any]) -> Operation:
    """Read an operation; whatever has another form, such as the answer of a proxy, is none."""
    url = answer.get("selfLink")
    is_operation = isinstance(url, str) and isinstance(answer.get("status"), str)
    return Operation(
        str(url) if is_operation else "",
        answer.get("status") == "DONE",
        _error(answer.get("error")),
    )


def _error(error: Any) -> str:
    """Return the message of a refused request, `error.message`, or of a failed operation, `error.errors[].message`."""
    if not isinstance(error, dict):
        return str(error or "")
    errors = error.get("errors")
    rows = [*(errors if isinstance(errors, list) else ()), error]
    messages = [str(row["message"]) for row in rows if isinstance(row, dict) and row.get("message")]
    return messages[0] if messages else str(error)


# The state of the instances of a job, which its labels find, and of the group that creates them:
# https://cloud.google.com/compute/docs/instances/instance-lifecycle
# https://cloud.google.com/sdk/gcloud/reference/compute/instance-groups/managed/list-errors


_STATES: Final[Mapping[str, State]] = {
    "PENDING": "waiting",
    "PROVISIONING": "waiting",
    "STAGING": "waiting",
    "REPAIRING": "waiting",
    "RUNNING": "running",
    "PENDING_STOP": "ending",
    "STOPPING": "ending",
    "SUSPENDING": "ending",
    "DEPROVISIONING": "ending",
    "SUSPENDED": "stopped",
    "STOPPED": "stopped",
    "TERMINATED": "stopped",
}


def questions(job: Job) -> Questions:
    """Ask for the instances, for the errors of their group if some are missing, then for the log."""
    project, zone = f"--project={job.environment.project}", job.zone
    labels = " AND ".join(
        f"labels.{key}={value}"
        for key, value in job_labels(job).items()
        if key.startswith("tpucfg")
    )
    options = (project, f"--zones={zone}", f"--filter={labels}", JSON)
    answer = yield Question(("gcloud", "compute", "instances", "list", *options))
    if answer is None:
        return UNKNOWN
    instances = mappings(answer)
    known = _state(job, instances)
    if len(instances) < job.slice.hosts and slice_key(job) == GROUP:
        managed = ("gcloud", "compute", "instance-groups", "managed")
        group = (project, f"--zones={zone}", f"--filter=name={job.name}", JSON)
        if mappings((yield Question((*managed, "list", *group)))):
            newest = (project, f"--zone={zone}", "--sort-by=~timestamp", "--limit=1", JSON)
            errors = yield Question((*managed, "list-errors", job.name, *newest))
            reason = next((text_at(error, "error", "message") for error in mappings(errors)), "")
            known = known._replace(state="waiting", reason=reason)
    if known.state in ("not found", "waiting"):
        return known
    # The log has all jobs of the name, also earlier ones.
    since = known.started.isoformat() if known.started else ""
    return known._replace(
        log=(yield Question(log_command(job, LOG_LIMIT, since=since).argv, is_log=True))
    )


def _state(job: Job, instances: Sequence[dict[str, Any]]) -> LiveState:
    """Return the state of instances: the least advanced of them decides, as the program needs all."""
    if not instances:
        return NOT_FOUND
    words = [text_at(instance, "status") for instance in instances]
    states = [_STATES.get(word, "unknown") for word in words]
    order: tuple[State, ...] = ("unknown", "stopped", "ending", "waiting", "running")
    state = next(each for each in order if each in states)
    word = words[states.index(state)]
    if job.slice.hosts > 1:
        word = f"{word}, {states.count('running')} of {job.slice.hosts} hosts run"
    started = earliest(
        time_at(instance, "lastStartTimestamp") or time_at(instance, "creationTimestamp")
        for instance in instances
    )
    return LiveState(state, word, started=started)
