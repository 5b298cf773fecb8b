"""Which item of a list became which: a patience diff, https://bramcohen.livejournal.com/73318.html.

Items that occur once on both sides hold the two lists together, so the cost is that of sorting, whatever they hold.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise, zip_longest
from typing import Any, Final

from tpucfg.diff.change import canonical_json

_IDENTITIES: Final = ("name", "key", "id")
"""Keys by which people know an item again, whatever else of it has changed."""

Pair = tuple[int | None, int | None]
"""The index of one item before and after; None where it is not there."""
_Match = tuple[int, int]


def align(before: Sequence[Any], after: Sequence[Any]) -> list[Pair]:
    """The items that may differ, in pairs and in order: between equal ones, those of one name, or else of one place."""
    if before == after:  # almost always, and cheap to ask; that 1 is not true is left to the caller
        return [(index, index) for index in range(len(before))]
    return sorted(_pairs(before, after), key=lambda pair: next(it for it in reversed(pair) if it is not None))


def _pairs(before: Sequence[Any], after: Sequence[Any]) -> Iterator[Pair]:
    equal = matches([*map(canonical_json, before)], [*map(canonical_json, after)])
    for old, new in _stretches(equal, len(before), len(after)):
        named = matches([_identity(before[it]) for it in old], [_identity(after[it]) for it in new])
        yield from ((old[i], new[j]) for i, j in named)
        for unnamed_old, unnamed_new in _stretches(named, len(old), len(new)):
            yield from zip_longest((old[it] for it in unnamed_old), (new[it] for it in unnamed_new))


def matches(before: Sequence[Hashable], after: Sequence[Hashable]) -> list[_Match]:
    """Pairs of equal tokens, rising on both sides: the common ends, then what is unique; None matches nothing."""
    found = _ends(before, after, range(len(before)), range(len(after)))
    for old, new in _stretches(found, len(before), len(after)):
        anchors = _rising(_unique(before, after, old, new))
        found += anchors
        inner = [(old.start - 1, new.start - 1), *anchors, (old.stop, new.stop)]
        for (i, j), (next_i, next_j) in pairwise(inner) if anchors else ():
            found += _ends(before, after, range(i + 1, next_i), range(j + 1, next_j))
    return sorted(found)


def _stretches(found: Sequence[_Match], length_before: int, length_after: int) -> Iterator[tuple[range, range]]:
    """What lies between the matches."""
    for (i, j), (next_i, next_j) in pairwise([(-1, -1), *sorted(found), (length_before, length_after)]):
        if next_i - i > 1 or next_j - j > 1:
            yield range(i + 1, next_i), range(j + 1, next_j)


def _ends(before: Sequence[Hashable], after: Sequence[Hashable], old: range, new: range) -> list[_Match]:
    """The items at the start and at the end that both sides have."""
    found: list[_Match] = []
    for i, j in zip(old, new, strict=False):
        if before[i] is None or before[i] != after[j]:
            break
        found.append((i, j))
    taken = len(found)
    for i, j in zip(reversed(old[taken:]), reversed(new[taken:]), strict=False):
        if before[i] is None or before[i] != after[j]:
            break
        found.append((i, j))
    return found


def _unique(before: Sequence[Hashable], after: Sequence[Hashable], old: range, new: range) -> list[_Match]:
    """What occurs once on either side, in the order of before."""
    counted_old, counted_new = Counter(before[it] for it in old), Counter(after[it] for it in new)
    once = {after[j]: j for j in new if after[j] is not None and counted_new[after[j]] == 1}
    return [(i, once[before[i]]) for i in old if counted_old[before[i]] == 1 and before[i] in once]


def _rising(found: Sequence[_Match]) -> list[_Match]:
    """The longest part of the matches that rises on both sides."""
    ends: list[int] = []  # by length, the smallest index after that a part of this length ends in
    last: list[int] = []  # the same, as positions in found
    before: list[int] = []  # for each match, the one that it follows
    for position, (_, j) in enumerate(found):
        length = bisect_left(ends, j)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [j]
        last[length : length + 1] = [position]
    chosen = []
    position = last[-1] if last else -1
    while position >= 0:
        chosen.append(found[position])
        position = before[position]
    return chosen[::-1]


def _identity(item: Any) -> str | None:
    if not isinstance(item, dict):
        return None
    return next((f"{key} {item[key]}" for key in _IDENTITIES if isinstance(item.get(key), str)), None)
