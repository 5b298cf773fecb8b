"""The changes between two values: mappings by key, lists aligned, so that an insertion is one change.

The cost is that of writing each list as JSON once for every level it stands on, and of sorting its items.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from tpucfg.diff.change import ABSENT, Change
from tpucfg.diff.command_lines import REST
from tpucfg.diff.patience import align
from tpucfg.yamldoc.document import KeyPath

_MOST_LEAVES: Final = 300
"""Of a value that came or went: a node with its start-up script has a hundred."""
_Step = tuple[KeyPath, Any, Any]


def value_changes(before: Any, after: Any, path: KeyPath = ()) -> Iterator[Change]:
    """What changed, in the order of the text; the order of a mapping's keys is no change.

    Args:
        before: plain data as JSON has it, no deeper than the readers of `spec` let it be; or ABSENT.
        after: likewise.
        path: where the two stand; it begins the path of each change.
    """
    steps: list[_Step] = [(path, before, after)]
    while steps:
        at, old, new = steps.pop()
        if isinstance(old, dict) and isinstance(new, dict):
            steps += [((*at, key), old.get(key, ABSENT), new.get(key, ABSENT)) for key in reversed({**old, **new})]
        elif isinstance(old, list) and isinstance(new, list):
            steps += reversed([_item(at, old, new, *pair) for pair in align(old, new)])
        elif not json_equal(old, new):
            yield Change(at, old, new)


def unfold(change: Change) -> Iterator[Change]:
    """What came or went as a whole as its single values, which configs have in common where they differ in others.

    A list of words and numbers is one value; what has too many of them stays whole.
    """
    came = change.before is ABSENT
    if not came and change.after is not ABSENT:
        yield change
        return
    leaves = tuple(islice(_leaves(change.path, change.after if came else change.before), _MOST_LEAVES + 1))
    if len(leaves) > _MOST_LEAVES:
        yield change
    else:
        yield from (Change(path, ABSENT, it) if came else Change(path, it, ABSENT) for path, it in leaves)


def _leaves(path: KeyPath, value: Any) -> Iterator[tuple[KeyPath, Any]]:
    steps: list[tuple[KeyPath, Any]] = [(path, value)]
    while steps:
        at, it = steps.pop()
        if isinstance(it, dict) and it:
            steps += [((*at, key), it[key]) for key in reversed(it)]
        elif isinstance(it, list) and (REST in at or any(isinstance(item, dict | list) for item in it)) and it:
            steps += [((*at, index), it[index]) for index in reversed(range(len(it)))]
        else:
            yield at, it


def json_equal(one: Any, other: Any) -> bool:
    """Whether two values are equal as JSON has it: 1 is 1.0, as both are numbers, but 1 is not true."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _item(path: KeyPath, before: list[Any], after: list[Any], old: int | None, new: int | None) -> _Step:
    at = (*path, new if new is not None else old or 0)
    return at, ABSENT if old is None else before[old], ABSENT if new is None else after[new]
