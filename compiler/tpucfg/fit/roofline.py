"""The bound: the least time that a step can take on a slice, and the share of its peak that a step reaches.

The bound is the work of a step, counted low, divided by the peak of the catalog, so that no real step is faster. Most
take 1.5 to 3 times as long: what a step is expected to take is its forecast.
"""

from fractions import Fraction
from typing import Final, NamedTuple

from tpucfg.catalog import Slice
from tpucfg.fit.fit_file import FitResult

_TERA: Final = 10**12
_MAX_8_BIT_SPEEDUP: Final = 2
"""The most that 8-bit operations are faster than bf16 on any generation, for one whose 8-bit peak no page states."""


def lower_bound(result: FitResult, slice_: Slice) -> Fraction | None:
    """Return the least seconds of a compiled step on its slice; None if its work or the peak is not known."""
    return _flops(result, slice_) / (slice_.peak_tflops * _TERA) or None if slice_.peak_tflops else None


def utilization(result: FitResult, slice_: Slice, step_seconds: Fraction) -> Fraction | None:
    """Return the share of the slice's peak that a step reaches; None if no source states the peak.

    This is the MFU of https://arxiv.org/abs/2204.02311 (appendix B) for a step without rematerialization: products that
    a backward pass computes again are part of the compiled step, and count here.
    """
    bound = lower_bound(result, slice_)
    return bound and bound / step_seconds


class Run(NamedTuple):
    """A whole run on a slice."""

    hours: Fraction
    usd: Fraction | None
    """None without a price."""


def run_of(step_seconds: Fraction, steps: int | None, usd_per_hour: Fraction | None) -> Run | None:
    """Return the hours and cost of a run; None if its steps are not known.

    Args:
        step_seconds: The time of one step.
        steps: The steps of the run; None if it is counted in epochs.
        usd_per_hour: The price of the whole slice; None if the spec has none.
    """
    if steps is None:
        return None
    hours = step_seconds * steps / 3600
    return Run(hours, None if usd_per_hour is None else hours * usd_per_hour)


def _flops(result: FitResult, slice_: Slice) -> Fraction:
    """Return the FLOPs of a step in bf16 FLOPs of equal time: an 8-bit one counts less, by the ratio of the peaks."""
    speedup = Fraction(_MAX_8_BIT_SPEEDUP)
    if slice_.peak_tflops and slice_.peak_8bit_tflops:
        speedup = Fraction(slice_.peak_8bit_tflops, slice_.peak_tflops)
    return result.flops + result.flops_8bit / speedup
