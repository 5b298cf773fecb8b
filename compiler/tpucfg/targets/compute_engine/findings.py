"""The findings about values of a spec that Compute Engine refuses, or that a host could not start with."""

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
from tpucfg.targets.compute_engine.pages import NAMES
from tpucfg.targets.compute_engine.request import NAME
from tpucfg.targets.hosts.secret_variables import secret_findings
from tpucfg.targets.hosts.zones import missing_zones

MAX_NAME_LENGTH: Final = 63
"""Characters of the name of an instance or a group (NAMES)."""
MAX_BASE_NAME_LENGTH: Final = 58
"""Characters of the start of the names of a group's instances, to which it adds a dash and four others."""


def spec_findings(project: Project, environment: Environment, slices: Sequence[Slice]) -> Iterator[Finding]:
    """Yield findings about sizes, machines, trainers, secrets, zones and names."""
    yield from unsupported_sizes(project, environment, slices, NAME)
    yield from unsupported_machines(project, slices, NAME, chooses=True)
    yield from package_unsupported(project, distinct_settings(project, environment, slices), NAME)
    yield from secret_findings(project, environment, slices, NAME)
    yield from missing_zones(project, environment, slices, NAME)
    yield from long_job_names(project, environment, slices, _max_job_name_length, NAMES)
    if not uses_own_account(project, environment, slices, NAME):
        yield from long_account_id(project, environment, NAME)


def _max_job_name_length(slice_: Slice) -> int:
    return MAX_NAME_LENGTH if slice_.hosts == 1 else MAX_BASE_NAME_LENGTH
