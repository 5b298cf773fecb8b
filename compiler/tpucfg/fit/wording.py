"""The words for memory, times, work and outdated results, so that every output describes them in the same way."""

from fractions import Fraction
from typing import Final

from tpucfg.fit.fit_file import FitResult, Memory
from tpucfg.fit.forecast import StepInterval
from tpucfg.fit.rung_fit import RungFit
from tpucfg.number_format import format_rounded
from tpucfg.text_format import format_count

_GIB: Final = 1 << 30
_MIB: Final = 1 << 20
_KIB: Final = 1 << 10
_MIN_GIB: Final = 10 * _MIB
"""Amounts below this have a smaller unit."""
_NOT_BELOW: Final = "at least "
_TIME_UNITS: Final = (("s", 1), ("ms", 10**3), ("µs", 10**6))


def gib(amount: int) -> str:
    """Return bytes as GiB for a place that names the unit: `15.75`, `7.3`, `0.919`; `<0.01` below 10 MiB."""
    if 0 < amount < _MIN_GIB:
        return "<0.01"
    if abs(amount) < _GIB:
        return format_rounded(Fraction(amount, _GIB))
    return f"{amount / _GIB:.2f}".rstrip("0").rstrip(".")


def short_amount(amount: int) -> str:
    """Return bytes as GiB where that unit follows, and below 10 MiB with a unit of their own: `7.3`, `1.6 MiB`."""
    if not 0 < amount < _MIN_GIB:
        return gib(amount)
    if amount < _KIB:
        return format_count(amount, "byte")
    unit, size = ("MiB", _MIB) if amount >= _MIB else ("KiB", _KIB)
    return f"{format_rounded(Fraction(amount, size))} {unit}"


def amount_text(amount: int) -> str:
    """Return bytes with their unit: `15.75 GiB`, `1.6 MiB`."""
    return short_amount(amount) if 0 < amount < _MIN_GIB else f"{gib(amount)} GiB"


def memory_text(memory: Memory) -> str:
    """Return the memory of a device: `11.2 of 15.75 GiB`, or `at least 23.26 of 15.75 GiB` after a refusal."""
    least = "" if memory.exact else _NOT_BELOW
    return f"{least}{short_amount(memory.used)} of {amount_text(memory.available)}"


def verdict_text(fit: RungFit) -> str:
    """Return the verdict of a rung with its memory: `11.2 of 15.75 GiB`, `does not fit: …`, `not compiled`."""
    result = fit.current
    if result is None:
        return fit.verdict
    return memory_text(result.memory) if result.fits else f"does not fit: {memory_text(result.memory)}"


def outdated_text(fit: RungFit) -> str:
    """Return the sentence about a result of another version of the job; empty if it is of the current one."""
    return f"compiled before a change of {', '.join(fit.changes)}" if fit.changes else ""


def interval_text(interval: StepInterval) -> str:
    """Return the time in which a step is expected: both ends, or a measured one."""
    low, high = step_time(interval.low), step_time(interval.high)
    if low == high:
        return low
    number, unit = low.split()
    return f"{number}–{high}" if high.endswith(f" {unit}") else f"{low}–{high}"


def step_time(seconds: Fraction) -> str:
    """Return the time of a step to three digits, with its unit: `45.9 s`, `442 ms`, `2.63 µs`."""
    unit, factor = next((unit for unit in _TIME_UNITS if seconds * unit[1] >= 1), _TIME_UNITS[-1])
    return f"{format_rounded(seconds * factor)} {unit}"


def incomplete_text(result: FitResult) -> str:
    """Return the note about work that the bound leaves out; empty if it has all."""
    return f"the bound leaves out {', '.join(result.uncounted)}" if result.uncounted else ""
