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
from tpucfg.targets.gke.rules import NAMES, max_name_length

NAME: Final = "gke"


def spec_findings(project: Project, environment: Environment, slices: Sequence[Slice]) -> Iterator[Finding]:
    """Yield findings about sizes, trainers, capacities and names that a cluster refuses."""
    yield from unsupported_sizes(project, environment, slices, NAME)
    yield from unsupported_machines(
        project, [slice_ for slice_ in slices if NAME in slice_.targets], NAME, chooses=True
    )
    yield from package_unsupported(project, distinct_settings(project, environment, slices), NAME)
    yield from long_job_names(project, environment, slices, _max_job_name, NAMES)
    if not uses_own_account(project, environment, slices, NAME):
        yield from long_account_id(project, environment, NAME)


def _max_job_name(slice_: Slice) -> int:
    return max_name_length(REPLICATED_JOB, slice_.hosts_per_slice, replicas=slice_.slices)
