"""The rules of Compute Engine for a host's scheduling: its end, its duration and its capacity."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from tpucfg.plan.rules.capacity_table import FLEX_START_SECONDS
from tpucfg.schemas import Problem
from tpucfg.targets.common import service_problem
from tpucfg.targets.compute_engine import pages
from tpucfg.targets.compute_engine.config_hosts import ConfigHost, integer
from tpucfg.yamldoc.document import KeyPath

_SECONDS: Final = range(30, 120 * 24 * 60 * 60 + 1)
"""Run durations of all capacity but flex-start: 30 seconds to 120 days (pages.TIME_LIMIT)."""


def _maintenance_rules(host: ConfigHost) -> Iterator[Problem]:
    scheduling = host.fields.get("scheduling", {})
    if scheduling.get("onHostMaintenance") != "TERMINATE":
        path = (*host.path, "scheduling", "onHostMaintenance")
        message = f"TPU VMs cannot be moved while they run: {pages.SPOT}"
        yield service_problem(path, message, "set it to TERMINATE")


def _duration_rules(host: ConfigHost) -> Iterator[Problem]:
    scheduling, path = host.fields.get("scheduling", {}), (*host.path, "scheduling")
    limits = [field for field in ("maxRunDuration", "terminationTime") if field in scheduling]
    if len(limits) > 1:
        yield service_problem((*path, limits[1]), f"it excludes {limits[0]}", "delete one of the two")
    if limits and "instanceTerminationAction" not in scheduling:
        message = f"it needs instanceTerminationAction: {pages.TIME_LIMIT}"
        yield service_problem((*path, limits[0]), message, "add instanceTerminationAction: DELETE")
    yield from _seconds_rules(path, scheduling)


def _seconds_rules(path: KeyPath, scheduling: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield an error for a duration that the service, or flex-start, does not accept."""
    has_duration, where = "maxRunDuration" in scheduling, (*path, "maxRunDuration", "seconds")
    seconds = integer(scheduling.get("maxRunDuration", {}).get("seconds", 0))
    if scheduling.get("provisioningModel") == "FLEX_START":
        if seconds not in FLEX_START_SECONDS:
            message = f"flex-start takes a duration of 600 to 604800 seconds: {pages.FLEX_START}"
            place = where if has_duration else path
            yield service_problem(place, message, "set maxRunDuration.seconds to a number of this range")
    elif has_duration and seconds not in _SECONDS:
        message = f"a duration is 30 seconds to 120 days: {pages.TIME_LIMIT}"
        fix = f"set it to a number from {_SECONDS[0]} to {_SECONDS[-1]}: in a spec, max_run_duration from 30s to 120d"
        yield service_problem(where, message, fix)


def _capacity_rules(host: ConfigHost) -> Iterator[Problem]:
    scheduling, path = host.fields.get("scheduling", {}), (*host.path, "scheduling")
    model = scheduling.get("provisioningModel")
    affinity = host.fields.get("reservationAffinity", {})
    kind = affinity.get("consumeReservationType")
    if model == "RESERVATION_BOUND" and kind != "SPECIFIC_RESERVATION":
        message = f"RESERVATION_BOUND needs a reservation in reservationAffinity: {pages.RESERVATIONS}"
        yield service_problem((*path, "provisioningModel"), message, "add reservationAffinity, or set it to STANDARD")
    if model == "RESERVATION_BOUND" and scheduling.get("instanceTerminationAction") != "DELETE":
        message = f"an instance of a reservation is deleted at its end: {pages.BULK_GROUPS}"
        yield service_problem((*path, "instanceTerminationAction"), message, "set it to DELETE")
    if kind == "SPECIFIC_RESERVATION" and not (affinity.get("key") and affinity.get("values")):
        message = f"it names no reservation by key and values: {pages.RESERVATIONS}"
        fix = "add key: compute.googleapis.com/reservation-name and values: [NAME]"
        yield service_problem((*host.path, "reservationAffinity"), message, fix)
    if model == "SPOT" and scheduling.get("automaticRestart") is not False:
        message = f"spot instances are not restarted: {pages.SPOT}"
        yield service_problem((*path, "automaticRestart"), message, "set it to false")
    if model == "FLEX_START" and scheduling.get("automaticRestart"):
        message = f"flex-start instances run once, and are not restarted: {pages.FLEX_START_WAIT}"
        yield service_problem((*path, "automaticRestart"), message, "set it to false")


SCHEDULING_RULES: Final[Sequence[Callable[[ConfigHost], Iterator[Problem]]]] = (
    _maintenance_rules,
    _duration_rules,
    _capacity_rules,
)
