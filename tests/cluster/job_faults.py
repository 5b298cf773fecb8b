"""Faults of jobs, and their outcomes: each case is a script that waits for one snapshot after another.

All cases run at the same time, each in a namespace of its own, so that their waits cost the time of the longest.
"""

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from gke_specs import rendered
from job_run import JobRun, needs, snapshots
from running_cluster import ApiError, Cluster
from simulated_nodes import Pool

from tpucfg.targets.gke.nodes import CHIPS

Script = Generator[str, None, None]
"""Yields what it waits for, once a snapshot."""
SECONDS: Final = 600.0
"""The longest case on a busy machine; alone, the controllers find a lost node after a minute."""
_DEADLINE: Final = 60
"""The longest duration, in seconds, of the jobs whose first attempt ends before it."""
_PART: Final = 20
"""The seconds after which that attempt ends: all jobs of a busy cluster run by then."""
_QUIET: Final = 6
"""Snapshots without a change after which a job counts as waiting."""


class CaseError(Exception):
    """A fault came too late."""


class Case:
    """A row of a table: a spec, a fault, and what was seen."""

    def __init__(self, cluster: Cluster, pools: Mapping[str, Pool], row: Mapping[str, Any]) -> None:
        self.row, self.cluster, self.pools = row, cluster, pools
        self.namespace = row["case"]
        (config,) = rendered(**self.changes())
        self.chips = config.job.slice.chips
        self.run = JobRun(cluster, config.request_body, pools)
        self.rival: JobRun | None = None
        self.seen: dict[str, Any] = {}

    def changes(self, **more: Any) -> dict[str, Any]:
        """Return the spec's own part: its keys by path."""
        row = self.row
        options = {
            "namespace": self.namespace,
            "service_account": "default",
            **row.get("gke", {}),
            **more,
        }
        if queue := row.get("queue"):
            options |= {"queue": "tpu"} | (
                {"topology_aware": True} if queue.startswith("parts") else {}
            )
        trainer = {f"trainer__{key}": value for key, value in row.get("trainer", {}).items()}
        capacity = {"capacity": row["capacity"]} if "capacity" in row else {}
        overrides = {"overrides": {row["size"]: row["overrides"]}} if "overrides" in row else {}
        name = {"name": "rival" if more else "t"}
        return {
            "sizes": [row["size"]],
            "targets": {"gke": options},
            **trainer,
            **capacity,
            **overrides,
            **name,
        }

    def script(self) -> Script:
        """Run the job, let the fault happen, let a program that runs end, and note what can be seen."""
        quota = 1 if self.row["fault"] == "quota" else self.chips if "queue" in self.row else None
        queue = {"flavor": self.row["queue"]} if "queue" in self.row else None
        for path, body in needs(self.namespace, queue, quota):
            self.cluster.request("POST", path, body)
        yield from self._service_account()
        self.run.create()
        if self.run.refusal:
            self.seen["first"] = "refused"
            return
        yield from FAULTS[self.row["fault"]](self)
        # The pods of a job that has just been suspended run on for a moment.
        if self.run.is_running and not self.run.is_suspended and not self.run.end:
            self._note_placement()
            self.run.end_program(0, self.run.pods)
            yield from self.until("the end", lambda: bool(self.run.end))
        yield from self._end()

    def _service_account(self) -> Script:
        path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/default"
        while True:
            try:
                self.cluster.request("GET", path)
            except ApiError:
                yield "the service account"
            else:
                return

    def until(self, what: str, is_true: Callable[[], bool]) -> Script:
        """Wait until something is true."""
        while not is_true():
            yield what

    def _note_placement(self) -> None:
        placement = self.run.placement()
        self.seen.setdefault("placed", placement)
        if placement != self.seen["placed"]:
            self.seen["placed again"] = placement

    def _end(self) -> Script:
        run = self.run
        restarts, counted = run.attempt, int(run.status.get("restartsCountTowardsMax", 0))
        end = run.end or ("suspended" if run.is_suspended else "waits")
        if "queue" in self.row and self.row["fault"].startswith("deadline"):
            end = "suspended or Failed" if run.end.startswith("Failed") or run.is_suspended else end
        self.seen |= {"restarts": restarts, "counted": counted, "end": end}
        if "ttl" in self.row.get("gke", {}) and self.row["gke"]["ttl"]:
            yield from self.until("the deletion", lambda: not run.jobset and not run.all_pods)
        settled = 0
        while settled < 3:  # the pods of a JobSet that failed are deleted
            settled = (
                0
                if any("deletionTimestamp" in pod["metadata"] for pod in run.all_pods)
                else settled + 1
            )
            yield "the last deletions"
        number = len(run.all_pods)
        pods = {0: "no pod", 1: "1 pod"}.get(number, f"{number} pods")
        self.seen["left"] = f"the JobSet and {pods}" if run.jobset else "nothing"

    def started(self) -> Script:
        """Wait until all pods run, or the job shows that it will wait."""
        quiet = 0
        while not self.run.is_running and quiet < _QUIET * (1 if self.row.get("waits") else 1000):
            quiet += 1
            yield "the start"
        state = "suspended" if self.run.is_suspended else "waits"
        self.seen["first"] = "runs" if self.run.is_running else state
        if self.run.is_running:
            self._note_placement()

    def blocked(self) -> Script:
        """Wait for a while, and note that the job does too."""
        for _ in range(_QUIET):
            yield "nothing to happen"
        pods = "no pods" if not self.run.pods else "pods that wait"
        self.seen["first"] = "suspended" if self.run.is_suspended else pods

    def names(self) -> set[str]:
        """Return the names of the pods that run or wait."""
        return {pod["metadata"]["name"] for pod in self.run.pods}

    def after(self, before: set[str]) -> Script:
        """Wait for the end of the job, or until it runs again, without a pod of before."""
        run = self.run
        yield from self.until(
            "the end, or other pods",
            lambda: bool(run.end) or (run.is_running and not self.names() & before),
        )

    def one_pod(self) -> Any:
        """Return the last pod of the job, by name."""
        if not self.run.pods:
            raise CaseError("the job has no pod to which the fault could happen")
        return max(self.run.pods, key=lambda pod: pod["metadata"]["name"])


def _none(case: Case) -> Script:
    yield from case.started()


def _program_ends(code: int) -> Callable[[Case], Script]:
    def fault(case: Case) -> Script:
        yield from case.started()
        case.run.end_program(code, [case.one_pod()])
        yield from case.after(case.names())

    return fault


def _fails_until_the_end(case: Case) -> Script:
    """Let the first host fail in each attempt."""
    yield from case.started()
    while not case.run.end:
        case.run.end_program(1, [case.one_pod()])
        yield from case.after(case.names())


def _evicted(case: Case) -> Script:
    yield from case.started()
    case.run.evict(case.one_pod())
    yield from case.after(case.names())


def _others_fail_first(case: Case) -> Script:
    """Lose a host after another one, which depends on it, has failed with 1."""
    yield from case.started()
    first, *_, last = sorted(case.run.pods, key=lambda pod: pod["metadata"]["name"])
    before = case.names()
    case.run.end_program(1, [first])
    # Evicted before the failure is known, the other host would be the first one.
    yield from case.until("the failure", lambda: first["metadata"]["name"] not in case.names())
    with suppress(ApiError):  # it may be gone already
        case.run.evict(last)
    yield from case.after(before)


def _node_lost(case: Case) -> Script:
    yield from case.started()
    before, pod = case.names(), case.one_pod()
    case.run.lose_node(pod)
    name = pod["metadata"]["name"]
    yield from case.until("the pod of the lost node to go", lambda: case.run.has_gone(name))
    case.run.repair_node(pod["spec"]["nodeName"])
    yield from case.after(before)


def _preempted(case: Case) -> Script:
    """Let a job of a higher priority take the place, and give it back."""
    yield from case.started()
    (config,) = rendered(**case.changes(priority="high"))
    case.rival = rival = JobRun(case.cluster, config.request_body, case.pools)
    rival.create()
    yield from case.until("the rival", lambda: rival.is_running)
    yield "the victim"
    waiting = "suspended" if case.run.is_suspended else "waits"
    case.seen["meanwhile"] = case.run.end or waiting
    rival.end_program(0, rival.pods)
    yield from case.until(
        "the job after the rival", lambda: bool(case.run.end) or case.run.is_running
    )


def _deadline(case: Case) -> Script:
    yield from case.started()
    yield from case.until("the deadline", lambda: bool(case.run.end) or case.run.is_suspended)
    for _ in range(3):
        yield "what follows"


def _deadline_after_a_restart(case: Case) -> Script:
    """Let the deadline pass in the second attempt, which began after a part of it."""
    yield from case.started()
    start = time.monotonic()
    yield from case.until("a part of the deadline", lambda: time.monotonic() - start > _PART)
    case.run.end_program(1, [case.one_pod()])
    yield from case.until("the restart", lambda: case.run.attempt > 0)
    begun = time.monotonic()
    yield from case.until("the deadline", lambda: bool(case.run.end) or case.run.is_suspended)
    is_whole = time.monotonic() - begun > _DEADLINE - _PART / 2
    case.seen["last attempt"] = "all of the time" if is_whole else "what was left of the time"


def _quota(case: Case) -> Script:
    """Raise a quota that has no place for the job."""
    yield from case.blocked()
    if "queue" in case.row:
        (_, (path, queue), _) = needs(case.namespace, {"flavor": case.row["queue"]}, case.chips)
        case.cluster.request("PATCH", f"{path}/{case.namespace}", {"spec": queue["spec"]})
    else:
        path = f"/api/v1/namespaces/{case.namespace}/resourcequotas/chips"
        case.cluster.request(
            "PATCH", path, {"spec": {"hard": {f"requests.{CHIPS}": str(case.chips)}}}
        )
    yield from case.until("the start", lambda: case.run.is_running)


def _suspended(case: Case) -> Script:
    yield from case.started()
    case.run.suspend(True)
    yield from case.until("the pods to go", lambda: not case.run.pods)
    case.seen["meanwhile"] = "suspended" if case.run.is_suspended else "waits"
    case.run.suspend(False)
    yield from case.until("the resumption", lambda: case.run.is_running)


FAULTS: Final[Mapping[str, Callable[[Case], Script]]] = {
    "none": _none,
    "a host fails with 1": _program_ends(1),
    "a host fails with 42": _program_ends(42),
    "a host fails in each attempt": _fails_until_the_end,
    "a host is evicted": _evicted,
    "a host fails with 1, then another is evicted": _others_fail_first,
    "a higher priority": _preempted,
    "a node is lost": _node_lost,
    "deadline": _deadline,
    "deadline after a restart": _deadline_after_a_restart,
    "quota": _quota,
    "suspended": _suspended,
}


def run_all(
    cluster: Cluster, pools: Sequence[Pool], rows: Sequence[Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Run all cases at the same time; return what was seen of each."""
    by_name = {pool.name: pool for pool in pools}
    cases = [Case(cluster, by_name, row) for row in rows]
    scripts: dict[str, Iterator[str]] = {case.namespace: case.script() for case in cases}
    deadline = time.monotonic() + SECONDS
    while scripts:
        seen = snapshots(cluster)
        for case in cases:
            if script := scripts.get(case.namespace):
                for run in filter(None, (case.run, case.rival)):
                    run.seen = seen.get(
                        case.namespace, run.seen._replace(jobsets={}, pods=(), workloads=())
                    )
                if (problem := _step(script, time.monotonic() > deadline)) is not None:
                    case.seen |= {"problem": problem} if problem else {}
                    del scripts[case.namespace]
        time.sleep(0.5)
    return {case.namespace: case.seen for case in cases}


def _step(script: Iterator[str], is_late: bool) -> str | None:
    """Go on with a script; return None if it waits, and a text at its end: empty, or why it ended too early."""
    try:
        waits_for = next(script)
    except StopIteration:
        return ""
    except (ApiError, CaseError) as error:
        return str(error)
    return f"waited for {waits_for}" if is_late else None
