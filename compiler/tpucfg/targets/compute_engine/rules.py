"""The rules of Compute Engine for the objects of a slice: what it refuses although each object fits its schema.

Every rule takes the whole config, as most of them compare two objects. A config written by hand may lack some objects.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from tpucfg.catalog import Catalog
from tpucfg.schemas import Problem
from tpucfg.targets.common import service_problem
from tpucfg.targets.compute_engine import pages
from tpucfg.targets.compute_engine.findings import MAX_BASE_NAME_LENGTH, MAX_NAME_LENGTH
from tpucfg.targets.compute_engine.request import DOCUMENTS, GROUP, INSTANCE, POLICY, TEMPLATE
from tpucfg.targets.hosts.metadata import metadata_problems
from tpucfg.targets.interface import RequestBody
from tpucfg.text_format import format_value, listed
from tpucfg.yamldoc.document import KeyPath

FLEX_START_SECONDS: Final = range(600, 604_801)
"""Run durations that flex-start accepts: 10 minutes to 7 days (FLEX_START)."""
_MAX_DIGITS: Final = 9
"""Digits of a number that a rule judges."""
_TPU_PREFIXES: Final = ("ct", "tpu")
"""The first letters of the machine types with TPUs (TPUS)."""
_FAMILIES: Final = {"ct5p-": "v5p", "ct6e-": "v6e", "tpu7x-": "tpu7x"}
"""The generations that Compute Engine offers, by the start of their machine types (TPUS)."""


class _Host(NamedTuple):
    """The fields of a host, with their path."""

    path: KeyPath
    fields: Mapping[str, Any]
    hosts: int
    """The number of hosts with these fields."""


def rules(body: RequestBody, catalog: Catalog) -> Iterator[Problem]:
    """Yield the problems of a config's objects: missing ones, names, machines, scheduling, disks and metadata."""
    yield from _object_rules(body)
    yield from _name_rules(body)
    for host in _hosts(body):
        for rule in _HOST_RULES:
            yield from rule(host)
    yield from _group_rules(body, catalog)


def _hosts(body: RequestBody) -> Iterator[_Host]:
    if properties := body.get(TEMPLATE, {}).get("properties"):
        yield _Host((TEMPLATE, "properties"), properties, body.get(GROUP, {}).get("targetSize", 1))
    if INSTANCE in body:
        yield _Host((INSTANCE,), body[INSTANCE], 1)


def _object_rules(body: RequestBody) -> Iterator[Problem]:
    if GROUP not in body and INSTANCE not in body:
        fix = f"add the document of an {INSTANCE}, or of an {GROUP}"
        yield Problem("TPU071", "no document of the config creates a host", (), fix)
    if INSTANCE in body and len(body) > 1:
        others = listed([key for key in DOCUMENTS if key in body and key != INSTANCE], last=" and ")
        yield service_problem((INSTANCE,), f"it is one more host beside {others}", "delete one of them", at_key=True)


def _name_rules(body: RequestBody) -> Iterator[Problem]:
    for key, value in body.items():
        yield from _long_name((key, "name"), value["name"], MAX_NAME_LENGTH)
    base = body.get(GROUP, {}).get("baseInstanceName", "")
    yield from _long_name((GROUP, "baseInstanceName"), base.partition("#")[0], MAX_BASE_NAME_LENGTH)


def _long_name(path: KeyPath, name: str, limit: int) -> Iterator[Problem]:
    if (excess := len(name) - limit) > 0:
        message = f"the name {name} has {len(name)} characters, and {limit} are allowed for {path[0]}.{path[-1]}"
        yield Problem("TPU030", message, path, f"shorten it by {excess}", details=(f"the rule: {pages.NAMES}",))


def _machine_rules(host: _Host) -> Iterator[Problem]:
    name = host.fields.get("machineType", "").rpartition("/")[2]
    path = (*host.path, "machineType")
    if _generation_of(name):
        return
    if not name:
        message, fix = "it is missing, and the default has no TPUs", "set it to a machine such as ct6e-standard-4t"
    elif name.startswith(_TPU_PREFIXES):
        message = f"Compute Engine offers TPUs of {listed([*_FAMILIES.values()], last=' and ')}, and {name} has others"
        fix = "choose a machine such as ct6e-standard-4t, or another target"
    else:
        message, fix = f"{format_value(name, quoted=False)} has no TPUs", "set it to a machine such as ct6e-standard-4t"
    yield service_problem(path, f"{message}: {pages.TPUS}", fix)


def _generation_of(machine: str) -> str | None:
    return next((generation for prefix, generation in _FAMILIES.items() if machine.startswith(prefix)), None)


# The rules of a host


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
    seconds = _integer(scheduling.get("maxRunDuration", {}).get("seconds", 0))
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
    """Yield an error for each existing disk that several hosts would write to."""
    for index, disk in enumerate(host.fields.get("disks", ())):
        if host.hosts > 1 and "source" in disk and disk.get("mode") != "READ_ONLY":
            message = f"{host.hosts} hosts cannot attach one disk for writing: {pages.DISKS}"
            yield service_problem((*host.path, "disks", index, "source"), message, "add mode: READ_ONLY")


def _metadata_rules(host: _Host) -> Iterator[Problem]:
    items = host.fields.get("metadata", {}).get("items", ())
    path, keys = (*host.path, "metadata"), [item.get("key", "") for item in items]
    for index, key in enumerate(keys):
        if key in keys[:index]:
            message = f"{format_value(key)} is a second item of this key"
            yield service_problem((*path, "items", index, "key"), message, "delete one of them")
    yield from metadata_problems(path, {item.get("key", ""): item.get("value", "") for item in items})


_HOST_RULES: Final[Sequence[Callable[[_Host], Iterator[Problem]]]] = (
    _machine_rules,
    _maintenance_rules,
    _duration_rules,
    _capacity_rules,
    _disk_rules,
    _metadata_rules,
)


# The rules of a group


def _group_rules(body: RequestBody, catalog: Catalog) -> Iterator[Problem]:
    group = body.get(GROUP)
    if group is None:
        return
    policy = group.get("resourcePolicies", {}).get("workloadPolicy")
    if policy is not None and group.get("targetSizePolicy", {}).get("mode") != "BULK":
        message = f"the hosts of a slice are created at once, in the mode BULK: {pages.BULK}"
        yield service_problem((GROUP, "targetSizePolicy", "mode"), message, "set it to BULK")
    yield from _references(body, group)
    yield from _size_rules(body, group, catalog)
    yield from _failure_rules(body, group)


def _references(body: RequestBody, group: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield an error for a reference that is no path, or that does not name the object of the same config."""
    references: list[tuple[KeyPath, str, str]] = [
        ((GROUP, "resourcePolicies", "workloadPolicy"), POLICY, "resourcePolicies")
    ]
    references += [
        ((GROUP, "versions", index, "instanceTemplate"), TEMPLATE, "instanceTemplates")
        for index, _ in enumerate(group.get("versions", ()))
    ]
    for path, key, collection in references:
        value = _at(body, path)
        if value is None:
            continue
        if f"/{collection}/" not in value:
            message = f"{format_value(value, quoted=False)} is not the path of an object: {pages.GROUPS}"
            yield service_problem(path, message, f"write projects/PROJECT/regions/REGION/{collection}/NAME")
        elif key in body and value.rpartition("/")[2] != body[key]["name"]:
            message = f"it names another object than the {key} of this config, {body[key]['name']}"
            yield service_problem(path, message, f"end it with {collection}/{body[key]['name']}")


def _at(body: Any, path: KeyPath) -> Any:
    for step in path:
        if isinstance(body, list) and isinstance(step, int):
            body = body[step]
        elif isinstance(body, dict):
            body = body.get(step)
    return body


def _size_rules(body: RequestBody, group: Mapping[str, Any], catalog: Catalog) -> Iterator[Problem]:
    """Yield an error for a topology that does not have the chips of the group's hosts."""
    topology = _at(body, (POLICY, "workloadPolicy", "acceleratorTopology"))
    machine = _at(body, (TEMPLATE, "properties", "machineType"))
    chips = _chips_of(machine, catalog) if isinstance(machine, str) else None
    axes = [_integer(axis) for axis in str(topology).split("x")]
    if chips is None or None in axes:
        return
    total = math.prod(axis for axis in axes if axis is not None)
    expected = total / chips
    if group["targetSize"] != expected:
        message = f"{topology} has {total} chips, and {group['targetSize']} of {machine} do not"
        yield service_problem((GROUP, "targetSize"), message, f"set it to {expected:g}, or change the topology")


def _integer(value: Any) -> int | None:
    """Return a number, which may be written as a text; None for another text, and for one beyond any limit."""
    text = str(value)
    return int(text) if len(text) <= _MAX_DIGITS and text.isascii() and text.isdecimal() else None


@cache
def _chips_of(machine: str, catalog: Catalog) -> int | None:
    """Return the chips of a machine type; None if the catalog does not have it."""
    generation = _generation_of(machine)
    slices = catalog.generation(generation).slices if generation else ()
    machines = (each for slice_ in slices for each in (*slice_.machines, *slice_.named_machines))
    return next((each.chips for each in machines if each.name == machine), None)


def _failure_rules(body: RequestBody, group: Mapping[str, Any]) -> Iterator[Problem]:
    model = _at(body, (TEMPLATE, "properties", "scheduling", "provisioningModel"))
    action = group.get("instanceLifecyclePolicy", {}).get("defaultActionOnFailure")
    if model == "FLEX_START" and action != "DO_NOTHING":
        path = (GROUP, "instanceLifecyclePolicy", "defaultActionOnFailure")
        message = f"a group of flex-start instances does not repair them: {pages.BULK}"
        yield service_problem(path, message, "set it to DO_NOTHING")
