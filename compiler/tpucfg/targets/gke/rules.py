"""Rules for a JobSet that fits its schema: a cluster would refuse it, or never schedule its pods."""

import re
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, Final

from tpucfg.catalog import Catalog
from tpucfg.plan.naming import MAX_DNS_LABEL_LENGTH
from tpucfg.schemas import Problem
from tpucfg.targets.common import service_problem
from tpucfg.targets.gke.labels import ACCELERATOR, CHIPS, MAX_EXEC_TIME, TOPOLOGY
from tpucfg.targets.gke.versions import version_problems
from tpucfg.targets.interface import RequestBody
from tpucfg.text_format import format_value, listed
from tpucfg.yamldoc.document import KeyPath

NAMES: Final = "https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/pkg/webhooks/jobset_webhook.go"
"""JobSet's webhook, which computes the longest name of a pod and refuses one that is no DNS label."""

_POD_SUFFIX: Final = "-abcde"
"""The suffix that Kubernetes adds to a pod's name, with five random characters."""
_CHIPS: Final = re.compile(r"[0-9]{1,9}")
_SECONDS: Final = re.compile(r"[0-9]{1,10}")
_MAX_SECONDS: Final = 2**31 - 1
"""https://kueue.sigs.k8s.io/docs/concepts/workload/#maximum-execution-time: a field of 32 bits."""
_DNS_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_CONTAINER_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_CONTAINERS: Final = "https://github.com/kubernetes/kubernetes/blob/v1.33.0/pkg/apis/core/validation/validation.go"
_LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_LABEL_KEY: Final = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
"""Keys and values of labels: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set."""


def pod_name(jobset: str, job: str, *, replicas: int, pods: int) -> str:
    """Return the longest pod name of a replicated job."""
    return f"{jobset}-{job}-{replicas - 1}-{pods - 1}{_POD_SUFFIX}"


def max_name_length(job: str, pods: int, *, replicas: int) -> int:
    """Return the maximum length of the name of a JobSet with these replicas of one job."""
    return MAX_DNS_LABEL_LENGTH - len(pod_name("", job, replicas=replicas, pods=pods))


def rules(body: RequestBody, catalog: Catalog) -> Iterator[Problem]:
    """Yield the problems of names, labels and releases, and of pods that do not fill the hosts of a slice."""
    yield from version_problems(body)
    yield from _name_rules(body)
    yield from _label_rules(("metadata", "labels"), body["metadata"].get("labels", {}))
    yield from _duration_rule(body["metadata"].get("labels", {}))
    jobs = body["spec"]["replicatedJobs"]
    if not any(_requested_chips(container) for job in jobs for container in _pod(_job(job)).get("containers", [])):
        fix = f"add resources.limits.{CHIPS} to the container, with the chips of its host"
        yield service_problem(("spec", "replicatedJobs"), f"no container requests {CHIPS}", fix)
    for index, job in enumerate(jobs):
        path = ("spec", "replicatedJobs", index, "template", "spec")
        yield from _job_rules(path, _job(job), catalog)


def _job(replicated: Mapping[str, Any]) -> Mapping[str, Any]:
    job: Mapping[str, Any] = replicated["template"].get("spec", {})
    return job


def _pod(job: Mapping[str, Any]) -> Mapping[str, Any]:
    pod: Mapping[str, Any] = job.get("template", {}).get("spec", {})
    return pod


def _name_rules(body: RequestBody) -> Iterator[Problem]:
    name, path = body["metadata"]["name"], ("metadata", "name")
    if not _DNS_LABEL.fullmatch(name):
        rule = "is not a DNS label: lower-case letters, digits and inner dashes, a letter first"
        yield service_problem(path, f"{format_value(name, quoted=False)} {rule}", "use another name, such as mnist-1")
    for replicated in body["spec"]["replicatedJobs"]:
        pods = _job(replicated).get("completions", 1)
        longest_name = pod_name(name, replicated["name"], replicas=replicated.get("replicas", 1), pods=pods)
        if (excess := len(longest_name) - MAX_DNS_LABEL_LENGTH) > 0:
            message = (
                f"its pods would have names of {len(longest_name)} characters, and {MAX_DNS_LABEL_LENGTH} are allowed"
            )
            details = (f"the rule: {NAMES}",)
            yield Problem("TPU030", f"the JobSet {name}: {message}", path, f"shorten it by {excess}", details=details)


def _label_rules(path: KeyPath, labels: Mapping[str, str]) -> Iterator[Problem]:
    for key, value in labels.items():
        if not _LABEL_KEY.fullmatch(key) or not _LABEL_VALUE.fullmatch(value):
            message = (
                f"{format_value(value)} is not valid in a label: key and value begin and end with a letter or digit"
            )
            fix = "use only letters, digits and inner dashes, dots and underscores in both"
            yield service_problem((*path, key), message, fix)


def _job_rules(path: KeyPath, job: Mapping[str, Any], catalog: Catalog) -> Iterator[Problem]:
    pod, pod_path = _pod(job), (*path, "template", "spec")
    if pod.get("restartPolicy") == "Always":
        yield service_problem((*pod_path, "restartPolicy"), "the pods of a job must end", "set it to Never")
    yield from _label_rules((*pod_path, "nodeSelector"), pod.get("nodeSelector", {}))
    yield from _container_rules(pod_path, pod)
    chips = 0
    for index, container in enumerate(pod.get("containers", [])):
        yield from _request_rules((*pod_path, "containers", index, "resources"), container.get("resources", {}))
        yield from _variable_rules((*pod_path, "containers", index, "env"), container.get("env", []))
        chips += _requested_chips(container)
    selector = pod.get("nodeSelector", {})
    # If one of the labels is missing, the node pool determines the slice, and nothing can be checked here.
    if chips and ACCELERATOR in selector and TOPOLOGY in selector:
        yield from _shape_rules(path, job, chips, catalog)


def _container_rules(pod_path: KeyPath, pod: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield an error for each container without an image, and for a name that is no DNS label or used twice."""
    names: set[str] = set()
    for field in ("containers", "initContainers"):
        for index, container in enumerate(pod.get(field, [])):
            path, name = (*pod_path, field, index), container["name"]
            if not _CONTAINER_NAME.fullmatch(name):
                message = (
                    f"{format_value(name, quoted=False)} is not a DNS label: lower-case letters, digits and dashes"
                )
                yield _container_problem((*path, "name"), message, "use another name, such as sidecar")
            elif name in names:
                yield _container_problem((*path, "name"), f"the pod has two containers {name}", "use another name")
            names.add(name)
            if not container.get("image"):
                yield _container_problem(path, f"the container {name} has no image", "add image to it")


def _container_problem(path: KeyPath, message: str, fix: str) -> Problem:
    return service_problem(path, message, fix)._replace(details=(f"the rule: {_CONTAINERS}",))


def _variable_rules(path: KeyPath, variables: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """Yield an error for each variable that a container has twice, of which Kubernetes silently takes the last."""
    names: set[str] = set()
    for index, variable in enumerate(variables):
        if variable["name"] in names:
            message = f"the variable {variable['name']} is set twice, and the program gets only the last value"
            yield service_problem((*path, index, "name"), message, "delete one of the two")
        names.add(variable["name"])


def _duration_rule(labels: Mapping[str, str]) -> Iterator[Problem]:
    """Yield an error for a bound of all attempts that Kueue cannot read, which it would ignore."""
    seconds = labels.get(MAX_EXEC_TIME)
    if seconds is not None and not (_SECONDS.fullmatch(seconds) and 0 < int(seconds) <= _MAX_SECONDS):
        message = f"{format_value(seconds)} is not a number of seconds from 1 to {_MAX_SECONDS:,}"
        yield service_problem(("metadata", "labels", MAX_EXEC_TIME), message, "use a shorter duration")


def _requested_chips(container: Mapping[str, Any]) -> int:
    limit = str(container.get("resources", {}).get("limits", {}).get(CHIPS, 0))
    return int(limit) if _CHIPS.fullmatch(limit) else 0


def _request_rules(path: KeyPath, resources: Mapping[str, Any]) -> Iterator[Problem]:
    limit, request = (resources.get(kind, {}).get(CHIPS) for kind in ("limits", "requests"))
    if limit is not None and not _CHIPS.fullmatch(str(limit)):
        message = f"{format_value(limit, quoted=False)} is not a whole number of chips"
        yield service_problem((*path, "limits", CHIPS), message, "write the chips of one host: 4")
    elif request is not None and str(request) != str(limit):
        shown_limit = format_value(limit, quoted=False) if limit is not None else "missing"
        message = f"it is {format_value(request, quoted=False)}, and the limit is {shown_limit}: they must be equal"
        fix = f"set both to {limit if limit is not None else request}"
        yield service_problem((*path, "requests", CHIPS), message, fix)


def _shape_rules(path: KeyPath, job: Mapping[str, Any], chips: int, catalog: Catalog) -> Iterator[Problem]:
    pod_path = (*path, "template", "spec")
    selector = _pod(job)["nodeSelector"]
    label, topology = selector[ACCELERATOR], selector[TOPOLOGY]
    shapes = _shapes(label, catalog)
    if not shapes:
        location = (*pod_path, "nodeSelector", ACCELERATOR)
        yield service_problem(location, f"{label} is not a TPU of GKE", f"set it to one of: {_labels(catalog)}")
    elif topology not in shapes:
        location = (*pod_path, "nodeSelector", TOPOLOGY)
        fix = f"set it to one of: {listed(tuple(shapes), 16)}"
        yield service_problem(location, f"{label} has no topology {topology}", fix)
    elif chips not in shapes[topology]:
        machines = " or ".join(f"{count} ({name})" for count, name in shapes[topology].items())
        message = f"the pod requests {chips} chips, and it must request all of its host's: {machines}"
        fix = f"set its limit of {CHIPS} to {next(iter(shapes[topology]))}"
        yield service_problem((*pod_path, "containers"), message, fix)
    else:
        yield from _host_rules(path, job, prod(map(int, topology.split("x"))) // chips)


def _host_rules(path: KeyPath, job: Mapping[str, Any], hosts: int) -> Iterator[Problem]:
    for field in ("parallelism", "completions"):
        if (pods := job.get(field, 1)) != hosts:
            message = f"{pods} pods, and the slice has {hosts} host{'s' if hosts > 1 else ''}"
            yield service_problem((*path, field), message, f"set parallelism and completions to {hosts}")
            return
    if hosts > 1 and job.get("completionMode", "Indexed") != "Indexed":
        message = "without an index a pod cannot tell which host it is"
        yield service_problem((*path, "completionMode"), message, "set it to Indexed")


def _shapes(label: str, catalog: Catalog) -> dict[str, dict[int, str]]:
    """Return the machines of the generation with this label: by topology, then by chips of a host."""
    for generation in catalog.generations():
        shapes: dict[str, dict[int, str]] = {}
        for slice_ in generation.slices:
            machines = {machine.chips: machine.name for machine in slice_.machines if machine.gke_label == label}
            shapes |= dict.fromkeys(slice_.topologies, machines) if machines else {}
        if shapes:
            return shapes
    return {}


def _labels(catalog: Catalog) -> str:
    return listed(tuple(dict.fromkeys(machine.gke_label for slice_ in catalog.all() for machine in slice_.machines)))
