"""The findings about a spec that all targets with hosts of their own share."""

from collections.abc import Callable, Iterator, Sequence
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
from tpucfg.targets.hosts.secret_variables import secret_findings
from tpucfg.targets.hosts.zones import missing_zones

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
    yield from package_unsupported(project, distinct_settings(project, environment, slices), target)
    yield from secret_findings(project, environment, slices, target)
    yield from missing_zones(project, environment, slices, target)
    yield from long_job_names(project, environment, slices, max_name_length, NAMES)
    if not uses_own_account(project, environment, slices, target):
        yield from long_account_id(project, environment, target)
