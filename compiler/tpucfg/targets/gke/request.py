"""The objects of a job: a JobSet with one child job for each slice, whose pods take one host each, and its secrets.

No pod is privileged: according to the page on TPUs, only GKE before 1.28 needed that. Pods use the network of their
hosts only with `host_network`: it is faster, and the program loses the account of its own (TPU122), see
https://github.com/apple/axlearn/pull/641.
The variables by which slices find each other (MEGASCALE_…) and those of the hosts of a slice (TPU_WORKER_…) are set by
GKE, whose webhook sees the JobSet's labels: JobSet's own example for several slices sets none.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any, Final

from tpucfg.paths import matches
from tpucfg.plan.job import Job, job_labels
from tpucfg.plan.naming import account_id
from tpucfg.spec.settings import Duration, Mount, Secret
from tpucfg.targets.gke import nodes
from tpucfg.targets.gke.nodes import CHIPS, SLICE_TOPOLOGY, is_placed_by_queue
from tpucfg.targets.interface import (
    CAPACITY,
    COMPANIONS,
    DEADLINE,
    MACHINE,
    MACHINES,
    MORE_CHIPS,
    ExtraEffect,
    Origin,
    RequestBody,
    Reserved,
    label_origins,
    without_empty,
)

NAME: Final = "gke"
JOBSET: Final = "https://jobset.sigs.k8s.io/docs/reference/jobset.v1alpha2/"
TPUS: Final = "https://cloud.google.com/kubernetes-engine/docs/how-to/tpus"
MULTISLICE: Final = "https://jobset.sigs.k8s.io/docs/tasks/tpu_multislice/"
NAMES: Final = (
    "https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/pkg/webhooks/jobset_webhook.go"
)
"""JobSet's webhook, which computes the longest name of a pod and refuses one that is no DNS label."""
EXCLUSIVE: Final = "alpha.jobset.sigs.k8s.io/exclusive-topology"
QUEUE: Final = "kueue.x-k8s.io/queue-name"
MAX_EXEC_TIME: Final = "kueue.x-k8s.io/max-exec-time-seconds"
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
            labels={**job_labels(job), **_queue_labels(job)},
            annotations={EXCLUSIVE: nodes.NODE_POOL} if _has_own_node_pools(job) else {},
        ),
        "spec": {
            **without_empty(ttlSecondsAfterFinished=_ttl(job), failurePolicy=_failure_policy(job)),
            "replicatedJobs": [replicated_job],
        },
    }


def companions(job: Job) -> tuple[RequestBody, ...]:
    """Return the objects that provide the job's secrets, which are created before the JobSet."""
    return _secret_objects(job, pod_account(job))


def pod_account(job: Job) -> str:
    """Return the Kubernetes service account of the pods."""
    return job.options.get("service_account") or account_id(
        name=job.project, environment=job.environment.name
    )


def escape_dollars(text: str) -> str:
    """Return the text escaped for Kubernetes, which expands `$(NAME)` and reads `$$` as `$`.

    Every `$` is doubled, not only those before a parenthesis: Kubernetes would read `$$` as `$`, and break `$é`.
    https://github.com/kubernetes/kubernetes/blob/v1.34.1/third_party/forked/golang/expansion/expand.go
    """
    return text.replace("$", "$$")


def _has_own_node_pools(job: Job) -> bool:
    """Return True if each slice is a node pool, which its pods must not share with another job."""
    # A single host's node pool may have several nodes: the job must not occupy all of them.
    return job.slice.hosts_per_slice > 1 and not is_placed_by_queue(job)


def _queue_labels(job: Job) -> dict[str, str]:
    """Return the labels for Kueue: its queue, and the bound of all attempts together."""
    seconds = _deadline(job) if nodes.queue_of(job) else None
    return without_empty(
        **{QUEUE: job.options.get("queue"), MAX_EXEC_TIME: str(seconds) if seconds else None}
    )


def _child_job(job: Job) -> dict[str, Any]:
    """Return the job of one slice."""
    hosts = job.slice.hosts_per_slice
    annotations = _mount_annotations(job) | nodes.placement_annotations(job)
    return {
        "parallelism": hosts,
        "completions": hosts,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        **without_empty(
            activeDeadlineSeconds=_deadline(job),
            podFailurePolicy=_pod_failure_policy(job),
        ),
        "template": {
            # GKE's cost allocation reads the labels of pods.
            "metadata": without_empty(labels=job_labels(job), annotations=annotations),
            "spec": _pod(job),
        },
    }


def _pod(job: Job) -> dict[str, Any]:
    return without_empty(
        serviceAccountName=pod_account(job),
        priorityClassName=job.options.get("priority"),
        imagePullSecrets=[{"name": name} for name in job.options.get("image_pull_secrets") or ()],
        restartPolicy="Never",
        **_network(job),
        nodeSelector=nodes.node_selector(job),
        affinity=nodes.node_affinity(job),
        tolerations=nodes.tolerations(job),
        containers=[_container(job, name) for name in container_names(job)],
        volumes=_volumes(job),
    )


def uses_host_network(job: Job) -> bool:
    """Return True if the pods use the network of their hosts, and with it the account of the nodes."""
    return bool(job.options.get("host_network"))


def _network(job: Job) -> dict[str, Any]:
    """Return the fields of the host's network; its DNS policy finds the cluster's names, such as the other pods."""
    return (
        {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
        if uses_host_network(job)
        else {}
    )


def container_names(job: Job) -> list[str]:
    """Return the names of a pod's containers, each of which runs the program with an equal part of the chips."""
    count = job.options.get("containers_per_host") or 1
    return [CONTAINER] if count == 1 else [f"{CONTAINER}-{number + 1}" for number in range(count)]


def _container(job: Job, name: str) -> dict[str, Any]:
    chips = {CHIPS: job.slice.chips_per_host // len(container_names(job))}
    variables = [{"name": key, "value": escape_dollars(value)} for key, value in job.env]
    return without_empty(
        name=name,
        image=job.image,
        command=[escape_dollars(word) for word in job.command],
        args=[escape_dollars(arg) for arg in job.args],
        env=[*variables, *_secret_variables(job)],
        resources={"requests": chips, "limits": dict(chips)},
        volumeMounts=_volume_mounts(job),
    )


# The end of a job: which failures start it again, and when it is stopped.
#
# A JobSet without a failure policy fails with its first failed job. A restart recreates all child jobs, on all slices.
# Sources: https://jobset.sigs.k8s.io/docs/concepts/ (failure policies),
# https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-failure-policy (pod failure policies),
# https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions (DisruptionTarget),
# https://github.com/kubernetes-sigs/jobset/tree/main/keps/262-ConfigurableFailurePolicy (messages of failed jobs),
# https://github.com/AI-Hypercomputer/xpk/blob/v1.13.1/src/xpk/commands/workload.py (FailJob for other exit codes).

DISRUPTION: Final = "DisruptionTarget"
"""The condition of a pod that lost its node: preempted, drained for maintenance, or deleted with the node."""
_DISRUPTION_RULE: Final = {
    "name": "disruption",
    "action": "RestartJobSetAndIgnoreMaxRestarts",
    "onJobFailureReasons": ["PodFailurePolicy"],
    # The failed job's message has the condition: "Pod a/b has condition DisruptionTarget matching FailJob rule …".
    "onJobFailureMessagePatterns": [f"condition {DISRUPTION}"],
}
# After the rule for disruptions, which fail their job with the same reason: the first rule that matches is applied.
_EXIT_CODE_RULE: Final = {
    "name": "exitCode",
    "action": "FailJobSet",
    "onJobFailureReasons": ["PodFailurePolicy"],
}
_DEADLINE_RULE: Final = {
    "name": "deadline",
    "action": "FailJobSet",
    "onJobFailureReasons": ["DeadlineExceeded"],
}


def _failure_policy(job: Job) -> dict[str, Any]:
    """Return the JobSet's failure policy: which failures are restarts, and which of them count; empty without one."""
    if job.restarts is None:
        return {}
    rules = [
        *([_DISRUPTION_RULE] if _restarts_for_free(job) else []),
        *([_EXIT_CODE_RULE] if job.exit_codes else []),
        # Without it, a job that reached its deadline would be started again, with a new deadline.
        *([_DEADLINE_RULE] if job.restarts and job.max_run_duration else []),
    ]
    return {"maxRestarts": job.restarts, **without_empty(rules=rules)}


def _pod_failure_policy(job: Job) -> dict[str, Any]:
    """Return the policy by which a pod fails its job with a reason that the JobSet's rules match.

    The pod was disrupted, or its program failed with an exit code that is not worth a restart. Any other failure fails
    the job by its `backoffLimit`, which no rule of the JobSet matches: it restarts, and the restart counts.
    """
    rules: list[dict[str, Any]] = []
    if _restarts_for_free(job):
        rules.append(
            {"action": "FailJob", "onPodConditions": [{"type": DISRUPTION, "status": "True"}]}
        )
    if job.exit_codes:
        requirement = {"operator": "NotIn", "values": [*job.exit_codes]}
        codes = [{"containerName": name, **requirement} for name in container_names(job)]
        rules += [{"action": "FailJob", "onExitCodes": each} for each in codes]
    return without_empty(rules=rules)


def _deadline(job: Job) -> int | None:
    """Return the seconds after which the child jobs are stopped; each restart has them anew."""
    return job.max_run_duration.seconds if job.max_run_duration else None


DEFAULT_TTL: Final = "12h"
"""XPK's default: https://github.com/AI-Hypercomputer/xpk/blob/v1.13.1/src/xpk/parser/workload.py."""


def _ttl(job: Job) -> int | None:
    """Return the seconds after which the JobSet is deleted when it has ended; None if it stays."""
    text = job.options.get("ttl", DEFAULT_TTL)
    return Duration.read(text).seconds if text else None


def _restarts_for_free(job: Job) -> bool:
    """Return True if a disruption restarts the job without counting: with restarts, and not with 0 of them."""
    return bool(job.restarts)


# Buckets as folders of the program, by the CSI driver of Cloud Storage FUSE.
#
# Sources: https://cloud.google.com/kubernetes-engine/docs/how-to/cloud-storage-fuse-csi-driver-ephemeral (volumes),
# https://cloud.google.com/kubernetes-engine/docs/how-to/cloud-storage-fuse-csi-driver-sidecar (annotations),
# https://cloud.google.com/storage/docs/cloud-storage-fuse/mount-bucket (only-dir, implicit-dirs).

FUSE_PREFIX: Final = "gke-gcsfuse"
# GKE gives the driver's container 256 MiB by default, too little for a program that reads with many threads; 0 is none.
_ANNOTATIONS: Final = {
    f"{FUSE_PREFIX}/volumes": "true",
    f"{FUSE_PREFIX}/cpu-limit": "0",
    f"{FUSE_PREFIX}/memory-limit": "0",
    f"{FUSE_PREFIX}/ephemeral-storage-limit": "0",
}
SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - the pod's, not this machine's
_MAX_NAME_LENGTH: Final = 50
"""A volume's name is a DNS label, with 63 characters: https://kubernetes.io/docs/concepts/storage/volumes/."""


def _mount_annotations(job: Job) -> dict[str, str]:
    """Return the pod's annotations, by which GKE adds the driver's container."""
    return dict(_ANNOTATIONS) if job.mounts else {}


def _volumes(job: Job) -> list[dict[str, Any]]:
    """Return the pod's volumes: shared memory, and one for each mount."""
    shared = {"name": "shm", "emptyDir": {"medium": "Memory"}}
    # On the host's network, the driver would mount with the account of the node: from GKE 1.33.3-gke.1226000.
    account = {"hostNetworkPodKSA": "true"} if uses_host_network(job) else {}
    return [shared, *(_bucket_volume(name, mount, account) for name, mount in _named(job.mounts))]


def _volume_mounts(job: Job) -> list[dict[str, str]]:
    """Return the folders of the container at which the volumes are mounted."""
    mounts = [{"name": name, "mountPath": mount.path} for name, mount in _named(job.mounts)]
    return [{"name": "shm", "mountPath": SHARED_MEMORY}, *mounts]


def _bucket_volume(name: str, mount: Mount, account: Mapping[str, str]) -> dict[str, Any]:
    bucket, _, folder = mount.source.removeprefix("gs://").partition("/")
    # Objects that no tool created a folder for are visible only with implicit-dirs.
    options = ["implicit-dirs", *([f"only-dir={folder}"] if folder else [])]
    attributes = {"bucketName": bucket, "mountOptions": ",".join(options), **account}
    return {
        "name": name,
        "csi": {"driver": "gcsfuse.csi.storage.gke.io", "volumeAttributes": attributes},
    }


def _named(mounts: Iterable[Mount]) -> Iterator[tuple[str, Mount]]:
    """Yield each mount with the name of its volume, after its path: a further mount does not rename the others."""
    names: set[str] = set()
    for mount in mounts:
        path = re.sub(r"[^a-z0-9]+", "-", mount.path.lower())[:_MAX_NAME_LENGTH]
        name = f"mount{path}".rstrip("-")
        if name in names:  # /a.b and /a/b
            numbered = (f"{name}-{number}" for number in count(len(names) + 1))
            name = next(each for each in numbered if each not in names)
        names.add(name)
        yield name, mount


# Secrets: objects by which GKE copies values from Secret Manager into a Kubernetes secret, and references to it.
#
# The config has no value. A SecretProviderClass lists the secrets, and a SecretSync has GKE create a Kubernetes secret
# of its own name from them. A pod that starts earlier waits: a missing key keeps its container from being created.
# Sources: https://cloud.google.com/secret-manager/docs/sync-k8-secrets (both objects),
# https://github.com/GoogleCloudPlatform/secrets-store-csi-driver-provider-gcp/blob/main/config/config.go (the list).

PROVIDER_CLASS: Final = "SecretProviderClass"
SYNC: Final = "SecretSync"
COMPANION_SCHEMAS: Final = {PROVIDER_CLASS: "secret-provider-class", SYNC: "secret-sync"}
"""The schema of each kind."""


def _secret_objects(job: Job, account: str) -> tuple[RequestBody, ...]:
    """Return the objects that provide the job's secrets; none for a job without secrets.

    Args:
        job: The job.
        account: The Kubernetes service account that may read the secrets.
    """
    if not job.secrets:
        return ()
    metadata = without_empty(
        name=job.name, namespace=job.options.get("namespace", "default"), labels=job_labels(job)
    )
    sources = "".join(_source(secret) for secret in job.secrets)
    provider_class = {
        "apiVersion": "secrets-store.csi.x-k8s.io/v1",
        "kind": PROVIDER_CLASS,
        "metadata": metadata,
        "spec": {"provider": "gke", "parameters": {"secrets": sources}},
    }
    names = [_key(secret) for secret in job.secrets]
    keys = [{"sourcePath": name, "targetKey": name} for name in names]
    sync = {
        "apiVersion": "secret-sync.gke.io/v1",
        "kind": SYNC,
        "metadata": dict(metadata),
        "spec": {
            "serviceAccountName": account,
            "secretProviderClassName": job.name,
            "secretObject": {"type": "Opaque", "data": keys},
        },
    }
    return (provider_class, sync)


def _secret_variables(job: Job) -> list[dict[str, Any]]:
    """Return the environment variables that refer to the Kubernetes secret."""
    return [
        {
            "name": secret.variable,
            "valueFrom": {"secretKeyRef": {"name": job.name, "key": _key(secret)}},
        }
        for secret in job.secrets
    ]


def _source(secret: Secret) -> str:
    """Return an entry of the list of secrets, which is YAML in a text; none of its parts needs quotes."""
    resource = f"projects/{secret.project}/secrets/{secret.name}/versions/{secret.version}"
    return f'- resourceName: "{resource}"\n  path: "{_key(secret)}"\n'


_KEY: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9]+([-._a-zA-Z0-9]?[A-Za-z0-9])*)?")
"""A name that a SecretSync takes:
https://github.com/kubernetes-sigs/secrets-store-sync-controller/blob/main/api/v1alpha1/secretsync_types.go."""


def _key(secret: Secret) -> str:
    """Return the key of a secret: its variable, or another name if a SecretSync refuses that, such as `A_B`."""
    return (
        secret.variable
        if _KEY.fullmatch(secret.variable)
        else f"key-{secret.variable.replace('_', '-')}"
    )


# The origin of every field, for `tpucfg why` and for the locations of findings, and what `extra` cannot set.

_SHM: Final = "https://github.com/pytorch/pytorch#using-pre-built-images"
_SECRETS: Final = "https://cloud.google.com/secret-manager/docs/sync-k8-secrets"
_FUSE: Final = (
    "https://cloud.google.com/kubernetes-engine/docs/how-to/cloud-storage-fuse-csi-driver-sidecar"
)

_HOST_NETWORK: Final = Origin("spec", "targets.gke.host_network")
_POD_API: Final = "https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/"
_NODES: Final = "https://cloud.google.com/kubernetes-engine/docs/concepts/spot-vms"
_KUEUE: Final = "https://kueue.sigs.k8s.io/docs/reference/labels-and-annotations/"

_CHILD: Final = "spec.replicatedJobs.*.template.spec"
_TEMPLATE: Final = f"{_CHILD}.template"
_POD: Final = f"{_TEMPLATE}.spec"
_ONE_POD: Final = (
    "a failed pod fails the job of its slice: started again alone, it cannot rejoin the program"
)
_SHARED_MEMORY: Final = Origin(
    "rule", "a container's own /dev/shm has 64 MB, too little for data loaders", _SHM
)
_CAPACITY: Final = Origin("spec", "capacity")
_RESTARTS: Final = Origin("spec", "trainer.restarts")
_DURATION: Final = Origin("spec", "trainer.max_run_duration")
_MOUNTS: Final = Origin("spec", "trainer.mounts")

ORIGINS: Final[Mapping[str, Origin]] = {
    "apiVersion": Origin("rule", "the API of JobSets", JOBSET),
    "kind": Origin(
        "rule", "a JobSet even for one job: it gives the pods names to find each other by", JOBSET
    ),
    "metadata.name": Origin("rule", "the job's name", NAMES, "name"),
    "metadata.namespace": Origin("spec", "targets.gke.namespace"),
    f"metadata.labels.[{QUEUE}]": Origin("spec", "targets.gke.queue"),
    f"metadata.labels.[{MAX_EXEC_TIME}]": _DURATION,
    **label_origins("metadata.labels"),
    f"metadata.annotations.[{EXCLUSIVE}]": Origin(
        "rule", "each job on a node pool of its own, a slice", MULTISLICE, "sizes"
    ),
    "spec.ttlSecondsAfterFinished": Origin("spec", "targets.gke.ttl"),
    "spec.failurePolicy.**": _RESTARTS,
    "spec.replicatedJobs.*.name": Origin("rule", "part of the pods' names", NAMES),
    "spec.replicatedJobs.*.replicas": Origin("catalog", "slices", MULTISLICE),
    f"{_CHILD}.parallelism": Origin("catalog", "hosts_per_slice", TPUS),
    f"{_CHILD}.completions": Origin("catalog", "hosts_per_slice", TPUS),
    f"{_CHILD}.completionMode": Origin("rule", "each pod has the index of its host", TPUS),
    f"{_CHILD}.backoffLimit": Origin("rule", _ONE_POD, JOBSET),
    f"{_CHILD}.activeDeadlineSeconds": _DURATION,
    f"{_CHILD}.podFailurePolicy.**": _RESTARTS,
    **{
        f"{_TEMPLATE}.metadata.annotations.[{name}]": Origin("spec", "targets.gke.topology_aware")
        for name in (
            SLICE_TOPOLOGY,
            nodes.REQUIRED_TOPOLOGY,
            nodes.SLICE_REQUIRED_TOPOLOGY,
            nodes.SLICE_SIZE,
        )
    },
    **label_origins(f"{_TEMPLATE}.metadata.labels"),
    f"{_TEMPLATE}.metadata.annotations.*": Origin(
        "rule", "GKE adds the container that mounts the buckets", _FUSE
    ),
    f"{_POD}.serviceAccountName": Origin("spec", "targets.gke.service_account"),
    f"{_POD}.priorityClassName": Origin("spec", "targets.gke.priority"),
    f"{_POD}.imagePullSecrets.**": Origin("spec", "targets.gke.image_pull_secrets"),
    f"{_POD}.restartPolicy": Origin("rule", _ONE_POD, JOBSET),
    f"{_POD}.hostNetwork": _HOST_NETWORK,
    f"{_POD}.dnsPolicy": _HOST_NETWORK,
    f"{_POD}.nodeSelector.[{nodes.ACCELERATOR}]": Origin("catalog", "gke_label", TPUS),
    f"{_POD}.nodeSelector.[{nodes.TOPOLOGY}]": Origin("catalog", "topology", TPUS),
    f"{_POD}.nodeSelector.[{nodes.INSTANCE}]": Origin("spec", "overrides.<size>.machine"),
    f"{_POD}.nodeSelector.[{nodes.COMPUTE_CLASS}]": Origin("spec", "targets.gke.compute_class"),
    f"{_POD}.nodeSelector.[{nodes.PLACEMENT_POLICY}]": Origin(
        "spec", "targets.gke.placement_policy"
    ),
    f"{_POD}.nodeSelector.[{nodes.MAX_RUN_DURATION}]": _DURATION,
    **{
        f"{_POD}.nodeSelector.[{label}]": _CAPACITY
        for label in (nodes.SPOT, nodes.FLEX_START, "cloud.google.com/reservation-*")
    },
    f"{_POD}.tolerations.0.**": Origin(
        "rule", "nodes with TPUs are tainted, so that no other pod runs there", TPUS
    ),
    f"{_POD}.tolerations.*.**": _CAPACITY,
    f"{_POD}.affinity.**": _CAPACITY,
    f"{_POD}.containers.1.name": Origin("spec", "targets.gke.containers_per_host"),
    f"{_POD}.containers.*.name": Origin("rule", "any name: the pod has one container", JOBSET),
    f"{_POD}.containers.*.image": Origin("spec", "trainer.image"),
    f"{_POD}.containers.*.command.*": Origin("spec", "trainer.command"),
    f"{_POD}.containers.*.args.*": Origin("figure", ""),
    f"{_POD}.containers.*.env.*.valueFrom.**": Origin("spec", "trainer.secrets"),
    f"{_POD}.containers.*.env.**": Origin("spec", "trainer.env"),
    f"{_POD}.containers.*.resources.*.[{CHIPS}]": Origin("catalog", "chips_per_host", TPUS),
    f"{_POD}.containers.*.volumeMounts.0.**": _SHARED_MEMORY,
    f"{_POD}.containers.*.volumeMounts.**": _MOUNTS,
    f"{_POD}.volumes.0.**": _SHARED_MEMORY,
    f"{_POD}.volumes.*.csi.volumeAttributes.hostNetworkPodKSA": _HOST_NETWORK,
    f"{_POD}.volumes.**": _MOUNTS,
    f"{COMPANIONS}.{PROVIDER_CLASS}.spec.parameters.secrets.**": Origin("spec", "trainer.secrets"),
    f"{COMPANIONS}.{SYNC}.spec.secretObject.data.**": Origin("spec", "trainer.secrets"),
    f"{COMPANIONS}.{SYNC}.spec.serviceAccountName": Origin("spec", "targets.gke.service_account"),
    f"{COMPANIONS}.*.metadata.namespace": Origin("spec", "targets.gke.namespace"),
    **label_origins(f"{COMPANIONS}.*.metadata.labels"),
    f"{COMPANIONS}.**": Origin(
        "rule", "GKE copies the secrets' values from Secret Manager for the pods", _SECRETS
    ),
}
_NODE_LABELS: Final[Mapping[str, ExtraEffect]] = {
    **{
        f"cloud.google.com/gke-{name}": CAPACITY
        for name in ("spot", "preemptible", "flex-start", "provisioning", "queued")
    },
    **dict.fromkeys(("cloud.google.com/reservation-*", nodes.COMPUTE_CLASS), CAPACITY),
    **dict.fromkeys(("*.kubernetes.io/instance-type", "cloud.google.com/gke-tpu-*"), MACHINE),
    "cloud.google.com/machine-family": MACHINE,
    nodes.MAX_RUN_DURATION: DEADLINE,
}
"""The labels of nodes by which a pod would choose others than the plan has."""


_NODE_ACCOUNT: Final = ExtraEffect(
    "TPU067", "targets.gke.host_network", "give the program the account of the nodes"
)
WORKLOAD_IDENTITY: Final = (
    "https://cloud.google.com/kubernetes-engine/docs/concepts/workload-identity#restrictions"
)


def _is_node_label(key: Any, _: Job) -> bool:
    return any(matches(f"[{label}]", (str(key),)) for label in _NODE_LABELS)


def _tolerates_other_nodes(toleration: Any, job: Job) -> bool:
    # A toleration without a key tolerates every taint.
    return isinstance(toleration, dict) and (
        not toleration.get("key") or _is_node_label(toleration["key"], job)
    )


def _is_other_topology(topology: Any, job: Job) -> bool:
    # Recipes and xpk write that of the slice on node pools too, where the selector decides.
    return bool(topology != job.slice.topology)


RESERVED: Final[Mapping[str, Reserved]] = {
    "spec.replicatedJobs.*": Reserved(MACHINES, JOBSET),
    **dict.fromkeys((f"**.[{CHIPS}]", "**.[cloud-tpus.google.com/*]"), Reserved(MORE_CHIPS, TPUS)),
    **dict.fromkeys(("**.resourceClaims", "**.claims"), Reserved(MORE_CHIPS, _POD_API)),
    "**.activeDeadlineSeconds": Reserved(DEADLINE, _POD_API),
    f"metadata.labels.[{MAX_EXEC_TIME}]": Reserved(DEADLINE, _KUEUE),
    "metadata.annotations.[provreq.kueue.x-k8s.io/maxRunDurationSeconds]": Reserved(
        DEADLINE, _KUEUE
    ),
    **{
        f"**.nodeSelector.[{label}]": Reserved(effect, _NODES)
        for label, effect in _NODE_LABELS.items()
    },
    "**.nodeAffinity.**.key": Reserved(CAPACITY, _NODES, _is_node_label),
    "**.tolerations.*": Reserved(CAPACITY, _NODES, _tolerates_other_nodes),
    f"**.annotations.[{SLICE_TOPOLOGY}]": Reserved(MACHINE, TPUS, _is_other_topology),
    "**.nodeName": Reserved(MACHINE, _POD_API),
    "**.template.spec.hostNetwork": Reserved(
        _NODE_ACCOUNT, WORKLOAD_IDENTITY, lambda value, _: bool(value)
    ),
}
"""See `Target.RESERVED`."""
