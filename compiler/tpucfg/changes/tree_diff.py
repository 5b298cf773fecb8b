"""Compare two trees of plain data: mappings by key, lists aligned, so that an inserted item is one change.

The cost is one JSON encoding of each list per level of nesting, and sorting its items.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final

from tpucfg.changes.command_lines import REST, CommandLine, order_change
from tpucfg.changes.facts import ABSENT, Change, json_equal
from tpucfg.changes.patience import align
from tpucfg.paths import KeyPath

ORDER: Final = "(order)"
"""The last step of the path of a change to the order of a command line."""
_MAX_LEAVES: Final = 300
"""Limit for a value that was added or removed; a TPU node with its start-up script has about a hundred leaves."""
_Comparison = tuple[KeyPath, Any, Any]
"""Two values that are still to be compared, and their path."""


def exactly_equal(value: Any, other: Any) -> bool:
    """Return True if two values are written in the same way: 1 differs from 1.0, and 0.0 from -0.0."""
    if isinstance(value, str) and isinstance(other, str):
        return value == other  # most values, and much faster than repr
    return repr(value) == repr(other)


def value_changes(
    before: Any, after: Any, path: KeyPath = (), are_equal: Callable[[Any, Any], bool] = json_equal
) -> Iterator[Change]:
    """Yield the changes between two values, in document order. The order of a mapping's keys is not a change.

    Args:
        before: plain data with the depth limit of the YAML reader, or ABSENT.
        after: plain data with the depth limit of the YAML reader, or ABSENT.
        path: the path of both values, which begins the path of each change.
        are_equal: compares values that are neither two mappings nor two lists.
    """
    # A stack instead of recursion, because deep data would exceed Python's recursion limit. Pushed in reverse order, so
    # that values are popped in document order.
    stack: list[_Comparison] = [(path, before, after)]
    while stack:
        current_path, old, new = stack.pop()
        if isinstance(old, CommandLine) != isinstance(new, CommandLine) and ABSENT not in (old, new):
            # A command line that becomes something else is compared as it is written.
            old, new = (value.source if isinstance(value, CommandLine) else value for value in (old, new))
        if isinstance(old, dict) and isinstance(new, dict):
            if isinstance(old, CommandLine) and isinstance(new, CommandLine) and (order := order_change(old, new)):
                yield Change((*current_path, ORDER), *order)
            stack += [
                ((*current_path, key), old.get(key, ABSENT), new.get(key, ABSENT)) for key in reversed({**old, **new})
            ]
        elif isinstance(old, list) and isinstance(new, list):
            stack += reversed([_item_comparison(current_path, old, new, *pair) for pair in align(old, new)])
        elif not are_equal(old, new):
            yield Change(current_path, old, new)


def _item_comparison(
    path: KeyPath, before: list[Any], after: list[Any], before_index: int | None, after_index: int | None
) -> _Comparison:
    index = after_index if after_index is not None else before_index or 0
    old = ABSENT if before_index is None else before[before_index]
    new = ABSENT if after_index is None else after[after_index]
    return (*path, index), old, new


def unfold(change: Change) -> Iterator[Change]:
    """Yield an addition or a removal as changes of its single values.

    Configs that add almost equal trees then share most of the changes. A list of plain values counts as one value. A
    tree with too many values remains one change.
    """
    is_addition = change.before is ABSENT
    if not is_addition and change.after is not ABSENT:
        yield change
        return
    tree = change.after if is_addition else change.before
    leaves = tuple(islice(tree_leaves(change.path, tree), _MAX_LEAVES + 1))
    if len(leaves) > _MAX_LEAVES:
        yield change
    else:
        yield from (
            Change(path, ABSENT, value) if is_addition else Change(path, value, ABSENT) for path, value in leaves
        )


def tree_leaves(path: KeyPath, tree: Any) -> Iterator[tuple[KeyPath, Any]]:
    """Yield the path and value of each leaf of a tree, in document order."""
    stack: list[tuple[KeyPath, Any]] = [(path, tree)]
    while stack:
        current_path, value = stack.pop()
        if isinstance(value, dict) and value:
            stack += [((*current_path, key), value[key]) for key in reversed(value)]
        elif isinstance(value, list) and value and _is_tree(current_path, value):
            stack += [((*current_path, index), value[index]) for index in reversed(range(len(value)))]
        else:
            yield current_path, value


def _is_tree(path: KeyPath, items: list[Any]) -> bool:
    """Return True for the lines of a script and for a list that contains mappings or lists."""
    return REST in path or any(isinstance(item, dict | list) for item in items)
