"""The comparison of facts, and the table that gives a changed fact its meaning."""

from copy import deepcopy
from typing import Any

import pytest

from tpucfg.changes.facts import (
    ABSENT,
    Comparison,
    Fact,
    Meaning,
    Risk,
    Scope,
    added,
    by_name,
    compare,
    json_equal,
    judge,
)
from tpucfg.changes.impact import effect_of, effect_statements

_DEV = Scope("dev", "v2-8")
_TABLE = (
    Meaning("argument.--evil", Risk.ACCESS, "it opens {}", lambda *_: ("a door",), "a door opened"),
    Meaning("argument.*"),
    Meaning(
        "input.acl", Risk.CAUTION, when=added, subject="list", sentence="a list appears: {after}"
    ),
)


def _facts(*values: tuple[tuple[str, ...], Any]) -> list[Fact]:
    return [Fact(_DEV, name, value) for name, value in values]


@pytest.mark.parametrize(
    ("before", "after", "count"), [(1, 1.0, 0), (1, True, 1), (None, ABSENT, 1), ("a", "a", 0)]
)
def test_values_are_compared_as_in_json(before: Any, after: Any, count: int) -> None:
    """True is no number, and null is a value."""
    old, new = (
        [] if value is ABSENT else _facts((("field", "a"), value)) for value in (before, after)
    )
    assert len(compare(by_name(old), by_name(new))) == count


def _statements(before: list[Fact], after: list[Fact]) -> list[tuple[str, Risk, str]]:
    comparison = Comparison(by_name(before), by_name(after))
    effects = [
        (change.scope, effect_of(change, *judge(change, _TABLE, comparison)))
        for change in compare(comparison.before, comparison.after)
    ]
    located = effect_statements(effects, lambda scopes: ", ".join(scope.size for scope in scopes))
    return [(item.plain, item.statement.risk, item.statement.headline) for item in located]


def test_the_first_row_that_applies_decides() -> None:
    """A row has a consequence or a whole sentence, and a change without a row is a caution."""
    before = _facts((("argument", "--a"), "1"), (("argument", "--b"), "1"))
    after = _facts(
        (("argument", "--a"), "2"),
        (("argument", "--evil"), None),
        (("input", "acl"), "x"),
        (("input", "b"), 1),
    )
    assert _statements(before, after) == [
        ("v2-8: argument --evil added: it opens a door", Risk.ACCESS, "a door opened"),
        ("v2-8: a list appears: x", Risk.CAUTION, ""),
        ("v2-8: input b added (1): no rule knows its effect", Risk.CAUTION, ""),
        ("v2-8: arguments --a changed from 1 to 2, --b removed (was 1)", Risk.NONE, ""),
    ]


@pytest.mark.parametrize(
    ("value", "other"),
    [([1], [True]), ({"a": [0]}, {"a": [False]}), ([{"a": 1}], [{"a": True}]), ([1], [1, 1])],
)
def test_a_number_is_no_truth_value_within_a_container(value: Any, other: Any) -> None:
    """Values are compared as JSON at every depth, where 1 equals 1.0 and not true."""
    assert not json_equal(value, other)
    assert json_equal(value, deepcopy(value))
    assert json_equal([{"a": 1}], [{"a": 1.0}])
