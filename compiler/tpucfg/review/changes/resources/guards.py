"""Inputs that guard data or access, and the comparison of how strongly they do before and after a change."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from tpucfg.changes.statements import Risk, Statement
from tpucfg.infra.resources import boolean, input_at
from tpucfg.redaction import SECRET
from tpucfg.review.changes.resources.resource_change import UNKNOWN

Strength = Callable[[Any], float | None]
"""A function that rates how strongly a value guards: higher is safer, None is a value that cannot be judged."""
_SECONDS: Final[Mapping[str, int]] = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_DURATION: Final = re.compile(r"([0-9]{1,15})(?:\.[0-9]*)?([smhd]?)")
_HOUR: Final = 3_600
_DAY: Final = 86_400


class Guard(NamedTuple):
    """An input that guards a resource."""

    path: tuple[str, ...]
    strength: Strength
    weakened: str
    """The sentence about a value that guards less, with `{1}` for the value before and `{2}` for the one after."""
    risk: Risk
    show: Callable[[Any], str] = str
    """Formats a value for the sentence."""


def is_true(default: bool = False) -> Strength:
    """Return the strength of a switch that guards while it is on."""
    return lambda value: _strength(default if value is None else boolean(value))


def is_false(default: bool = False) -> Strength:
    """Return the strength of a switch that guards while it is off."""
    return lambda value: _strength(
        None if (state := default if value is None else boolean(value)) is None else not state
    )


def _strength(state: bool | None) -> float | None:
    return None if state is None else float(state)


def is_set(value: Any) -> float | None:
    """Return the strength of a value that guards as long as there is one."""
    return None if value in (UNKNOWN, SECRET) else float(value not in (None, "", [], {}))


def one_of(*weak_to_strong: tuple[Any, ...]) -> Strength:
    """Return the strength of a choice: groups of equal values, the weakest first; None is an input that is not set."""
    return lambda value: next((float(rank) for rank, group in enumerate(weak_to_strong) if value in group), None)


def seconds(default: float = 0) -> Strength:
    """Return the strength of a duration, which guards more the longer it is."""
    return lambda value: default if value is None else duration(value)


def duration(value: Any) -> float | None:
    """Return the seconds of a duration; None if it is not known."""
    match = _DURATION.fullmatch(str(value)) if isinstance(value, int | float | str) else None
    return None if match is None or isinstance(value, bool) else int(match[1]) * float(_SECONDS[match[2]])


def format_duration(value: Any) -> str:
    """Return a duration in days or hours."""
    length = duration(value) or 0
    if length >= _DAY or not length:
        return f"{length / _DAY:g} day{'s' * (length != _DAY)}"
    return f"{length / _HOUR:g} hour{'s' * (length != _HOUR)}"


def weakened_guards(
    guards: Iterable[Guard], before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[Statement]:
    """Yield a statement for each guard that a change weakens, or of which that is not known."""
    for guard in guards:
        old, new = input_at(before, guard.path), input_at(after, guard.path)
        if old == new and new not in (SECRET, UNKNOWN):
            continue
        strengths = guard.strength(old), guard.strength(new)
        key = guard.path[0]
        if strengths[1] is None:
            # A preview has values that only the update knows; a secret hides what its author knows.
            risk = max(Risk.UNKNOWN, guard.risk) if new == SECRET else Risk.UNKNOWN
            text = "sets {} to a value that is not known here"
            yield Statement(text, (".".join(guard.path),), risk)
        elif strengths[0] is None or strengths[1] < strengths[0]:
            values = (key, *(guard.show(value) for value in (old, new)))
            yield Statement(f"{guard.weakened} ({{0}})", values, guard.risk)
