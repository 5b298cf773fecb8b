"""Conditions under which a changed fact has a meaning: of its values, or of other facts of both revisions."""

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

from tpucfg.changes.facts import ABSENT, Fact, FactChange, Facts, Scope


class Comparison:
    """All facts of both revisions, for conditions that depend on more than one of them."""

    def __init__(self, before: Facts, after: Facts, known: Iterable[Fact] = ()) -> None:
        self.before = before
        self.after = after
        self._known = known

    def pair(self, scope: Scope, *name: str | int) -> tuple[Any, Any]:
        """Return the values of another fact before and after; ABSENT where a revision lacks it."""
        old, new = (facts.get((scope, name)) for facts in (self.before, self.after))
        return (old.value if old else ABSENT), (new.value if new else ABSENT)

    def is_kept(self, scope: Scope) -> bool:
        """Return True for a job that is compared with one of the base, or with another rung."""
        return ABSENT not in self.pair(scope, "target")

    @cached_property
    def known_texts(self) -> tuple[tuple[str, str], ...]:
        """The texts that the base has somewhere, each with its kind."""
        pairs = {(str(fact.name[0]), text) for fact in self._known for text in texts_of(fact.value)}
        return tuple(sorted(pairs))


def texts_of(value: Any) -> list[str]:
    """Return a text, or the texts of a list."""
    values = value if isinstance(value, list) else [value]
    return [text for text in values if isinstance(text, str)]


Condition = Callable[[FactChange, Comparison], bool | tuple[str, ...]]
"""Decides if a row applies; it may return values for the places `{}` of the row's texts, if there is at least one."""


def always(_change: FactChange, _comparison: Comparison) -> bool:
    """Apply to every change."""
    return True


def added(change: FactChange, _comparison: Comparison) -> bool:
    """Apply to a fact that only the head has."""
    return change.before is ABSENT


def existed(change: FactChange, _comparison: Comparison) -> bool:
    """Apply to a fact that the base has."""
    return change.before is not ABSENT


def changed(change: FactChange, _comparison: Comparison) -> bool:
    """Apply to a fact that both revisions have."""
    return ABSENT not in (change.before, change.after)


def kept(change: FactChange, comparison: Comparison) -> bool:
    """Apply to a job that is compared with another one, and not to every value of a new job."""
    return comparison.is_kept(change.scope)


def removed(change: FactChange, _comparison: Comparison) -> bool:
    """Apply to a fact that only the base has."""
    return change.after is ABSENT


def is_set(change: FactChange, _comparison: Comparison) -> bool:
    """Apply to a fact that the head has."""
    return change.after is not ABSENT


def rises(change: FactChange, _comparison: Comparison) -> bool:
    """Apply to a number that gets larger."""
    return _are_numbers(change) and change.after > change.before


def falls(change: FactChange, _comparison: Comparison) -> bool:
    """Apply to a number that gets smaller."""
    return _are_numbers(change) and change.after < change.before


def _are_numbers(change: FactChange) -> bool:
    return all(isinstance(value, int | float) for value in (change.before, change.after))


def was(value: bool | None) -> Condition:
    """Return a condition that applies to a fact that has this value in the base."""
    return lambda change, _: change.before is value


def becomes(*values: object) -> Condition:
    """Return a condition that applies to a fact that gets one of these values; texts in any case."""
    wanted = {str(value).lower() for value in values}
    return lambda change, _: str(change.after).lower() in wanted


def all_of(*conditions: Condition) -> Condition:
    """Return a condition that applies if all of these do."""
    return lambda change, comparison: all(applies(change, comparison) for applies in conditions)
