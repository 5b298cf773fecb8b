"""The origin of every field that this target writes, for `tpucfg why` and for the locations of findings."""

from collections.abc import Mapping
from typing import Final

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
from tpucfg.targets.interface import COMPANIONS, Origin

_SHM: Final = "https://github.com/pytorch/pytorch#using-pre-built-images"
_SECRETS: Final = "https://cloud.google.com/secret-manager/docs/sync-k8-secrets"
_FUSE: Final = "https://cloud.google.com/kubernetes-engine/docs/how-to/cloud-storage-fuse-csi-driver-sidecar"

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
