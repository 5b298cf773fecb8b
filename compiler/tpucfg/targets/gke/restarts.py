"""The end of a job: which failures start it again, and when it is stopped.

A JobSet without a failure policy fails with its first failed job. A restart recreates all child jobs, on all slices.
Sources: https://jobset.sigs.k8s.io/docs/concepts/ (failure policies),
https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-failure-policy (pod failure policies),
https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions (DisruptionTarget),
https://github.com/kubernetes-sigs/jobset/tree/main/keps/262-ConfigurableFailurePolicy (messages of failed jobs).
"""

from typing import Any, Final

from tpucfg.plan.job import Job
from tpucfg.targets.common import without_empty

DISRUPTION: Final = "DisruptionTarget"
"""The condition of a pod that lost its node: preempted, drained for maintenance, or deleted with the node."""
_DISRUPTION_RULE: Final = {
    "name": "disruption",
    "action": "RestartJobSetAndIgnoreMaxRestarts",
    "onJobFailureReasons": ["PodFailurePolicy"],
    # The failed job's message has the condition: "Pod a/b has condition DisruptionTarget matching FailJob rule …".
    "onJobFailureMessagePatterns": [f"condition {DISRUPTION}"],
}
_DEADLINE_RULE: Final = {"name": "deadline", "action": "FailJobSet", "onJobFailureReasons": ["DeadlineExceeded"]}


def failure_policy(job: Job) -> dict[str, Any]:
    """Return the JobSet's failure policy: which failures are restarts, and which of them count; empty without one."""
    if job.restarts is None:
        return {}
    rules = [
        *([_DISRUPTION_RULE] if _restarts_for_free(job) else []),
        # Without it, a job that reached its deadline would be started again, with a new deadline.
        *([_DEADLINE_RULE] if job.restarts and job.max_run_duration else []),
    ]
    return {"maxRestarts": job.restarts, **without_empty(rules=rules)}


def pod_failure_policy(job: Job) -> dict[str, Any]:
    """Return the policy by which a disrupted pod fails its job with a reason that the JobSet's rule matches."""
    if not _restarts_for_free(job):
        return {}
    return {"rules": [{"action": "FailJob", "onPodConditions": [{"type": DISRUPTION, "status": "True"}]}]}


def deadline(job: Job) -> int | None:
    """Return the seconds after which the child jobs are stopped; each restart has them anew."""
    return job.max_run_duration.seconds if job.max_run_duration else None


def _restarts_for_free(job: Job) -> bool:
    """Return True if a disruption restarts the job without counting: with restarts, and not with 0 of them."""
    return bool(job.restarts)
