"""Align two lists by a patience diff, https://bramcohen.livejournal.com/73318.html.

Items that occur exactly once in both lists are the anchors between which the rest is aligned. The cost is that of
sorting, even for long lists without common items, for which `difflib` takes quadratic time.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise, zip_longest
from typing import Any, Final

from tpucfg.changes.facts import canonical_json

_IDENTITY_KEYS: Final = ("name", "key", "id")
"""Keys that identify an item even if all its other values have changed."""

Pair = tuple[int | None, int | None]
"""The indices of an item before and after; None for an item that was added or removed."""
_Match = tuple[int, int]
"""The indices of equal tokens before and after."""


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
