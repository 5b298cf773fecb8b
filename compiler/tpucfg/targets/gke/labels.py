"""Names that GKE, JobSet, Kueue and Cloud Storage FUSE give meaning to, and the public pages that define them."""

from typing import Final

JOBSET: Final = "https://jobset.sigs.k8s.io/docs/reference/jobset.v1alpha2/"
TPUS: Final = "https://cloud.google.com/kubernetes-engine/docs/how-to/tpus"
MULTISLICE: Final = "https://jobset.sigs.k8s.io/docs/tasks/tpu_multislice/"

# Labels of nodes, which a pod selects.
ACCELERATOR: Final = "cloud.google.com/gke-tpu-accelerator"
TOPOLOGY: Final = "cloud.google.com/gke-tpu-topology"
INSTANCE: Final = "node.kubernetes.io/instance-type"
NODE_POOL: Final = "cloud.google.com/gke-nodepool"
SPOT: Final = "cloud.google.com/gke-spot"
FLEX_START: Final = "cloud.google.com/gke-flex-start"
MAX_RUN_DURATION: Final = "cloud.google.com/gke-max-run-duration-seconds"
RESERVATION_NAME: Final = "cloud.google.com/reservation-name"
RESERVATION_PROJECT: Final = "cloud.google.com/reservation-project"
RESERVATION_AFFINITY: Final = "cloud.google.com/reservation-affinity"
COMPUTE_CLASS: Final = "cloud.google.com/compute-class"
PLACEMENT_POLICY: Final = "cloud.google.com/placement-policy-name"

# Labels and annotations of a JobSet.
EXCLUSIVE: Final = "alpha.jobset.sigs.k8s.io/exclusive-topology"
QUEUE: Final = "kueue.x-k8s.io/queue-name"
MAX_EXEC_TIME: Final = "kueue.x-k8s.io/max-exec-time-seconds"

# Annotations of a pod.
SLICE_TOPOLOGY: Final = "cloud.google.com/gke-tpu-slice-topology"
REQUIRED_TOPOLOGY: Final = "kueue.x-k8s.io/podset-required-topology"
SLICE_REQUIRED_TOPOLOGY: Final = "kueue.x-k8s.io/podset-slice-required-topology"
SLICE_SIZE: Final = "kueue.x-k8s.io/podset-slice-size"

CHIPS: Final = "google.com/tpu"
"""The resource that counts the chips of a pod."""
