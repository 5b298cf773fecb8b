"""The origin of every field that this target writes, for `tpucfg why` and for the locations of findings."""

from collections.abc import Mapping
from typing import Any, Final

from tpucfg.paths import matches
from tpucfg.targets.gke.labels import (
    ACCELERATOR,
    CHIPS,
    COMPUTE_CLASS,
    EXCLUSIVE,
    FLEX_START,
    INSTANCE,
    JOBSET,
    MAX_EXEC_TIME,
    MAX_RUN_DURATION,
    MULTISLICE,
    PLACEMENT_POLICY,
    QUEUE,
    REQUIRED_TOPOLOGY,
    RESERVATION_AFFINITY,
    RESERVATION_NAME,
    RESERVATION_PROJECT,
    SLICE_REQUIRED_TOPOLOGY,
    SLICE_SIZE,
    SLICE_TOPOLOGY,
    SPOT,
    TOPOLOGY,
    TPUS,
)
from tpucfg.targets.gke.rules import NAMES
from tpucfg.targets.gke.secrets import PROVIDER_CLASS, SYNC
from tpucfg.targets.interface import (
    CAPACITY,
    COMPANIONS,
    DEADLINE,
    MACHINE,
    MACHINES,
    MORE_CHIPS,
    Effect,
    Origin,
    Reserved,
)

_SHM: Final = "https://github.com/pytorch/pytorch#using-pre-built-images"
_SECRETS: Final = "https://cloud.google.com/secret-manager/docs/sync-k8-secrets"
_FUSE: Final = "https://cloud.google.com/kubernetes-engine/docs/how-to/cloud-storage-fuse-csi-driver-sidecar"

_POD_API: Final = "https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/"
_NODES: Final = "https://cloud.google.com/kubernetes-engine/docs/concepts/spot-vms"
_KUEUE: Final = "https://kueue.sigs.k8s.io/docs/reference/labels-and-annotations/"

_CHILD: Final = "spec.replicatedJobs.*.template.spec"
_TEMPLATE: Final = f"{_CHILD}.template"
_POD: Final = f"{_TEMPLATE}.spec"
_ONE_POD: Final = "a failed pod fails the job of its slice: started again alone, it cannot rejoin the program"
_SHARED_MEMORY: Final = Origin("rule", "a container's own /dev/shm has 64 MB, too little for data loaders", _SHM)
_CAPACITY: Final = Origin("spec", "capacity")
_RESTARTS: Final = Origin("spec", "trainer.restarts")
_DURATION: Final = Origin("spec", "trainer.max_run_duration")
_MOUNTS: Final = Origin("spec", "trainer.mounts")

ORIGINS: Final[Mapping[str, Origin]] = {
    "apiVersion": Origin("rule", "the API of JobSets", JOBSET),
    "kind": Origin("rule", "a JobSet even for one job: it gives the pods names to find each other by", JOBSET),
    "metadata.name": Origin("rule", "the job's name", NAMES, "name"),
    "metadata.namespace": Origin("spec", "targets.gke.namespace"),
    f"metadata.labels.[{QUEUE}]": Origin("spec", "targets.gke.queue"),
    f"metadata.labels.[{MAX_EXEC_TIME}]": _DURATION,
    "metadata.labels.*": Origin("spec", "environments.<env>.labels"),
    f"metadata.annotations.[{EXCLUSIVE}]": Origin(
        "rule", "each job on a node pool of its own, a slice", MULTISLICE, "sizes"
    ),
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
        for name in (SLICE_TOPOLOGY, REQUIRED_TOPOLOGY, SLICE_REQUIRED_TOPOLOGY, SLICE_SIZE)
    },
    f"{_TEMPLATE}.metadata.annotations.*": Origin("rule", "GKE adds the container that mounts the buckets", _FUSE),
    f"{_POD}.serviceAccountName": Origin("spec", "targets.gke.service_account"),
    f"{_POD}.priorityClassName": Origin("spec", "targets.gke.priority"),
    f"{_POD}.imagePullSecrets.**": Origin("spec", "targets.gke.image_pull_secrets"),
    f"{_POD}.restartPolicy": Origin("rule", _ONE_POD, JOBSET),
    f"{_POD}.nodeSelector.[{ACCELERATOR}]": Origin("catalog", "gke_label", TPUS),
    f"{_POD}.nodeSelector.[{TOPOLOGY}]": Origin("catalog", "topology", TPUS),
    f"{_POD}.nodeSelector.[{INSTANCE}]": Origin("spec", "overrides.<size>.machine"),
    f"{_POD}.nodeSelector.[{COMPUTE_CLASS}]": Origin("spec", "targets.gke.compute_class"),
    f"{_POD}.nodeSelector.[{PLACEMENT_POLICY}]": Origin("spec", "targets.gke.placement_policy"),
    f"{_POD}.nodeSelector.[{MAX_RUN_DURATION}]": _DURATION,
    **{
        f"{_POD}.nodeSelector.[{label}]": _CAPACITY
        for label in (SPOT, FLEX_START, RESERVATION_NAME, RESERVATION_PROJECT, RESERVATION_AFFINITY)
    },
    f"{_POD}.tolerations.0.**": Origin("rule", "nodes with TPUs are tainted, so that no other pod runs there", TPUS),
    f"{_POD}.tolerations.1.**": _CAPACITY,
    f"{_POD}.containers.*.name": Origin("rule", "any name: the pod has one container", JOBSET),
    f"{_POD}.containers.*.image": Origin("spec", "trainer.image"),
    f"{_POD}.containers.*.args.*": Origin("figure", ""),
    f"{_POD}.containers.*.env.*.valueFrom.**": Origin("spec", "trainer.secrets"),
    f"{_POD}.containers.*.env.**": Origin("spec", "trainer.env"),
    f"{_POD}.containers.*.resources.*.[{CHIPS}]": Origin("catalog", "chips_per_host", TPUS),
    f"{_POD}.containers.*.volumeMounts.0.**": _SHARED_MEMORY,
    f"{_POD}.containers.*.volumeMounts.**": _MOUNTS,
    f"{_POD}.volumes.0.**": _SHARED_MEMORY,
    f"{_POD}.volumes.**": _MOUNTS,
    f"{COMPANIONS}.{PROVIDER_CLASS}.spec.parameters.secrets.**": Origin("spec", "trainer.secrets"),
    f"{COMPANIONS}.{SYNC}.spec.secretObject.data.**": Origin("spec", "trainer.secrets"),
    f"{COMPANIONS}.{SYNC}.spec.serviceAccountName": Origin("spec", "targets.gke.service_account"),
    f"{COMPANIONS}.*.metadata.namespace": Origin("spec", "targets.gke.namespace"),
    f"{COMPANIONS}.*.metadata.labels.*": Origin("spec", "environments.<env>.labels"),
    f"{COMPANIONS}.**": Origin("rule", "GKE copies the secrets' values from Secret Manager for the pods", _SECRETS),
}
_NODE_LABELS: Final[Mapping[str, Effect]] = {
    **dict.fromkeys(
        (SPOT, "cloud.google.com/gke-preemptible", FLEX_START, "cloud.google.com/gke-provisioning"), CAPACITY
    ),
    **dict.fromkeys(("cloud.google.com/gke-queued", "cloud.google.com/reservation-*", COMPUTE_CLASS), CAPACITY),
    **dict.fromkeys(("*.kubernetes.io/instance-type", "cloud.google.com/gke-tpu-*"), MACHINE),
    "cloud.google.com/machine-family": MACHINE,
    MAX_RUN_DURATION: DEADLINE,
}
"""The labels of nodes by which a pod would choose others than the plan has."""


def _is_node_label(key: Any) -> bool:
    return any(matches(f"[{label}]", (str(key),)) for label in _NODE_LABELS)


def _tolerates_other_nodes(toleration: Any) -> bool:
    # A toleration without a key tolerates every taint.
    return isinstance(toleration, dict) and (not toleration.get("key") or _is_node_label(toleration["key"]))


RESERVED: Final[Mapping[str, Reserved]] = {
    "spec.replicatedJobs.*": Reserved(MACHINES, JOBSET),
    **dict.fromkeys((f"**.[{CHIPS}]", "**.[cloud-tpus.google.com/*]"), Reserved(MORE_CHIPS, TPUS)),
    **dict.fromkeys(("**.resourceClaims", "**.claims"), Reserved(MORE_CHIPS, _POD_API)),
    "**.activeDeadlineSeconds": Reserved(DEADLINE, _POD_API),
    f"metadata.labels.[{MAX_EXEC_TIME}]": Reserved(DEADLINE, _KUEUE),
    "metadata.annotations.[provreq.kueue.x-k8s.io/maxRunDurationSeconds]": Reserved(DEADLINE, _KUEUE),
    **{f"**.nodeSelector.[{label}]": Reserved(effect, _NODES) for label, effect in _NODE_LABELS.items()},
    "**.nodeAffinity.**.key": Reserved(CAPACITY, _NODES, _is_node_label),
    "**.tolerations.*": Reserved(CAPACITY, _NODES, _tolerates_other_nodes),
    f"**.annotations.[{SLICE_TOPOLOGY}]": Reserved(MACHINE, TPUS),
    "**.nodeName": Reserved(MACHINE, _POD_API),
}
"""See `Target.RESERVED`."""
