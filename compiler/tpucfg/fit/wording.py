"""The words for memory, bounds and outdated results, so that every output describes them in the same way."""

from fractions import Fraction
from typing import Final

from tpucfg.fit.result import FitResult, Memory
from tpucfg.fit.roofline import Bound
from tpucfg.fit.rung_fit import RungFit
from tpucfg.number_format import format_rounded

_GIB: Final = 1 << 30
_NOT_BELOW: Final = "at least "


def gib(amount: int) -> str:
    """Return bytes as GiB with two decimals, without a final zero: `15.75`, `7.3`; below 1 with three digits."""
    if abs(amount) < _GIB:
        return format_rounded(Fraction(amount, _GIB))
    return f"{amount / _GIB:.2f}".rstrip("0").rstrip(".")


def memory_text(memory: Memory) -> str:
    """Return the memory of a device: `11.2 of 15.75 GiB`, or `at least 23.26 of 15.75 GiB` after a refusal."""
    least = "" if memory.exact else _NOT_BELOW
    return f"{least}{gib(memory.used)} of {gib(memory.available)} GiB"


def verdict_text(fit: RungFit) -> str:
    """Return the verdict of a rung with its memory: `11.2 of 15.75 GiB`, `does not fit: …`, `not compiled`."""
    result = fit.current
    if result is None:
        return fit.verdict
    return memory_text(result.memory) if result.fits else f"does not fit: {memory_text(result.memory)}"


def outdated_text(fit: RungFit) -> str:
    """Return the sentence about a result of another version of the job; empty if it is of the current one."""
    return f"compiled before a change of {', '.join(fit.changes)}" if fit.changes else ""


def bound_text(bound: Bound) -> str:
    """Return the least time of a step and what sets it: `442 ms by compute`."""
    return f"{milliseconds(bound.seconds)} ms by {bound.limit}"


def milliseconds(seconds: Fraction) -> str:
    """Return seconds as milliseconds, to three digits."""
    return format_rounded(1000 * seconds)


def incomplete_text(result: FitResult) -> str:
    """Return the note about work that the bound leaves out; empty if it has all."""
    return f"the bound leaves out {', '.join(result.uncounted)}" if result.uncounted else ""
