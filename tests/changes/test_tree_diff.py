"""Comparison of two trees of plain data."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpucfg.changes.facts import ABSENT, Change
from tpucfg.changes.tree_diff import matches, value_changes

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "b", "name"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=12,
)


def changes_between(before: Any, after: Any) -> list[Change]:
    """Return all changes between two values."""
    return list(value_changes(before, after))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": 1}, {"a": 2}, [(("a",), 1, 2)]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
        ({"a": 1}, {"a": True}, [(("a",), 1, True)]),
        ({"a": [1]}, {"a": [True]}, [(("a", 0), 1, True)]),
        ({"a": 14}, {"a": 14.0}, []),
        ({"a": [14]}, {"a": [14.0]}, []),
        ({"a": None}, {}, [(("a",), None, ABSENT)]),
        ({}, {"a": {"b": [1]}}, [(("a",), ABSENT, {"b": [1]})]),
        ({"a": {}}, {"a": []}, [(("a",), {}, [])]),
        (ABSENT, ABSENT, []),
        (ABSENT, {"a": 1}, [((), ABSENT, {"a": 1})]),
    ],
)
def test_values_are_compared_as_json(before: Any, after: Any, expected: list[Any]) -> None:
    """Keys have no order, 1 equals 1.0 but not true, and an added or removed value is one change."""
    assert changes_between(before, after) == [Change(*fields) for fields in expected]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("abcdef", "abXcdef", [((2,), ABSENT, "X")]),
        ("abXcdef", "abcdef", [((2,), "X", ABSENT)]),
        ("abc", "bcd", [((0,), "a", ABSENT), ((2,), ABSENT, "d")]),
        ("aaaa", "aaXaa", [((2,), ABSENT, "X")]),
        ("aabaa", "aacaa", [((2,), "b", "c")]),
        ("", "ab", [((0,), ABSENT, "a"), ((1,), ABSENT, "b")]),
        ("aabbuaabb", "aabbXuYaabb", [((4,), ABSENT, "X"), ((6,), ABSENT, "Y")]),
    ],
)
def test_insertion_in_a_list_is_one_change(before: str, after: str, expected: list[Any]) -> None:
    """Items after an insertion or a removal are unchanged."""
    assert changes_between(list(before), list(after)) == [Change(*fields) for fields in expected]


def test_item_is_identified_by_its_name() -> None:
    """A changed item is compared with the item of the same name, even if its index changed."""
    before = [{"name": "worker", "image": "i:1"}, {"name": "side", "image": "s:1"}]
    after = [
        {"name": "new", "image": "n"},
        {"name": "worker", "image": "i:2"},
        {"name": "side", "image": "s:1"},
    ]

    assert changes_between(before, after) == [
        Change((0,), ABSENT, {"name": "new", "image": "n"}),
        Change((1, "image"), "i:1", "i:2"),
    ]


@given(VALUES, VALUES)
def test_there_are_changes_if_and_only_if_values_differ(before: Any, after: Any) -> None:
    """There is a change if and only if the values differ, and each change is of values that differ."""
    changes = changes_between(before, after)

    assert (changes == []) == (repr(_sorted(before)) == repr(_sorted(after)))
    assert all(repr(_sorted(change.before)) != repr(_sorted(change.after)) for change in changes)


@given(st.lists(st.sampled_from("abcdefgh")), st.lists(st.sampled_from("abcdefgh")))
def test_matches_are_equal_and_do_not_cross(before: list[str], after: list[str]) -> None:
    """Each match is a pair of equal items, and the indices increase on both sides."""
    pairs = matches(before, after)

    assert all(before[i] == after[j] for i, j in pairs)
    assert all(i < k and j < m for (i, j), (k, m) in pairwise(pairs))


@pytest.mark.slow
def test_reversed_list_takes_no_quadratic_time() -> None:
    """A reversed list of 100,000 items, the worst case for an alignment, is compared without quadratic cost."""
    numbers = list(range(100_000))

    assert len(changes_between(numbers, numbers[::-1])) > 99_000


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value
