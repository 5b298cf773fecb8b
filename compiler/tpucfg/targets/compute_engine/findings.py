"""The findings about values of a spec that Compute Engine refuses, or that a host could not start with."""

from collections.abc import Iterator, Sequence
from typing import Final

from tpucfg.catalog import Slice
from tpucfg.findings import Finding
from tpucfg.plan.naming import zone_of
from tpucfg.spec.project import Environment, Project
from tpucfg.targets.compute_engine.pages import NAT, TEMPLATES
from tpucfg.targets.compute_engine.paths import NAME
from tpucfg.targets.hosts.disks import disk_parts
from tpucfg.targets.hosts.findings import host_findings
from tpucfg.text_format import dotted, listed
from tpucfg.yamldoc.document import KeyPath

MAX_NAME_LENGTH: Final = 63
"""Characters of the name of an instance or a group (hosts.findings.NAMES)."""
MAX_BASE_NAME_LENGTH: Final = 58
"""Characters of the start of the names of a group's instances, to which it adds a dash and four others."""


def spec_findings(project: Project, environment: Environment, slices: Sequence[Slice]) -> Iterator[Finding]:
    """Yield findings about sizes, machines, trainers, secrets, zones, names, packages and disks."""
    slices = [_on_chosen_machine(project, slice_) for slice_ in slices]
    yield from host_findings(project, environment, slices, NAME, _max_job_name_length, chooses_machine=True)
    yield from _unreachable_packages(project, environment, slices)
    yield from _remote_disks(project, environment, slices)


def _on_chosen_machine(project: Project, slice_: Slice) -> Slice:
    """Return a size on the machine that the spec chooses for it; one that does not exist is TPU026."""
    override = project.overrides.get(slice_.size)
    names = [machine.name for machine in slice_.machines]
    return slice_.on_machine(override.machine) if override and override.machine in names else slice_


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
            help=f"give the subnetwork in {environment.region} a Cloud NAT, and allow TPU064, or delete "
            f"{dotted(path)}, which gives each host an address on the internet",
            details=(f"see {NAT}",),
        )


def _remote_disks(project: Project, environment: Environment, slices: Sequence[Slice]) -> Iterator[Finding]:
    """Yield an error for each disk that a group would look for elsewhere: its template has only the disk's name.

    The path of a disk of an instance is in the config, where `rules` compares it.
    """
    reported = set()
    for slice_ in (slice_ for slice_ in slices if slice_.hosts > 1):
        settings, zone = project.settings[environment.name, slice_.size], zone_of(environment, slice_)
        place = (environment.project, zone)
        for index, disk in enumerate(settings.targets.get(NAME, {}).get("data_disks") or ()):
            parts = disk_parts(disk["source"])
            path = (*settings.source(("targets", NAME, "data_disks")), index, "source")
            if not parts or not zone or parts[:2] == place or (path, place) in reported:
                continue
            reported.add((path, place))
            zone_path = dotted((*environment.path, "zones", slice_.size))
            zones = [each.name for each in slice_.zones_in(environment.region)]
            can_move = parts[0] == environment.project and parts[1] in zones
            other_zone = f", or set {zone_path} to {parts[1]}" if can_move else ""
            yield Finding.of(
                "TPU074",
                f"{dotted(path)}: the disk is in {parts[1]} of {parts[0]}, and the group of {slice_.size} in {zone} "
                f"of {environment.project}, where it looks for a disk by its name",
                project.document.value_location(path),
                help=f"name a disk in {zone} of {environment.project}{other_zone}",
                details=(f"see {TEMPLATES}",),
            )


def _max_job_name_length(slice_: Slice) -> int:
    return MAX_NAME_LENGTH if slice_.hosts == 1 else MAX_BASE_NAME_LENGTH
