"""Name a slice to JAX's topology API, which describes the devices of a slice without a TPU.

`jax.experimental.topologies.get_topology_desc` takes a name such as `v5e:4x4`, and options for libtpu. MaxText compiles
with them for the sizes in its table:
https://github.com/AI-Hypercomputer/maxtext/blob/e591f30cbbf217ed67ef71263ec0538239f9c3b8/src/maxtext/utils/accelerator_to_spec_map.py.
libtpu knows a generation by the catalog's name of it, and none of the sizes of Google's services (`v5litepod-16`).
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tpucfg.catalog import Slice

_HOST_BOUNDS: Final[Mapping[int, tuple[int, int, int]]] = {1: (1, 1, 1), 4: (2, 2, 1), 8: (2, 4, 1)}
"""Chips of one host along each axis, by their number: the slices of one host have these topologies.

https://docs.cloud.google.com/tpu/docs/v6e and https://docs.cloud.google.com/tpu/docs/v5p.
"""


class Topology(NamedTuple):
    """A slice as the topology API takes it."""

    name: str
    """Generation and chips along each axis of one slice, such as `v5e:4x4`."""

    options: Mapping[str, Any]
    """Keyword arguments of the API, as JSON values."""

    devices: int
    """JAX devices of all slices together, with which the answer has to agree."""


class NoTopology(NamedTuple):
    """A size that the topology API cannot be asked about."""

    reason: str
    """A clause to follow a colon, without a final full stop."""


def topology(slice_: Slice) -> Topology | NoTopology:
    """Return the name and the options of a slice, on its machine, with its topology and its number of slices."""
    if slice_.topology is None:
        return NoTopology(f"no source states the topology of {slice_.accelerator_type}")
    bounds = _HOST_BOUNDS.get(slice_.chips_per_host)
    if bounds is None:
        return NoTopology(f"no source states how the {slice_.chips_per_host} chips of a host are connected")
    if not _divides(bounds, slice_.topology):
        block = "x".join(map(str, bounds))
        return NoTopology(f"a topology of {slice_.topology} cannot be divided into hosts of {block} chips")
    options: dict[str, Any] = {"chips_per_host_bounds": list(bounds)}
    if slice_.slices > 1:
        options["num_slices"] = slice_.slices
    if slice_.cores > slice_.devices:
        # By default the two TensorCores of a v4 chip are two devices, which JAX on a real v4 never shows.
        options["chip_config_name"] = "megacore"
    return Topology(f"{slice_.generation}:{slice_.topology}", options, slice_.devices)


def _divides(bounds: tuple[int, ...], shape: str) -> bool:
    """Return True if hosts with these bounds fill a topology along each axis; an absent axis has one chip."""
    axes = [int(axis) for axis in shape.split("x")]
    axes += [1] * (len(bounds) - len(axes))
    return all(axis % bound == 0 for axis, bound in zip(axes, bounds, strict=True))
