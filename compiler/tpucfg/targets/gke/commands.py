"""The kubectl commands of a job, with the environment's context: the current one may be another cluster."""

from tpucfg.plan import Job
from tpucfg.schemas import Problem
from tpucfg.spec import Environment
from tpucfg.targets.gke.request import RESOURCES, pod_account, uses_host_network
from tpucfg.targets.interface import Command, Submission, SubmissionError


def submission(job: Job) -> Submission:
    """Return the commands that create, watch and delete the job and the objects of its secrets.

    Raises:
        SubmissionError: The environment has no `kube_context`.
    """
    environment = job.environment
    if environment.kube_context is None:
        raise SubmissionError(_missing_context(environment))
    kubectl = ("kubectl", f"--context={environment.kube_context}")
    namespaced = (*kubectl, f"--namespace={job.options.get('namespace', 'default')}")
    objects = [f"jobset/{job.name}", *(f"{resource}/{job.name}" for resource in RESOURCES.values() if job.secrets)]
    return Submission(
        start=Command((*kubectl, "create", "--filename=-"), reads_config=True),
        watch=Command((*namespaced, "get", f"jobset/{job.name}", "--watch")),
        delete=Command((*namespaced, "delete", *objects)),
        notes=tuple(_notes(job, namespaced)),
    )


def _notes(job: Job, namespaced: tuple[str, ...]) -> list[str]:
    from shlex import join

    account = pod_account(job)
    create_account = (*namespaced, "create", "serviceaccount", account)
    # https://cloud.google.com/kubernetes-engine/docs/how-to/workload-identity
    bind = (*namespaced, "annotate", "serviceaccount", account, f"iam.gke.io/gcp-service-account={job.account}")
    pods = f"--selector=jobset.sigs.k8s.io/jobset-name={job.name}"
    output = (*namespaced, "logs", pods, "--follow", "--prefix", f"--max-log-requests={job.slice.hosts}")
    program = "the program itself acts as the account of the nodes, which needs access to the bucket: see TPU122"
    return [
        f"the pods run as the Kubernetes service account {account}; create it once: {join(create_account)}",
        f"it acts as the service account of the stack; bind it once: {join(bind)}",
        *([program] if uses_host_network(job) else []),
        f"the program's output: {join(output)}",
    ]


def _missing_context(environment: Environment) -> Problem:
    message = f"{environment.name} has no kube_context, and a job is never sent to the current cluster instead"
    hint = f"set environments.{environment.name}.kube_context to one of: kubectl config get-contexts --output=name"
    return Problem("TPU005", message, environment.path, hint, at_key=True)
