"""Changes as plain data: of one value, and of the configs of two revisions."""

import json
import re
from collections.abc import Iterable
from enum import Enum
from functools import lru_cache
from typing import Any, Final, NamedTuple

from tpucfg.redaction import REDACTED, SECRET, redact, redact_field
from tpucfg.yamldoc.document import KeyPath


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


class ConfigKey(NamedTuple):
    """The identity of a config in both revisions."""

    environment: str
    """In a folder of other files, the folder of the file."""
    size: str
    """In a folder of other files, the name of the file."""

    @property
    def sort_key(self) -> tuple[object, ...]:
        """The environment, then the size with its numbers compared as numbers, so that v2-8 precedes v2-32."""
        return (self.environment, _size_key(self.size), self.size)


# Cached because environments share their sizes, and the keys of a large comparison are sorted several times.
@lru_cache(maxsize=10_000)
def _size_key(size: str) -> list[tuple[int, str]]:
    # At odd positions, `split` returns what the pattern matches.
    return [(int(part), "") if index % 2 else (0, part) for index, part in enumerate(_NUMBERS.split(size))]


def sorted_keys(keys: Iterable[ConfigKey]) -> tuple[ConfigKey, ...]:
    """Return each distinct key once, sorted."""
    return tuple(sorted({*keys}, key=lambda key: key.sort_key))


class Group(NamedTuple):
    """The changes that a set of configs has in common."""

    keys: tuple[ConfigKey, ...]
    changes: tuple[Change, ...]
    """In the order of the config. `<size>` and `<env>` replace names if only these differ between the configs."""


class Difference(NamedTuple):
    """The difference between two sets of configs."""

    added: tuple[ConfigKey, ...]
    removed: tuple[ConfigKey, ...]
    groups: tuple[Group, ...]
    """The groups with the most configs first."""
    unchanged: tuple[ConfigKey, ...]
    noun: str = "config"
    """The word for one of them."""

    @property
    def changed(self) -> tuple[ConfigKey, ...]:
        """The configs that both sets contain and that differ."""
        return sorted_keys(key for group in self.groups for key in group.keys)

    @property
    def common(self) -> tuple[ConfigKey, ...]:
        """The configs that both sets contain."""
        return sorted_keys((*self.changed, *self.unchanged))

    @property
    def all_keys(self) -> tuple[ConfigKey, ...]:
        """The configs of both sets."""
        return sorted_keys((*self.added, *self.removed, *self.changed, *self.unchanged))

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.groups)


def redact_difference(difference: Difference) -> Difference:
    """Return the difference without personal addresses and secrets."""
    groups = (group._replace(changes=tuple(map(redact_change, group.changes))) for group in difference.groups)
    return difference._replace(groups=tuple(groups))


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
