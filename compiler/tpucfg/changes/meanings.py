"""The meaning of a changed fact: rows of a pattern, a condition, a risk and a consequence.

The first row whose pattern matches and whose condition holds decides. A change that no row knows is a caution: what
decides about a job or its resources has changed, and a reader has to judge it.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from tpucfg.changes.conditions import Comparison, Condition, added, always, kept
from tpucfg.changes.facts import FactChange
from tpucfg.changes.statements import Risk
from tpucfg.paths import grouped, matches, pattern_steps


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


class JudgedChange(NamedTuple):
    """A change with its meaning."""

    change: FactChange
    meaning: Meaning
    values: tuple[str, ...] = ()
    """The values of the condition."""


def judge(change: FactChange, table: Sequence[Meaning], comparison: Comparison) -> JudgedChange:
    """Return a change with the meaning that a table gives it."""
    for row in _rows_by_kind(tuple(table)).get(str(change.name[0]), ()):
        if matches(row.pattern, change.name) and (applies := row.when(change, comparison)):
            return JudgedChange(change, row, applies if isinstance(applies, tuple) else ())
    return JudgedChange(change, UNKNOWN)


@cache
def _rows_by_kind(table: tuple[Meaning, ...]) -> Mapping[str, Sequence[Meaning]]:
    return grouped((pattern_steps(row.pattern)[0], row) for row in table)


def judge_all(changes: Iterable[FactChange], table: Sequence[Meaning], comparison: Comparison) -> list[JudgedChange]:
    """Return the changes with their meanings, in order."""
    return [judge(change, table, comparison) for change in changes]
