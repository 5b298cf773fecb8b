"""Variables from which the TPU runtime learns its chips, its topology, its workers and its slices.

The services set them on every host for the machines that they created. Another value makes the program use other chips
than the plan counts, or wait for hosts that do not exist. Variables that tune the runtime, such as `TPU_MIN_LOG_LEVEL`
or `MEGASCALE_GRPC_ENABLE_XOR_TRACER`, are not among them.
"""

from collections.abc import Mapping
from typing import Final

from tpucfg.named_tuple import NamedTuple


class RuntimeVariable(NamedTuple):
    """A variable that the TPU runtime reads."""

    effect: str
    """The effect of setting it, as a clause that follows `it would`."""
    source: str
    """The public page that shows the variable."""


_JAX: Final = "https://github.com/jax-ml/jax/blob/main/jax/_src/clusters/cloud_tpu_cluster.py"
_TORCH: Final = "https://github.com/pytorch/xla/blob/master/torch_xla/core/xla_env_vars.py"
_RAY: Final = "https://github.com/ray-project/ray/blob/master/python/ray/_private/accelerators/tpu.py"
_SUBSETS: Final = "https://gist.github.com/skye/f82ba45d2445bb19d53545538754f9a3"
_DISTRIBUTED: Final = "https://github.com/jax-ml/jax/blob/main/jax/_src/distributed.py"
_CHIPS: Final = "let the program use other chips of its host than the size has"
_TOPOLOGY: Final = "describe another topology than the slice has"
_PLACE: Final = "give a host another place in the slice than the service does"
_SLICES: Final = "describe other slices than the service created"

RUNTIME_VARIABLES: Final[Mapping[str, RuntimeVariable]] = {
    "TPU_VISIBLE_CHIPS": RuntimeVariable(_CHIPS, _RAY),
    "TPU_VISIBLE_DEVICES": RuntimeVariable(_CHIPS, _SUBSETS),
    "TPU_NUM_DEVICES": RuntimeVariable(_CHIPS, _TORCH),
    "TPU_CHIPS_PER_HOST_BOUNDS": RuntimeVariable(_CHIPS, _RAY),
    "TPU_CHIPS_PER_PROCESS_BOUNDS": RuntimeVariable(_CHIPS, _TORCH),
    "TPU_HOST_BOUNDS": RuntimeVariable(_TOPOLOGY, _RAY),
    "TPU_TOPOLOGY*": RuntimeVariable(_TOPOLOGY, _RAY),
    "TPU_ACCELERATOR_TYPE": RuntimeVariable(_TOPOLOGY, _RAY),
    "TPU_PROCESS_*": RuntimeVariable(_PLACE, _TORCH),
    "TPU_WORKER_*": RuntimeVariable(_PLACE, _JAX),
    "JAX_COORDINATOR_ADDRESS": RuntimeVariable(_PLACE, _DISTRIBUTED),
    "JAX_NUM_PROCESSES": RuntimeVariable(_PLACE, _DISTRIBUTED),
    "JAX_PROCESS_ID": RuntimeVariable(_PLACE, _DISTRIBUTED),
    "CLOUD_TPU_TASK_ID": RuntimeVariable(_PLACE, _TORCH),
    "MEGASCALE_COORDINATOR_ADDRESS": RuntimeVariable(_SLICES, _JAX),
    "MEGASCALE_NUM_SLICES": RuntimeVariable(_SLICES, _JAX),
    "MEGASCALE_PORT": RuntimeVariable(_SLICES, _JAX),
    "MEGASCALE_SLICE_ID": RuntimeVariable(_SLICES, _JAX),
}
"""The variables by name; a final `*` matches any rest."""


def runtime_variable(name: str) -> RuntimeVariable | None:
    """Return the row of a variable; None if the TPU runtime does not learn its machines from it."""
    if row := RUNTIME_VARIABLES.get(name):
        return row
    starts = ((pattern[:-1], row) for pattern, row in RUNTIME_VARIABLES.items() if pattern.endswith("*"))
    return next((row for start, row in starts if name.startswith(start)), None)
