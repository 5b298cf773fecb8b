"""One rendered job on the cluster: what it needs, the faults it meets, and what can be seen of it from outside."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from running_cluster import ApiError, Cluster
from simulated_nodes import END, Pool, nodes_of

from tpucfg.targets.gke.nodes import CHIPS, NODE_POOL

JOBSETS: Final = "/apis/jobset.x-k8s.io/v1alpha2"
KUEUE: Final = "/apis/kueue.x-k8s.io/v1beta2"
ATTEMPT: Final = "jobset.sigs.k8s.io/restart-attempt"
_JOB_INDEX: Final = "jobset.sigs.k8s.io/job-index"
LIVE: Final = ("Pending", "Running")
"""The phases of a pod that has not ended."""


class Snapshot(NamedTuple):
    """The objects of one namespace at one moment."""

    jobsets: Mapping[str, Any] = {}
    pods: tuple[Any, ...] = ()
    workloads: tuple[Any, ...] = ()


def snapshots(cluster: Cluster) -> dict[str, Snapshot]:
    """Return the objects of all namespaces, by namespace."""
    listed = {
        "jobsets": cluster.items(f"{JOBSETS}/jobsets"),
        "pods": cluster.items("/api/v1/pods"),
        "workloads": cluster.items(f"{KUEUE}/workloads"),
    }
    objects: dict[str, dict[str, list[Any]]] = {}
    for kind, items in listed.items():
        for item in items:
            objects.setdefault(item["metadata"]["namespace"], {}).setdefault(kind, []).append(item)
    return {
        namespace: Snapshot(
            {each["metadata"]["name"]: each for each in kinds.get("jobsets", ())},
            tuple(kinds.get("pods", ())),
            tuple(kinds.get("workloads", ())),
        )
        for namespace, kinds in objects.items()
    }


class JobRun:
    """A job of one namespace, seen through the latest snapshot."""

    def __init__(
        self, cluster: Cluster, body: Mapping[str, Any], pools: Mapping[str, Pool]
    ) -> None:
        self.cluster, self.body, self.pools = cluster, body, pools
        self.name, self.namespace = body["metadata"]["name"], body["metadata"]["namespace"]
        child = body["spec"]["replicatedJobs"][0]
        self.slices, self.hosts = (
            child["replicas"],
            child["replicas"] * child["template"]["spec"]["parallelism"],
        )
        self.seen = Snapshot()
        self.refusal = ""

    # What the job needs, and what is done to it

    def create(self) -> None:
        """Create the JobSet; a refusal of the server is kept."""
        try:
            self.cluster.request(
                "POST", f"{JOBSETS}/namespaces/{self.namespace}/jobsets", self.body
            )
        except ApiError as error:
            self.refusal = str(error)

    def end_program(self, code: int, pods: Iterable[Any]) -> None:
        """Let the programs of pods end."""
        for pod in pods:
            self._patch_pod(pod, {"metadata": {"annotations": {END: str(code)}}})

    def evict(self, pod: Any) -> None:
        """Evict a pod as `kubectl drain` does."""
        metadata = {"name": pod["metadata"]["name"], "namespace": self.namespace}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
        self.cluster.request("POST", f"{self._pod_path(pod)}/eviction", body)

    def lose_node(self, pod: Any) -> None:
        """Delete the node of a pod, as a cluster does when the machine is gone."""
        self.cluster.request("DELETE", f"/api/v1/nodes/{pod['spec']['nodeName']}")

    def repair_node(self, name: str) -> None:
        """Create a node again."""
        pool = self.pools[name.rpartition("-")[0]]
        (node,) = [each for each in nodes_of(pool) if each["metadata"]["name"] == name]
        self.cluster.request("POST", "/api/v1/nodes", node)

    def suspend(self, value: bool) -> None:
        """Suspend or resume the job: by its workload if Kueue decides, otherwise by the JobSet itself."""
        if self.seen.workloads:
            name = self.seen.workloads[0]["metadata"]["name"]
            path = f"{KUEUE}/namespaces/{self.namespace}/workloads/{name}"
            self.cluster.request("PATCH", path, {"spec": {"active": not value}})
        else:
            path = f"{JOBSETS}/namespaces/{self.namespace}/jobsets/{self.name}"
            self.cluster.request("PATCH", path, {"spec": {"suspend": value}})

    def _patch_pod(self, pod: Any, patch: Mapping[str, Any]) -> None:
        try:
            self.cluster.request("PATCH", self._pod_path(pod), patch)
        except ApiError as error:  # a pod of an attempt that ended between two snapshots
            if "not found" not in str(error):
                raise

    def _pod_path(self, pod: Any) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods/{pod['metadata']['name']}"

    # What can be seen

    @property
    def jobset(self) -> Mapping[str, Any]:
        """The JobSet; empty once it is gone."""
        jobset: Mapping[str, Any] = self.seen.jobsets.get(self.name, {})
        return jobset

    @property
    def status(self) -> Mapping[str, Any]:
        """The status of the JobSet."""
        status: Mapping[str, Any] = self.jobset.get("status", {})
        return status

    @property
    def end(self) -> str:
        """The condition by which the JobSet has ended, with its reason; empty while it has not."""
        for condition in self.status.get("conditions", ()):
            if condition["type"] in {"Completed", "Failed"} and condition["status"] == "True":
                failed = f" ({condition['reason']})" if condition["type"] == "Failed" else ""
                return f"{condition['type']}{failed}"
        return ""

    @property
    def is_suspended(self) -> bool:
        """True if the JobSet is suspended."""
        return bool(self.jobset.get("spec", {}).get("suspend"))

    @property
    def all_pods(self) -> list[Any]:
        """The pods of the job, those that have ended included."""
        key = "jobset.sigs.k8s.io/jobset-name"
        return [pod for pod in self.seen.pods if pod["metadata"]["labels"].get(key) == self.name]

    @property
    def attempt(self) -> int:
        """The number of restarts so far."""
        return int(self.status.get("restarts", 0))

    @property
    def pods(self) -> list[Any]:
        """The pods of the latest attempt that have not ended and are not being deleted."""
        return [
            pod
            for pod in self.all_pods
            if pod["status"]["phase"] in LIVE
            and "deletionTimestamp" not in pod["metadata"]
            and int(pod["metadata"]["labels"].get(ATTEMPT, 0)) == self.attempt
        ]

    def has_gone(self, name: str) -> bool:
        """Return True if a pod has ended, or was deleted."""
        return name not in {
            pod["metadata"]["name"] for pod in self.all_pods if pod["status"]["phase"] in LIVE
        }

    @property
    def is_running(self) -> bool:
        """True if every pod runs."""
        return [pod["status"]["phase"] for pod in self.pods] == ["Running"] * self.hosts

    def placement(self) -> list[str]:
        """Return the kind of the node pool of each slice, in order; pods that are apart are named."""
        slices: dict[str, set[str]] = {}
        for pod in self.pods:
            name = pod["spec"].get("nodeName", "")
            slices.setdefault(pod["metadata"]["labels"][_JOB_INDEX], set()).add(self._place(name))
        places = [" and ".join(sorted(each)) for _, each in sorted(slices.items())]
        own = len(set(places)) == len(places) and all(len(each) == 1 for each in slices.values())
        return (
            [place.rpartition("@")[0] for place in places]
            if own
            else [*places, "not on places of their own"]
        )

    def _place(self, node: str) -> str:
        """Return the kind of a node's pool, and its name, which is not shown, and its part of the pool."""
        pool = self.pools[node.rpartition("-")[0]]
        (match,) = [each for each in nodes_of(pool) if each["metadata"]["name"] == node]
        part = [value for key, value in match["metadata"]["labels"].items() if key.endswith("-id")]
        shown = f"part of {pool.size}" if part else pool.machine or pool.kind
        return f"{shown}@{part[0] if part else match['metadata']['labels'][NODE_POOL]}"


def needs(
    namespace: str, queue: Mapping[str, Any] | None, quota: int | None
) -> list[tuple[str, dict[str, Any]]]:
    """Return the objects of a namespace with their paths: its queue, or without one, a quota of chips."""
    parts: list[tuple[str, dict[str, Any]]] = [
        ("/api/v1/namespaces", _object("v1", "Namespace", namespace))
    ]
    if queue:
        flavor = {"name": queue["flavor"], "resources": [{"name": CHIPS, "nominalQuota": quota}]}
        spec = {
            "namespaceSelector": {},
            "preemption": {"withinClusterQueue": "LowerPriority"},
            "resourceGroups": [{"coveredResources": [CHIPS], "flavors": [flavor]}],
        }
        api = "kueue.x-k8s.io/v1beta2"
        parts.append(
            (f"{KUEUE}/clusterqueues", {**_object(api, "ClusterQueue", namespace), "spec": spec})
        )
        local = {
            **_object(api, "LocalQueue", "tpu", namespace),
            "spec": {"clusterQueue": namespace},
        }
        parts.append((f"{KUEUE}/namespaces/{namespace}/localqueues", local))
    elif quota is not None:
        hard = {"spec": {"hard": {f"requests.{CHIPS}": str(quota)}}}
        parts.append(
            (
                f"/api/v1/namespaces/{namespace}/resourcequotas",
                {**_object("v1", "ResourceQuota", "chips", namespace), **hard},
            )
        )
    return parts


def _object(api: str, kind: str, name: str, namespace: str | None = None) -> dict[str, Any]:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api, "kind": kind, "metadata": metadata}
