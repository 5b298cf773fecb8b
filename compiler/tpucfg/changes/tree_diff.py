"""Compare two trees of plain data: mappings by key, lists aligned, so that an inserted item is one change.

Lists are aligned by a patience diff, https://bramcohen.livejournal.com/73318.html: items that occur exactly once in
both are the anchors between which the rest is aligned. The cost is one JSON encoding of each list per level of nesting,
and sorting its items, even for long lists without common items, for which `difflib` takes quadratic time.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import islice, pairwise, zip_longest
from typing import Any, Final

from tpucfg.changes.command_lines import REST, CommandLine, order_change
from tpucfg.changes.facts import ABSENT, Change, canonical_json, json_equal
from tpucfg.paths import KeyPath

ORDER: Final = "(order)"
"""The last step of the path of a change to the order of a command line."""
_MAX_LEAVES: Final = 300
"""Limit for a value that was added or removed; a TPU node with its start-up script has about a hundred leaves."""
_Comparison = tuple[KeyPath, Any, Any]
"""Two values that are still to be compared, and their path."""
_IDENTITY_KEYS: Final = ("name", "key", "id")
"""Keys that identify an item even if all its other values have changed."""

Pair = tuple[int | None, int | None]
"""The indices of an item before and after; None for an item that was added or removed."""
_Match = tuple[int, int]
"""The indices of equal tokens before and after."""


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


# Lists


def align(before: Sequence[Any], after: Sequence[Any]) -> list[Pair]:
    """Pair the items of two lists, in order.

    Equal items are paired first; between those, items with equal names; between those, items at equal positions.
    """
    # The usual case, and cheap. Here 1 equals True, but the caller compares each pair exactly.
    if before == after:
        return [(index, index) for index in range(len(before))]

    def position(pair: Pair) -> int:
        before_index, after_index = pair
        return after_index if after_index is not None else before_index or 0

    return sorted(_pairs(before, after), key=position)


def _pairs(before: Sequence[Any], after: Sequence[Any]) -> Iterator[Pair]:
    """Yield the pairs that may differ, and the added and removed items."""
    equal = matches([*map(canonical_json, before)], [*map(canonical_json, after)])
    for old, new in gaps(equal, len(before), len(after)):
        named_pairs = matches([identity(before[index]) for index in old], [identity(after[index]) for index in new])
        yield from ((old[i], new[j]) for i, j in named_pairs)
        for old_rest, new_rest in gaps(named_pairs, len(old), len(new)):
            yield from zip_longest((old[index] for index in old_rest), (new[index] for index in new_rest))


def matches(before: Sequence[Hashable], after: Sequence[Hashable]) -> list[_Match]:
    """Return pairs of equal tokens whose indices increase in both sequences. None matches no token.

    The common beginning and end are matched first, then unique tokens, then the neighbours of those.
    """
    pairs = _common_ends(before, after, range(len(before)), range(len(after)))
    for old, new in gaps(pairs, len(before), len(after)):
        anchors = _longest_increasing(_unique_matches(before, after, old, new))
        pairs += anchors
        if anchors:
            bounds = [(old.start - 1, new.start - 1), *anchors, (old.stop, new.stop)]
            for (i, j), (next_i, next_j) in pairwise(bounds):
                pairs += _common_ends(before, after, range(i + 1, next_i), range(j + 1, next_j))
    return sorted(pairs)


def gaps(pairs: Sequence[_Match], before_length: int, after_length: int) -> Iterator[tuple[range, range]]:
    """Yield the ranges between the matches."""
    for (i, j), (next_i, next_j) in pairwise([(-1, -1), *sorted(pairs), (before_length, after_length)]):
        if next_i - i > 1 or next_j - j > 1:
            yield range(i + 1, next_i), range(j + 1, next_j)


def _common_ends(before: Sequence[Hashable], after: Sequence[Hashable], old: range, new: range) -> list[_Match]:
    """Return the matches at the beginning and at the end of two ranges."""
    pairs: list[_Match] = []
    for i, j in zip(old, new, strict=False):
        if before[i] is None or before[i] != after[j]:
            break
        pairs.append((i, j))
    start = len(pairs)
    for i, j in zip(reversed(old[start:]), reversed(new[start:]), strict=False):
        if before[i] is None or before[i] != after[j]:
            break
        pairs.append((i, j))
    return pairs


def _unique_matches(before: Sequence[Hashable], after: Sequence[Hashable], old: range, new: range) -> list[_Match]:
    """Return the tokens that occur once in either range, in the order of `before`."""
    old_counts, new_counts = Counter(before[index] for index in old), Counter(after[index] for index in new)
    unique = {after[j]: j for j in new if after[j] is not None and new_counts[after[j]] == 1}
    return [(i, unique[before[i]]) for i in old if old_counts[before[i]] == 1 and before[i] in unique]


def _longest_increasing(pairs: Sequence[_Match]) -> list[_Match]:
    """Return the longest subsequence of matches whose indices increase in both sequences, by patience sorting."""
    tops: list[int] = []  # for each length, the smallest index in `after` that a subsequence of this length ends with
    last: list[int] = []  # for each length, the position of that match in `pairs`
    previous: list[int] = []  # for each match, the position of the match before it in its subsequence
    for position, (_, j) in enumerate(pairs):
        length = bisect_left(tops, j)
        previous.append(last[length - 1] if length else -1)
        tops[length : length + 1] = [j]
        last[length : length + 1] = [position]
    chosen = []
    position = last[-1] if last else -1
    while position >= 0:
        chosen.append(pairs[position])
        position = previous[position]
    return chosen[::-1]


def identity(item: Any) -> str | None:
    """Return what identifies an item of a list, even if all its other values have changed; None for other items."""
    if not isinstance(item, dict):
        return None
    return next((f"{key} {item[key]}" for key in _IDENTITY_KEYS if isinstance(item.get(key), str)), None)
