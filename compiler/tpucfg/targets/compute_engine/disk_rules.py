"""The rules of Compute Engine for a host's disks: the one that it boots from, and existing ones that it attaches."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tpucfg.schemas import Problem
from tpucfg.targets.common import service_problem
from tpucfg.targets.compute_engine import pages
from tpucfg.targets.compute_engine.config_hosts import ConfigHost, integer
from tpucfg.targets.hosts.disks import disk_parts, remote_disks, shared_disks
from tpucfg.text_format import dotted
from tpucfg.yamldoc.document import KeyPath

_SOURCE: Final = "source"
"""The field of a disk that exists already."""
_NEW: Final = "initializeParams"
"""The field of a disk that is created with the host."""
_LEAST_GB: Final = 20
"""The least size of a boot disk, as in the spec: 10 GB of the image, Docker and the trainer's own image."""
_TYPE: Final = re.compile(r"(?:^|/)zones/([^/]+)/diskTypes/([^/]+)$")


def disk_rules(host: ConfigHost) -> Iterator[Problem]:
    """Yield the problems of a host's disks."""
    disks, path = host.fields.get("disks", ()), (*host.path, "disks")
    yield from _boot_rules(host, path, disks)
    for index, disk in enumerate(disks):
        yield from _type_rules(host, (*path, index, _NEW, "diskType"), disk.get(_NEW, {}).get("diskType", ""))
    yield from shared_disks(path, disks, _SOURCE, host.hosts)
    if host.zone:
        yield from remote_disks(path, disks, _SOURCE, host.zone)
    if host.is_template:
        yield from _paths_in_template(path, disks)


def _boot_rules(host: ConfigHost, path: KeyPath, disks: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """Yield an error for a host without a boot disk, and the problems of the disks that it boots from."""
    boot = [index for index, disk in enumerate(disks) if disk.get("boot")]
    if not disks and "sourceMachineImage" not in host.fields:
        message = f"it is missing, and a host boots from its first disk: {pages.INSTANCES}"
        yield service_problem(path, message, "add an item with boot: true and initializeParams.sourceImage")
    elif disks and not boot:
        message = f"no disk has boot: true, and a host boots from its first disk: {pages.INSTANCES}"
        yield service_problem((*path, 0, "boot"), message, "set it to true")
    for index in boot:
        if disks[index].get("type") == "SCRATCH":
            message = f"a host boots from a persistent disk, and not from a local SSD: {pages.INSTANCES}"
            yield service_problem((*path, index, "type"), message, "set it to PERSISTENT, or delete it")
        elif _NEW in disks[index]:
            yield from _new_boot_disk((*path, index), disks[index])


def _new_boot_disk(path: KeyPath, disk: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield a warning for a boot disk that its host leaves behind, and for one without room for the trainer's image."""
    if not disk.get("autoDelete"):
        where = (*path, "autoDelete")
        message = f"{dotted(where)}: each host leaves its boot disk behind, which is billed until you delete it"
        yield _warning(where, message, "set it to true")
    where = (*path, *((_NEW, "diskSizeGb") if "diskSizeGb" in disk[_NEW] else ("diskSizeGb",)))
    size = integer(disk[_NEW].get("diskSizeGb", disk.get("diskSizeGb", _LEAST_GB)))
    if size is not None and size < _LEAST_GB:
        message = f"{dotted(where)}: {size} GB have no room for Docker and the trainer's image beside the system"
        yield _warning(where, message, 'set it to "200", the size that tpucfg renders')


def _warning(path: KeyPath, message: str, fix: str) -> Problem:
    return Problem("TPU121", message, path, fix, details=(f"see {pages.INSTANCES}",))


def _type_rules(host: ConfigHost, path: KeyPath, value: str) -> Iterator[Problem]:
    """Yield an error for a type of disk in another zone than its instance, and for the path of one in a template."""
    match = _TYPE.search(value)
    if match and host.is_template:
        message = f"a template has the name of a type of disk, and no path: {pages.TEMPLATES}"
        yield service_problem(path, message, f"set it to {match[2]}")
    elif match and host.zone and match[1] != host.zone:
        message = f"the type of disk is in {match[1]}, and the host in {host.zone}: {pages.INSTANCES}"
        yield service_problem(path, message, f"set it to zones/{host.zone}/diskTypes/{match[2]}")


def _paths_in_template(path: KeyPath, disks: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """Yield an error for each zonal disk that a template does not name by its name alone."""
    for index, disk in enumerate(disks):
        if parts := disk_parts(disk.get(_SOURCE, "")):
            message = f"a template has the name of a disk of the group's zone, and no path: {pages.TEMPLATES}"
            yield service_problem((*path, index, _SOURCE), message, f"set it to {parts[2]}")
