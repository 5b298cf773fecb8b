"""The speeds of the TPU generations, from public pages: none was chosen to fit a measured step.

Clock: the bf16 peak of Google's page of the generation, divided by the multiply-adds that its matrix units start in a
cycle; v2 to v4: https://doi.org/10.1145/3579371.3589350 (table 2). ICI and the link to the host:
https://jax-ml.github.io/scaling-book/tpus, v2's ICI: https://doi.org/10.1145/3360307 (table 2). HBM: Google's pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

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
