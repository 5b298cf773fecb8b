"""The kubectl commands of a job, and its state, in the context of the environment: the current one may be another."""

import json
from collections.abc import Generator, Iterator, Sequence
from datetime import datetime
from shlex import join
from typing import Any, Final

from tpucfg.paths import value_at
from tpucfg.plan import Job
from tpucfg.plan.identities import repository_of
from tpucfg.plan.job import job_labels
from tpucfg.schemas import Problem
from tpucfg.spec import Environment
from tpucfg.spec.placeholders import RUN_PLACEHOLDERS, used_placeholders
from tpucfg.spec.project import RESERVED_LABELS, SIZE_LABEL
from tpucfg.targets.commands import (
    Command,
    Manifest,
    Manifests,
    Requirement,
    Submission,
    SubmissionError,
)
from tpucfg.targets.gke.nodes import node_labels, queue_of
from tpucfg.targets.gke.request import (
    PROVIDER_CLASS,
    REPLICATED_JOB,
    SYNC,
    container_names,
    pod_account,
    uses_host_network,
)
from tpucfg.targets.interface import RequestBody
from tpucfg.targets.live import (
    LOG_LINES,
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

_SYNC_ADDON: Final = (
    "gcloud container clusters update CLUSTER --location=LOCATION --enable-secret-manager --enable-secret-sync, from "
    "GKE 1.33: https://cloud.google.com/secret-manager/docs/sync-k8-secrets"
)
_KINDS: Final = {
    PROVIDER_CLASS: ("secretproviderclasses.secrets-store.csi.x-k8s.io", _SYNC_ADDON),
    SYNC: ("secretsyncs.secret-sync.gke.io", _SYNC_ADDON),
    "JobSet": ("jobset", "install JobSet: https://jobset.sigs.k8s.io/docs/installation/"),
    "ServiceAccount": ("serviceaccount", ""),
}
"""The name by which kubectl knows each kind, and how a cluster gets it."""


def submission(job: Job) -> Submission:
    """Return the commands that create, watch and delete the job and the objects of its secrets.

    Raises:
        SubmissionError: The environment has no `kube_context`.
    """
    kubectl, namespaced = kubectl_of(job)
    kinds = (*((PROVIDER_CLASS, SYNC) if job.secrets else ()), "JobSet")
    steps = tuple(_manifest(kind, job.name, kubectl, namespaced) for kind in kinds)
    pods = f"--selector=jobset.sigs.k8s.io/jobset-name={job.name}"
    output = (
        *namespaced,
        "logs",
        pods,
        "--follow",
        "--prefix",
        f"--max-log-requests={job.slice.hosts}",
    )
    return Submission(
        start=Manifests(
            steps,
            tuple(_requirements(job, kubectl, namespaced)),
            trial_jobs,
            _same_run(job, namespaced),
        ),
        watch=Command((*namespaced, "get", f"jobset/{job.name}", "--watch")),
        deletes=tuple(step.delete for step in reversed(steps)),
        notes=tuple(_notes(job, namespaced)),
        log=Command(output),
    )


def kubectl_of(job: Job) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the start of a command for the job's cluster, and of one for its namespace.

    Raises:
        SubmissionError: The environment has no `kube_context`.
    """
    if job.environment.kube_context is None:
        raise SubmissionError(_missing_context(job.environment))
    kubectl = ("kubectl", f"--context={job.environment.kube_context}")
    return kubectl, (*kubectl, f"--namespace={job.options.get('namespace', 'default')}")


def trial_jobs(body: RequestBody) -> tuple[RequestBody, ...]:
    """Return the jobs that JobSet would make of a body: its webhook does not look into the templates of the pods."""
    metadata = body["metadata"]
    return tuple(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            # A name that does not exist, because the job may be running.
            "metadata": {
                "generateName": f"{metadata['name']}-{job['name']}-0-",
                "namespace": metadata.get("namespace", "default"),
            },
            "spec": job["template"]["spec"],
        }
        for job in body["spec"]["replicatedJobs"]
    )


def _manifest(
    kind: str, name: str, kubectl: tuple[str, ...], namespaced: tuple[str, ...]
) -> Manifest:
    resource, install = _KINDS[kind]
    return Manifest(
        kind,
        f"{resource}/{name}",
        create=Command(
            (*kubectl, "create", "--filename=-"), reads_config=True, config_format="json"
        ),
        delete=Command((*namespaced, "delete", f"{resource}/{name}")),
        install=install,
    )


def _same_run(job: Job, namespaced: tuple[str, ...]) -> Command | None:
    """Return the question for jobs of the run, on any size, if its program writes to the folder of the run."""
    if (
        not job.run
        or job.whole
        or not used_placeholders(job.settings.trainer.texts) & RUN_PLACEHOLDERS
    ):
        return None
    labels = job_labels(job)
    selector = ",".join(f"{key}={labels[key]}" for key in RESERVED_LABELS if key != SIZE_LABEL)
    columns = "--output=custom-columns=NAME:.metadata.name,END:.status.terminalState"
    limits = ("--no-headers", "--request-timeout=30s")
    return Command(
        (*namespaced, "get", "jobsets.jobset.x-k8s.io", f"--selector={selector}", columns, *limits)
    )


def _requirements(
    job: Job, kubectl: tuple[str, ...], namespaced: tuple[str, ...]
) -> Iterator[Requirement]:
    """Yield what the job needs beside its own objects, without which its pods would wait, some of them for ever."""

    def needed(
        prefix: tuple[str, ...], name: str, consequence: str, fix: str, **more: Any
    ) -> Requirement:
        find = Command((*prefix, "get", name, "--ignore-not-found", "--output=name"))
        return Requirement(name, find, consequence, fix, **more)

    account, options = pod_account(job), job.options
    yield needed(
        namespaced,
        f"serviceaccount/{account}",
        "Kubernetes refuses every pod of the job",
        f"{join(_create_account(job, namespaced))} && {join(_bind_account(job, namespaced))}",
        # A name of the spec's own that is missing may be a mistake.
        remedy=None if options.get("service_account") else _account(job, kubectl, namespaced),
    )
    if queue := queue_of(job):
        yield needed(
            namespaced,
            f"localqueues.kueue.x-k8s.io/{queue}",
            # Without Kueue itself, the job starts at once and without the queue's quota and topology.
            "with Kueue the job waits for ever, and without Kueue it starts on any nodes"
            if options.get("queue")
            else "the job starts at once, on any nodes",
            "create the queue, or set targets.gke.queue to one of: "
            + join((*namespaced, "get", "localqueues.kueue.x-k8s.io")),
        )
    if priority := options.get("priority"):
        yield needed(
            kubectl,
            f"priorityclasses.scheduling.k8s.io/{priority}",
            "Kubernetes refuses every pod of the job",
            f"create it, or set targets.gke.priority to one of: {join((*kubectl, 'get', 'priorityclasses'))}",
        )
    selector = ",".join(node_labels(job))
    yield Requirement(
        "nodes",
        Command((*kubectl, "get", "nodes", f"--selector={selector}", "--output=name")),
        "its pods wait until node pools have them",
        f"look at the labels: {join((*kubectl, 'get', 'nodes', '--show-labels'))}",
        number=job.slice.hosts,
        is_note=True,
    )


def _account(
    job: Job, kubectl: tuple[str, ...], namespaced: tuple[str, ...]
) -> tuple[Manifest, RequestBody]:
    """Return the Kubernetes service account that acts as the stack's account."""
    name = pod_account(job)
    metadata = {
        "name": name,
        "namespace": job.options.get("namespace", "default"),
        "annotations": {_ACCOUNT: job.account},
    }
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    return _manifest("ServiceAccount", name, kubectl, namespaced), body


_ACCOUNT: Final = "iam.gke.io/gcp-service-account"
"""https://cloud.google.com/kubernetes-engine/docs/how-to/workload-identity."""


def _create_account(job: Job, namespaced: tuple[str, ...]) -> tuple[str, ...]:
    return (*namespaced, "create", "serviceaccount", pod_account(job))


def _bind_account(job: Job, namespaced: tuple[str, ...]) -> tuple[str, ...]:
    return (
        *namespaced,
        "annotate",
        "serviceaccount",
        pod_account(job),
        f"{_ACCOUNT}={job.account}",
    )


def _notes(job: Job, namespaced: tuple[str, ...]) -> list[str]:
    account = pod_account(job)
    nodes = job.options.get("node_service_account")
    program = f"the program itself acts as the account of the nodes, {nodes or 'which needs the bucket: see TPU122'}"
    pull = f"the account of the nodes pulls {job.image}: name it in targets.gke.node_service_account for its grant"
    is_own = not job.options.get("service_account")
    created = " (--execute does both where it is missing)" if is_own else ""
    creation = join(_create_account(job, namespaced))
    return [
        f"the pods run as the Kubernetes service account {account}; create it once{created}: {creation}",
        f"it acts as the service account of the stack; bind it once: {join(_bind_account(job, namespaced))}",
        *([program] if uses_host_network(job) else []),
        *([pull] if repository_of(job.image) and not nodes else []),
    ]


def _missing_context(environment: Environment) -> Problem:
    message = f"{environment.name} has no cluster, and a job is never sent to the current one of kubectl instead"
    hint = (
        f"set environments.{environment.name}.cluster to projects/P/locations/L/clusters/C, or its kube_context to one "
        "of: kubectl config get-contexts --output=name"
    )
    return Problem("TPU005", message, environment.path, hint, at_key=True)


# The state of a JobSet, by its own status, its pods, and the workload by which Kueue admits it:
# https://jobset.sigs.k8s.io/docs/reference/jobset.v1alpha2/#jobset-x-k8s-io-v1alpha2-JobSetStatus
# https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/
# https://kueue.sigs.k8s.io/docs/tasks/troubleshooting/troubleshooting_jobs/


_JSON: Final = "--output=json"
_ENDS: Final[dict[str, State]] = {"Completed": "succeeded", "Failed": "failed"}
"""The conditions of a JobSet that has ended."""
_FIRST_HOST: Final = {
    "jobset.sigs.k8s.io/job-index": "0",
    "batch.kubernetes.io/job-completion-index": "0",
}
"""The labels of the pod whose log is read: https://jobset.sigs.k8s.io/docs/concepts/."""
_MAX_RESTARTS: Final = 1_000_000
_STARTED: Final = ("Running", "Succeeded", "Failed")
"""The phases of a pod that has a log."""


def questions(job: Job) -> Questions:
    """Ask for the JobSet, then for its pods, for the reason of its wait, and for the log of its first host.

    Raises:
        SubmissionError: The environment has no `kube_context`.
    """
    _, namespaced = kubectl_of(job)
    name = (f"jobset/{job.name}", "--ignore-not-found", _JSON)
    jobset = yield Question((*namespaced, "get", *name))
    if jobset is None:
        return UNKNOWN
    if not text_at(jobset, "metadata", "name"):
        return NOT_FOUND
    restarts = value_at(jobset, ("status", "restarts"), 0)
    known = LiveState(
        "waiting",
        restarts=restarts if type(restarts) is int and 0 <= restarts <= _MAX_RESTARTS else None,
    )
    for condition, state in _ENDS.items():
        if end := _condition(jobset, condition):
            ended, reason = (
                time_at(end, "lastTransitionTime"),
                text_at(end, "message") if state == "failed" else "",
            )
            known = known._replace(state=state, service_state=condition, ended=ended, reason=reason)
    pods = f"--selector=jobset.sigs.k8s.io/jobset-name={job.name}"
    answer = yield Question((*namespaced, "get", "pods", pods, _JSON))
    if answer is None:
        return known._replace(state="unknown" if known.state == "waiting" else known.state)
    listed = mappings(value_at(answer, ("items",)))
    known = known._replace(started=_start(jobset, listed, known.restarts))
    if known.state == "waiting":
        known = yield from _progress(job, jobset, listed, known, namespaced)
    first = next(
        (pod for pod in listed if _is_first(pod) and text_at(pod, "status", "phase") in _STARTED),
        None,
    )
    if first:
        options = (f"--container={container_names(job)[0]}", "--timestamps", f"--tail={LOG_LINES}")
        log = yield Question(
            (*namespaced, "logs", f"pod/{text_at(first, 'metadata', 'name')}", *options),
            is_log=True,
        )
        known = known._replace(log=None if log is None else _entries(log))
    return known


def _progress(
    job: Job,
    jobset: Any,
    pods: Sequence[dict[str, Any]],
    known: LiveState,
    namespaced: tuple[str, ...],
) -> Generator[Question, Any, LiveState]:
    """Return the state of a JobSet that has not ended, with the reason of a wait."""
    if text_at(jobset, "metadata", "deletionTimestamp"):
        return known._replace(state="ending", service_state="Terminating")
    if value_at(jobset, ("spec", "suspend")) is True:
        suspended = known._replace(service_state="Suspended", started=None)
        if not queue_of(job):
            return suspended
        owner = f"--selector=kueue.x-k8s.io/job-uid={text_at(jobset, 'metadata', 'uid')}"
        asked = Question((*namespaced, "get", "workloads.kueue.x-k8s.io", owner, _JSON))
        return _admission(mappings(value_at((yield asked), ("items",))), suspended)
    running = sum(text_at(pod, "status", "phase") == "Running" for pod in pods)
    known = known._replace(service_state=f"{running} of {job.slice.hosts} pods")
    if running >= job.slice.hosts:
        return known._replace(state="running")
    reason = next((text for pod in pods for text in _pod_waits(pod)), "")
    if not pods:
        # A pod that Kubernetes refuses is known by an event of its Job only.
        selector = "--field-selector=type=Warning,involvedObject.kind=Job"
        events = yield Question((*namespaced, "get", "events", selector, _JSON))
        own = (
            text_at(event, "message")
            for event in mappings(value_at(events, ("items",)))
            if text_at(event, "involvedObject", "name").startswith(f"{job.name}-{REPLICATED_JOB}-")
        )
        reason = next(own, "")
    return known._replace(reason=reason)


def _admission(workloads: Sequence[dict[str, Any]], suspended: LiveState) -> LiveState:
    """Return the state of a suspended JobSet by its workload, which Kueue deactivates after its time limit."""
    for workload in workloads:
        if value_at(workload, ("spec", "active")) is False:
            return suspended._replace(
                state="stopped", reason=text_at(_condition(workload, "Evicted"), "message")
            )
    refusals = (
        _condition(each, kind, "False")
        for each in workloads
        for kind in ("QuotaReserved", "Admitted")
    )
    return suspended._replace(
        reason=next((text for each in refusals if (text := text_at(each, "message"))), "")
    )


def _start(jobset: Any, pods: Sequence[dict[str, Any]], restarts: int | None) -> datetime | None:
    """Return the start of the first pods; those of earlier attempts are gone, so then the admission of the JobSet."""
    if restarts:
        resumed = _condition(jobset, "Suspended", "False")
        return time_at(resumed, "lastTransitionTime") or time_at(
            jobset, "metadata", "creationTimestamp"
        )
    # A pod has a start time when its node has accepted it.
    return earliest(time_at(pod, "status", "startTime") for pod in pods)


def _condition(data: Any, kind: str, status: str = "True") -> dict[str, Any] | None:
    conditions = mappings(value_at(data, ("status", "conditions")))
    return next(
        (each for each in conditions if (each.get("type"), each.get("status")) == (kind, status)),
        None,
    )


def _pod_waits(pod: Any) -> Iterator[str]:
    """Yield why a pod has no node, or why its containers have not started."""
    if unscheduled := _condition(pod, "PodScheduled", "False"):
        yield f"{text_at(unscheduled, 'reason')}: {text_at(unscheduled, 'message')}"
    for kind in ("initContainerStatuses", "containerStatuses"):
        for container in mappings(value_at(pod, ("status", kind))):
            waiting = value_at(container, ("state", "waiting"))
            if reason := text_at(waiting, "reason"):
                yield f"{reason}: {text_at(waiting, 'message')}".removesuffix(": ")


def _is_first(pod: Any) -> bool:
    return all(
        text_at(pod, "metadata", "labels", key) == value for key, value in _FIRST_HOST.items()
    )


def _entries(log: str) -> str:
    """Return the lines of a log, which begin with their times, as entries with a time each."""
    split = (line.partition(" ") for line in log.splitlines())
    return "".join(
        f"{json.dumps({'timestamp': time, 'textPayload': text})}\n" for time, _, text in split
    )
