"""The devices of a TPU slice that does not exist here, and the memory that the compiler grants a program on them."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import sys
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from user_function import StepError, describe

if TYPE_CHECKING:
    from collections.abc import Mapping

MIN_JAX: Final = (0, 7)
"""The first version that is known to have `peak_memory_in_bytes`, which 0.6.2 lacks."""
_FRAMEWORKS: Final = ("maxtext", "keras", "flax")
"""The first of them that is imported: each imports the later ones."""
_ARRAY_ELEMENTS: Final = 1 << 33
"""Elements of an array of 32 GiB. libtpu 0.0.19 fails with another error for one of more than 64 GiB."""
_ARRAYS: Final = 32
"""Arrays of a program that needs 2 TiB with its results, which no device has."""


def check_packages() -> tuple[str, str]:
    """Return the versions of jax and libtpu."""
    try:
        import jax
    except Exception as error:  # noqa: BLE001 - a jaxlib of another version raises RuntimeError, for example
        raise StepError("no-jax", describe(error)) from None
    if jax.__version_info__ < MIN_JAX:
        raise StepError(
            "old-jax", f"jax {jax.__version__} is too old: version 0.7 or newer is required"
        )
    if importlib.util.find_spec("libtpu") is None:
        raise StepError(
            "no-libtpu", "the package libtpu, which contains the TPU compiler, is not installed"
        )
    return jax.__version__, _version("libtpu")


def framework_version() -> dict[str, str]:
    """Return the framework that the program has imported, with its version; empty if it is none of the known ones."""
    used = next((name for name in _FRAMEWORKS if name in sys.modules), None)
    return {"framework": f"{used} {_version(used)}"} if used else {}


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:  # copied into the environment, for example
        return "0+unknown"


def slice_devices(name: str, options: Mapping[str, Any], count: int) -> tuple[Any, ...]:
    """Return the devices of the slice, as many as `count`."""
    from jax.experimental import topologies

    tuples = {
        key: tuple(value) if isinstance(value, list) else value for key, value in options.items()
    }
    try:
        devices = tuple(
            topologies.get_topology_desc(platform="tpu", topology_name=name, **tuples).devices
        )
    except Exception as error:  # noqa: BLE001 - libtpu raises several types
        raise StepError("no-topology", f"topology {name}: {describe(error)}") from None
    if len(devices) != count:
        raise StepError(
            "no-topology", f"topology {name} has {len(devices)} devices, and the slice {count}"
        )
    return devices


def available_hbm(device: Any) -> int:
    """Return the bytes that the compiler grants a program on the device.

    No function returns this limit, but the refusal of a program that is too large states it, to two decimals of a GiB.
    It depends on the generation and on XLA flags, and is a little less than the chip has.
    """
    import jax
    from jax.sharding import SingleDeviceSharding

    array = jax.ShapeDtypeStruct(
        (_ARRAY_ELEMENTS,), "float32", sharding=SingleDeviceSharding(device)
    )
    try:
        jax.jit(lambda *arrays: [x + 1 for x in arrays]).lower(*[array] * _ARRAYS).compile()
    except jax.errors.JaxRuntimeError as error:
        refusal = parse_refusal(str(error))
        if refusal is None:
            raise StepError(
                "refused", f"the memory limit cannot be read: {describe(error)}"
            ) from None
        return refusal.available
    raise StepError(
        "refused", "the memory limit cannot be read: the compiler accepted a program of 2 TiB"
    )


# The compiler's refusals of a program that needs more memory (HBM) than a device has.
#
# libtpu words them in several ways, depending on its version and on the stage that notices; sources of the wordings:
# https://github.com/openxla/xla/blob/main/docs/errors/error_1000.md and the compiler itself. All sizes are in powers of
# 1,024, rounded to two decimals.

_UNITS: Final = {
    "": 1,
    "B": 1,
    "K": 1 << 10,
    "M": 1 << 20,
    "G": 1 << 30,
    "T": 1 << 40,
    "P": 1 << 50,
}
_SIZE: Final = r"([0-9]+(?:\.[0-9]+)?)([BKMGTP]?)"
_WORDINGS: Final = (
    # Before the program is scheduled: the sum alone is too large.
    re.compile(rf"total memory required for [^()]* \({_SIZE}\) exceeds available HBM \({_SIZE}\)"),
    # After it is scheduled; older versions print a list of allocations below.
    re.compile(rf"Ran out of memory in memory space hbm\. Used {_SIZE} of {_SIZE} hbm"),
    # Of a program that uses SparseCores.
    re.compile(
        rf"Hbm usage:? {_SIZE}, SparseCore Hbm usage:? {_SIZE}, exceeding available bytes: {_SIZE}"
    ),
    # A single array is too large, in bytes.
    re.compile(
        r"Allocation \(size=([0-9]+)()\) would exceed memory \(size=([0-9]+)()\)(?=.*space=hbm)"
    ),
)


class MemoryRefusal(NamedTuple):
    """The figures of a refusal, in bytes of one device."""

    used: int
    """The least amount that the program needs."""
    available: int


def parse_refusal(text: str) -> MemoryRefusal | None:
    """Return the figures of a refusal for lack of memory; None for a text that is none."""
    for wording in _WORDINGS:
        match = wording.search(text)
        if match:
            groups = match.groups()
            pairs = zip(groups[::2], groups[1::2])  # noqa: B905 - of equal length
            sizes = [round(float(number) * _UNITS[unit]) for number, unit in pairs]
            return MemoryRefusal(sum(sizes[:-1]), sizes[-1])
    return None
