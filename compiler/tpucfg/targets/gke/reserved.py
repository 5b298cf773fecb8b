"""Fields of a JobSet that `extra` cannot set, although the target does not write them.

The sources are the reference of the fields (https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/,
https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/job-v1/ and
https://jobset.sigs.k8s.io/docs/reference/jobset.v1alpha2/), unless a field names another one.
"""

from collections.abc import Mapping
from typing import Any, Final

from tpucfg.targets.gke.labels import (
    ACCELERATOR,
    CHIPS,
    COMPUTE_CLASS,
    FLEX_START,
    INSTANCE,
    JOBSET,
    MAX_EXEC_TIME,
    MAX_RUN_DURATION,
    RESERVATION_AFFINITY,
    RESERVATION_NAME,
    RESERVATION_PROJECT,
    SLICE_TOPOLOGY,
    SPOT,
    TOPOLOGY,
    TPUS,
)
from tpucfg.targets.interface import RequestBody, Reserved
from tpucfg.targets.list_items import folder
from tpucfg.targets.reserved_variables import reserved_variables

_POD_API: Final = "https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/"
_JOB_API: Final = "https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/job-v1/"
_NODES: Final = "https://cloud.google.com/kubernetes-engine/docs/concepts/spot-vms"
_CLASSES: Final = "https://cloud.google.com/kubernetes-engine/docs/concepts/about-custom-compute-classes"
_IDENTITY: Final = "https://cloud.google.com/kubernetes-engine/docs/concepts/workload-identity"
_HOSTNAME_PAGE: Final = "https://kubernetes.io/docs/reference/labels-annotations-taints/#kubernetesiohostname"
_KUEUE: Final = "https://kueue.sigs.k8s.io/docs/reference/labels-and-annotations/"
_EXCLUSIVE: Final = "https://github.com/kubernetes-sigs/jobset/blob/v0.10.1/api/jobset/v1alpha2/jobset_types.go"
_CONTROLLER: Final = "https://github.com/kubernetes-sigs/jobset/blob/v0.10.1/pkg/controllers/jobset_controller.go"

_SLICES: Final = "spec.replicatedJobs"
_TEMPLATE: Final = f"{_SLICES}.slice.template"
_JOB: Final = f"{_TEMPLATE}.spec"
_POD_TEMPLATE: Final = f"{_JOB}.template"
_POD: Final = f"{_POD_TEMPLATE}.spec"
_TRAINER: Final = f"{_POD}.containers.trainer"

_CAPACITY, _SIZES, _DEADLINE, _RESTARTS = "capacity", "sizes", "trainer.max_run_duration", "trainer.restarts"
_REGION, _CLASS = "environments.<env>.region", "targets.gke.compute_class"

_NODE_LABELS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            SPOT,
            "cloud.google.com/gke-preemptible",
            FLEX_START,
            "cloud.google.com/gke-provisioning",
            "cloud.google.com/gke-queued",
            RESERVATION_AFFINITY,
            "cloud.google.com/reservation-blocks",
            RESERVATION_NAME,
            RESERVATION_PROJECT,
            "cloud.google.com/reservation-subblocks",
        ),
        _CAPACITY,
    ),
    COMPUTE_CLASS: _CLASS,
    MAX_RUN_DURATION: _DEADLINE,
    **dict.fromkeys(
        (
            "beta.kubernetes.io/instance-type",
            ACCELERATOR,
            TOPOLOGY,
            "cloud.google.com/machine-family",
            INSTANCE,
        ),
        _SIZES,
    ),
    **dict.fromkeys(
        (
            "failure-domain.beta.kubernetes.io/region",
            "failure-domain.beta.kubernetes.io/zone",
            "topology.gke.io/zone",
            "topology.kubernetes.io/region",
            "topology.kubernetes.io/zone",
        ),
        _REGION,
    ),
}
"""The setting that decides on the nodes with a label."""
_TAINTS: Final = frozenset(label for label, key in _NODE_LABELS.items() if key in (_CAPACITY, _CLASS))
"""The labels that are keys of taints too: a pod that tolerates one runs on nodes that its plan did not ask for."""
_AFFINITY: Final = f"{_POD}.affinity.nodeAffinity"
_TERMS: Final = (
    f"{_AFFINITY}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms.*",
    f"{_AFFINITY}.preferredDuringSchedulingIgnoredDuringExecution.*.preference",
)
_HOSTNAME: Final = "kubernetes.io/hostname"
"""The label that only one node has."""
_CHIPS: Final = (f"[{CHIPS}]", "[cloud-tpus.google.com/*]")
"""The resource that counts chips, and those by which pods asked for TPUs before node pools had them."""


def _tolerates_other_capacity(toleration: Any, _: RequestBody) -> bool:
    # A toleration without a key tolerates every taint.
    key = toleration.get("key") if isinstance(toleration, dict) else None
    return not key or (isinstance(key, str) and key in _TAINTS)


def _chooses_nodes(label: Any, _: RequestBody) -> bool:
    return isinstance(label, str) and label in _NODE_LABELS


def _chooses_hosts(expression: Any, _: RequestBody) -> bool:
    """Return True for an expression that names the hosts to use; one that avoids a broken host is none."""
    has_label = isinstance(expression, dict) and expression.get("key") == _HOSTNAME
    return has_label and expression.get("operator") not in ("NotIn", "Exists")


def _is_not_false(value: Any, _: RequestBody) -> bool:
    return value is not False


def _hides_a_mount(mount: Any, body: RequestBody) -> bool:
    """Return True for a mount below a folder that the target mounts, of which it would hide a part."""
    (job,) = body["spec"]["replicatedJobs"]
    (trainer,) = job["template"]["spec"]["template"]["spec"]["containers"]
    own = [folder(mount_of_job["mountPath"]) for mount_of_job in trainer.get("volumeMounts", ())]
    new = str(folder(mount.get("mountPath"))) if isinstance(mount, dict) else ""
    return any(new.startswith(f"{path}/") for path in own)


_ELSEWHERE: Final = Reserved(
    "environments.<env>.kube_context", "hand the job to a controller that may run it elsewhere", JOBSET
)
_PLACES: Final = "choose other nodes"
_ONE_NODE: Final = Reserved(_SIZES, "put every pod on one node, whatever machine that is", _POD_API)
_MORE_CHIPS: Final = Reserved(_SIZES, "ask for chips that the plan does not count", TPUS, adds_machines=True)
_DEVICES: Final = Reserved(_SIZES, "claim devices that the plan does not count", _POD_API, adds_machines=True)
_RESTARTED: Final = Reserved(_RESTARTS, "change when and how often the program is started again", _JOB_API)
_ENDED: Final = Reserved(_DEADLINE, "set another deadline", _JOB_API)

RESERVED: Final[Mapping[str, Reserved]] = {
    # The cluster, the account and the names.
    "spec.managedBy": _ELSEWHERE,
    f"{_JOB}.managedBy": _ELSEWHERE._replace(source=_JOB_API),
    f"{_POD}.serviceAccount": Reserved(
        "targets.gke.service_account", "name the account a second time, by the field's old name", _POD_API
    ),
    f"{_POD}.hostNetwork": Reserved(
        "targets.gke.service_account", "run the program as the account of its node", _IDENTITY, _is_not_false
    ),
    # Machines, chips and slices.
    f"{_SLICES}.*": Reserved(_SIZES, "add machines that the plan does not count", JOBSET, adds_machines=True),
    **{
        f"{_POD}.{path}.{chips}": _MORE_CHIPS
        for path in ("containers.*.resources.*", "initContainers.*.resources.*", "resources.*", "overhead")
        for chips in _CHIPS
    },
    f"{_POD}.resourceClaims.**": _DEVICES,
    f"{_POD}.resources.claims.**": _DEVICES,
    f"{_POD}.containers.*.resources.claims.**": _DEVICES,
    f"{_POD}.initContainers.*.resources.claims.**": _DEVICES,
    f"{_POD_TEMPLATE}.metadata.annotations.[{SLICE_TOPOLOGY}]": Reserved(
        _SIZES, "give the slice another topology", TPUS
    ),
    **{
        f"{path}metadata.annotations.[alpha.jobset.sigs.k8s.io/{name}]": Reserved(_SIZES, effect, _EXCLUSIVE)
        for path in ("", f"{_TEMPLATE}.")
        for name, effect in (
            ("exclusive-topology", "change which nodes count as one slice"),
            ("node-selector", "change how a slice gets its nodes"),
        )
    },
    # The nodes.
    f"{_POD}.nodeName": _ONE_NODE,
    f"{_POD}.nodeSelector.[{_HOSTNAME}]": _ONE_NODE._replace(source=_HOSTNAME_PAGE),
    **{
        f"{term}.matchExpressions.*": Reserved(_SIZES, "choose nodes by their names", _HOSTNAME_PAGE, _chooses_hosts)
        for term in _TERMS
    },
    **{f"{_POD}.nodeSelector.[{label}]": Reserved(key, _PLACES, _NODES) for label, key in _NODE_LABELS.items()},
    **{f"{term}.matchExpressions.*.key": Reserved(_SIZES, _PLACES, _POD_API, _chooses_nodes) for term in _TERMS},
    **{f"{term}.matchFields.**": Reserved(_SIZES, "choose nodes by their names", _POD_API) for term in _TERMS},
    f"{_POD}.tolerations.*": Reserved(
        _CAPACITY, "let pods run on nodes of another capacity", _NODES, _tolerates_other_capacity
    ),
    # The program.
    f"{_TRAINER}.command": Reserved("trainer.image", "replace the program of the image", _POD_API),
    f"{_TRAINER}.envFrom.**": Reserved(
        "trainer.env", "give the program variables that no file of the project shows", _POD_API
    ),
    f"{_TRAINER}.volumeMounts.*": Reserved(
        "trainer.mounts", "hide a part of a folder that is mounted for the program", _POD_API, _hides_a_mount
    ),
    **reserved_variables(f"{_TRAINER}.env", "gke"),
    # Restarts and the end.
    "spec.failurePolicy.rules.**": _RESTARTED._replace(source=JOBSET),
    f"{_JOB}.backoffLimitPerIndex": _RESTARTED,
    f"{_JOB}.maxFailedIndexes": _RESTARTED,
    f"{_JOB}.podFailurePolicy.**": _RESTARTED,
    f"{_TRAINER}.restartPolicy": _RESTARTED._replace(source=_POD_API),
    f"{_TRAINER}.restartPolicyRules.**": _RESTARTED._replace(source=_POD_API),
    f"{_JOB}.ttlSecondsAfterFinished": _RESTARTED._replace(
        effect="delete the job of a slice, which the JobSet starts again while other slices run", source=_CONTROLLER
    ),
    f"{_JOB}.activeDeadlineSeconds": _ENDED,
    f"{_POD}.activeDeadlineSeconds": _ENDED._replace(source=_POD_API),
    f"metadata.labels.[{MAX_EXEC_TIME}]": _ENDED._replace(source=_KUEUE),
    "metadata.annotations.[provreq.kueue.x-k8s.io/maxRunDurationSeconds]": _ENDED._replace(source=_KUEUE),
}
"""See `Target.RESERVED`."""
