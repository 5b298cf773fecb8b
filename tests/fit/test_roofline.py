"""The bound is the time of the slowest part at the peaks of the catalog's pages."""

from fractions import Fraction

import pytest

from fit_results import RESULT
from spec_factory import CATALOG
from tpucfg.catalog import Slice
from tpucfg.fit.roofline import LeastRun, least_run, lower_bound, utilization


def slice_of(size: str) -> Slice:
    """Return a slice of the catalog."""
    slice_ = CATALOG.find(size)
    assert slice_
    return slice_


def test_the_slowest_part_sets_the_bound() -> None:
    """v5e has 197 TFLOP/s, 819 GB/s of HBM, and 400 GB/s of ICI in both directions."""
    result = RESULT._replace(flops=16 * 197 * 10**12, hbm_bytes=819 * 10**8, ici_bytes=200 * 10**8)
    bound = lower_bound(result, slice_of("v5litepod-16"))
    assert bound
    assert bound.parts == {"compute": 1, "HBM": Fraction(1, 10), "ICI": Fraction(1, 10)}
    assert (float(bound.seconds), bound.limit) == (1.0, "compute")
    slower = lower_bound(result._replace(hbm_bytes=1638 * 10**9), slice_of("v5litepod-16"))
    assert slower
    assert (float(slower.seconds), slower.limit) == (2.0, "HBM")


@pytest.mark.parametrize(("size", "seconds"), [("v3-8", 1), ("v2-8", Fraction(4 * 123, 4 * 46))])
def test_two_devices_of_a_chip_share_its_peaks(size: str, seconds: Fraction) -> None:
    """v3-8 has 4 chips of 123 TFLOP/s and 8 devices; the FLOPs are those of the whole slice."""
    bound = lower_bound(RESULT._replace(flops=4 * 123 * 10**12, hbm_bytes=450 * 10**6), slice_of(size))
    assert bound
    assert bound.parts["compute"] == seconds
    if size == "v3-8":  # 450 MB by each of two devices are 900 MB at 900 GB/s
        assert bound.parts["HBM"] == Fraction(1, 1000)


def test_8_bit_operations_are_as_fast_as_the_page_states() -> None:
    """v6e has 1,836 TOP/s with 8-bit operands, twice its 918 with bf16; v4 has 275 with both."""
    result = RESULT._replace(flops=0, flops_8bit=8 * 1836 * 10**12, hbm_bytes=None)
    on_v6e, on_v4 = (lower_bound(result, slice_of(size)) for size in ("v6e-8", "v4-8"))
    assert on_v6e
    assert on_v4
    assert on_v6e.seconds == 1
    assert on_v4.seconds == Fraction(8 * 1836, 4 * 275)


def test_an_unknown_peak_sets_no_bound() -> None:
    """No page states the ICI bandwidth of a v4 chip, and a refused step has no known traffic."""
    bound = lower_bound(RESULT._replace(ici_bytes=10**18, hbm_bytes=None), slice_of("v4-16"))
    assert bound
    assert set(bound.parts) == {"compute"}
    assert lower_bound(RESULT._replace(flops=0, hbm_bytes=None), slice_of("v4-16")) is None


def test_the_least_run_is_the_bound_times_the_steps() -> None:
    """7,200 steps of one second are two hours."""
    bound = lower_bound(RESULT._replace(flops=16 * 197 * 10**12), slice_of("v5litepod-16"))
    assert bound
    assert least_run(bound, 7200, Fraction(3)) == LeastRun(Fraction(2), Fraction(6))
    assert least_run(bound, 7200, None) == LeastRun(Fraction(2), None)
    assert least_run(bound, None, Fraction(3)) is None


def test_the_utilization_is_the_share_of_the_peak() -> None:
    """A step of two seconds, half of which the peak needs, reaches 50%; without FLOPs or a peak it is not known."""
    result = RESULT._replace(flops=16 * 197 * 10**12)
    assert utilization(result, slice_of("v5litepod-16"), Fraction(2)) == Fraction(1, 2)
    assert utilization(result._replace(flops=0), slice_of("v5litepod-16"), Fraction(2)) is None
