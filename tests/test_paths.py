"""Paths into nested data, and patterns of them."""

import pytest

from tpucfg.paths import (
    KeyPath,
    first_match,
    leaf_paths,
    matches,
    overlap,
    pattern_steps,
    value_at,
    values_at,
)

DATA = {"a": [{"name": "x", "n": 1}, {"name": "y"}], "l": {"k.io/q": "v"}, "e": {}}


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("a.*.name", ("a", 0, "name"), True),
        ("a.*.name", ("a", "name"), False),
        ("a.0.name", ("a", 0, "name"), True),
        ("a.*", ("a", 0, "name"), False),
        ("a.**", ("a",), True),
        ("a.**", ("a", 0, "name"), True),
        ("a.**", ("ab",), False),
        ("**.name", ("name",), True),
        ("**.name", ("a", 0, "name"), True),
        ("a.**.z.**", ("a", "b", "z", "c"), True),
        ("a.**.z", ("a", "b"), False),
        ("TPU_*", ("TPU_WORKER_ID",), True),
        ("*_ID", ("TPU_WORKER_ID",), True),
        ("T*_ID*", ("TPU_WORKER_ID",), True),
        ("TPU_*", ("TPU",), False),
        ("l.[k.io/*]", ("l", "k.io/q"), True),
        ("l.k", ("l", "k.io/q"), False),
        ("a.b", ("a", "b\n"), False),
        ("a.*", ("a", "b\nc"), True),
        ("a.b+", ("a", "bb"), False),
    ],
)
def test_a_pattern_matches_whole_paths(pattern: str, path: KeyPath, expected: bool) -> None:
    """A pattern matches a path as a whole, step by step."""
    assert matches(pattern, path) is expected


def test_the_first_row_decides() -> None:
    """The first row that matches is returned."""
    rows = {"a.b": 1, "a.*": 2}.items()
    assert [first_match(rows, ("a", key)) for key in "bc"] == [1, 2]
    assert first_match(rows, ("b",)) is None


def test_values_are_found_by_path_and_by_pattern() -> None:
    """Missing steps, indices out of range and steps into scalars lead to the default."""
    assert value_at(DATA, ("a", 1, "name")) == "y"
    assert [
        value_at(DATA, path, "-") for path in (("a", 2), ("a", "0"), ("a", 0, "n", "m"), ("x",))
    ] == ["-"] * 4
    assert list(values_at(DATA, "a.*.name")) == [(("a", 0, "name"), "x"), (("a", 1, "name"), "y")]
    assert list(values_at(DATA, "**.[k.*]")) == [(("l", "k.io/q"), "v")]
    assert [path for path, _ in values_at(DATA, "a.**")] == [
        path for path, _ in values_at(DATA, "**") if path[:1] == ("a",)
    ]


def test_leaves_are_scalars_and_empty_values() -> None:
    """Every scalar and every empty value is a leaf, in the order of the data."""
    assert list(leaf_paths(DATA)) == [
        ("a", 0, "name"),
        ("a", 0, "n"),
        ("a", 1, "name"),
        ("l", "k.io/q"),
        ("e",),
    ]


def test_a_path_overlaps_those_above_and_below() -> None:
    """Two paths overlap if one of them begins with the other."""
    assert overlap(("a",), ("a", 0))
    assert overlap((), ("a",))
    assert not overlap(("a", 1), ("a", 0))


def test_keys_with_dots_are_in_brackets() -> None:
    """Brackets keep the dots of a key."""
    assert pattern_steps("a.[b.c/d].*") == ("a", "b.c/d", "*")
