"""The rules about existing disks that a spec or a config attaches to hosts.

Sources: https://docs.cloud.google.com/tpu/docs/attach-durable-block-storage (several hosts),
https://cloud.google.com/compute/docs/regions-zones/global-regional-zonal-resources (a disk is attached in its zone).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tpucfg.schemas import Problem
from tpucfg.text_format import dotted
from tpucfg.yamldoc.document import KeyPath

SHARED: Final = "https://docs.cloud.google.com/tpu/docs/attach-durable-block-storage"
ZONAL: Final = "https://cloud.google.com/compute/docs/regions-zones/global-regional-zonal-resources"
_PATH: Final = re.compile(r"(?:projects/([^/]+)/)?zones/([^/]+)/disks/([^/]+)$")


def disk_parts(source: str) -> tuple[str, str, str] | None:
    """Return the project, the zone and the name of a disk by its path; None for what is no path of a zonal disk."""
    match = _PATH.search(source)
    return (match[1] or "", match[2], match[3]) if match else None


def shared_disks(path: KeyPath, disks: Sequence[Mapping[str, Any]], field: str, hosts: int) -> Iterator[Problem]:
    """Yield an error for each disk that several hosts would write to; READ_WRITE is the mode of the APIs by default.

    Args:
        path: The path of the list of disks in the request body.
        disks: The list; an item without `field` is a new disk of each host.
        field: The field of an item that has the path or the name of an existing disk.
        hosts: The number of hosts that attach the disks.
    """
    for index, disk in enumerate(disks):
        if hosts > 1 and field in disk and disk.get("mode") != "READ_ONLY":
            shown = (*path, index, "mode" if "mode" in disk else field)
            message = f"{dotted(shown)}: {hosts} hosts cannot attach one disk for writing"
            fix = "attach it for reading: READ_ONLY in a config, and in a spec without read_only: false"
            yield Problem("TPU074", message, shown, fix, details=(f"the rule: {SHARED}",))


def remote_disks(path: KeyPath, disks: Sequence[Mapping[str, Any]], field: str, zone: str) -> Iterator[Problem]:
    """Yield an error for each disk in another zone than the slice; see `shared_disks`."""
    for index, disk in enumerate(disks):
        parts = disk_parts(disk.get(field, ""))
        if parts and parts[1] != zone:
            source = (*path, index, field)
            message = f"{dotted(source)}: the disk is in {parts[1]}, and the slice in {zone}"
            fix = f"name a disk in {zone}"
            if parts[1].rpartition("-")[0] == zone.rpartition("-")[0]:
                fix += f", or request the slice in {parts[1]}: in a spec, by zones of the environment"
            yield Problem("TPU074", message, source, fix, details=(f"the rule: {ZONAL}",))
