"""The meaning of a changed fact: rows of a pattern, a condition, a risk and a consequence.

The first row whose pattern matches and whose condition holds decides. A change that no row knows is a caution: what
decides about a job or its resources has changed, and a reader has to judge it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, Final, NamedTuple

from tpucfg.changes.facts import ABSENT, Fact, FactChange, Facts, Scope
from tpucfg.changes.statements import Risk
from tpucfg.paths import grouped, matches, pattern_steps

# Conditions under which a fact has a meaning: of its values, or of other facts of both revisions


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


# Rows


class Meaning(NamedTuple):
    """A row of the table."""

    pattern: str
    """The names of the facts, in the language of `tpucfg.paths`; the first step is their kind."""
    risk: Risk = Risk.NONE
    consequence: str = ""
    """A clause that follows the change, with `{}` for each value that the condition returns."""
    when: Condition = always
    headline: str = ""
    """A short form for the headline of the review."""
    subject: str = ""
    """The noun for the fact; the words of its kind, if empty."""
    sentence: str = ""
    """The whole sentence, if the change of a value would not read well; `{}` stands for the name's last step, the
    value before and the value after, as far as they exist."""
    is_silent: bool = False
    """True for a change that another sentence or table shows."""


def caution(pattern: str, consequence: str, when: Condition = kept) -> Meaning:
    """Return a row about what gets worse; unless there is another condition, of a job that is compared with one."""
    return Meaning(pattern, Risk.CAUTION, consequence, when)


def access(pattern: str, consequence: str, when: Condition = added) -> Meaning:
    """Return a row about what jobs, or others by them, can reach."""
    return Meaning(pattern, Risk.ACCESS, consequence, when, "more access for jobs")


def sentence(pattern: str, text: str, when: Condition = always, risk: Risk = Risk.NONE, headline: str = "") -> Meaning:
    """Return a row with a sentence of its own."""
    return Meaning(pattern, risk, when=when, headline=headline, sentence=text)


def loss(pattern: str, text: str, headline: str = "", when: Condition = always) -> Meaning:
    """Return a row with a sentence about data, or its protection, that is lost."""
    return sentence(pattern, text, when, Risk.DESTRUCTIVE, headline)


UNKNOWN: Final = Meaning("**", Risk.CAUTION, "no rule knows its effect")
"""The meaning of a change that no row knows."""


def judge(change: FactChange, table: Sequence[Meaning], comparison: Comparison) -> tuple[Meaning, tuple[str, ...]]:
    """Return the meaning that a table gives a change, with the values of its condition."""
    for row in _rows_by_kind(tuple(table)).get(str(change.name[0]), ()):
        if matches(row.pattern, change.name) and (applies := row.when(change, comparison)):
            return row, applies if isinstance(applies, tuple) else ()
    return UNKNOWN, ()


@cache
def _rows_by_kind(table: tuple[Meaning, ...]) -> Mapping[str, Sequence[Meaning]]:
    return grouped((pattern_steps(row.pattern)[0], row) for row in table)
