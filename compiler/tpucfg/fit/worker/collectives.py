"""The time that a collective operation takes on the links between the chips of a slice (ICI).

A group of devices is taken to lie along the fewest whole axes of the slice that have its number of chips, as JAX lays
out the axes of a mesh. https://jax-ml.github.io/scaling-book/sharding has the formulas for rings.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Final, NamedTuple

from hlo_module import HloError, shape_of

if TYPE_CHECKING:
    from collections.abc import Mapping

# The speeds of the TPU generations, from public pages: none was chosen to fit a measured step.
#
# Clock: the bf16 peak of Google's page of the generation, divided by the multiply-adds that its matrix units start in a
# cycle; v2 to v4: https://doi.org/10.1145/3579371.3589350 (table 2). ICI and the link to the host:
# https://jax-ml.github.io/scaling-book/tpus, v2's ICI: https://doi.org/10.1145/3360307 (table 2). HBM: Google's pages.

KERNEL_SHARE: Final = 0.5
"""The share of the peak at which kernels are assumed to run: an assumption, as no page states one for all."""


class Chip(NamedTuple):
    """The speeds of one device of a generation; two devices of a chip share its links."""

    clock: float
    """Cycles a second, in which the compiler estimates."""
    flops: float
    """The bf16 peak, operations a second."""
    hbm: float
    """Bytes a second."""
    link: float
    """Bytes a second of one ICI link in one direction."""
    host: float
    """Bytes a second to and from the host's memory."""
    ring: int
    """The chips along an axis from which on, in multiples, its ends are connected."""
    devices: int = 1
    """Devices of a chip."""


CHIPS: Final[Mapping[str, Chip]] = {
    "v2": Chip(0.70e9, 23e12, 350e9, 62e9, 16e9, 16, 2),
    "v3": Chip(0.94e9, 61.5e12, 450e9, 100e9, 16e9, 32, 2),
    "v4": Chip(1.05e9, 275e12, 1200e9, 45e9, 16e9, 4),
    "v5e": Chip(1.5e9, 197e12, 819e9, 45e9, 16e9, 16),
    "v5p": Chip(1.75e9, 459e12, 2765e9, 90e9, 16e9, 4),
    "v6e": Chip(1.75e9, 918e12, 1638e9, 90e9, 32e9, 16),
    "tpu7x": Chip(2.2e9, 1153.5e12, 3690e9, 90e9, 16e9, 4, 2),
}
"""By the name that the topology API has for a generation."""


# The collective operations.

KINDS: Final = frozenset(
    (
        "all-gather", "all-reduce", "all-to-all", "collective-broadcast", "collective-permute", "ragged-all-to-all",
        "reduce-scatter",
    )
)  # fmt: skip
_NUMBERS: Final = r"[0-9]+(?:,[0-9]+)*"
_IOTA: Final = re.compile(rf"\[({_NUMBERS})\]<=\[({_NUMBERS})\](?:T\(({_NUMBERS})\))?")
_MESH: Final = re.compile(r"mesh\[([^\]]*)\](?:, device_ids=\(([^)]*\)?)\))? \{([^}]*)\}")
_LISTED: Final = re.compile(r"\{\{([0-9,]+)\}")
_AXIS: Final = re.compile(r"'([^']*)'(?::\(([0-9]+)\)([0-9]+))?")


class DeviceGroup(NamedTuple):
    """The devices that exchange data with each other."""

    devices: int
    adjacent: bool
    """True if it has both devices of a chip, where a chip has two."""


class Network(NamedTuple):
    """The links of one slice."""

    chip: Chip
    axes: tuple[int, ...]
    """The chips along each axis."""

    @property
    def devices(self) -> int:
        """The devices of the slice."""
        return math.prod(self.axes) * self.chip.devices

    def seconds(self, kind: str, operand: int, group: DeviceGroup) -> float:
        """Return the time of one operation, without waiting for the links.

        Args:
            kind: The operation.
            operand: The bytes of its operands on one device.
            group: The devices; both devices of a chip share its links, also when they are in two groups.
        """
        each = self.chip.devices if group.adjacent else 1
        chips, shared = group.devices // each, self.chip.devices // each
        if chips <= 1:
            return 0.0
        links, longest, ends = self._links(chips)
        if kind == "collective-permute":
            return operand * self.chip.devices / self.chip.link
        if kind in {"all-to-all", "ragged-all-to-all"}:
            return operand * self.chip.devices * longest / (4 * ends * self.chip.link)
        whole = operand * (group.devices if kind == "all-gather" else 1)
        received = whole * shared * (chips - 1) / chips
        return received * (2 if kind == "all-reduce" else 1) / (links * self.chip.link)

    def _links(self, chips: int) -> tuple[int, int, int]:
        """Return the links that a chip receives on, the chips of the longest axis, and the links of that axis."""
        axes = self._axes(chips)
        ends = [2 if axis % self.chip.ring == 0 else 1 for axis in axes]
        longest = max(range(len(axes)), key=lambda index: axes[index] / ends[index])
        return sum(ends), axes[longest], ends[longest]

    def _axes(self, chips: int) -> tuple[int, ...]:
        own = [axis for axis in self.axes if axis > 1]
        for count in range(1, len(own) + 1):
            for axes in combinations(own, count):
                if math.prod(axes) == chips:
                    return axes
        return (chips,)  # a part of an axis, or of several: one line


@lru_cache(maxsize=1000)
def parse_group(attributes: str, devices: int) -> DeviceGroup:
    """Return the first group of `replica_groups=` at the start of a text.

    It is written in one of three forms: `{{0,1},{2,3}}`, `[2,4]<=[4,2]T(1,0)` (a reshaped and transposed range), and
    `mesh['x'=2,'y'=4] {'x'}` (the axes of a mesh, https://github.com/openxla/xla/blob/main/xla/hlo/ir/mesh_and_axis.cc).

    Raises:
        HloError: The form is none of these.
    """
    if attributes.startswith("{}"):
        return DeviceGroup(devices, adjacent=True)
    if match := _LISTED.match(attributes):
        return _group(shape_of(match[1]))
    if match := _IOTA.match(attributes):
        shape, target = shape_of(match[2]), shape_of(match[1])
        order = shape_of(match[3]) if match[3] else list(range(len(shape)))
        return _group([_position(index, shape, order) for index in range(target[-1])])
    if match := _MESH.match(attributes):
        return _mesh_group(match[1], match[3])
    raise HloError(f"groups of an unknown form: {attributes[:60]}")


def _group(members: list[int]) -> DeviceGroup:
    return DeviceGroup(len(members), any(member ^ 1 in members for member in members[:1]))


def _position(index: int, shape: list[int], order: list[int]) -> int:
    """Return the number at an index of a transposed range."""
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    number = 0
    for axis in reversed(order):
        number += index % shape[axis] * strides[axis]
        index //= shape[axis]
    return number


def _mesh_group(axes: str, group_axes: str) -> DeviceGroup:
    """Return the group of the devices that differ only along some axes, or parts of axes, of a mesh."""
    sizes = {name: int(size) for name, size in re.findall(r"'([^']*)'=([0-9]+)", axes)}
    names = list(sizes)
    members = [0]
    # `'x':(2)4` is the part of axis x between its first factor, 2, and what remains behind factor 4.
    for name, before, size in _AXIS.findall(group_axes):
        if name not in sizes:
            raise HloError(f"no axis {name} in the mesh")
        length = int(size) if size else sizes[name]
        behind = math.prod(sizes[other] for other in names[names.index(name) + 1 :])
        stride = behind * (sizes[name] // (int(before) * length) if size else 1)
        members = [member + step * stride for member in members for step in range(length)]
    return _group(members)
