"""Findings about values of the spec that a cluster refuses."""

from collections.abc import Iterator, Sequence
from typing import Final

from tpucfg.catalog import Slice
from tpucfg.findings import Finding
from tpucfg.spec.project import Environment, Project
from tpucfg.targets.common import (
    long_account_id,
    long_job_names,
    package_unsupported,
    unsupported_machines,
    unsupported_sizes,
    uses_own_account,
)
from tpucfg.targets.gke.jobset import REPLICATED_JOB
from tpucfg.targets.gke.mounts import SHARED_MEMORY, mount_problem
from tpucfg.targets.gke.placement import DOMAINS, can_be_placed
from tpucfg.targets.gke.rules import NAMES, max_name_length
from tpucfg.text_format import dotted

NAME: Final = "gke"
_MOUNT_OPTIONS: Final = "https://cloud.google.com/kubernetes-engine/docs/how-to/cloud-storage-fuse-csi-driver-ephemeral"
_POLICIES: Final = ("tpu7x",)
"""The generations whose slices of several hosts have a workload policy."""
_POLICY: Final = "https://cloud.google.com/sdk/gcloud/reference/beta/compute/resource-policies/create/workload-policy"
_EXAMPLE: Final = "${bucket}/data"
_PLACEMENT: Final = "https://kueue.sigs.k8s.io/docs/concepts/topology_aware_scheduling/"


def spec_findings(project: Project, environment: Environment, slices: Sequence[Slice]) -> Iterator[Finding]:
    """Yield findings about sizes, trainers, capacities and names that a cluster refuses."""
    yield from unsupported_sizes(project, environment, slices, NAME)
    yield from unsupported_machines(
        project, [slice_ for slice_ in slices if NAME in slice_.targets], NAME, chooses=True, chooses_all=True
    )
    yield from package_unsupported(project, environment, slices, NAME)
    yield from _unplaceable_sizes(project, environment, slices)
    yield from _misplaced_policies(project, environment, slices)
    yield from _impossible_mounts(project, environment, slices)
    yield from long_job_names(project, environment, slices, _max_job_name, NAMES)
    if not uses_own_account(project, environment, slices, NAME):
        yield from long_account_id(project, environment, NAME)


def _max_job_name(slice_: Slice) -> int:
    return max_name_length(REPLICATED_JOB, slice_.hosts_per_slice, replicas=slice_.slices)


def _unplaceable_sizes(project: Project, environment: Environment, slices: Sequence[Slice]) -> Iterator[Finding]:
    """Yield an error for each `topology_aware` without a queue, and for sizes that no queue places by topology."""
    reported = set()
    for slice_ in slices:
        settings = project.settings[environment.name, slice_.size]
        aware = settings.layers.find("targets", NAME, "topology_aware")
        if aware is None or not aware.value or aware.path in reported:
            continue
        location = project.document.key_location(aware.path)
        if not settings.targets[NAME].get("queue"):
            reported.add(aware.path)
            message = f"{dotted(aware.path)} needs a queue: Kueue places only the jobs of its queues"
            hint = f"delete {dotted(aware.path)}, or name a queue in targets.gke.queue"
            yield Finding.of("TPU005", message, location, help=hint, details=(f"the rule: {_PLACEMENT}",))
        elif not can_be_placed(slice_):
            generations = " and ".join(DOMAINS)
            message = (
                f"no queue places {slice_.size} by topology: only sizes of {generations} with several hosts can be "
                "parts of a larger pool, on TPU7x in whole cubes of 4x4x4"
            )
            hint = (
                f"set environments.{environment.name}.overrides.{slice_.size}.targets.gke.topology_aware to false, or "
                f"leave {slice_.size} out"
            )
            yield Finding.of("TPU024", message, location, help=hint, details=(f"the rule: {_PLACEMENT}",))


def _misplaced_policies(project: Project, environment: Environment, slices: Sequence[Slice]) -> Iterator[Finding]:
    """Yield an error for each size that needs no workload policy, or shares that of another topology."""
    topologies: dict[str, tuple[str, str]] = {}
    for slice_ in slices:
        policy = project.settings[environment.name, slice_.size].layers.find("targets", NAME, "placement_policy")
        if policy is None or not policy.value:
            continue
        path = f"environments.{environment.name}.overrides.{slice_.size}.targets.gke.placement_policy"
        size, topology = topologies.setdefault(policy.value, (slice_.size, str(_topology(project, slice_))))
        if slice_.generation not in _POLICIES or slice_.hosts_per_slice == 1:
            message = f"{slice_.size} has no workload policy: only slices of TPU7x with several hosts have one"
            hint = f"set {path} to null"
        elif topology != _topology(project, slice_):
            own = _topology(project, slice_)
            message = f"{policy.value} has one topology, and {size} needs {topology}, {slice_.size} needs {own}"
            hint = f"set {path} to a policy of {own}"
        else:
            continue
        location = project.document.value_location(policy.path)
        yield Finding.of("TPU007", message, location, help=hint, details=(f"the rule: {_POLICY}",))


def _topology(project: Project, slice_: Slice) -> str | None:
    override = project.overrides.get(slice_.size)
    return (override and override.topology) or slice_.topology


def _impossible_mounts(project: Project, environment: Environment, slices: Sequence[Slice]) -> Iterator[Finding]:
    """Yield an error for each mount that a pod cannot have, once for all sizes that share it."""
    paths = {}
    for slice_ in slices:
        settings = project.settings[environment.name, slice_.size]
        for mount in settings.trainer.mounts:
            paths[settings.source(("trainer", "mounts", mount.path))] = mount
    for path, mount in paths.items():
        if reason := mount_problem(mount):
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
