"""The rules of GKE: values of a spec that a cluster refuses, and a JobSet that it refuses or never schedules.

`request` writes only fields that JobSet v0.10.1 knows, the release that XPK installs:
https://github.com/AI-Hypercomputer/xpk/blob/v1.13.1/src/xpk/core/jobset.py.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, Final

from tpucfg.catalog import Catalog, Slice
from tpucfg.findings import Finding
from tpucfg.named_tuple import NamedTuple
from tpucfg.paths import KeyPath, values_at
from tpucfg.plan.naming import MAX_DNS_LABEL_LENGTH
from tpucfg.schemas import Problem
from tpucfg.spec import Environment, Mount, Project
from tpucfg.targets.gke.nodes import (
    ACCELERATOR,
    CHIPS,
    DEFAULT_QUEUE,
    DOMAINS,
    SLICE_TOPOLOGY,
    TOPOLOGY,
    can_be_placed,
)
from tpucfg.targets.gke.request import (
    MAX_EXEC_TIME,
    NAME,
    NAMES,
    REPLICATED_JOB,
    SHARED_MEMORY,
    TPUS,
    WORKLOAD_IDENTITY,
)
from tpucfg.targets.interface import RequestBody
from tpucfg.targets.rules import long_job_names, service_problem
from tpucfg.text_format import dotted, format_value, listed

_MOUNT_OPTIONS: Final = (
    "https://cloud.google.com/kubernetes-engine/docs/how-to/cloud-storage-fuse-csi-driver-ephemeral"
)
_POLICIES: Final = ("tpu7x",)
"""The generations whose slices of several hosts have a workload policy."""
_POLICY: Final = "https://cloud.google.com/sdk/gcloud/reference/beta/compute/resource-policies/create/workload-policy"
_SLICES: Final = "https://cloud.google.com/kubernetes-engine/docs/how-to/tpu-multislice"
_NUMA_GENERATIONS: Final = ("tpu7x",)
_NUMA: Final = "https://github.com/AI-Hypercomputer/xpk/blob/v1.13.1/src/xpk/parser/workload.py"
_EXAMPLE: Final = "${bucket}/data"
_DEFAULT_QUEUE: Final = (
    "https://kueue.sigs.k8s.io/docs/tasks/manage/enforce_job_management/setup_default_local_queue/"
)
_PLACEMENT: Final = "https://kueue.sigs.k8s.io/docs/concepts/topology_aware_scheduling/"
_BUCKET: Final = re.compile(r"[a-z0-9${][a-z0-9${}_.-]{1,221}")
"""A bucket's name, or one with placeholders: https://cloud.google.com/storage/docs/buckets#naming."""
_FOLDER: Final = re.compile(r"[A-Za-z0-9${}_.+=@-]+(?:/[A-Za-z0-9${}_.+=@-]+)*")
"""A folder that is one value among mount options, which commas separate."""
_POD_SUFFIX: Final = "-abcde"
"""The suffix that Kubernetes adds to a pod's name, with five random characters."""
_CHIPS: Final = re.compile(r"[0-9]{1,9}")
_SECONDS: Final = re.compile(r"[0-9]{1,10}")
_MAX_SECONDS: Final = 2**31 - 1
"""A field of 32 bits (_EXEC_TIME)."""
_EXEC_TIME: Final = "https://kueue.sigs.k8s.io/docs/concepts/workload/#maximum-execution-time"
_CONTAINERS: Final = (
    "https://github.com/kubernetes/kubernetes/blob/v1.33.0/pkg/apis/core/validation/validation.go"
)


# The findings about a spec


def spec_findings(
    project: Project, environment: Environment, slices: Sequence[Slice]
) -> Iterator[Finding]:
    """Yield findings about accounts, and about placements, policies, mounts and names that a cluster refuses."""
    yield from _accounts_of_nodes(project, environment, slices)
    yield from _unplaceable_sizes(project, environment, slices)
    yield from _misplaced_policies(project, environment, slices)
    yield from _joined_single_hosts(project, slices)
    yield from _divided_hosts(project, environment, slices)
    yield from _impossible_mounts(project, environment, slices)
    yield from long_job_names(project, environment, slices, _max_job_name, NAMES)


def _max_job_name(slice_: Slice) -> int:
    return max_name_length(slice_.hosts_per_slice, slice_.slices)


def max_name_length(pods: int, replicas: int) -> int:
    """Return the maximum length of a JobSet's name, after which the names of its pods continue."""
    return MAX_DNS_LABEL_LENGTH - len(f"-{REPLICATED_JOB}-{replicas - 1}-{pods - 1}{_POD_SUFFIX}")


def _accounts_of_nodes(
    project: Project, environment: Environment, slices: Sequence[Slice]
) -> Iterator[Finding]:
    """Yield a warning for each `host_network`, with which the program loses the account of its pod."""
    accounts: dict[KeyPath, str] = {}
    for slice_ in slices:
        settings = project.settings[environment.name, slice_.size]
        options = settings.targets.get(NAME, {})
        if options.get("host_network") and not options.get("node_service_account"):
            named = settings.targets[NAME].get("service_account")
            account = f"of the service_account {named}" if named else "of the stack"
            accounts.setdefault(settings.source(("targets", NAME, "host_network")), account)
    for path, account in accounts.items():
        yield Finding.of(
            "TPU122",
            f"in {environment.name}, the program acts as the account of the nodes, and not as that {account}: on the "
            "network of its host, it gets the tokens of Compute Engine's metadata server",
            project.document.key_location(path),
            help=f"set targets.{NAME}.node_service_account, to which the stack then grants the bucket, or delete "
            f"{dotted(path)}",
            details=(f"see {WORKLOAD_IDENTITY}",),
        )


def _unplaceable_sizes(
    project: Project, environment: Environment, slices: Sequence[Slice]
) -> Iterator[Finding]:
    """Yield a warning for each `topology_aware` without a queue, and an error for sizes that no queue places so."""
    reported = set()
    for slice_ in slices:
        settings = project.settings[environment.name, slice_.size]
        aware = settings.layers.find("targets", NAME, "topology_aware")
        if aware is None or not aware.value:
            continue
        location = project.document.key_location(aware.path)
        if not settings.targets[NAME].get("queue") and aware.path not in reported:
            reported.add(aware.path)
            message = (
                f"{dotted(aware.path)} without a queue: where the namespace has no queue called {DEFAULT_QUEUE}, the "
                "pods start on any nodes, whose chips may be of different slices"
            )
            hint = "name a queue in targets.gke.queue, or allow TPU134 with your reason"
            yield Finding.of(
                "TPU134", message, location, help=hint, details=(f"the rule: {_DEFAULT_QUEUE}",)
            )
        if not can_be_placed(slice_):
            generations = " and ".join(DOMAINS)
            message = (
                f"no queue places {slice_.size} by topology: only sizes of {generations} with several hosts can be "
                "parts of a larger pool, on TPU7x in whole cubes of 4x4x4"
            )
            hint = (
                f"set environments.{environment.name}.overrides.{slice_.size}.targets.gke.topology_aware to false, or "
                f"leave {slice_.size} out"
            )
            yield Finding.of(
                "TPU024", message, location, help=hint, details=(f"the rule: {_PLACEMENT}",)
            )


def _joined_single_hosts(project: Project, slices: Sequence[Slice]) -> Iterator[Finding]:
    """Yield an error for each size of several slices whose machine makes each of them a single host."""
    for slice_ in slices:
        if slice_.slices > 1 and slice_.hosts_per_slice == 1:
            path = ("overrides", slice_.size, "machine")
            machine = slice_.machine.name if slice_.machine else "its machine"
            yield Finding.of(
                "TPU026",
                f"{slice_.size} cannot run on {machine}: only slices of several hosts can be joined",
                project.document.value_location(path),
                help=f"delete {dotted(path)}",
                details=(f"the rule: {_SLICES}",),
            )


def _divided_hosts(
    project: Project, environment: Environment, slices: Sequence[Slice]
) -> Iterator[Finding]:
    """Yield an error for each `containers_per_host` of a size whose hosts are no two NUMA nodes with chips."""
    reported, setting = set(), ("targets", NAME, "containers_per_host")
    for slice_ in slices:
        count = project.settings[environment.name, slice_.size].layers.find(*setting)
        if count is None or (count.value or 1) == 1 or count.path in reported:
            continue
        if slice_.generation in _NUMA_GENERATIONS and slice_.chips_per_host % count.value == 0:
            continue
        reported.add(count.path)
        # A job of another generation may need the setting.
        jobs = (
            job
            for job, settings in project.settings.items()
            if settings.source(setting) == count.path
        )
        is_needed = any(size.partition("-")[0] in _NUMA_GENERATIONS for _, size in jobs)
        path = dotted(("environments", environment.name, "overrides", slice_.size, *setting))
        yield Finding.of(
            "TPU024",
            f"the chips of a host of {slice_.size} cannot be divided among {count.value} containers: GKE does this for "
            "TPU7x with 4 chips a host, 2 for each NUMA node",
            project.document.key_location(count.path),
            help=f"set {path} to 1" if is_needed else f"delete {dotted(count.path)}",
            details=(f"the rule: {_NUMA}",),
        )


def _misplaced_policies(
    project: Project, environment: Environment, slices: Sequence[Slice]
) -> Iterator[Finding]:
    """Yield an error for each size that needs no workload policy, or shares that of another topology."""
    topologies: dict[str, tuple[str, str]] = {}
    for slice_ in slices:
        policy = project.settings[environment.name, slice_.size].layers.find(
            "targets", NAME, "placement_policy"
        )
        if policy is None or not policy.value:
            continue
        path = (
            f"environments.{environment.name}.overrides.{slice_.size}.targets.gke.placement_policy"
        )
        size, topology = topologies.setdefault(policy.value, (slice_.size, str(slice_.topology)))
        if slice_.generation not in _POLICIES or slice_.hosts_per_slice == 1:
            message = f"{slice_.size} has no workload policy: only slices of TPU7x with several hosts have one"
            hint = f"set {path} to null"
        elif topology != (own := slice_.topology):
            message = f"{policy.value} has one topology, and {size} needs {topology}, {slice_.size} needs {own}"
            hint = f"set {path} to a policy of {own}"
        else:
            continue
        location = project.document.value_location(policy.path)
        yield Finding.of("TPU007", message, location, help=hint, details=(f"the rule: {_POLICY}",))


def _impossible_mounts(
    project: Project, environment: Environment, slices: Sequence[Slice]
) -> Iterator[Finding]:
    """Yield an error for each mount that a pod cannot have, once for all sizes that share it."""
    paths = {}
    for slice_ in slices:
        settings = project.settings[environment.name, slice_.size]
        for mount in settings.trainer.mounts:
            paths[settings.source(("trainer", "mounts", mount.path))] = mount
    for path, mount in paths.items():
        if reason := _mount_problem(mount):
            point = "/data" if mount.path == SHARED_MEMORY else mount.path
            yield Finding.of(
                "TPU007",
                f"{mount.source} cannot be mounted at {mount.path}: {reason}",
                project.document.key_location(path)
                if mount.path == SHARED_MEMORY
                else project.document.value_location(path),
                help=f"for example: {point}: {_EXAMPLE}",
                details=(f"the rule: {_MOUNT_OPTIONS}",),
            )


def _mount_problem(mount: Mount) -> str | None:
    """Return the reason why a pod cannot have a mount, as a clause; None if it can."""
    bucket, _, folder = mount.source.removeprefix("gs://").rstrip("/").partition("/")
    if mount.path == SHARED_MEMORY:
        return f"{SHARED_MEMORY} is the pod's shared memory, and Kubernetes takes each mount point once"
    if not _BUCKET.fullmatch(bucket):
        return f"{bucket} is not the name of a bucket" if bucket else "it names no bucket"
    if folder and (not _FOLDER.fullmatch(folder) or {".", ".."} & {*folder.split("/")}):
        return "its folder is one of several mount options, in which only letters, digits and any of _.+=@-/ are safe"
    return None


# The findings about a config


def rules(body: RequestBody, catalog: Catalog) -> Iterator[Problem]:
    """Yield the problems of time limits, and of pods that do not fill the hosts of a slice."""
    yield from _duration_rule(body["metadata"].get("labels", {}))
    jobs = body["spec"]["replicatedJobs"]
    if not any(
        _requested_chips(container)
        for _, container in values_at(jobs, "*.template.spec.template.spec.containers.*")
    ):
        fix = f"add resources.limits.{CHIPS} to the container, with the chips of its host"
        yield service_problem(
            ("spec", "replicatedJobs"), f"no container requests {CHIPS}", fix, TPUS
        )
    for index, job in enumerate(jobs):
        path = ("spec", "replicatedJobs", index, "template", "spec")
        yield from _job_rules(path, job["template"].get("spec", {}), catalog)


def _job_rules(path: KeyPath, job: Mapping[str, Any], catalog: Catalog) -> Iterator[Problem]:
    pod, pod_path = _pod(job), (*path, "template", "spec")
    chips = 0
    for index, container in enumerate(pod.get("containers", [])):
        yield from _request_rules(
            (*pod_path, "containers", index, "resources"), container.get("resources", {})
        )
        yield from _variable_rules(
            (*pod_path, "containers", index, "env"), container.get("env", [])
        )
        chips += _requested_chips(container)
    selector = pod.get("nodeSelector", {})
    # A part of a larger node pool has its topology in an annotation only.
    annotations = job.get("template", {}).get("metadata", {}).get("annotations", {})
    topology: KeyPath = (*pod_path, "nodeSelector", TOPOLOGY)
    if TOPOLOGY not in selector:
        topology = (*path, "template", "metadata", "annotations", SLICE_TOPOLOGY)
    value = selector.get(TOPOLOGY, annotations.get(SLICE_TOPOLOGY))
    # Without them, the node pool determines the slice, and nothing can be checked here.
    if chips and ACCELERATOR in selector and value is not None:
        yield from _shape_rules(
            path, job, chips, _Shape(selector[ACCELERATOR], value, topology), catalog
        )


def _pod(job: Mapping[str, Any]) -> Mapping[str, Any]:
    pod: Mapping[str, Any] = job.get("template", {}).get("spec", {})
    return pod


def _variable_rules(path: KeyPath, variables: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """Yield an error for each variable that a container has twice, of which Kubernetes silently takes the last."""
    names: set[str] = set()
    for index, variable in enumerate(variables):
        if variable["name"] in names:
            message = f"the variable {variable['name']} is set twice, and the program gets only the last value"
            yield service_problem(
                (*path, index, "name"), message, "delete one of the two", _CONTAINERS
            )
        names.add(variable["name"])


def _duration_rule(labels: Mapping[str, str]) -> Iterator[Problem]:
    """Yield an error for a bound of all attempts that Kueue cannot read, which it would ignore."""
    seconds = labels.get(MAX_EXEC_TIME)
    if seconds is not None and not (
        _SECONDS.fullmatch(seconds) and 0 < int(seconds) <= _MAX_SECONDS
    ):
        message = f"{format_value(seconds)} is not a number of seconds from 1 to {_MAX_SECONDS:,}"
        yield service_problem(
            ("metadata", "labels", MAX_EXEC_TIME), message, "use a shorter duration", _EXEC_TIME
        )


def _requested_chips(container: Mapping[str, Any]) -> int:
    limit = str(container.get("resources", {}).get("limits", {}).get(CHIPS, 0))
    return int(limit) if _CHIPS.fullmatch(limit) else 0


def _request_rules(path: KeyPath, resources: Mapping[str, Any]) -> Iterator[Problem]:
    limit, request = (resources.get(kind, {}).get(CHIPS) for kind in ("limits", "requests"))
    if limit is not None and not _CHIPS.fullmatch(str(limit)):
        message = f"{format_value(limit, quoted=False)} is not a whole number of chips"
        yield service_problem(
            (*path, "limits", CHIPS), message, "write the chips of one host: 4", TPUS
        )
    elif request is not None and str(request) != str(limit):
        shown_limit = format_value(limit, quoted=False) if limit is not None else "missing"
        message = f"it is {format_value(request, quoted=False)}, and the limit is {shown_limit}: they must be equal"
        fix = f"set both to {limit if limit is not None else request}"
        yield service_problem((*path, "requests", CHIPS), message, fix, TPUS)


class _Shape(NamedTuple):
    """The slice that a pod asks for."""

    label: str
    topology: str
    path: KeyPath
    """The path of the topology."""


def _shape_rules(
    path: KeyPath, job: Mapping[str, Any], chips: int, shape: _Shape, catalog: Catalog
) -> Iterator[Problem]:
    pod_path = (*path, "template", "spec")
    label, topology, topology_path = shape
    shapes = _shapes(label, catalog)
    if not shapes:
        location = (*pod_path, "nodeSelector", ACCELERATOR)
        labels = dict.fromkeys(
            machine.gke_label for slice_ in catalog.all() for machine in slice_.machines
        )
        yield service_problem(
            location, f"{label} is not a TPU of GKE", f"set it to one of: {listed([*labels])}", TPUS
        )
    elif topology not in shapes:
        fix = f"set it to one of: {listed(tuple(shapes), 16)}"
        yield service_problem(topology_path, f"{label} has no topology {topology}", fix, TPUS)
    elif chips not in shapes[topology]:
        machines = " or ".join(f"{count} ({name})" for count, name in shapes[topology].items())
        message = (
            f"the pod requests {chips} chips, and it must request all of its host's: {machines}"
        )
        fix = f"set its limit of {CHIPS} to {next(iter(shapes[topology]))}"
        yield service_problem((*pod_path, "containers"), message, fix, TPUS)
    else:
        yield from _host_rules(path, job, prod(map(int, topology.split("x"))) // chips)


def _host_rules(path: KeyPath, job: Mapping[str, Any], hosts: int) -> Iterator[Problem]:
    for field in ("parallelism", "completions"):
        if (pods := job.get(field, 1)) != hosts:
            message = f"{pods} pods, and the slice has {hosts} host{'s' if hosts > 1 else ''}"
            yield service_problem(
                (*path, field), message, f"set parallelism and completions to {hosts}", TPUS
            )
            return
    if hosts > 1 and job.get("completionMode", "Indexed") != "Indexed":
        message = "without an index a pod cannot tell which host it is"
        yield service_problem((*path, "completionMode"), message, "set it to Indexed", TPUS)


def _shapes(label: str, catalog: Catalog) -> dict[str, dict[int, str]]:
    """Return the machines of the generation with this label: by topology, then by chips of a host."""
    for generation in catalog.generations():
        shapes: dict[str, dict[int, str]] = {}
        for slice_ in generation.slices:
            machines = {
                machine.chips: machine.name
                for machine in slice_.machines
                if machine.gke_label == label
            }
            shapes |= dict.fromkeys(slice_.topologies, machines) if machines else {}
        if shapes:
            return shapes
    return {}
