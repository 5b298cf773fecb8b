"""Read from a request body what a plan decides, without the code that writes or protects it.

Each reader follows the API's documentation: a fact that has two fields is read from both.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from posixpath import normpath
from typing import Any, Final

Body = Mapping[str, Any]
_VARIABLES: Final = re.compile(
    "LIBTPU_INIT_ARGS|GOOGLE_APPLICATION_CREDENTIALS|MEGASCALE_(COORDINATOR_ADDRESS|NUM_SLICES|PORT|SLICE_ID)"
    "|TPU_(WORKER|PROCESS|VISIBLE|CHIPS|HOST|TOPOLOGY).*|TPU_(ACCELERATOR_TYPE|NUM_DEVICES)|CLOUD_TPU_TASK_ID"
)
"""Variables with the compiler's flags, an account, or a host's chips and its place in the slice."""
_NODES: Final = re.compile(
    r".*(spot|preempt|flex-start|provisioning|queued|reservation|compute-class|max-run-duration|tpu-accelerator"
    r"|tpu-topology|instance-type|machine-family|/zone|/region)"
)
"""Labels of nodes that tell apart machines, capacity, deadline and place."""
_RUN_BY_HOSTS: Final = re.compile(
    r".*(script|user-data|container-declaration)|tpu-env|.*worker.*|agent-.*|accelerator-type"
)
"""Metadata that the guest agents execute, or from which JAX reads a host's place."""


def plan_facts(target: str, body: Body, planned: Body) -> dict[str, Any]:
    """Return the facts of a request body; `planned` is the one without `extra`, whose variables are the plan's."""
    return _READERS[target](body, planned)


def _vertex_ai(body: Body, planned: Body) -> dict[str, Any]:
    pool = body["workerPoolSpecs"][0]
    program = pool.get("containerSpec") or pool["pythonPackageSpec"]
    own = planned["workerPoolSpecs"][0]
    own_program = own.get("containerSpec") or own["pythonPackageSpec"]
    scheduling = body.get("scheduling", {})
    return {
        "pools": len(body["workerPoolSpecs"]),
        "replicas": pool["replicaCount"],
        "machine": pool["machineSpec"],
        "kinds": [kind for kind in ("containerSpec", "pythonPackageSpec") if kind in pool],
        "program": {key: value for key, value in program.items() if key != "env"},
        "variables": _variables(program, own_program),
        "account": body["serviceAccount"],
        "capacity": (scheduling.get("strategy"), body.get("persistentResourceId")),
        "deadline": scheduling.get("timeout"),
        "restarts": scheduling.get("disableRetries"),
        "output": body["baseOutputDirectory"],
    }


def _ai_platform(body: Body, _: Body) -> dict[str, Any]:
    training = body["trainingInput"]
    replicas = {
        role: {key: value for key, value in training.get(role, {}).items() if key != "diskConfig"}
        for role in ("masterConfig", "workerConfig", "parameterServerConfig", "evaluatorConfig")
    }
    keys: tuple[str, ...] = (
        "scaleTier",
        "masterType",
        "workerType",
        "workerCount",
        "region",
        "runtimeVersion",
        "pythonVersion",
    )
    keys += ("packageUris", "pythonModule", "args", "jobDir", "serviceAccount", "hyperparameters")
    keys += tuple(f"{role}{field}" for role in ("parameterServer", "evaluator") for field in ("Count", "Type"))
    deadline = training.get("scheduling", {}).get("maxRunningTime")
    return {key: training.get(key) for key in keys} | replicas | {"name": body.get("jobId"), "deadline": deadline}


def _cloud_tpu(body: Body, planned: Body) -> dict[str, Any]:
    specs = body["tpu"]["nodeSpec"]
    node = specs[0]["node"]
    own = planned["tpu"]["nodeSpec"][0]["node"]
    capacity = {key: body.get(key) for key in ("spot", "guaranteed", "reservationName")}
    keys = ("acceleratorType", "acceleratorConfig", "schedulingConfig", "runtimeVersion", "networkConfigs")
    return {
        "slices": (len(specs), specs[0].get("multisliceParams")),
        "place": (specs[0]["parent"], specs[0].get("nodeId")),
        **capacity,
        **{key: node.get(key) for key in keys},
        "network": {key: node["networkConfig"].get(key) for key in own["networkConfig"]},
        "account": node["serviceAccount"],
        "run by the hosts": {key: text for key, text in node["metadata"].items() if _RUN_BY_HOSTS.fullmatch(key)},
        "labels": {key: node["labels"].get(key) for key in own.get("labels", {})},
        "disks": node.get("dataDisks", [])[: len(own.get("dataDisks", []))],
    }


def _compute_engine(body: Body, planned: Body) -> dict[str, Any]:
    facts: dict[str, Any] = {"objects": [(key, value["kind"], value["name"]) for key, value in body.items()]}
    for key, own in planned.items():
        host, own_host = (value.get("properties", value) for value in (body[key], own))
        if "machineType" in own_host:
            facts |= _instance_facts(host, own_host)
    facts["protected"] = body.get("instance", {}).get("deletionProtection", False)
    facts["wait"] = body.get("instance", {}).get("params", {}).get("requestValidForDuration")
    facts["policy"] = {key: value for key, value in body.get("resourcePolicy", {}).items() if key.endswith("Policy")}
    sources = ("sourceInstance", "sourceInstanceParams")
    facts["template"] = [body.get("instanceTemplate", {}).get(key) for key in sources]
    free = ("description", "listManagedInstancesResults", "namedPorts", "targetPools")
    facts["group"] = {key: value for key, value in body.get("instanceGroupManager", {}).items() if key not in free}
    return facts


def _instance_facts(host: Body, own: Body) -> dict[str, Any]:
    """Return the facts of an instance, or of the properties of a template."""
    disk, own_disk = host["disks"][0], own["disks"][0]
    parameters = disk["initializeParams"]
    own_interface = own["networkInterfaces"][0]
    interface = host["networkInterfaces"][0]
    return {
        "machine": [host.get(key) for key in ("machineType", "guestAccelerators", "sourceMachineImage")],
        "policies": host.get("resourcePolicies"),
        "boot disk": [disk.get(key) for key in ("source", "boot", "autoDelete")]
        + [parameters.get(key) for key in (*own_disk["initializeParams"], "sourceSnapshot")],
        "other boot disks": [other for other in host["disks"][1:] if other.get("boot")],
        "network": {key: interface.get(key) for key in (*own_interface, "accessConfigs") if key != "accessConfigs"},
        "addresses": len(interface.get("accessConfigs", ())),
        "accounts": host["serviceAccounts"],
        "capacity": [host.get("scheduling"), host.get("reservationAffinity")],
        "labels": {key: host["labels"].get(key) for key in own.get("labels", {})},
        "run by the hosts": [
            item for item in host["metadata"]["items"] if _RUN_BY_HOSTS.fullmatch(item.get("key", ""))
        ],
    }


def _gke(body: Body, planned: Body) -> dict[str, Any]:
    jobs = body["spec"]["replicatedJobs"]
    job = jobs[0]["template"]["spec"]
    pod, own_pod = job["template"]["spec"], planned["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    own = own_pod["containers"][0]
    (trainer,) = [container for container in pod["containers"] if container["name"] == own["name"]]
    of_jobset = {**body["metadata"].get("annotations", {}), **body["metadata"].get("labels", {})}
    of_job = jobs[0]["template"].get("metadata", {}).get("annotations", {})
    of_pod = job["template"].get("metadata", {}).get("annotations", {})
    return {
        "object": [body[key] for key in ("apiVersion", "kind")],
        "name": (body["metadata"]["name"], body["metadata"]["namespace"]),
        "controller": (body["spec"].get("managedBy"), job.get("managedBy")),
        "slices": [(replicated["name"], replicated["replicas"]) for replicated in jobs],
        "pods": [job[key] for key in ("parallelism", "completions", "completionMode")],
        "chips": sum(map(int, _chips(pod))),
        "claims": [claim for claim in _claims(pod) if claim],
        "nodes": sorted(_chosen_nodes(pod)),
        "tolerated": [item for item in pod["tolerations"] if not item.get("key") or _NODES.match(item["key"])],
        "slices by annotation": [_matching("alpha.jobset.*", of_jobset), _matching("alpha.jobset.*", of_job)],
        "topology": _matching(".*slice-topology", of_pod),
        "program": [trainer.get(key) for key in ("image", "command", "args", "envFrom")],
        "variables": _variables(trainer, own),
        "account": [pod["serviceAccountName"], pod.get("serviceAccount"), bool(pod.get("hostNetwork"))],
        "deadline": [job.get("activeDeadlineSeconds"), pod.get("activeDeadlineSeconds")],
        "deadline of the queue": _matching(".*(max-exec-time|maxRunDuration).*", of_jobset),
        "restarts": [
            job.get(key)
            for key in ("backoffLimit", "backoffLimitPerIndex", "podFailurePolicy", "ttlSecondsAfterFinished")
        ]
        + [body["spec"].get("failurePolicy", {}).get(key) for key in ("maxRestarts", "rules")]
        + [pod["restartPolicy"], trainer.get("restartPolicy"), trainer.get("restartPolicyRules")],
        "mounts": _mounts(pod, trainer, own),
    }


_READERS: Final[Mapping[str, Callable[[Body, Body], dict[str, Any]]]] = {
    "vertex-ai": _vertex_ai,
    "ai-platform": _ai_platform,
    "cloud-tpu": _cloud_tpu,
    "compute-engine": _compute_engine,
    "gke": _gke,
}


def _matching(pattern: str, mapping: Body) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if re.fullmatch(pattern, key)}


def _variables(program: Body, own: Body) -> dict[str, Any]:
    """Return the variables of the plan, and those with its flags, account or place; of one name the last counts."""
    values = {item["name"]: item for item in program.get("env", ()) if isinstance(item.get("name"), str)}
    names = {item["name"] for item in own.get("env", ())}
    return {name: item for name, item in values.items() if name in names or _VARIABLES.fullmatch(name)}


def _containers(pod: Body) -> Iterator[Body]:
    yield from pod["containers"]
    yield from pod.get("initContainers", ())


def _chips(pod: Body) -> Iterator[str]:
    amounts = [pod.get("overhead", {})]
    for resources in (pod.get("resources", {}), *(container.get("resources", {}) for container in _containers(pod))):
        amounts.append(resources.get("limits", resources.get("requests", {})))
        amounts.append({k: v for k, v in resources.get("requests", {}).items() if k not in amounts[-1]})
    for amount in amounts:
        yield from (str(count) for name, count in amount.items() if "google.com/" in name)


def _claims(pod: Body) -> Iterator[Any]:
    yield pod.get("resourceClaims")
    for owner in (pod, *_containers(pod)):
        yield owner.get("resources", {}).get("claims")


def _chosen_nodes(pod: Body) -> Iterator[str]:
    yield str(pod.get("nodeName"))
    yield from (f"{label}={value}" for label, value in pod["nodeSelector"].items() if _NODES.match(label))
    affinity = pod.get("affinity", {}).get("nodeAffinity", {})
    terms = [*affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", ())]
    terms += [
        item.get("preference", {}) for item in affinity.get("preferredDuringSchedulingIgnoredDuringExecution", ())
    ]
    for term in terms:
        yield from (str(item) for item in term.get("matchFields", ()))
        yield from (str(item) for item in term.get("matchExpressions", ()) if _NODES.match(str(item.get("key"))))


def _mounts(pod: Body, trainer: Body, own: Body) -> list[Any]:
    folders = {mount["mountPath"]: mount["name"] for mount in own.get("volumeMounts", ())}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounts = []
    for mount in trainer.get("volumeMounts", ()):
        path = normpath("/" + str(mount.get("mountPath"))).replace("//", "/")
        if any(f"{path}/".startswith(f"{folder}/") for folder in folders):
            mounts.append((path, mount, volumes.get(mount.get("name"))))
    return mounts
