"""The compiler's refusals of a program that needs more memory (HBM) than a device has.

libtpu words them in several ways, depending on its version and on the stage that notices; sources of the wordings:
https://github.com/openxla/xla/blob/main/docs/errors/error_1000.md and the compiler itself. All sizes are in powers of
1,024, rounded to two decimals.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_UNITS: Final = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}
_SIZE: Final = r"([0-9]+(?:\.[0-9]+)?)([BKMGTP]?)"
_WORDINGS: Final = (
    # Before the program is scheduled: the sum alone is too large.
    re.compile(rf"total memory required for [^()]* \({_SIZE}\) exceeds available HBM \({_SIZE}\)"),
    # After it is scheduled; older versions print a list of allocations below.
    re.compile(rf"Ran out of memory in memory space hbm\. Used {_SIZE} of {_SIZE} hbm"),
    # Of a program that uses SparseCores.
    re.compile(rf"Hbm usage:? {_SIZE}, SparseCore Hbm usage:? {_SIZE}, exceeding available bytes: {_SIZE}"),
    # A single array is too large, in bytes.
    re.compile(r"Allocation \(size=([0-9]+)()\) would exceed memory \(size=([0-9]+)()\)(?=.*space=hbm)"),
)


class Refusal(NamedTuple):
    """The figures of a refusal, in bytes of one device."""

    used: int
    """The least amount that the program needs."""
    available: int


def parse_refusal(text: str) -> Refusal | None:
    """Return the figures of a refusal for lack of memory; None for a text that is none."""
    for wording in _WORDINGS:
        match = wording.search(text)
        if match:
            groups = match.groups()
            sizes = [_bytes(*pair) for pair in zip(groups[::2], groups[1::2])]  # noqa: B905 - of equal length
            return Refusal(sum(sizes[:-1]), sizes[-1])
    return None


def _bytes(number: str, unit: str) -> int:
    return round(float(number) * _UNITS[unit])
