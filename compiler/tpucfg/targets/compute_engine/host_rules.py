"""The rules of Compute Engine for the fields of a host, in a template or in an instance."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tpucfg.plan.rules.capacity_table import FLEX_START_SECONDS
from tpucfg.schemas import Problem
from tpucfg.targets.common import service_problem
from tpucfg.targets.compute_engine import pages
from tpucfg.targets.compute_engine.paths import GROUP, INSTANCE, TEMPLATE
from tpucfg.targets.hosts.disks import disk_parts, remote_disks, shared_disks
from tpucfg.targets.hosts.metadata import metadata_problems
from tpucfg.targets.interface import RequestBody
from tpucfg.text_format import format_value, listed
from tpucfg.yamldoc.document import KeyPath

_MAX_DIGITS: Final = 9
"""Digits of a number that a rule judges."""
_TPU_PREFIXES: Final = ("ct", "tpu")
"""The first letters of the machine types with TPUs (TPUS)."""
_FAMILIES: Final = {"ct5p-": "v5p", "ct6e-": "v6e", "tpu7x-": "tpu7x"}
"""The generations that Compute Engine offers, by the start of their machine types (TPUS)."""
_ZONE: Final = re.compile(r"(?:^|/)zones/([^/]+)/machineTypes/")
_DISK_FIELD: Final = "source"
"""The field of a disk that exists already."""


class _Host(NamedTuple):
    """The fields of a host, with their path."""

    path: KeyPath
    fields: Mapping[str, Any]
    hosts: int
    """The number of hosts with these fields."""


def host_rules(body: RequestBody) -> Iterator[Problem]:
    """Yield the problems of machines, scheduling, capacity, disks and metadata."""
    for host in _hosts(body):
        for rule in _HOST_RULES:
            yield from rule(host)


def _hosts(body: RequestBody) -> Iterator[_Host]:
    if properties := body.get(TEMPLATE, {}).get("properties"):
        yield _Host((TEMPLATE, "properties"), properties, body.get(GROUP, {}).get("targetSize", 1))
    if INSTANCE in body:
        yield _Host((INSTANCE,), body[INSTANCE], 1)


def _machine_rules(host: _Host) -> Iterator[Problem]:
    name = host.fields.get("machineType", "").rpartition("/")[2]
    path = (*host.path, "machineType")
    if generation_of(name):
        return
    if not name:
        message, fix = "it is missing, and the default has no TPUs", "set it to a machine such as ct6e-standard-4t"
    elif name.startswith(_TPU_PREFIXES):
        message = f"Compute Engine offers TPUs of {listed([*_FAMILIES.values()], last=' and ')}, and {name} has others"
        fix = "choose a machine such as ct6e-standard-4t, or another target"
    else:
        message, fix = f"{format_value(name, quoted=False)} has no TPUs", "set it to a machine such as ct6e-standard-4t"
    yield service_problem(path, f"{message}: {pages.TPUS}", fix)


def generation_of(machine: str) -> str | None:
    """Return the generation of a machine type that Compute Engine offers TPUs by; None for another."""
    return next((generation for prefix, generation in _FAMILIES.items() if machine.startswith(prefix)), None)


def _maintenance_rules(host: _Host) -> Iterator[Problem]:
    scheduling = host.fields.get("scheduling", {})
    if scheduling.get("onHostMaintenance") != "TERMINATE":
        path = (*host.path, "scheduling", "onHostMaintenance")
        message = f"TPU VMs cannot be moved while they run: {pages.SPOT}"
        yield service_problem(path, message, "set it to TERMINATE")


def _duration_rules(host: _Host) -> Iterator[Problem]:
    scheduling, path = host.fields.get("scheduling", {}), (*host.path, "scheduling")
    limits = [field for field in ("maxRunDuration", "terminationTime") if field in scheduling]
    if len(limits) > 1:
        yield service_problem((*path, limits[1]), f"it excludes {limits[0]}", "delete one of the two")
    if limits and "instanceTerminationAction" not in scheduling:
        message = f"it needs instanceTerminationAction: {pages.TIME_LIMIT}"
        yield service_problem((*path, limits[0]), message, "add instanceTerminationAction: DELETE")
    seconds = integer(scheduling.get("maxRunDuration", {}).get("seconds", 0))
    if scheduling.get("provisioningModel") == "FLEX_START" and seconds not in FLEX_START_SECONDS:
        message = f"flex-start takes a duration of 600 to 604800 seconds: {pages.FLEX_START}"
        where = (*path, "maxRunDuration", "seconds") if "maxRunDuration" in scheduling else path
        yield service_problem(where, message, "set maxRunDuration.seconds to a number of this range")


def _capacity_rules(host: _Host) -> Iterator[Problem]:
    scheduling, path = host.fields.get("scheduling", {}), (*host.path, "scheduling")
    model = scheduling.get("provisioningModel")
    affinity = host.fields.get("reservationAffinity", {}).get("consumeReservationType")
    if model == "RESERVATION_BOUND" and affinity != "SPECIFIC_RESERVATION":
        message = f"RESERVATION_BOUND needs a reservation in reservationAffinity: {pages.RESERVATIONS}"
        yield service_problem((*path, "provisioningModel"), message, "add reservationAffinity, or set it to STANDARD")
    if model == "SPOT" and scheduling.get("automaticRestart") is not False:
        message = f"spot instances are not restarted: {pages.SPOT}"
        yield service_problem((*path, "automaticRestart"), message, "set it to false")


def _disk_rules(host: _Host) -> Iterator[Problem]:
    """Yield an error for a host without a boot disk, and for existing disks that it cannot attach."""
    disks, path = host.fields.get("disks", ()), (*host.path, "disks")
    if not disks and "sourceMachineImage" not in host.fields:
        message = f"it is missing, and a host boots from its first disk: {pages.INSTANCES}"
        yield service_problem(path, message, "add an item with boot: true and initializeParams.sourceImage")
    yield from shared_disks(path, disks, _DISK_FIELD, host.hosts)
    if zone := _ZONE.search(host.fields.get("machineType", "")):
        yield from remote_disks(path, disks, _DISK_FIELD, zone[1])
    if host.path[0] == TEMPLATE:
        yield from _paths_in_template(path, disks)


def _paths_in_template(path: KeyPath, disks: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """Yield an error for each zonal disk that a template does not name by its name alone."""
    for index, disk in enumerate(disks):
        if parts := disk_parts(disk.get(_DISK_FIELD, "")):
            message = f"a template has the name of a disk of the group's zone, and no path: {pages.TEMPLATES}"
            yield service_problem((*path, index, _DISK_FIELD), message, f"set it to {parts[2]}")


def _metadata_rules(host: _Host) -> Iterator[Problem]:
    items = host.fields.get("metadata", {}).get("items", ())
    path, keys = (*host.path, "metadata"), [item.get("key", "") for item in items]
    for index, key in enumerate(keys):
        if key in keys[:index]:
            message = f"{format_value(key)} is a second item of this key"
            yield service_problem((*path, "items", index, "key"), message, "delete one of them")
    values = [item.get("value", "") for item in items]
    pairs = {(*path, "items", index, "value"): pair for index, pair in enumerate(zip(keys, values, strict=True))}
    yield from metadata_problems(path, pairs)


_HOST_RULES: Final[Sequence[Callable[[_Host], Iterator[Problem]]]] = (
    _machine_rules,
    _maintenance_rules,
    _duration_rules,
    _capacity_rules,
    _disk_rules,
    _metadata_rules,
)


def integer(value: Any) -> int | None:
    """Return a number, which may be written as a text; None for another text, and for one beyond any limit."""
    text = str(value)
    return int(text) if len(text) <= _MAX_DIGITS and text.isascii() and text.isdecimal() else None
