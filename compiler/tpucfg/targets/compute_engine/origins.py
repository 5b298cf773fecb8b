"""The origin of every field that this target writes, for `tpucfg why` and for the locations of findings."""

from collections.abc import Iterator, Mapping
from typing import Final

from tpucfg.targets.compute_engine import pages
from tpucfg.targets.compute_engine.paths import DOCUMENTS, GROUP, INSTANCE, POLICY, TEMPLATE
from tpucfg.targets.hosts.findings import NAMES
from tpucfg.targets.interface import CAPACITY, DEADLINE, MACHINE, MACHINES, Effect, Origin, Reserved

_CAPACITY: Final = Origin("spec", "capacity")
_DURATION: Final = Origin("spec", "trainer.max_run_duration")
_NETWORK: Final = Origin("spec", "targets.compute-engine.network")
_DATA_DISKS: Final = Origin("spec", "targets.compute-engine.data_disks")
_BOOT: Final = Origin("rule", "the disk that the host boots from, which is deleted with it", pages.INSTANCES)
_SCRIPT: Final = Origin(
    "rule",
    "a script that runs trainer.image on every host, with trainer.env and the program's flags",
    pages.STARTUP,
    "trainer",
)
_PROJECT: Final = "environments.<env>.project"
_HOST: Final[Mapping[str, Origin]] = {
    "machineType": Origin("catalog", "machine", pages.TPUS),
    "disks.0.boot": _BOOT,
    "disks.0.autoDelete": _BOOT,
    "disks.0.initializeParams.sourceImage": Origin(
        "rule", "Google's image for hosts of the generation", pages.IMAGES, "sizes"
    ),
    "disks.0.initializeParams.diskSizeGb": Origin("spec", "targets.compute-engine.disk_gb"),
    "disks.0.initializeParams.diskType": Origin(
        "rule", "the type of disk that the generation takes", pages.DISKS, "sizes"
    ),
    "disks.*.source": _DATA_DISKS,
    "disks.*.mode": _DATA_DISKS,
    "disks.*.autoDelete": Origin(
        "rule", "an existing disk outlives the slice", pages.INSTANCES, "targets.compute-engine.data_disks"
    ),
    "networkInterfaces.0.network": _NETWORK,
    "networkInterfaces.0.subnetwork": Origin("spec", "targets.compute-engine.subnetwork"),
    "networkInterfaces.0.nicType": Origin("rule", "the network interface of TPU VMs", pages.TPUS),
    "networkInterfaces.0.accessConfigs.**": Origin(
        "rule",
        "an external address, unless external_ips is false",
        pages.ADDRESSES,
        "targets.compute-engine.external_ips",
    ),
    "serviceAccounts.0.email": Origin("spec", "targets.compute-engine.service_account"),
    "serviceAccounts.0.scopes.*": Origin("rule", "all: the account's roles limit its access", pages.ACCOUNTS),
    "scheduling.provisioningModel": _CAPACITY,
    "scheduling.onHostMaintenance": Origin("rule", "TPU VMs cannot be moved while they run", pages.SPOT),
    "scheduling.automaticRestart": _CAPACITY,
    "scheduling.instanceTerminationAction": Origin(
        "rule", "an instance that has ended is deleted, as a stopped one is charged", pages.TIME_LIMIT, "capacity"
    ),
    "scheduling.maxRunDuration.seconds": _DURATION,
    "reservationAffinity.**": _CAPACITY,
    "tags.items.*": Origin("spec", "targets.compute-engine.tags"),
    "labels.*": Origin("spec", "environments.<env>.labels"),
    # Comparisons have the items by their keys, and the lines and flags of the script below.
    **dict.fromkeys(("metadata.items.*", "metadata.items.*.key", "metadata.items.*.value"), _SCRIPT),
}
"""The fields of a host, in a template and in an instance."""


def _origins() -> Iterator[tuple[str, Origin]]:
    for key in DOCUMENTS:
        yield f"{key}.kind", Origin("rule", "identifies the document in the config", pages.GROUPS_OF_TPUS)
        yield f"{key}.name", Origin("rule", "the job's name", NAMES, "name")
    for key in (POLICY, TEMPLATE):
        yield f"{key}.description", Origin("rule", "an equal object that exists is reused", pages.TEMPLATES)
    yield (
        f"{POLICY}.workloadPolicy.type",
        Origin("rule", "hosts that are connected by the TPU network", pages.GROUPS_OF_TPUS, "sizes"),
    )
    yield f"{POLICY}.workloadPolicy.acceleratorTopology", Origin("catalog", "topology", pages.GROUPS_OF_TPUS)
    for prefix in (f"{TEMPLATE}.properties", INSTANCE):
        yield from ((f"{prefix}.{path}", origin) for path, origin in _HOST.items())
    yield f"{INSTANCE}.params.requestValidForDuration.seconds", _CAPACITY
    yield f"{GROUP}.baseInstanceName", Origin("rule", "the start of the hosts' names", NAMES, "name")
    yield f"{GROUP}.targetSize", Origin("catalog", "hosts", pages.GROUPS_OF_TPUS)
    yield f"{GROUP}.versions.*.instanceTemplate", Origin("rule", "the template of this config", pages.GROUPS, _PROJECT)
    yield (
        f"{GROUP}.targetSizePolicy.mode",
        Origin("rule", "all hosts of a slice are created at once, or none", pages.BULK, "sizes"),
    )
    yield (
        f"{GROUP}.resourcePolicies.workloadPolicy",
        Origin("rule", "the policy of this config", pages.GROUPS_OF_TPUS, _PROJECT),
    )
    yield (
        f"{GROUP}.instanceLifecyclePolicy.defaultActionOnFailure",
        Origin("rule", "a host that has ended is not created again", pages.GROUPS, "sizes"),
    )


ORIGINS: Final[Mapping[str, Origin]] = dict(_origins())
"""See `Target.ORIGINS`."""
_OTHER_OBJECT: Final = Effect(
    "TPU068",
    "",
    "create an object beside the slice: jobs of one host are an instance, and those of several hosts a group",
    "delete it, or move it to overrides.<size>.targets.compute-engine.extra of the sizes with this object",
)
RESERVED: Final[Mapping[str, Reserved]] = {
    # A key that the request body has is merged, and only a new one is a further object.
    **dict.fromkeys(DOCUMENTS, Reserved(_OTHER_OBJECT, pages.GROUPS_OF_TPUS)),
    **{
        f"{GROUP}.{field}": Reserved(MACHINES, pages.GROUPS)
        for field in ("versions.**", "instanceTemplate", "target*Size", "*FlexibilityPolicy", "standbyPolicy")
    },
    "**.scheduling.maxRunDuration.**": Reserved(DEADLINE, pages.TIME_LIMIT),
    "**.scheduling.terminationTime": Reserved(DEADLINE, pages.TIME_LIMIT),
    "*.deletionProtection": Reserved(DEADLINE, pages.INSTANCES),
    "**.scheduling.**": Reserved(CAPACITY, pages.INSTANCES),
    "**.reservationAffinity.**": Reserved(CAPACITY, pages.RESERVATIONS),
    "*.params.requestValidForDuration.**": Reserved(CAPACITY, pages.FLEX_START_WAIT),
    "**.guestAccelerators": Reserved(MACHINE, pages.INSTANCES),
    "instance.sourceMachineImage": Reserved(MACHINE, pages.INSTANCES),
    "instanceTemplate.sourceInstance*": Reserved(MACHINE, pages.TEMPLATES),
}
"""See `Target.RESERVED`."""
