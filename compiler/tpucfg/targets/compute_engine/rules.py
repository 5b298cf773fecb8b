"""The rules of Compute Engine for the objects of a slice: what it refuses although each object fits its schema.

The rules take the whole config, as some of them compare two objects. A config written by hand may lack some objects.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from tpucfg.catalog import Catalog, Slice
from tpucfg.findings import Finding
from tpucfg.paths import KeyPath, value_at, values_at
from tpucfg.plan.naming import zone_of
from tpucfg.plan.rules.capacity_table import FLEX_START_SECONDS
from tpucfg.schemas import Problem
from tpucfg.spec.project import Environment, Project
from tpucfg.targets.compute_engine import request
from tpucfg.targets.compute_engine.request import (
    GROUP,
    HOST_IMAGES,
    INSTANCE,
    NAME,
    POLICY,
    TEMPLATE,
)
from tpucfg.targets.hosts import disk_parts, disk_problems, host_findings
from tpucfg.targets.interface import RequestBody
from tpucfg.targets.rules import FieldRule, rule_problems, service_problem
from tpucfg.text_format import dotted, format_value, listed

_MAX_NAME_LENGTH: Final = 63
"""Characters of the name of an instance or a group (hosts.rules.NAMES)."""
_MAX_BASE_NAME_LENGTH: Final = 58
"""Characters of the start of the names of a group's instances, to which it adds a dash and four others."""
_FAMILIES: Final = {"ct5p-": "v5p", "ct6e-": "v6e", "tpu7x-": "tpu7x"}
"""The generations that Compute Engine offers, by the start of their machine types (TPUS)."""
_IMAGE: Final = re.compile(
    r"ubuntu-accel-[0-9]+-amd64-tpu-((?:v5e|v5p|v6e|tpu7x)(?:-(?:v5e|v5p|v6e|tpu7x))*)"
)
"""The start of the name of an image or a family of Google's: the generations whose software it has (IMAGES)."""
_ZONE: Final = re.compile(r"(?:^|/)zones/([^/]+)/machineTypes/")
_SECONDS: Final = range(30, 120 * 24 * 60 * 60 + 1)
"""Run durations of all capacity but flex-start: 30 seconds to 120 days (TIME_LIMIT)."""
_LEAST_GB: Final = 20
"""The least size of a boot disk, as in the spec: 10 GB of the image, Docker and the trainer's own image."""
_MAX_DIGITS: Final = 9
"""Digits of a number that a rule judges."""
_AXES_OF_CUBES: Final = 3


def _integer(value: Any) -> int | None:
    """Return a number, which may be written as a text; None for another text, and for one beyond any limit."""
    text = str(value)
    return int(text) if len(text) <= _MAX_DIGITS and text.isascii() and text.isdecimal() else None


def _is_model(scheduling: Mapping[str, Any] | None, model: str) -> bool:
    return (scheduling or {}).get("provisioningModel") == model


def _is_no_flex_start_duration(model: Any, scheduling: Mapping[str, Any]) -> bool:
    duration = scheduling.get("maxRunDuration")
    seconds = _integer((duration or {}).get("seconds", 0))
    # A duration that no instance has is found by its own rule.
    is_valid = duration is None or seconds in _SECONDS
    return model == "FLEX_START" and is_valid and seconds not in FLEX_START_SECONDS


def _lacks_reservation(affinity: Any, host: Mapping[str, Any]) -> bool:
    fields = affinity or {}
    is_specific = fields.get("consumeReservationType") == "SPECIFIC_RESERVATION"
    is_named = is_specific and fields.get("key") and fields.get("values")
    return not is_named and (is_specific or _is_model(host.get("scheduling"), "RESERVATION_BOUND"))


def _has_no_room(new_disk: Any, disk: Mapping[str, Any]) -> bool:
    if not disk.get("boot") or new_disk is None:
        return False
    size = _integer(new_disk.get("diskSizeGb", disk.get("diskSizeGb", _LEAST_GB)))
    return size is not None and size < _LEAST_GB


_HOST_RULES: Final = (
    FieldRule(
        "scheduling.maxRunDuration.seconds",
        lambda seconds, _: seconds is not None and _integer(seconds) not in _SECONDS,
        "a duration is 30 seconds to 120 days",
        f"set it to a number from {_SECONDS[0]} to {_SECONDS[-1]}: in a spec, max_run_duration from 30s to 120d",
        request.TIME_LIMIT,
    ),
    FieldRule(
        "scheduling.provisioningModel",
        _is_no_flex_start_duration,
        "flex-start takes a duration of 600 to 604800 seconds",
        "set maxRunDuration.seconds to a number of this range",
        request.FLEX_START,
    ),
    FieldRule(
        "reservationAffinity",
        _lacks_reservation,
        "a reservation is named by its type SPECIFIC_RESERVATION, key and values",
        "add all three, with key: compute.googleapis.com/reservation-name",
        request.RESERVATIONS,
    ),
    FieldRule(
        "disks.*.autoDelete",
        lambda value, disk: not value and disk.get("boot") and "initializeParams" in disk,
        "each host leaves its boot disk behind, which is billed until you delete it",
        "set it to true",
        request.INSTANCES,
        "TPU121",
    ),
    FieldRule(
        "disks.*.initializeParams",
        _has_no_room,
        "the boot disk has no room for Docker and the trainer's image beside the system",
        'set its diskSizeGb to "200", the size that tpucfg renders',
        request.INSTANCES,
        "TPU121",
    ),
)
"""The rules about a host, in a template and in an instance."""
_OBJECT_RULES: Final[Mapping[str, Sequence[FieldRule]]] = {
    POLICY: (
        FieldRule(
            "workloadPolicy.type",
            lambda value, _: value != "HIGH_THROUGHPUT",
            "the hosts of a slice need the throughput between them",
            "set it to HIGH_THROUGHPUT",
            request.GROUPS_OF_TPUS,
        ),
        FieldRule(
            "workloadPolicy.acceleratorTopology",
            lambda topology, _: not topology,
            "it is missing, so the hosts would form no slice",
            "add it, such as 4x4",
            request.GROUPS_OF_TPUS,
        ),
    ),
    GROUP: (
        FieldRule(
            "targetSizePolicy",
            lambda policy, group: (
                "workloadPolicy" in group.get("resourcePolicies", {})
                and (policy or {}).get("mode") != "BULK"
            ),
            "the hosts of a slice are created at once, in the mode BULK",
            "set {path}.mode to BULK",
            request.BULK,
        ),
    ),
}


# The findings about a spec


def spec_findings(
    project: Project, environment: Environment, slices: Sequence[Slice]
) -> Iterator[Finding]:
    """Yield findings about secrets, zones, names, packages and disks."""
    yield from host_findings(project, environment, slices, _max_job_name_length)
    yield from _unreachable_packages(project, environment, slices)
    yield from _remote_disks(project, environment, slices)


def _max_job_name_length(slice_: Slice) -> int:
    return _MAX_NAME_LENGTH if slice_.hosts == 1 else _MAX_BASE_NAME_LENGTH


def _unreachable_packages(
    project: Project, environment: Environment, slices: Sequence[Slice]
) -> Iterator[Finding]:
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
            details=(f"see {request.NAT}",),
        )


def _remote_disks(
    project: Project, environment: Environment, slices: Sequence[Slice]
) -> Iterator[Finding]:
    """Yield an error for each disk that a group would look for elsewhere: its template has only the disk's name.

    The path of a disk of an instance is in the config, where `rules` compares it.
    """
    reported = set()
    for slice_ in (slice_ for slice_ in slices if slice_.hosts > 1):
        settings, zone = (
            project.settings[environment.name, slice_.size],
            zone_of(environment, slice_),
        )
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
                details=(f"see {request.TEMPLATES}",),
            )


# The findings about a config


def rules(body: RequestBody, catalog: Catalog) -> Iterator[Problem]:
    """Yield the problems of a config's objects: missing ones, and those of hosts, policies and groups."""
    yield from _missing_objects(body)
    for path in ((TEMPLATE, "properties"), (INSTANCE,)):
        if host := value_at(body, path):
            yield from rule_problems(_HOST_RULES, host, path)
            yield from _machine_rules(path, host)
            yield from _disk_rules(body, path, host)
    for key, object_rules in _OBJECT_RULES.items():
        if key in body:
            yield from rule_problems(object_rules, body[key], (key,))
    if GROUP in body:
        yield from _policy_of_group(body)
        yield from _size_rules(body, catalog)
        yield from _failure_rules(body)


def _missing_objects(body: RequestBody) -> Iterator[Problem]:
    if GROUP not in body and INSTANCE not in body:
        fix = f"add the document of an {INSTANCE}, or of an {GROUP}"
        yield Problem("TPU071", "no document of the config creates a host", (), fix)
    if GROUP in body and INSTANCE in body:
        fix = f"delete it, or the {GROUP}"
        yield service_problem(
            (INSTANCE,), f"it is one more host beside those of the {GROUP}", fix, request.GROUPS
        )


def _machine_rules(path: KeyPath, host: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield an error for a machine without TPUs, and for images with the software of other generations."""
    name = host.get("machineType", "").rpartition("/")[2]
    generation = _generation_of(name)
    if generation is None:
        offered = listed([*_FAMILIES.values()], last=" and ")
        message = f"Compute Engine offers TPUs of {offered}, and {format_value(name or 'the default')} has none of them"
        fix = "choose a machine such as ct6e-standard-4t, or another target"
        yield service_problem((*path, "machineType"), message, fix, request.TPUS)
        return
    for image_path, value in values_at(host, "disks.*.initializeParams.sourceImage"):
        image = value.rpartition("/")[2]
        match = _IMAGE.match(image)
        if match and generation not in match[1].split("-"):
            message = f"{image} is an image for {match[1].replace('-', ', ')}, and the machine is of {generation}"
            fix = f"end it with {HOST_IMAGES[generation].family}"
            yield service_problem((*path, *image_path), message, fix, request.IMAGES)


def _disk_rules(body: RequestBody, path: KeyPath, host: Mapping[str, Any]) -> Iterator[Problem]:
    hosts = body.get(GROUP, {}).get("targetSize", 1) if path[0] == TEMPLATE else 1
    zone = _ZONE.search(host.get("machineType", ""))
    disks = host.get("disks", ())
    yield from disk_problems(
        (*path, "disks"), disks, "source", hosts=hosts, zone=zone[1] if zone else ""
    )


def _generation_of(machine: str) -> str | None:
    """Return the generation of a machine type that Compute Engine offers TPUs by; None for another."""
    return next(
        (generation for prefix, generation in _FAMILIES.items() if machine.startswith(prefix)), None
    )


def _policy_of_group(body: RequestBody) -> Iterator[Problem]:
    """Yield an error for a group of several hosts that uses no policy, or not that of its config."""
    path = (GROUP, "resourcePolicies", "workloadPolicy")
    hosts = body[GROUP]["targetSize"]
    if value_at(body, path) is None and (POLICY in body or hosts > 1):
        message = f"it is missing, so the {hosts} hosts would form no slice"
        name = body.get(POLICY, {}).get("name", "NAME")
        fix = f"set it to projects/PROJECT/regions/REGION/resourcePolicies/{name}"
        with_policy = (
            ""
            if POLICY in body
            else f", and add the {POLICY}, of the type HIGH_THROUGHPUT with a topology"
        )
        yield service_problem(path, message, fix + with_policy, request.GROUPS_OF_TPUS)


def _size_rules(body: RequestBody, catalog: Catalog) -> Iterator[Problem]:
    """Yield an error for a topology that the machines do not form, or with other chips than the group's hosts have."""
    path = (POLICY, "workloadPolicy", "acceleratorTopology")
    topology, hosts = value_at(body, path), body[GROUP]["targetSize"]
    machine = value_at(body, (TEMPLATE, "properties", "machineType"))
    shapes = _shapes_of(machine, catalog) if isinstance(machine, str) else None
    if shapes is None or not topology:  # a missing topology is an error of the policy
        return
    chips, known = shapes
    sides, shown = topology.split("x"), format_value(topology, quoted=False)
    total = math.prod(_integer(side) or 0 for side in sides)
    # The catalog lacks some of the topologies of three axes.
    if topology not in known and not (
        total and len(sides) == known[0].count("x") + 1 == _AXES_OF_CUBES
    ):
        fix = f"set it to {listed(known, 14, last=' or ')}"
        yield service_problem(
            path, f"{shown} is no topology of {machine}", fix, request.GROUPS_OF_TPUS
        )
    elif hosts * chips != total:
        message = f"{shown} has {total} chips, and {hosts} of {machine} have {hosts * chips}"
        fix = f"set it to {max(1, total // chips)}, or change the topology"
        yield service_problem((GROUP, "targetSize"), message, fix, request.GROUPS_OF_TPUS)


@cache
def _shapes_of(machine: str, catalog: Catalog) -> tuple[int, tuple[str, ...]] | None:
    """Return the chips of a machine type and the topologies of its slices; None if the catalog does not have it."""
    generation = _generation_of(machine)
    slices = catalog.generation(generation).slices if generation else ()
    pairs = [
        (slice_, each) for slice_ in slices for each in (*slice_.machines, *slice_.named_machines)
    ]
    matching = [(slice_, each) for slice_, each in pairs if each.name == machine]
    if not matching:
        return None
    return matching[0][1].chips, tuple(
        topology for slice_, _ in matching for topology in slice_.topologies
    )


def _failure_rules(body: RequestBody) -> Iterator[Problem]:
    model = value_at(body, (TEMPLATE, "properties", "scheduling", "provisioningModel"))
    action = body[GROUP].get("instanceLifecyclePolicy", {}).get("defaultActionOnFailure")
    if model == "FLEX_START" and action != "DO_NOTHING":
        path = (GROUP, "instanceLifecyclePolicy", "defaultActionOnFailure")
        message = "a group of flex-start instances does not repair them"
        yield service_problem(path, message, "set it to DO_NOTHING", request.BULK)
