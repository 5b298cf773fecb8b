"""The hosts of a config: the fields of an instance, and those of the template of a group's instances."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from tpucfg.targets.compute_engine.paths import GROUP, INSTANCE, POLICY, TEMPLATE
from tpucfg.targets.compute_engine.references import references_of
from tpucfg.targets.interface import RequestBody
from tpucfg.yamldoc.document import KeyPath

_ZONE: Final = re.compile(r"(?:^|/)zones/([^/]+)/machineTypes/")
_MAX_DIGITS: Final = 9
"""Digits of a number that a rule judges."""


class ConfigHost(NamedTuple):
    """The fields of a host, with their path."""

    path: KeyPath
    fields: Mapping[str, Any]
    hosts: int
    """The number of hosts with these fields."""
    region: str
    """The region of the host; empty if the config does not show it."""

    @property
    def is_template(self) -> bool:
        """True for the fields of a template, which name no zone."""
        return self.path[0] == TEMPLATE

    @property
    def machine_type(self) -> str:
        """The machine type as the config has it: a name, or the path of one."""
        text: str = self.fields.get("machineType", "")
        return text

    @property
    def zone(self) -> str:
        """The zone in the path of the machine type; empty if it is a name."""
        match = _ZONE.search(self.machine_type)
        return match[1] if match else ""


def config_hosts(body: RequestBody) -> Iterator[ConfigHost]:
    """Yield the hosts of a config."""
    if properties := body.get(TEMPLATE, {}).get("properties"):
        group = body.get(GROUP, {})
        yield ConfigHost((TEMPLATE, "properties"), properties, group.get("targetSize", 1), _region_of_group(group))
    if INSTANCE in body:
        host = ConfigHost((INSTANCE,), body[INSTANCE], 1, "")
        yield host._replace(region=host.zone.rpartition("-")[0])


def _region_of_group(group: Mapping[str, Any]) -> str:
    """Return the region of a group's policy, which is that of the group; empty without one."""
    return next((reference.location[1] for reference in references_of(group) if reference.key == POLICY), "")


def integer(value: Any) -> int | None:
    """Return a number, which may be written as a text; None for another text, and for one beyond any limit."""
    text = str(value)
    return int(text) if len(text) <= _MAX_DIGITS and text.isascii() and text.isdecimal() else None
