"""GKE: the config is a JobSet of one job, whose pods take one host each of one slice.

Sources: https://jobset.sigs.k8s.io/docs/reference/jobset.v1alpha2/ (the request body),
https://cloud.google.com/kubernetes-engine/docs/how-to/tpus (selectors and chips of a pod),
https://cloud.google.com/kubernetes-engine/docs/how-to/tpu-multislice (JobSets on TPU slices).

No pod is privileged: according to the page on TPUs, only GKE before 1.28 needed that. No pod uses its host's network:
one slice works without it, and the pods would lose their own account, see https://github.com/apple/axlearn/pull/641.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tpucfg.catalog import Slice
from tpucfg.findings import Finding
from tpucfg.plan.job import Job
from tpucfg.plan.naming import account_id
from tpucfg.schemas import Problem
from tpucfg.spec.project import Environment, Project
from tpucfg.targets.common import (
    distinct_settings,
    long_account_id,
    long_job_names,
    package_unsupported,
    unsupported_machines,
    unsupported_sizes,
    uses_own_account,
    without_empty,
)
from tpucfg.targets.gke_reserved import RESERVED
from tpucfg.targets.gke_rules import ACCELERATOR, CHIPS, NAMES, TOPOLOGY, max_name_length, rules
from tpucfg.targets.interface import Command, Origin, RequestBody, Submission, SubmissionError

__all__ = ["NAME", "ORIGINS", "RESERVED", "request_body", "rules", "spec_findings", "submission"]

NAME: Final = "gke"
REPLICATED_JOB: Final = "slice"
CONTAINER: Final = "trainer"

_EXCLUSIVE: Final = "alpha.jobset.sigs.k8s.io/exclusive-topology"
_NODE_POOL: Final = "cloud.google.com/gke-nodepool"
_QUEUE: Final = "kueue.x-k8s.io/queue-name"
_RESERVATION: Final = "cloud.google.com/reservation-name"
_INSTANCE: Final = "node.kubernetes.io/instance-type"

_JOBSET: Final = "https://jobset.sigs.k8s.io/docs/reference/jobset.v1alpha2/"
_TPUS: Final = "https://cloud.google.com/kubernetes-engine/docs/how-to/tpus"
_PLACEMENT: Final = "https://jobset.sigs.k8s.io/docs/tasks/tpu_multislice/"
_SHM: Final = "https://github.com/pytorch/pytorch#using-pre-built-images"

_JOB: Final = "spec.replicatedJobs.*.template.spec"
_POD: Final = f"{_JOB}.template.spec"
_ONE_TRY: Final = Origin(
    "rule", "one try: a restarted pod alone cannot rejoin the running program", _JOBSET, "trainer.restarts"
)
_SHARED_MEMORY: Final = Origin("rule", "a container's own /dev/shm has 64 MB, too little for data loaders", _SHM)

ORIGINS: Final[Mapping[str, Origin]] = {
    "apiVersion": Origin("rule", "the API of JobSets", _JOBSET),
    "kind": Origin("rule", "a JobSet even for one job: it gives the pods names to find each other by", _JOBSET),
    "metadata.name": Origin("rule", "the job's name", NAMES, "name"),
    "metadata.namespace": Origin("spec", "targets.gke.namespace"),
    f"metadata.labels.[{_QUEUE}]": Origin("spec", "targets.gke.queue"),
    "metadata.labels.*": Origin("spec", "environments.<env>.labels"),
    f"metadata.annotations.[{_EXCLUSIVE}]": Origin(
        "rule", "all pods on one node pool, which is one slice", _PLACEMENT, "sizes"
    ),
    "spec.failurePolicy.maxRestarts": _ONE_TRY,
    "spec.replicatedJobs.*.name": Origin("rule", "part of the pods' names", NAMES),
    "spec.replicatedJobs.*.replicas": Origin("rule", "one job for the one slice", _JOBSET, "sizes"),
    f"{_JOB}.parallelism": Origin("catalog", "hosts", _TPUS),
    f"{_JOB}.completions": Origin("catalog", "hosts", _TPUS),
    f"{_JOB}.completionMode": Origin("rule", "each pod has the index of its host", _TPUS),
    f"{_JOB}.backoffLimit": _ONE_TRY,
    f"{_POD}.serviceAccountName": Origin("spec", "targets.gke.service_account"),
    f"{_POD}.restartPolicy": _ONE_TRY,
    f"{_POD}.nodeSelector.[{ACCELERATOR}]": Origin("catalog", "gke_label", _TPUS),
    f"{_POD}.nodeSelector.[{TOPOLOGY}]": Origin("catalog", "topology", _TPUS),
    f"{_POD}.nodeSelector.[{_INSTANCE}]": Origin("spec", "overrides.<size>.machine"),
    f"{_POD}.nodeSelector.[{_RESERVATION}]": Origin("spec", "capacity"),
    f"{_POD}.tolerations.**": Origin("rule", "nodes with TPUs are tainted, so that no other pod runs there", _TPUS),
    f"{_POD}.containers.*.name": Origin("rule", "any name: the pod has one container", _JOBSET),
    f"{_POD}.containers.*.image": Origin("spec", "trainer.image"),
    f"{_POD}.containers.*.args.*": Origin("figure", ""),
    f"{_POD}.containers.*.env.**": Origin("spec", "trainer.env"),
    f"{_POD}.containers.*.resources.*.[{CHIPS}]": Origin("catalog", "chips_per_host", _TPUS),
    f"{_POD}.containers.*.volumeMounts.**": _SHARED_MEMORY,
    f"{_POD}.volumes.**": _SHARED_MEMORY,
}


def spec_findings(project: Project, environment: Environment, slices: Sequence[Slice]) -> Iterator[Finding]:
    """Yield findings about sizes, trainers and names that a cluster refuses."""
    yield from unsupported_sizes(project, environment, slices, NAME)
    yield from unsupported_machines(
        project, [slice_ for slice_ in slices if NAME in slice_.targets], NAME, chooses=True
    )
    yield from package_unsupported(project, distinct_settings(project, environment, slices), NAME)
    yield from long_job_names(project, environment, slices, lambda s: max_name_length(REPLICATED_JOB, s.hosts), NAMES)
    if not uses_own_account(project, environment, slices, NAME):
        yield from long_account_id(project, environment, NAME)


def request_body(job: Job) -> RequestBody:
    """Return the JobSet."""
    hosts, options = job.slice.hosts, job.options
    job_spec = {
        "parallelism": hosts,
        "completions": hosts,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "template": {"spec": _pod(job)},
    }
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": without_empty(
            name=job.name,
            namespace=options.get("namespace", "default"),
            labels={**job.environment.labels, **without_empty(**{_QUEUE: options.get("queue")})},
            # Not for a single host, whose node pool may have several nodes: the job must not occupy all of them.
            annotations={_EXCLUSIVE: _NODE_POOL} if hosts > 1 else {},
        ),
        "spec": {
            "failurePolicy": {"maxRestarts": 0},
            "replicatedJobs": [{"name": REPLICATED_JOB, "replicas": 1, "template": {"spec": job_spec}}],
        },
    }


def _pod(job: Job) -> dict[str, Any]:
    return {
        "serviceAccountName": _account(job),
        "restartPolicy": "Never",
        "nodeSelector": _selector(job),
        "tolerations": [{"key": CHIPS, "operator": "Exists", "effect": "NoSchedule"}],
        "containers": [_container(job)],
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}],
    }


def _account(job: Job) -> str:
    return job.options.get("service_account") or account_id(name=job.project, environment=job.environment.name)


def _selector(job: Job) -> dict[str, str]:
    machine, machines = job.slice.machine, job.slice.machines
    # All machines of a size have the same labels. A pod for the smaller machine would also fit on half of a larger one,
    # so it selects its machine by name. A pod for the larger machine fits no smaller one.
    smaller = machine and any(machine.chips < other.chips for other in machines)
    return without_empty(
        **{
            ACCELERATOR: machine and machine.gke_label,
            TOPOLOGY: job.slice.topology,
            _INSTANCE: machine.name if machine and smaller else None,
            _RESERVATION: job.capacity.reservation,
        }
    )


def _container(job: Job) -> dict[str, Any]:
    chips = {CHIPS: job.slice.chips_per_host}
    return without_empty(
        name=CONTAINER,
        image=job.image,
        args=[escape_dollars(arg) for arg in job.args],
        env=[{"name": key, "value": escape_dollars(value)} for key, value in job.env],
        resources={"requests": chips, "limits": dict(chips)},
        volumeMounts=[{"name": "shm", "mountPath": "/dev/shm"}],  # noqa: S108 - the pod's, not this machine's
    )


def escape_dollars(text: str) -> str:
    """Return the text escaped for Kubernetes, which expands `$(NAME)` and reads `$$` as `$`.

    Every `$` is doubled, not only those before a parenthesis: Kubernetes would read `$$` as `$`, and break `$é`.
    https://github.com/kubernetes/kubernetes/blob/v1.34.1/third_party/forked/golang/expansion/expand.go
    """
    return text.replace("$", "$$")


def submission(job: Job) -> Submission:
    """Return kubectl's commands, with the environment's context, because the current one may be another cluster.

    Raises:
        SubmissionError: The environment has no `kube_context`.
    """
    from shlex import join

    environment = job.environment
    if environment.kube_context is None:
        raise SubmissionError(_missing_context(environment))
    kubectl = ("kubectl", f"--context={environment.kube_context}")
    namespaced = (*kubectl, f"--namespace={job.options.get('namespace', 'default')}")
    pods = f"--selector=jobset.sigs.k8s.io/jobset-name={job.name}"
    account = _account(job)
    create_account = (*namespaced, "create", "serviceaccount", account)
    # https://cloud.google.com/kubernetes-engine/docs/how-to/workload-identity
    bind = (*namespaced, "annotate", "serviceaccount", account, f"iam.gke.io/gcp-service-account={job.account}")
    output = (*namespaced, "logs", pods, "--follow", "--prefix", f"--max-log-requests={job.slice.hosts}")
    return Submission(
        start=Command((*kubectl, "create", "--filename=-"), reads_config=True),
        watch=Command((*namespaced, "get", f"jobset/{job.name}", "--watch")),
        delete=Command((*namespaced, "delete", f"jobset/{job.name}")),
        notes=(
            f"the pods run as the Kubernetes service account {account}; create it once: {join(create_account)}",
            f"it acts as the service account of the stack; bind it once: {join(bind)}",
            f"the program's output: {join(output)}",
        ),
    )


def _missing_context(environment: Environment) -> Problem:
    message = f"{environment.name} has no kube_context, and a job is never sent to the current cluster instead"
    hint = f"set environments.{environment.name}.kube_context to one of: kubectl config get-contexts --output=name"
    return Problem("TPU005", message, environment.path, hint, at_key=True)
