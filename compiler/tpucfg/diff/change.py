"""Changes as plain data: of a value, and of configs."""

import json
import re
from collections.abc import Iterable
from enum import Enum
from typing import Any, Final, NamedTuple

from tpucfg.redaction import redact, redact_field
from tpucfg.yamldoc.document import KeyPath


class Absent(Enum):
    """The type of what is not there, which None would not say: null is a value."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT
"""In the place of a value: there is none on this side."""
canonical_json: Final = json.JSONEncoder(sort_keys=True).encode
"""A value as a text by which equal values are found; `json.dumps` would make such an encoder for each."""
_NUMBERS: Final = re.compile(r"([0-9]{1,9})")


class Change(NamedTuple):
    """One value that differs. What came or went is one change at its root, until it is unfolded."""

    path: KeyPath
    """Keys and indices; in a list, the index after the change, or before it for what was removed."""
    before: Any
    """Plain data, or ABSENT."""
    after: Any
    """Plain data, or ABSENT."""


class ConfigKey(NamedTuple):
    """Which config: what both sides know it by."""

    environment: str
    """In a folder of other files, the folder that a file is in."""
    size: str
    """In a folder of other files, a file's name."""

    @property
    def rank(self) -> tuple[object, ...]:
        """By environment, then by size with its numbers as numbers: v2-8 comes before v2-32."""
        parts = _NUMBERS.split(self.size)
        return (self.environment, [(int(part), "") if part.isdecimal() else (0, part) for part in parts], self.size)


def sorted_keys(keys: Iterable[ConfigKey]) -> tuple[ConfigKey, ...]:
    """Each of the keys once, by rank."""
    return tuple(sorted({*keys}, key=lambda key: key.rank))


class Group(NamedTuple):
    """Changes that the same configs have in common."""

    keys: tuple[ConfigKey, ...]
    changes: tuple[Change, ...]
    """In the order of the config. `<size>` and `<env>` stand for each config's own where only these differ."""


class Difference(NamedTuple):
    """What differs between the configs of two sides."""

    added: tuple[ConfigKey, ...]
    removed: tuple[ConfigKey, ...]
    groups: tuple[Group, ...]
    """By the place of their first config."""
    same: tuple[ConfigKey, ...]
    """Without any change."""

    @property
    def changed(self) -> tuple[ConfigKey, ...]:
        """The configs on both sides that differ, in order."""
        return sorted_keys(key for group in self.groups for key in group.keys)

    @property
    def kept(self) -> tuple[ConfigKey, ...]:
        """The configs on both sides, changed or not."""
        return sorted_keys((*self.changed, *self.same))

    @property
    def known(self) -> tuple[ConfigKey, ...]:
        """Every config of either side."""
        return sorted_keys((*self.added, *self.removed, *self.changed, *self.same))

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.groups)


def redact_difference(found: Difference) -> Difference:
    """The difference without people and secrets."""
    groups = (group._replace(changes=tuple(map(redact_change, group.changes))) for group in found.groups)
    return found._replace(groups=tuple(groups))


def redact_change(change: Change) -> Change:
    """A change that shows nothing of the kind, on either side or in its path."""
    path = tuple(redact(step) if isinstance(step, str) else step for step in change.path)
    last = next((step for step in reversed(change.path) if isinstance(step, str)), "")
    return Change(path, redact_field(last, change.before), redact_field(last, change.after))
