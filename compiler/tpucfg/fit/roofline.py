"""The roofline: the least time that a step can take on a slice, by its arithmetic, its memory and its network.

Each part is the work of a step, counted low, divided by the peak of the catalog, so that no real step is faster. The
bound is indicative: a real step is often twice as slow, or slower.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Final, Literal, NamedTuple

from tpucfg.catalog import Slice
from tpucfg.fit.fit_file import FitResult

Part = Literal["compute", "HBM", "ICI"]

_TERA: Final = 10**12
_GIGA: Final = 10**9
_MAX_8_BIT_SPEEDUP: Final = 2
"""The most that 8-bit operations are faster than bf16 on any generation, for one whose 8-bit peak no page states."""
_DIRECTIONS: Final = 2
"""The catalog's peak of ICI counts both directions, of which a device sends in one."""


class Bound(NamedTuple):
    """The least time of one step."""

    parts: Mapping[Part, Fraction]
    """The seconds of each part whose work and peak are known."""

    @property
    def seconds(self) -> Fraction:
        """The time of the slowest part, in seconds."""
        return max(self.parts.values())

    @property
    def limit(self) -> Part:
        """The part that sets the bound."""
        return max(self.parts, key=lambda part: self.parts[part])


def utilization(result: FitResult, slice_: Slice, step_seconds: Fraction) -> Fraction | None:
    """Return the share of the slice's peak that a measured step reaches; None if no source states the peak.

    This is the MFU of https://arxiv.org/abs/2204.02311 (appendix B) for a step without rematerialization: products that
    a backward pass computes again are part of the compiled step, and count here.
    """
    peak = _times(slice_.peak_tflops, _TERA)
    flops = _bf16_flops(result, slice_)
    return flops / (peak * step_seconds) if peak and flops else None


class LeastRun(NamedTuple):
    """The least that a whole run takes on a slice."""

    hours: Fraction
    usd: Fraction | None
    """None without a price."""


def lower_bound(result: FitResult, slice_: Slice) -> Bound | None:
    """Return the least time of a compiled step on its slice; None if no part of it is known."""
    work: dict[Part, tuple[Fraction | None, int | None]] = {
        "compute": (_bf16_flops(result, slice_), _times(slice_.peak_tflops, _TERA)),
        "HBM": (_on_all_devices(result.hbm_bytes, slice_), _times(slice_.hbm_gbps, _GIGA)),
        "ICI": (_on_all_devices(result.ici_bytes, slice_, _DIRECTIONS), _times(slice_.ici_gbps, _GIGA)),
    }
    parts = {part: amount / peak for part, (amount, peak) in work.items() if amount is not None and peak}
    return Bound(parts) if any(parts.values()) else None


def least_run(bound: Bound, steps: int | None, usd_per_hour: Fraction | None) -> LeastRun | None:
    """Return the least hours and cost of a run; None if its steps are not known.

    Args:
        bound: The least time of one step.
        steps: The steps of the run; None if it is counted in epochs.
        usd_per_hour: The price of the whole slice; None if the spec has none.
    """
    if steps is None:
        return None
    hours = bound.seconds * steps / 3600
    return LeastRun(hours, None if usd_per_hour is None else hours * usd_per_hour)


def _bf16_flops(result: FitResult, slice_: Slice) -> Fraction:
    """Return the FLOPs of a step, an 8-bit one as the part of a bf16 one that takes as long."""
    speedup = Fraction(_MAX_8_BIT_SPEEDUP)
    if slice_.peak_tflops and slice_.peak_8bit_tflops:
        speedup = Fraction(slice_.peak_8bit_tflops, slice_.peak_tflops)
    return result.flops + result.flops_8bit / speedup


def _on_all_devices(per_device: int | None, slice_: Slice, factor: int = 1) -> Fraction | None:
    return None if per_device is None else Fraction(per_device * slice_.devices * factor)


def _times(peak: int | None, unit: int) -> int | None:
    return None if peak is None else peak * unit
