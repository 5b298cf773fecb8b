"""The request body: a JobSet with one child job for each slice, whose pods take one host each.

No pod is privileged: according to the page on TPUs, only GKE before 1.28 needed that. No pod uses its host's network:
slices work without it, and the pods would lose their own account, see https://github.com/apple/axlearn/pull/641.
The variables by which slices find each other (MEGASCALE_…) and those of the hosts of a slice (TPU_WORKER_…) are set by
GKE, whose webhook sees the JobSet's labels: JobSet's own example for several slices sets none.
"""

from typing import Any, Final

from tpucfg.plan.job import Job
from tpucfg.plan.naming import account_id
from tpucfg.targets.common import without_empty
from tpucfg.targets.gke import mounts, placement, restarts
from tpucfg.targets.gke.capacity import node_selector, tolerations
from tpucfg.targets.gke.labels import CHIPS, EXCLUSIVE, MAX_EXEC_TIME, NODE_POOL, QUEUE
from tpucfg.targets.gke.secrets import secret_objects, secret_variables
from tpucfg.targets.interface import RequestBody

REPLICATED_JOB: Final = "slice"
CONTAINER: Final = "trainer"


def request_body(job: Job) -> RequestBody:
    """Return the JobSet."""
    replicated_job = {
        "name": REPLICATED_JOB,
        "replicas": job.slice.slices,
        "template": {"spec": _child_job(job)},
    }
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": without_empty(
            name=job.name,
            namespace=job.options.get("namespace", "default"),
            labels={**job.environment.labels, **_queue_labels(job)},
            annotations={EXCLUSIVE: NODE_POOL} if _has_own_node_pools(job) else {},
        ),
        "spec": {
            **without_empty(failurePolicy=restarts.failure_policy(job)),
            "replicatedJobs": [replicated_job],
        },
    }


def companions(job: Job) -> tuple[RequestBody, ...]:
    """Return the objects that provide the job's secrets, which are created before the JobSet."""
    return secret_objects(job, pod_account(job))


def pod_account(job: Job) -> str:
    """Return the Kubernetes service account of the pods."""
    return job.options.get("service_account") or account_id(name=job.project, environment=job.environment.name)


def escape_dollars(text: str) -> str:
    """Return the text escaped for Kubernetes, which expands `$(NAME)` and reads `$$` as `$`.

    Every `$` is doubled, not only those before a parenthesis: Kubernetes would read `$$` as `$`, and break `$é`.
    https://github.com/kubernetes/kubernetes/blob/v1.34.1/third_party/forked/golang/expansion/expand.go
    """
    return text.replace("$", "$$")


def _has_own_node_pools(job: Job) -> bool:
    """Return True if each slice is a node pool, which its pods must not share with another job."""
    # A single host's node pool may have several nodes: the job must not occupy all of them.
    return job.slice.hosts_per_slice > 1 and not placement.is_placed_by_queue(job)


def _queue_labels(job: Job) -> dict[str, str]:
    """Return the labels for Kueue: its queue, and the bound of all attempts together."""
    if not (queue := job.options.get("queue")):
        return {}
    seconds = restarts.deadline(job)
    return {QUEUE: queue} | ({MAX_EXEC_TIME: str(seconds)} if seconds else {})


def _child_job(job: Job) -> dict[str, Any]:
    """Return the job of one slice."""
    hosts = job.slice.hosts_per_slice
    return {
        "parallelism": hosts,
        "completions": hosts,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        **without_empty(
            activeDeadlineSeconds=restarts.deadline(job),
            podFailurePolicy=restarts.pod_failure_policy(job),
        ),
        "template": {
            **without_empty(metadata=without_empty(annotations=mounts.annotations(job) | placement.annotations(job))),
            "spec": _pod(job),
        },
    }


def _pod(job: Job) -> dict[str, Any]:
    return without_empty(
        serviceAccountName=pod_account(job),
        priorityClassName=job.options.get("priority"),
        imagePullSecrets=[{"name": name} for name in job.options.get("image_pull_secrets") or ()],
        restartPolicy="Never",
        nodeSelector=node_selector(job),
        tolerations=tolerations(job),
        containers=[_container(job)],
        volumes=mounts.volumes(job),
    )


def _container(job: Job) -> dict[str, Any]:
    chips = {CHIPS: job.slice.chips_per_host}
    variables = [{"name": key, "value": escape_dollars(value)} for key, value in job.env]
    return without_empty(
        name=CONTAINER,
        image=job.image,
        args=[escape_dollars(arg) for arg in job.args],
        env=[*variables, *secret_variables(job)],
        resources={"requests": chips, "limits": dict(chips)},
        volumeMounts=mounts.volume_mounts(job),
    )
