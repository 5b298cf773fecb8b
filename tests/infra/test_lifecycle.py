"""Lifecycle rules: which of two reaches more, and the objects that one reaches."""

from typing import Any

import pytest

from tpucfg.infra.resource_rules import LifecycleRule, covers, describe_reach, lifecycle_rules


def rule(action: str = "Delete", storage_class: str | None = None, **conditions: Any) -> LifecycleRule:
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
        ({"matchesPrefixes": ["a", ""]}, {"matchesPrefixes": ["b"]}),
        ({"age": 1, "withState": "ANY"}, {"age": 1, "withState": "ARCHIVED"}),
        ({}, {"isLive": True}),
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
    ("conditions", "expected"),
    [
        ({"age": 3}, "all objects 3 days after their creation"),
        ({"age": 0}, "all objects at once"),
        ({"matchesPrefixes": ["a/", ""]}, "all objects at once"),
        ({"matchesPrefixes": ["tmp/", "x/"], "age": 1}, "objects below tmp/, x/ 1 days after their creation"),
        ({"matchesSuffixes": [".ckpt"]}, "objects ending in .ckpt at once"),
        ({"createdBefore": "2026-01-01"}, "all objects created before 2026-01-01"),
        ({"numNewerVersions": 2}, "noncurrent versions of all objects that have 2 newer versions"),
        ({"withState": "ARCHIVED", "age": 9}, "noncurrent versions of all objects 9 days after their creation"),
        (
            {"matchesStorageClasses": ["STANDARD"], "age": 1},
            "all objects of class STANDARD 1 days after their creation",
        ),
        (
            {"matchesPrefixes": [*(f"a{number}" for number in range(9)), "jobs"]},
            "objects below jobs, a0, a1, a2, a3 and 5 more at once",
        ),
    ],
)
def test_reach_names_objects_and_time(conditions: dict[str, Any], expected: str) -> None:
    """Conditions that restrict nothing are left out, and prefixes that reach the jobs come first."""
    template, values = describe_reach(rule(**conditions))
    assert template.format(*values) == expected


def test_prefixes_that_were_not_reached_before_come_first() -> None:
    """A list that is cut shows the new prefixes."""
    _, values = describe_reach(rule(matchesPrefixes=["a", "b", "c", "d", "e", "f"]), known=["a", "b", "c"])
    assert values == ("d, e, f, a, b and 1 more",)


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({"age": 1}, True),
        ({"matchesSuffixes": ["x"]}, True),
        ({"matchesPrefixes": ["tmp/", "jobs/"]}, True),
        ({"matchesPrefixes": ["j"]}, True),
        ({"matchesPrefixes": ["tmp/"]}, False),
        ({"daysSinceNoncurrentTime": 3}, False),
        ({"daysSinceNoncurrentTime": 0}, True),
    ],
)
def test_rules_that_reach_the_jobs(conditions: dict[str, Any], expected: bool) -> None:
    """A rule reaches the jobs unless its prefixes or versions exclude their folders."""
    assert rule(**conditions).reaches_jobs is expected


@pytest.mark.parametrize("rules", ["[secret]", ["[secret]"], [{"action": "x"}], [{"action": {}, "condition": "x"}], {}])
def test_rules_that_cannot_be_read_are_not_known(rules: Any) -> None:
    """Values that are hidden or malformed are not the same as no rules."""
    assert lifecycle_rules({"lifecycleRules": rules}) is None
    assert lifecycle_rules({}) == ()
