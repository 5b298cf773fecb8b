"""What a cluster would refuse of a JobSet that fits its schema, or leave waiting for a node that no pool can have."""

import re
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any, Final

from tpucfg.catalog import Catalog
from tpucfg.plan.naming import MAX_DNS_LABEL_LENGTH
from tpucfg.schemas import Problem
from tpucfg.targets.common import service_problem
from tpucfg.targets.interface import RequestBody
from tpucfg.text_format import format_value, listed
from tpucfg.yamldoc.document import KeyPath

CHIPS: Final = "google.com/tpu"
"""The resource that counts a pod's chips."""
ACCELERATOR: Final = "cloud.google.com/gke-tpu-accelerator"
TOPOLOGY: Final = "cloud.google.com/gke-tpu-topology"
NAMES: Final = "https://github.com/kubernetes-sigs/jobset/blob/v0.10.1/pkg/webhooks/jobset_webhook.go"
"""Where JobSet computes the longest name of a pod, and refuses one that is no DNS label."""

_SUFFIX: Final = "-abcde"
"""What Kubernetes adds to a pod's name: five characters at random."""
_CHIPS: Final = re.compile(r"[0-9]{1,9}")
_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_KEY: Final = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
"""Of labels: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set."""


def pod_name(jobset: str, job: str, *, replicas: int, pods: int) -> str:
    """The longest name that a pod of a replicated job gets."""
    return f"{jobset}-{job}-{replicas - 1}-{pods - 1}{_SUFFIX}"


def longest_name(job: str, pods: int) -> int:
    """Characters that the name of a JobSet may have, with one replica of a job of that name and so many pods."""
    return MAX_DNS_LABEL_LENGTH - len(pod_name("", job, replicas=1, pods=pods))


def rules(message: RequestBody, catalog: Catalog) -> Iterator[Problem]:
    """Names and labels that Kubernetes takes, and pods that fill the hosts of a slice."""
    yield from _name_rules(message)
    yield from _label_rules(("metadata", "labels"), message["metadata"].get("labels", {}))
    jobs = message["spec"]["replicatedJobs"]
    if not any(_chips_of(container) for job in jobs for container in _pod(_job(job)).get("containers", [])):
        fix = f"add resources.limits.{CHIPS} to the container, with the chips of its host"
        yield service_problem(("spec", "replicatedJobs"), f"no container asks for {CHIPS}", fix)
    for index, job in enumerate(jobs):
        path = ("spec", "replicatedJobs", index, "template", "spec")
        yield from _job_rules(path, _job(job), catalog)


def _job(replicated: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = replicated["template"].get("spec", {})
    return found


def _pod(job: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = job.get("template", {}).get("spec", {})
    return found


def _name_rules(message: RequestBody) -> Iterator[Problem]:
    name, path = message["metadata"]["name"], ("metadata", "name")
    if not _LABEL.fullmatch(name):
        said = "is no DNS label: lower-case letters, digits and inner dashes, a letter first"
        yield service_problem(path, f"{format_value(name, quoted=False)} {said}", "write another name, such as mnist-1")
    for replicated in message["spec"]["replicatedJobs"]:
        pods = _job(replicated).get("completions", 1)
        longest = pod_name(name, replicated["name"], replicas=replicated.get("replicas", 1), pods=pods)
        if (excess := len(longest) - MAX_DNS_LABEL_LENGTH) > 0:
            said = f"its pods would have names of up to {len(longest)} characters, and {MAX_DNS_LABEL_LENGTH} are taken"
            details = (f"the rule: {NAMES}",)
            yield Problem("TPU030", f"the JobSet {name}: {said}", path, f"shorten it by {excess}", details=details)


def _label_rules(path: KeyPath, labels: Mapping[str, str]) -> Iterator[Problem]:
    for key, value in labels.items():
        if not _KEY.fullmatch(key) or not _VALUE.fullmatch(value):
            said = f"{format_value(value)} makes no label: key and value begin and end with a letter or digit"
            yield service_problem(
                (*path, key), said, "write both in letters, digits and inner dashes, dots and underscores"
            )


def _job_rules(path: KeyPath, job: Mapping[str, Any], catalog: Catalog) -> Iterator[Problem]:
    pod, pod_path = _pod(job), (*path, "template", "spec")
    if pod.get("restartPolicy") == "Always":
        yield service_problem((*pod_path, "restartPolicy"), "a job's pods end", "set it to Never")
    yield from _label_rules((*pod_path, "nodeSelector"), pod.get("nodeSelector", {}))
    chips = 0
    for index, container in enumerate(pod.get("containers", [])):
        yield from _request_rules((*pod_path, "containers", index, "resources"), container.get("resources", {}))
        chips += _chips_of(container)
    selector = pod.get("nodeSelector", {})
    # With one of the two only, or with an affinity instead, the shape of the slice is its node pool's business.
    if chips and ACCELERATOR in selector and TOPOLOGY in selector:
        yield from _shape_rules(path, job, chips, catalog)


def _chips_of(container: Mapping[str, Any]) -> int:
    limit = str(container.get("resources", {}).get("limits", {}).get(CHIPS, 0))
    return int(limit) if _CHIPS.fullmatch(limit) else 0


def _request_rules(path: KeyPath, resources: Mapping[str, Any]) -> Iterator[Problem]:
    limit, request = (resources.get(kind, {}).get(CHIPS) for kind in ("limits", "requests"))
    if limit is not None and not _CHIPS.fullmatch(str(limit)):
        said = f"{format_value(limit, quoted=False)} is no whole number of chips"
        yield service_problem((*path, "limits", CHIPS), said, "write the chips of one host: 4")
    elif request is not None and str(request) != str(limit):
        there = format_value(limit, quoted=False) if limit is not None else "missing"
        said = f"it is {format_value(request, quoted=False)}, and the limit is {there}: they have to be equal"
        yield service_problem(
            (*path, "requests", CHIPS), said, f"set both to {limit if limit is not None else request}"
        )


def _shape_rules(path: KeyPath, job: Mapping[str, Any], chips: int, catalog: Catalog) -> Iterator[Problem]:
    pod_path = (*path, "template", "spec")
    selector = _pod(job)["nodeSelector"]
    label, topology = selector[ACCELERATOR], selector[TOPOLOGY]
    shapes = _shapes(label, catalog)
    if not shapes:
        location = (*pod_path, "nodeSelector", ACCELERATOR)
        yield service_problem(location, f"{label} is no TPU of GKE", f"there are: {_labels(catalog)}")
    elif topology not in shapes:
        location = (*pod_path, "nodeSelector", TOPOLOGY)
        yield service_problem(location, f"{label} has no topology {topology}", f"it takes: {listed(tuple(shapes), 16)}")
    elif chips not in shapes[topology]:
        machines = " or ".join(f"{count} ({name})" for count, name in shapes[topology].items())
        said = f"the pod asks for {chips} chips, and it has to ask for all of its host's: {machines}"
        yield service_problem(
            (*pod_path, "containers"), said, f"set its limit of {CHIPS} to {next(iter(shapes[topology]))}"
        )
    else:
        yield from _host_rules(path, job, prod(map(int, topology.split("x"))) // chips)


def _host_rules(path: KeyPath, job: Mapping[str, Any], hosts: int) -> Iterator[Problem]:
    for field in ("parallelism", "completions"):
        if (pods := job.get(field, 1)) != hosts:
            said = f"{pods} pods, and the slice has {hosts} host{'s' if hosts > 1 else ''}"
            yield service_problem((*path, field), said, f"set parallelism and completions to {hosts}")
            return
    if hosts > 1 and job.get("completionMode", "Indexed") != "Indexed":
        yield service_problem(
            (*path, "completionMode"), "without an index no pod knows which host it is", "set it to Indexed"
        )


def _shapes(label: str, catalog: Catalog) -> dict[str, dict[int, str]]:
    """By topology, the chips of a host and the machine that has so many; from the one generation with that label."""
    for generation in catalog.generations():
        shapes: dict[str, dict[int, str]] = {}
        for slice_ in generation.slices:
            machines = {machine.chips: machine.name for machine in slice_.machines if machine.gke_label == label}
            if machines and slice_.topology:
                shapes[slice_.topology] = machines
        if shapes:
            return shapes
    return {}


def _labels(catalog: Catalog) -> str:
    return listed(tuple(dict.fromkeys(m.gke_label for slice_ in catalog.all() for m in slice_.machines)))
