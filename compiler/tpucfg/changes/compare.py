"""The comparison of the facts of two revisions."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tpucfg.changes.facts import ABSENT, Fact, Scope
from tpucfg.changes.tree_diff import json_equal
from tpucfg.paths import KeyPath


class FactChange(NamedTuple):
    """A fact that differs between two revisions."""

    scope: Scope
    name: KeyPath
    before: Any
    """The value in the base, or ABSENT."""
    after: Any
    """The value in the head, or ABSENT."""
    layer: str = ""
    """The layer of the spec that sets the value; of a fact that is gone, the one that did."""


Facts = Mapping[tuple[Scope, KeyPath], Fact]
"""The facts of a revision by scope and name."""


def by_name(facts: Iterable[Fact]) -> Facts:
    """Return facts by scope and name."""
    return {(fact.scope, fact.name): fact for fact in facts}


def compare(before: Facts, after: Facts) -> tuple[FactChange, ...]:
    """Return the facts that differ, in their order in the head; those that only the base has follow."""
    return tuple(
        FactChange(
            *key,
            ABSENT if old is None else old.value,
            ABSENT if new is None else new.value,
            (new or old or Fact(*key, None)).layer,
        )
        for key in {**after, **before}
        for old, new in ((before.get(key), after.get(key)),)
        if old is None or new is None or not json_equal(old.value, new.value)
    )
