"""The progress in the end of a log: the last step, and the time of a step."""

from fractions import Fraction
from io import StringIO
from itertools import pairwise
from math import isfinite
from statistics import median
from typing import Any, Final, NamedTuple

from tpucfg.results.log_metrics import MAX_ENTRY_LENGTH, LogObject, LogTimestamp, TruncatedLogError, iter_log_objects
from tpucfg.spec.presets import StepLine

_STEP: Final = "step"
_MAX_STEP: Final = 10**12


class Progress(NamedTuple):
    """The progress that a log shows."""

    step: int | None = None
    """The latest step; None if no line has one."""
    seconds: Fraction | None = None
    """The time of the median step; None if no two lines tell."""
    is_whole: bool = True
    """False for a list of entries that breaks off."""


class _Line(NamedTuple):
    """The line of a step."""

    timestamp: LogTimestamp
    step: int
    seconds: float | None
    """The time of the step, if the line has it."""


def log_progress(log: str, form: StepLine) -> Progress:
    """Return the progress in a log: of lines of steps in a form, or of lines of JSON with a `step`."""
    text = StringIO(log)
    lines: list[_Line] = []
    is_whole = True
    try:
        for each in iter_log_objects(text.readline(MAX_ENTRY_LENGTH), text, (_STEP,), form):
            step = each.data.get(_STEP)
            if isinstance(step, float) and isfinite(step) and 0 <= step <= _MAX_STEP:
                lines.append(_Line(each.timestamp, int(step), _seconds(each)))
    except TruncatedLogError:
        is_whole = False
    if not lines:
        return Progress(is_whole=is_whole)
    # Stable: lines without a time, or of one entry, keep their order. gcloud prints the newest entries first.
    lines.sort(key=lambda line: line.timestamp)
    return Progress(lines[-1].step, _step_seconds(lines, form.warm_up), is_whole)


def _seconds(each: LogObject) -> float | None:
    value: Any = each.data.get("seconds") if each.is_step else None
    return value if isinstance(value, float) and 0 < value < _MAX_STEP else None


def _step_seconds(lines: list[_Line], warm_up: int) -> Fraction | None:
    """Return the time of the median step: as printed, or from the times of lines whose steps follow each other.

    A median leaves out single steps that compile; a restart begins at an earlier step.
    """
    printed = [line.seconds for line in lines if line.seconds and line.step >= warm_up]
    between = [
        (_moment(after) - _moment(before)) / (after.step - before.step)
        for before, after in pairwise(line for line in lines if line.timestamp.fraction)
        if after.step > before.step
    ]
    times = printed or between
    return Fraction(median(times)).limit_denominator(_MAX_STEP) if times and median(times) > 0 else None


def _moment(line: _Line) -> float:
    return line.timestamp.second.timestamp() + float(f"0.{line.timestamp.fraction}")
