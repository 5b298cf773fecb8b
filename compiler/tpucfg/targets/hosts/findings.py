"""The findings about a spec that all targets with hosts of their own share."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from tpucfg.catalog import Slice
from tpucfg.findings import Finding
from tpucfg.plan.naming import zone_of
from tpucfg.spec.project import Environment, Project
from tpucfg.targets.common import (
    long_account_id,
    long_job_names,
    package_unsupported,
    unsupported_machines,
    unsupported_sizes,
    uses_own_account,
)
from tpucfg.targets.hosts.secret_variables import secret_findings
from tpucfg.text_format import dotted

NAMES: Final = "https://cloud.google.com/compute/docs/naming-resources#resource-name-format"


def host_findings(
    project: Project,
    environment: Environment,
    slices: Sequence[Slice],
    target: str,
    max_name_length: Callable[[Slice], int],
    *,
    chooses_machine: bool,
) -> Iterator[Finding]:
    """Yield findings about sizes, machines, trainers, secrets, zones and names.

    Args:
        project: The project with the spec's settings.
        environment: The environment of the jobs.
        slices: The sizes of its ladder.
        target: The name of the target.
        max_name_length: The longest name of a job on a size.
        chooses_machine: True if the spec may choose the machine of a size.
    """
    yield from unsupported_sizes(project, environment, slices, target)
    yield from unsupported_machines(project, slices, target, chooses=chooses_machine)
    yield from package_unsupported(project, environment, slices, target)
    yield from secret_findings(project, environment, slices, target)
    yield from _missing_zones(project, environment, slices, target)
    yield from long_job_names(project, environment, slices, max_name_length, NAMES)
    if not uses_own_account(project, environment, slices, target):
        yield from long_account_id(project, environment, target)


def _missing_zones(
    project: Project, environment: Environment, slices: Sequence[Slice], target: str
) -> Iterator[Finding]:
    """Yield an error for each size of the target without a known zone."""
    for slice_ in slices:
        if target not in slice_.targets or zone_of(environment, slice_):
            continue
        if slice_.zones and "TPU021" not in project.allow:
            continue  # TPU021 reports that the region does not offer the size
        path = (*environment.path, "zones")
        message = f"{environment.name} has no zone for {slice_.size}: no list has one in {environment.region}"
        hint = f"add {dotted((*path, slice_.size))}, for example {environment.region}-a"
        yield Finding.of("TPU005", message, project.document.key_location(path), help=hint)
