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
from tpucfg.targets.compute_engine.pages import NAMES, NAT
from tpucfg.targets.compute_engine.request import NAME
from tpucfg.targets.hosts.secret_variables import secret_findings
from tpucfg.targets.hosts.zones import missing_zones
from tpucfg.text_format import dotted, listed
from tpucfg.yamldoc.document import KeyPath

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
    yield from _unreachable_packages(project, environment, slices)
    yield from long_job_names(project, environment, slices, _max_job_name_length, NAMES)
    if not uses_own_account(project, environment, slices, NAME):
        yield from long_account_id(project, environment, NAME)


def _unreachable_packages(project: Project, environment: Environment, slices: Sequence[Slice]) -> Iterator[Finding]:
    """Yield a warning for hosts without external addresses, once for each layer that takes these away."""
    sizes: dict[KeyPath, list[str]] = {}
    for slice_ in slices:
        settings = project.settings[environment.name, slice_.size]
        if settings.targets.get(NAME, {}).get("external_ips") is False:
            path = settings.source(("targets", NAME, "external_ips"))
            sizes.setdefault(path, []).append(slice_.size)
    for path, names in sizes.items():
        yield Finding.of(
            "TPU064",
            f"the hosts of {listed(names, last=' and ')} in {environment.name} have no external address, and install "
            "Docker from Ubuntu's servers, which Private Google Access does not reach",
            project.document.value_location(path),
            help=f"give the subnetwork in {environment.region} a Cloud NAT, and allow TPU064, or delete {dotted(path)}",
            details=(f"see {NAT}",),
        )


def _max_job_name_length(slice_: Slice) -> int:
    return MAX_NAME_LENGTH if slice_.hosts == 1 else MAX_BASE_NAME_LENGTH
