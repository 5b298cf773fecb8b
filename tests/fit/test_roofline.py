"""The bound is the time of the arithmetic at the peaks of the catalog's pages."""

from fractions import Fraction

import pytest

from fit_results import RESULT
from spec_factory import CATALOG
from tpucfg.catalog import Slice
from tpucfg.fit.forecast import RunForecast, lower_bound, run_of, utilization


def slice_of(size: str) -> Slice:
    """Return a slice of the catalog."""
    slice_ = CATALOG.find(size)
    assert slice_
    return slice_


@pytest.mark.parametrize(
    ("size", "seconds"),
    [("v3-8", 1), ("v2-8", Fraction(4 * 123, 4 * 46)), ("v5litepod-4", Fraction(123, 197))],
)
def test_the_bound_is_the_time_at_the_peak(size: str, seconds: Fraction) -> None:
    """v3-8 has 4 chips of 123 TFLOP/s and 8 devices; the FLOPs are those of the whole slice."""
    assert lower_bound(RESULT._replace(flops=4 * 123 * 10**12), slice_of(size)) == seconds


def test_8_bit_operations_are_as_fast_as_the_page_states() -> None:
    """v6e has 1,836 TOP/s with 8-bit operands, twice its 918 with bf16; v4 has 275 with both."""
    result = RESULT._replace(flops=0, flops_8bit=8 * 1836 * 10**12)
    assert lower_bound(result, slice_of("v6e-8")) == 1
    assert lower_bound(result, slice_of("v4-8")) == Fraction(8 * 1836, 4 * 275)


def test_a_step_without_counted_work_has_no_bound() -> None:
    """A bound of no time would be none."""
    assert lower_bound(RESULT._replace(flops=0), slice_of("v4-16")) is None


def test_a_run_is_the_time_of_its_steps() -> None:
    """7,200 steps of one second are two hours."""
    assert run_of(Fraction(1), 7200, Fraction(3)) == RunForecast(Fraction(2), Fraction(6))
    assert run_of(Fraction(1), 7200, None) == RunForecast(Fraction(2), None)
    assert run_of(Fraction(1), None, Fraction(3)) is None


def test_the_utilization_is_the_share_of_the_peak() -> None:
    """A step of two seconds, half of which the peak needs, reaches 50%; without FLOPs or a peak it is not known."""
    result = RESULT._replace(flops=16 * 197 * 10**12)
    assert utilization(result, slice_of("v5litepod-16"), Fraction(2)) == Fraction(1, 2)
    assert utilization(result._replace(flops=0), slice_of("v5litepod-16"), Fraction(2)) is None
