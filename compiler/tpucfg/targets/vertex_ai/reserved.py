"""Fields of a CustomJobSpec that `extra` cannot set, although the target does not write them."""

from collections.abc import Mapping
from typing import Any, Final

from tpucfg.targets.interface import RequestBody, Reserved
from tpucfg.targets.reserved_variables import reserved_variables

_SPEC: Final = "https://cloud.google.com/vertex-ai/docs/reference/rest/v1/CustomJobSpec"
_SCHEDULING: Final = "https://cloud.google.com/vertex-ai/docs/reference/rest/v1/CustomJobSpec#Scheduling"
_MACHINE: Final = "https://cloud.google.com/vertex-ai/docs/reference/rest/v1/MachineSpec"
_COMPUTE: Final = "https://cloud.google.com/vertex-ai/docs/training/configure-compute#tpu"

_POOL: Final = "workerPoolSpecs.*"


def _is_true(value: Any, _: RequestBody) -> bool:
    return value is True


RESERVED: Final[Mapping[str, Reserved]] = {
    _POOL: Reserved("sizes", "add machines that the plan does not count", _COMPUTE, adds_machines=True),
    f"{_POOL}.machineSpec.gpuPartitionSize": Reserved("sizes", "describe another machine", _MACHINE),
    "persistentResourceId": Reserved("capacity", "run on the machines of a persistent resource", _SPEC),
    "scheduling.disableRetries": Reserved("trainer.restarts", "change how often the program is started again", _SPEC),
    "scheduling.restartJobOnWorkerRestart": Reserved(
        "trainer.restarts", "start the whole job again whenever one host restarts", _SCHEDULING, _is_true
    ),
    f"{_POOL}.containerSpec.command": Reserved("trainer.image", "replace the program of the image", _SPEC),
    **reserved_variables(f"{_POOL}.containerSpec.env", "vertex-ai"),
    **reserved_variables(f"{_POOL}.pythonPackageSpec.env", "vertex-ai"),
}
"""See `Target.RESERVED`."""
