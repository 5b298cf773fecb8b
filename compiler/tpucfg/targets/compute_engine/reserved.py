"""Fields of the objects that `extra` cannot set, although the target does not write them."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tpucfg.targets.compute_engine import pages
from tpucfg.targets.compute_engine.paths import DOCUMENTS, GROUP, INSTANCE, POLICY, TEMPLATE
from tpucfg.targets.hosts.metadata import reserved_metadata
from tpucfg.targets.interface import RequestBody, Reserved

_CAPACITY: Final = Reserved("capacity", "get the machines, or end them, in another way", pages.INSTANCES)
_MACHINE: Final = Reserved("sizes", "create the hosts from another machine or image", pages.INSTANCES)
_MORE: Final = Reserved("sizes", "create more hosts, or others, than the slice has", pages.GROUPS, adds_machines=True)
_SECOND: Final = Reserved("sizes", "create an object beside the slice", pages.GROUPS_OF_TPUS, adds_machines=True)
_COUNTERPARTS: Final = {TEMPLATE: INSTANCE, INSTANCE: TEMPLATE}
"""The object that has the fields of a host in jobs of one host, or of several."""
_PLACE: Final = Reserved("sizes", "place the hosts by another policy than that of the slice", pages.GROUPS_OF_TPUS)
_ADDRESS: Final = Reserved(
    "targets.compute-engine.external_ips", "give the hosts another external address", pages.ADDRESSES
)


def _is_true(value: Any, _: RequestBody) -> bool:
    return value is True


_HOST: Final[Mapping[str, Reserved]] = {
    "guestAccelerators": Reserved("sizes", "request accelerators beside the TPUs", pages.INSTANCES, adds_machines=True),
    "scheduling.**": _CAPACITY,
    "reservationAffinity.**": _CAPACITY,
    "resourcePolicies": _PLACE,
    "sourceMachineImage": _MACHINE,
    "disks.0.source": _MACHINE,
    "disks.0.initializeParams.sourceSnapshot": _MACHINE,
    "disks.*.boot": _MACHINE._replace(applies=_is_true),
    "networkInterfaces.*.accessConfigs": _ADDRESS,
    "networkInterfaces.*.accessConfigs.*": _ADDRESS,
    "networkInterfaces.*.ipv6AccessConfigs": _ADDRESS,
    "serviceAccounts.*": Reserved(
        "targets.compute-engine.service_account", "let the hosts act as another account", pages.ACCOUNTS
    ),
    **dict(reserved_metadata("metadata.items")),
}
"""The fields of a host, in a template and in an instance."""


def _reserved() -> Iterator[tuple[str, Reserved]]:
    # A key that the request body has is merged, and only a new one is a further object.
    yield from ((key, _SECOND._replace(counterpart=_COUNTERPARTS.get(key, ""))) for key in DOCUMENTS)
    for policy in ("groupPlacementPolicy", "snapshotSchedulePolicy", "instanceSchedulePolicy"):
        yield f"{POLICY}.{policy}.**", _PLACE._replace(source=pages.POLICIES)
    yield f"{POLICY}.diskConsistencyGroupPolicy.**", _PLACE._replace(source=pages.POLICIES)
    yield f"{POLICY}.workloadPolicy.**", _PLACE._replace(source=pages.POLICIES)
    for prefix in (f"{TEMPLATE}.properties", INSTANCE):
        yield from ((f"{prefix}.{path}", row) for path, row in _HOST.items())
    yield f"{TEMPLATE}.sourceInstance", _MACHINE._replace(source=pages.TEMPLATES)
    yield f"{TEMPLATE}.sourceInstanceParams.**", _MACHINE._replace(source=pages.TEMPLATES)
    yield (
        f"{INSTANCE}.deletionProtection",
        Reserved("trainer.max_run_duration", "keep the slice from being deleted", pages.INSTANCES, _is_true),
    )
    yield f"{INSTANCE}.params.requestValidForDuration.**", _CAPACITY
    for field in (
        "versions.*",
        "versions.*.**",
        "instanceFlexibilityPolicy.**",
        "standbyPolicy.**",
        "distributionPolicy.**",
    ):
        yield f"{GROUP}.{field}", _MORE
    for field in ("targetStoppedSize", "targetSuspendedSize", "instanceTemplate", "targetSizePolicy.**"):
        yield f"{GROUP}.{field}", _MORE
    yield f"{GROUP}.resourcePolicies.**", _PLACE
    for field in ("instanceLifecyclePolicy.**", "autoHealingPolicies", "updatePolicy.**", "statefulPolicy.**"):
        yield f"{GROUP}.{field}", _CAPACITY._replace(source=pages.GROUPS)
    yield (
        f"{GROUP}.allInstancesConfig.**",
        Reserved("trainer", "override the metadata of the template, which has the start-up script", pages.GROUPS),
    )


RESERVED: Final[Mapping[str, Reserved]] = dict(_reserved())
"""See `Target.RESERVED`."""
