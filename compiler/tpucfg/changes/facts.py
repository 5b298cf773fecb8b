"""Facts of a revision, named values, their comparison with those of another revision, and what a changed fact means.

A meaning is a row of a pattern, a condition, a risk and a consequence. The first row whose pattern matches and whose
condition holds decides. A change that no row knows is a caution: what decides about a job or its resources has changed,
and a reader has to judge it.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum, IntEnum
from functools import cache, cached_property, lru_cache
from typing import Any, Final, NamedTuple

from tpucfg.paths import KeyPath, grouped, matches, pattern_steps
from tpucfg.redaction import REDACTED, SECRET, redact, redact_field


class Absent(Enum):
    """The type of ABSENT. None cannot mark a missing value, because null is a value."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT
"""Marks a value that one revision does not have."""
# One encoder for all calls: `json.dumps` with options makes a new one each time, and this encodes every list item.
canonical_json: Final = json.JSONEncoder(sort_keys=True).encode
"""Encode a value as text, so that equal values have equal texts."""
# Bounded, because int() refuses a text of thousands of digits, which the name of a file can be.
_NUMBERS: Final = re.compile(r"([0-9]{1,9})")


class Change(NamedTuple):
    """A value that differs. A mapping or list that was added or removed is one change until `unfold` splits it."""

    path: KeyPath
    """Keys and list indices. An index is the one after the change, or for a removed item, the one before it."""
    before: Any
    """Plain data, or ABSENT."""
    after: Any
    """Plain data, or ABSENT."""


class Scope(NamedTuple):
    """The subject of a fact: a config or an environment; the whole spec if both fields are empty."""

    environment: str = ""
    """In a folder of other files, the folder of the file."""
    size: str = ""
    """In a folder of other files, the name of the file."""

    @property
    def sort_key(self) -> tuple[object, ...]:
        """The environment, then the size with its numbers compared as numbers, so that v2-8 precedes v2-32."""
        return (self.environment, _size_key(self.size), self.size)


class Fact(NamedTuple):
    """One named value of one revision."""

    scope: Scope
    name: KeyPath
    """Its kind, then its own name: `("figure", "steps")`, `("argument", "--data_dir")`, `("price", "v5e", "spot")`."""
    value: Any
    """Plain data."""
    layer: str = ""
    """The layer of the spec that sets it, in dotted form; empty for the top, and for what no layer sets."""


# Cached because environments share their sizes, and the keys of a large comparison are sorted several times.
@lru_cache(maxsize=10_000)
def _size_key(size: str) -> list[tuple[int, str]]:
    # At odd positions, `split` returns what the pattern matches.
    return [
        (int(part), "") if index % 2 else (0, part)
        for index, part in enumerate(_NUMBERS.split(size))
    ]


def sorted_keys(keys: Iterable[Scope]) -> tuple[Scope, ...]:
    """Return each distinct key once, sorted."""
    return tuple(sorted({*keys}, key=lambda key: key.sort_key))


def redact_change(change: Change) -> Change:
    """Return the change without personal addresses and secrets in its values and its path."""
    path = tuple(redact(step) if isinstance(step, str) else step for step in change.path)
    # The names decide if a value is secret; an item of a list has the name of the list.
    names = [step for step in change.path if isinstance(step, str)]
    before, after = (redact_field(names, value) for value in (change.before, change.after))
    is_hidden = repr(before) == repr(after) and repr(change.before) != repr(change.after)
    return Change(path, before, mark_as_other(after) if is_hidden else after)


def mark_as_other(redacted: Any) -> str:
    """Return a redacted value as text, marked as different from another one that is equal without what was redacted."""
    text = redacted if isinstance(redacted, str) else canonical_json(redacted)
    return f"{text} ({'another person' if SECRET not in text and REDACTED in text else 'another value'})"


# The comparison


class FactChange(NamedTuple):
    """A fact that differs between two revisions."""

    scope: Scope
    name: KeyPath
    before: Any
    """The value in the base, or ABSENT."""
    after: Any
    """The value in the head, or ABSENT."""
    layer: str = ""
    """The layer of the spec that sets the value; of a fact that is gone, the one that did."""

    @property
    def values(self) -> tuple[Any, Any]:
        """The values in the base and in the head."""
        return self.before, self.after


Facts = Mapping[tuple[Scope, KeyPath], Fact]
"""The facts of a revision by scope and name."""


def by_name(facts: Iterable[Fact]) -> Facts:
    """Return facts by scope and name."""
    return {(fact.scope, fact.name): fact for fact in facts}


def compare(before: Facts, after: Facts) -> tuple[FactChange, ...]:
    """Return the facts that differ, in their order in the head; those that only the base has follow."""
    changes = (_change(before.get(key), after.get(key)) for key in {**after, **before})
    return tuple(change for change in changes if change)


def _change(old: Fact | None, new: Fact | None) -> FactChange | None:
    """Return the change of a fact, one of which may be missing; None if both have equal values."""
    if old and new and json_equal(old.value, new.value):
        return None
    before, after = (ABSENT if fact is None else fact.value for fact in (old, new))
    fact = new or old
    return fact and FactChange(fact.scope, fact.name, before, after, fact.layer)


def json_equal(value: Any, other: Any) -> bool:
    """Return True if two values are equal in JSON at every depth: 1 equals 1.0, as both are numbers, but not true."""
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(
            json_equal(item, other[key]) for key, item in value.items()
        )
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(json_equal, value, other))
    return isinstance(value, bool) == isinstance(other, bool) and bool(value == other)


class Risk(IntEnum):
    """The risk of a change; a review lists the highest first."""

    NONE = 0
    CAUTION = 1
    """Something becomes worse, but neither data nor access is affected."""
    ACCESS = 2
    """Access is granted, or a barrier against access is removed."""
    PUBLIC = 3
    """Access is granted to everyone."""
    UNKNOWN = 4
    """The review cannot show the effect."""
    DESTRUCTIVE = 5
    """Data or the protection of data is lost, or the change can hide such a loss."""


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

    def is_known(self, change: FactChange) -> bool:
        """Return True if a job of the base has a fact of this name with the value that the head gives it."""
        return (change.name, repr(change.after)) in self._known_values

    @cached_property
    def _known_values(self) -> frozenset[tuple[KeyPath, str]]:
        return frozenset((fact.name, repr(fact.value)) for fact in self._known)

    @cached_property
    def known_texts(self) -> Mapping[str, Collection[str]]:
        """The texts that the base has somewhere, by their kinds."""
        texts = grouped(
            (str(fact.name[0]), text) for fact in self._known for text in texts_of(fact.value)
        )
        return {kind: frozenset(of_kind) for kind, of_kind in texts.items()}


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
    return ABSENT not in change.values


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
    return all(isinstance(value, int | float) for value in change.values)


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
    """The whole sentence, if the change of a value would not read well: with `{label}`, `{before}` and `{after}` for
    the fact's name and values, `{input}` for an input of a resource, and `{}` for each value of the condition."""
    is_silent: bool = False
    """True for a change that another sentence or table shows."""


def caution(pattern: str, consequence: str, when: Condition = kept, headline: str = "") -> Meaning:
    """Return a row about what gets worse; unless there is another condition, of a job that is compared with one."""
    return Meaning(pattern, Risk.CAUTION, consequence, when, headline)


def access(pattern: str, consequence: str, when: Condition = added) -> Meaning:
    """Return a row about what jobs, or others by them, can reach."""
    return Meaning(pattern, Risk.ACCESS, consequence, when, "more access for jobs")


def sentence(
    pattern: str, text: str, when: Condition = always, risk: Risk = Risk.NONE, headline: str = ""
) -> Meaning:
    """Return a row with a sentence of its own."""
    return Meaning(pattern, risk, when=when, headline=headline, sentence=text)


def worse(pattern: str, text: str, when: Condition = always, headline: str = "") -> Meaning:
    """Return a row with a sentence of its own about what gets worse."""
    return sentence(pattern, text, when, Risk.CAUTION, headline)


def silent(pattern: str, when: Condition = always) -> Meaning:
    """Return a row about what another sentence or table shows."""
    return Meaning(pattern, when=when, is_silent=True)


def loss(pattern: str, text: str, headline: str = "", when: Condition = always) -> Meaning:
    """Return a row with a sentence about data, or its protection, that is lost."""
    return sentence(pattern, text, when, Risk.DESTRUCTIVE, headline)


PLACE: Final = re.compile(r"\{([a-z]*)\}")
"""A place for a value in a text of a table."""
UNKNOWN: Final = Meaning("**", Risk.CAUTION, "no rule knows its effect")
"""The meaning of a change that no row knows."""


def judge(
    change: FactChange, table: tuple[Meaning, ...], comparison: Comparison
) -> tuple[Meaning, tuple[str, ...]]:
    """Return the first row of a table that matches a change and applies, with the values of its condition."""
    for row in _rows_about(str(change.name[0]), table):
        if matches(row.pattern, change.name) and (applies := row.when(change, comparison)):
            return row, applies if isinstance(applies, tuple) else ()
    return UNKNOWN, ()


@cache
def _rows_about(kind: str, table: tuple[Meaning, ...]) -> Sequence[Meaning]:
    """Return the rows whose patterns can match facts of a kind."""
    return [row for row in table if matches(pattern_steps(row.pattern)[0], (kind,))]


def fill(
    text: str, places: Mapping[str, str | None], values: Sequence[str]
) -> tuple[str, tuple[str, ...]]:
    """Return a text of a table with `{}` in each place, and the values for them.

    Args:
        text: The text, with `{name}` for a value by its name, and `{}` for the next value of the condition.
        places: The values by name.
        values: The values of the condition.
    """
    own = iter(values)
    filled = (places[place] if place else next(own, "") for place in PLACE.findall(text))
    return PLACE.sub("{}", text), tuple(value or "" for value in filled)
