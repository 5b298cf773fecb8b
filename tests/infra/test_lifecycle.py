"""Lifecycle rules: which of two reaches more, and whether one reaches the jobs."""

from typing import Any

import pytest

from tpucfg.infra.resource_rules import LifecycleRule, covers, lifecycle_rules


def rule(
    action: str = "Delete", storage_class: str | None = None, **conditions: Any
) -> LifecycleRule:
    """Return a rule of a bucket."""
    declared = {"action": {"type": action, "storageClass": storage_class}, "condition": conditions}
    rules = lifecycle_rules({"lifecycleRules": [declared]})
    assert rules
    return rules[0]


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ({"age": 3}, {"age": 4}),
        ({"age": 3}, {"age": "3"}),
        ({"age": 0}, {"age": 1}),
        ({"age": 3}, {"age": 3, "matchesPrefixes": ["tmp/"]}),
        ({"age": 1}, {"age": 1, "withState": "ARCHIVED"}),
        ({}, {"createdBefore": "2026-01-01"}),
    ],
)
def test_wider_rule_covers_a_narrower_one(wide: dict[str, Any], narrow: dict[str, Any]) -> None:
    """A rule covers another that does the same to fewer objects or later; the reverse is only true of equal rules."""
    assert covers(rule(**wide), rule(**narrow))
    assert covers(rule(**narrow), rule(**wide)) == (rule(**narrow) == rule(**wide))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (rule(age=1), rule("SetStorageClass", "ARCHIVE", age=1)),
        (rule("SetStorageClass", "NEARLINE"), rule("SetStorageClass", "ARCHIVE")),
        (rule(age=1), rule(createdBefore="2026-01-01")),
        (rule(matchesPrefixes=["a"]), rule(matchesSuffixes=["a"])),
        (rule(withState="LIVE"), rule(withState="ARCHIVED")),
        (rule(createdBefore="2026-01-01"), rule(createdBefore=3)),
    ],
)
def test_other_rules_do_not_cover_each_other(one: LifecycleRule, other: LifecycleRule) -> None:
    """Rules with other actions or conditions reach objects that the other does not."""
    assert not covers(one, other)
    assert not covers(other, one)


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        (rule(age=3), "Delete: every object, age 3"),
        (rule(age=0), "Delete: every object"),
        (rule(age=1, matchesPrefixes=["tmp/", "x/"]), "Delete: age 1, matchesPrefixes tmp/, x/"),
        (rule(matchesSuffixes=[".ckpt"]), "Delete: matchesSuffixes .ckpt"),
        (
            rule("SetStorageClass", "ARCHIVE", age="9"),
            "SetStorageClass ARCHIVE: every object, age 9",
        ),
        (
            rule(matchesPrefixes=[f"a{n}" for n in range(9)], tomorrow=2),
            "Delete: matchesPrefixes a0, a1, a2, a3, a4, a5, a6, a7 and 1 more, tomorrow 2",
        ),
    ],
)
def test_rule_is_shown_in_the_words_of_google(declared: LifecycleRule, expected: str) -> None:
    """Action and conditions are named, known or not; those that restrict nothing are left out."""
    assert declared.text == expected


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({"age": 1}, True),
        ({"matchesSuffixes": ["x"]}, True),
        ({"matchesPrefixes": ["tmp/", "jobs/"]}, True),
        ({"matchesPrefixes": ["j"]}, True),
        ({"matchesPrefixes": ["tmp/", ""]}, True),
        ({"matchesPrefixes": ["tmp/"]}, False),
        ({"daysSinceNoncurrentTime": 3}, False),
        ({"daysSinceNoncurrentTime": 0}, True),
    ],
)
def test_rules_that_delete_the_jobs(conditions: dict[str, Any], expected: bool) -> None:
    """A rule that deletes reaches the jobs unless its prefixes or versions exclude their folders."""
    assert rule(**conditions).deletes_jobs is expected


@pytest.mark.parametrize(
    "rules", ["[secret]", ["[secret]"], [{"action": "x"}], [{"action": {}, "condition": "x"}], {}]
)
def test_rules_that_cannot_be_read_are_not_known(rules: Any) -> None:
    """Values that are hidden or malformed are not the same as no rules."""
    assert lifecycle_rules({"lifecycleRules": rules}) is None
    assert lifecycle_rules({}) == ()
