"""Facts of a revision, named values, and their comparison with those of another revision."""

import json
import re
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any, Final, NamedTuple

from tpucfg.paths import KeyPath
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
    return [(int(part), "") if index % 2 else (0, part) for index, part in enumerate(_NUMBERS.split(size))]


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


Facts = Mapping[tuple[Scope, KeyPath], Fact]
"""The facts of a revision by scope and name."""


def by_name(facts: Iterable[Fact]) -> Facts:
    """Return facts by scope and name."""
    return {(fact.scope, fact.name): fact for fact in facts}


def compare(before: Facts, after: Facts) -> tuple[FactChange, ...]:
    """Return the facts that differ, in their order in the head; those that only the base has follow."""
    return tuple(
        FactChange(
            *key,
            ABSENT if old is None else old.value,
            ABSENT if new is None else new.value,
            (new or old or Fact(*key, None)).layer,
        )
        for key in {**after, **before}
        for old, new in ((before.get(key), after.get(key)),)
        if old is None or new is None or not json_equal(old.value, new.value)
    )


def json_equal(value: Any, other: Any) -> bool:
    """Return True if two values are equal in JSON at every depth: 1 equals 1.0, as both are numbers, but not true."""
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(json_equal(item, other[key]) for key, item in value.items())
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(json_equal, value, other))
    return isinstance(value, bool) == isinstance(other, bool) and bool(value == other)
