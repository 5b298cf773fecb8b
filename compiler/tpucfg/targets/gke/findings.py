"""Findings about values of the spec that a cluster refuses."""

from collections.abc import Iterator, Sequence
from typing import Final

from tpucfg.catalog import Slice
from tpucfg.findings import Finding
from tpucfg.spec.project import Environment, Project
from tpucfg.targets.common import (
    distinct_settings,
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
_EXAMPLE: Final = "${bucket}/data"
_PLACEMENT: Final = "https://kueue.sigs.k8s.io/docs/concepts/topology_aware_scheduling/"


def spec_findings(project: Project, environment: Environment, slices: Sequence[Slice]) -> Iterator[Finding]:
    """Yield findings about sizes, trainers, capacities and names that a cluster refuses."""
    yield from unsupported_sizes(project, environment, slices, NAME)
    yield from unsupported_machines(
        project, [slice_ for slice_ in slices if NAME in slice_.targets], NAME, chooses=True, chooses_all=True
    )
    yield from package_unsupported(project, distinct_settings(project, environment, slices), NAME)
    yield from _unplaceable_sizes(project, environment, slices)
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
