"""The state of a JobSet, by its own status, its pods, and the workload by which Kueue admits it.

https://jobset.sigs.k8s.io/docs/reference/jobset.v1alpha2/#jobset-x-k8s-io-v1alpha2-JobSetStatus
https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/
https://kueue.sigs.k8s.io/docs/tasks/troubleshooting/troubleshooting_jobs/
"""

import json
from collections.abc import Generator, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from tpucfg.paths import value_at
from tpucfg.plan import Job
from tpucfg.targets.gke.commands import kubectl_of
from tpucfg.targets.gke.nodes import queue_of
from tpucfg.targets.gke.request import REPLICATED_JOB, container_names
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

_JSON: Final = "--output=json"
_ENDS: Final[dict[str, State]] = {"Completed": "succeeded", "Failed": "failed"}
"""The conditions of a JobSet that has ended."""
_FIRST_HOST: Final = {"jobset.sigs.k8s.io/job-index": "0", "batch.kubernetes.io/job-completion-index": "0"}
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
        "waiting", restarts=restarts if type(restarts) is int and 0 <= restarts <= _MAX_RESTARTS else None
    )
    for condition, state in _ENDS.items():
        if end := _condition(jobset, condition):
            ended, reason = time_at(end, "lastTransitionTime"), text_at(end, "message") if state == "failed" else ""
            known = known._replace(state=state, service_state=condition, ended=ended, reason=reason)
    pods = f"--selector=jobset.sigs.k8s.io/jobset-name={job.name}"
    answer = yield Question((*namespaced, "get", "pods", pods, _JSON))
    if answer is None:
        return known._replace(state="unknown" if known.state == "waiting" else known.state)
    listed = mappings(value_at(answer, ("items",)))
    known = known._replace(started=_start(jobset, listed, known.restarts))
    if known.state == "waiting":
        known = yield from _progress(job, jobset, listed, known, namespaced)
    first = next((pod for pod in listed if _is_first(pod) and text_at(pod, "status", "phase") in _STARTED), None)
    if first:
        options = (f"--container={container_names(job)[0]}", "--timestamps", f"--tail={LOG_LINES}")
        log = yield Question((*namespaced, "logs", f"pod/{text_at(first, 'metadata', 'name')}", *options), is_log=True)
        known = known._replace(log=None if log is None else _entries(log))
    return known


def _progress(
    job: Job, jobset: Any, pods: Sequence[dict[str, Any]], known: LiveState, namespaced: tuple[str, ...]
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
            return suspended._replace(state="stopped", reason=text_at(_condition(workload, "Evicted"), "message"))
    refusals = (_condition(each, kind, "False") for each in workloads for kind in ("QuotaReserved", "Admitted"))
    return suspended._replace(reason=next((text for each in refusals if (text := text_at(each, "message"))), ""))


def _start(jobset: Any, pods: Sequence[dict[str, Any]], restarts: int | None) -> datetime | None:
    """Return the start of the first pods; those of earlier attempts are gone, so then the admission of the JobSet."""
    if restarts:
        resumed = _condition(jobset, "Suspended", "False")
        return time_at(resumed, "lastTransitionTime") or time_at(jobset, "metadata", "creationTimestamp")
    # A pod has a start time when its node has accepted it.
    return earliest(time_at(pod, "status", "startTime") for pod in pods)


def _condition(data: Any, kind: str, status: str = "True") -> dict[str, Any] | None:
    conditions = mappings(value_at(data, ("status", "conditions")))
    return next((each for each in conditions if (each.get("type"), each.get("status")) == (kind, status)), None)


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
    return all(text_at(pod, "metadata", "labels", key) == value for key, value in _FIRST_HOST.items())


def _entries(log: str) -> str:
    """Return the lines of a log, which begin with their times, as entries with a time each."""
    split = (line.partition(" ") for line in log.splitlines())
    return "".join(f"{json.dumps({'timestamp': time, 'textPayload': text})}\n" for time, _, text in split)
