"""The time of a step from the lines that a framework's programs print: the median of those after the warm-up.

A start compiles in its first steps, and the next ones look too fast, as the program runs ahead of the devices. Single
steps that save a checkpoint, evaluate, or compile after a restart do not change a median.
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final, NamedTuple

from tpucfg.spec.presets import StepLine

_MAX_STEPS: Final = 100_000
"""Limit for the steps whose times are kept: a median needs no more, and memory stays bounded."""
_VALUE: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_/]{0,62}): ([-+]?[0-9][0-9.e+-]{0,30}|[-+]?nan|[-+]?inf)(?=,|\s|$)")
_NOT_FINITE: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
SHOWN_STEP: Final = StepLine(
    marker="step ",
    pattern=r"\bstep (?P<step>[0-9][0-9,]{0,15}) of [0-9,]{1,16}(?P<values>: .*|$)",
    warm_up=0,
    source="the trainer that `tpucfg init --trainer` writes",
)
"""The form of a program without a preset; it has no time."""


class Steps(NamedTuple):
    """The form of the lines of steps, and the figures of the spec that each must match."""

    form: StepLine
    batch_size: int
    """The examples of a step on the whole slice."""
    tokens_per_device: Fraction | None = None
    """The tokens of a step on one device; None if the spec has no sequence length."""
    total: int | None = None
    """The steps of a whole run; None for a part of one, a probe, and a run that is counted in epochs."""


class MedianStep(NamedTuple):
    """The measurement of a log."""

    seconds: float
    measured: int
    """The measured steps."""
    left_out: int
    """The steps before them."""


class StepTimes:
    """The seconds of each step in a log, in any order; hosts that all print a step count once."""

    def __init__(self) -> None:
        self._seconds: dict[float, float] = {}

    @property
    def count(self) -> int:
        """The number of different steps."""
        return len(self._seconds)

    def add(self, values: Mapping[str, Any]) -> None:
        """Add the line of a step."""
        if values["step"] in self._seconds or self.count < _MAX_STEPS:
            self._seconds[values["step"]] = values["seconds"]

    def median(self, warm_up: int) -> MedianStep | None:
        """Return the median without the steps of the warm-up, which are at most the first half.

        None for a log of fewer steps than those of the warm-up, or if the median is too short to be printed.
        """
        left_out = min(warm_up, self.count // 2)
        measured = sorted(seconds for _, seconds in sorted(self._seconds.items())[left_out:])
        if self.count < warm_up:
            return None
        seconds = (measured[(len(measured) - 1) // 2] + measured[len(measured) // 2]) / 2
        return MedianStep(seconds, len(measured), left_out) if seconds else None


def step_values(row: str, form: StepLine) -> dict[str, Any]:
    """Return the values on the line of a step: floats, or NaN and Infinity as texts; empty for another line."""
    match = re.search(form.pattern, row)
    if match is None:
        return {}
    values = {name: _number(text) for name, text in _VALUE.findall(match["values"])}
    seconds = match.groupdict().get("seconds")
    own = {"step": float(match["step"].replace(",", ""))} | ({} if seconds is None else {"seconds": float(seconds)})
    return values | own


def _number(text: str) -> Any:
    try:
        return _NOT_FINITE.get(text.removeprefix("+")) or float(text)
    except ValueError:  # 1.2.3
        return text
