"""Amounts of memory, times and work, at the bounds where their units change."""

from fractions import Fraction

import pytest

from tpucfg.fit.fit_file import Memory
from tpucfg.fit.rung_fit import amount_text, gib, memory_text, step_time

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@pytest.mark.parametrize(
    ("amount", "text", "column"),
    [
        (0, "0 GiB", "0"),
        (1, "1 byte", "<0.01"),
        (1000, "1,000 bytes", "<0.01"),
        (1500, "1.46 KiB", "<0.01"),
        (8 * MIB // 5, "1.6 MiB", "<0.01"),
        (10 * MIB - 1, "10 MiB", "<0.01"),
        (10 * MIB, "0.00977 GiB", "0.00977"),
        (GIB // 3, "0.333 GiB", "0.333"),
        (63 * GIB // 4, "15.75 GiB", "15.75"),
        (73 * GIB // 10, "7.3 GiB", "7.3"),
        (-5 * GIB, "-5 GiB", "-5"),
    ],
)
def test_memory_has_the_unit_that_fits_its_size(amount: int, text: str, column: str) -> None:
    """A toy has its own unit in a sentence, and a column that names GiB has no other."""
    assert (amount_text(amount), gib(amount)) == (text, column)


def test_the_memory_of_a_device_names_its_unit_once() -> None:
    """GiB stands at the end for both amounts, unless the first is far below one."""
    assert memory_text(Memory(11 * GIB, 63 * GIB // 4)) == "11 of 15.75 GiB"
    assert memory_text(Memory(8 * MIB // 5, 63 * GIB // 4)) == "1.6 MiB of 15.75 GiB"
    assert memory_text(Memory(23 * GIB, 63 * GIB // 4, exact=False)) == "at least 23 of 15.75 GiB"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (Fraction(45_933, 1000), "45.9 s"),
        (Fraction(1), "1 s"),
        (Fraction(442, 1000), "442 ms"),
        (Fraction(1, 1000), "1 ms"),
        (Fraction(263, 10**8), "2.63 µs"),
        (Fraction(1, 10**9), "0.001 µs"),
    ],
)
def test_a_step_takes_seconds_or_a_part_of_one(seconds: Fraction, text: str) -> None:
    """Three digits, and the unit with which they need no exponent."""
    assert step_time(seconds) == text
