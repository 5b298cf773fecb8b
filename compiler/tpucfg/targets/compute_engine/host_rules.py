"""The rules of Compute Engine for the fields of a host, in a template or in an instance."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from tpucfg.schemas import Problem
from tpucfg.targets.common import service_problem
from tpucfg.targets.compute_engine import pages
from tpucfg.targets.compute_engine.config_hosts import ConfigHost, config_hosts
from tpucfg.targets.compute_engine.machine import HOST_IMAGES
from tpucfg.targets.compute_engine.scheduling_rules import SCHEDULING_RULES
from tpucfg.targets.hosts.disks import disk_parts, remote_disks, shared_disks
from tpucfg.targets.hosts.metadata import metadata_problems
from tpucfg.targets.interface import RequestBody
from tpucfg.text_format import format_value, listed
from tpucfg.yamldoc.document import KeyPath

_TPU_PREFIXES: Final = ("ct", "tpu")
"""The first letters of the machine types with TPUs (TPUS)."""
_FAMILIES: Final = {"ct5p-": "v5p", "ct6e-": "v6e", "tpu7x-": "tpu7x"}
"""The generations that Compute Engine offers, by the start of their machine types (TPUS)."""
_REGION: Final = re.compile(r"(?:^|/)regions/([^/]+)/subnetworks/")
_IMAGE: Final = re.compile(r"ubuntu-accel-[0-9]+-amd64-tpu-((?:v5e|v5p|v6e|tpu7x)(?:-(?:v5e|v5p|v6e|tpu7x))*)")
"""The start of the name of an image or a family of Google's: the generations whose software it has (pages.IMAGES)."""
_DISK_FIELD: Final = "source"
"""The field of a disk that exists already."""


def host_rules(body: RequestBody) -> Iterator[Problem]:
    """Yield the problems of machines, scheduling, capacity, disks, networks and metadata."""
    for host in config_hosts(body):
        for rule in _HOST_RULES:
            yield from rule(host)


def _machine_rules(host: ConfigHost) -> Iterator[Problem]:
    name = host.machine_type.rpartition("/")[2]
    path = (*host.path, "machineType")
    if generation_of(name):
        yield from _machine_paths(path, host, name)
        return
    if not name:
        message, fix = "it is missing, and the default has no TPUs", "set it to a machine such as ct6e-standard-4t"
    elif name.startswith(_TPU_PREFIXES):
        message = f"Compute Engine offers TPUs of {listed([*_FAMILIES.values()], last=' and ')}, and {name} has others"
        fix = "choose a machine such as ct6e-standard-4t, or another target"
    else:
        message, fix = f"{format_value(name, quoted=False)} has no TPUs", "set it to a machine such as ct6e-standard-4t"
    yield service_problem(path, f"{message}: {pages.TPUS}", fix)


def _machine_paths(path: KeyPath, host: ConfigHost, name: str) -> Iterator[Problem]:
    """Yield an error for a template that has the path of a machine type, and for an instance that has a name."""
    if host.is_template and host.machine_type != name:
        message = f"a template has the name of a machine type, and no path: {pages.TEMPLATES}"
        yield service_problem(path, message, f"set it to {name}")
    elif not host.is_template and not host.zone:
        message = f"an instance has the path of a machine type, with its zone: {pages.INSTANCES}"
        yield service_problem(path, message, f"set it to zones/ZONE/machineTypes/{name}")


def generation_of(machine: str) -> str | None:
    """Return the generation of a machine type that Compute Engine offers TPUs by; None for another."""
    return next((generation for prefix, generation in _FAMILIES.items() if machine.startswith(prefix)), None)


def _image_rules(host: ConfigHost) -> Iterator[Problem]:
    """Yield an error for each image of Google's that has the software of other generations than the machine's."""
    generation = generation_of(host.machine_type.rpartition("/")[2])
    for index, disk in enumerate(host.fields.get("disks", ())):
        image = disk.get("initializeParams", {}).get("sourceImage", "").rpartition("/")[2]
        match = _IMAGE.match(image)
        if generation and match and generation not in match[1].split("-"):
            path = (*host.path, "disks", index, "initializeParams", "sourceImage")
            message = f"{image} is an image for {match[1].replace('-', ', ')}, and the machine is of {generation}"
            yield service_problem(path, f"{message}: {pages.IMAGES}", f"end it with {HOST_IMAGES[generation].family}")


def _disk_rules(host: ConfigHost) -> Iterator[Problem]:
    """Yield an error for a host without a boot disk, and for existing disks that it cannot attach."""
    disks, path = host.fields.get("disks", ()), (*host.path, "disks")
    if not disks and "sourceMachineImage" not in host.fields:
        message = f"it is missing, and a host boots from its first disk: {pages.INSTANCES}"
        yield service_problem(path, message, "add an item with boot: true and initializeParams.sourceImage")
    yield from shared_disks(path, disks, _DISK_FIELD, host.hosts)
    if host.zone:
        yield from remote_disks(path, disks, _DISK_FIELD, host.zone)
    if host.is_template:
        yield from _paths_in_template(path, disks)


def _paths_in_template(path: KeyPath, disks: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """Yield an error for each zonal disk that a template does not name by its name alone."""
    for index, disk in enumerate(disks):
        if parts := disk_parts(disk.get(_DISK_FIELD, "")):
            message = f"a template has the name of a disk of the group's zone, and no path: {pages.TEMPLATES}"
            yield service_problem((*path, index, _DISK_FIELD), message, f"set it to {parts[2]}")


def _network_rules(host: ConfigHost) -> Iterator[Problem]:
    """Yield an error for each subnetwork of another region than the host's."""
    for index, interface in enumerate(host.fields.get("networkInterfaces", ())):
        match = _REGION.search(interface.get("subnetwork", ""))
        if match and host.region and match[1] != host.region:
            path = (*host.path, "networkInterfaces", index, "subnetwork")
            message = f"the subnetwork is in {match[1]}, and the host in {host.region}: {pages.SUBNETS}"
            yield service_problem(path, message, f"name a subnetwork in {host.region}")


def _metadata_rules(host: ConfigHost) -> Iterator[Problem]:
    items = host.fields.get("metadata", {}).get("items", ())
    path, keys = (*host.path, "metadata"), [item.get("key", "") for item in items]
    for index, key in enumerate(keys):
        if not key:
            message = f"it has no key, by which the host reads it: {pages.INSTANCES}"
            yield service_problem((*path, "items", index), message, "add key, or delete the item")
        elif key in keys[:index]:
            message = f"{format_value(key)} is a second item of this key"
            yield service_problem((*path, "items", index, "key"), message, "delete one of them")
    values = [item.get("value", "") for item in items]
    pairs = {(*path, "items", index, "value"): pair for index, pair in enumerate(zip(keys, values, strict=True))}
    yield from metadata_problems(path, pairs)


_HOST_RULES: Final[Sequence[Callable[[ConfigHost], Iterator[Problem]]]] = (
    _machine_rules,
    *SCHEDULING_RULES,
    _image_rules,
    _disk_rules,
    _network_rules,
    _metadata_rules,
)
