"""The changes between two values."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpucfg.diff.change import ABSENT, Change
from tpucfg.diff.patience import matches
from tpucfg.diff.tree_diff import value_changes

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "b", "name"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from("abc"), inner), max_leaves=12
)


def said(before: Any, after: Any) -> list[Change]:
    """All changes."""
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
def test_values_are_compared_as_json_has_them(before: Any, after: Any, expected: list[Any]) -> None:
    """Keys have no order, numbers are numbers, true is none, and what came or went is one change."""
    assert said(before, after) == [Change(*it) for it in expected]


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
    """Items behind an insertion or a removal have not changed."""
    assert said(list(before), list(after)) == [Change(*it) for it in expected]


def test_item_is_known_again_by_its_name() -> None:
    """A named item that has changed is compared with itself, though another came before it."""
    before = [{"name": "worker", "image": "i:1"}, {"name": "side", "image": "s:1"}]
    after = [{"name": "new", "image": "n"}, {"name": "worker", "image": "i:2"}, {"name": "side", "image": "s:1"}]

    assert said(before, after) == [
        Change((0,), ABSENT, {"name": "new", "image": "n"}),
        Change((1, "image"), "i:1", "i:2"),
    ]


@given(VALUES, VALUES)
def test_changes_lead_from_one_side_to_the_other(before: Any, after: Any) -> None:
    """There is a change where, and only where, the two differ; and each is of two values that do."""
    there = said(before, after)

    assert (there == []) == (repr(_sorted(before)) == repr(_sorted(after)))
    assert all(repr(_sorted(it.before)) != repr(_sorted(it.after)) for it in there)


@given(st.lists(st.sampled_from("abcdefgh")), st.lists(st.sampled_from("abcdefgh")))
def test_matches_rise_and_hold(before: list[str], after: list[str]) -> None:
    """Each match is of equal items, and no two cross."""
    found = matches(before, after)

    assert all(before[i] == after[j] for i, j in found)
    assert all(i < k and j < m for (i, j), (k, m) in pairwise(found))


def test_reversed_list_ends() -> None:
    """A list turned round, the worst there is for an alignment, is done in no time; nothing in it is quadratic."""
    numbers = list(range(100_000))

    assert len(said(numbers, numbers[::-1])) > 99_000


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value
