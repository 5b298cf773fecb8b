"""Findings are values with a level and an order."""

import random
from itertools import pairwise
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from tpucfg.findings import RULES, Allowance, Finding, Level, Location, collect, errors

IDS = st.sampled_from(sorted(RULES))
LOCATIONS = st.tuples(st.sampled_from(["a", "b"]), *[st.integers(1, 3)] * 4).map(
    lambda place: Location(*place)
)
FINDINGS = st.lists(
    st.tuples(IDS, st.sampled_from(get_args(Level)), st.sampled_from("xyz"), LOCATIONS).map(
        lambda parts: Finding(*parts)
    ),
    max_size=8,
)


def test_the_level_is_the_rules_own_unless_given() -> None:
    """A finding has its rule's level, unless it is made with another one."""
    assert Finding.of("TPU021", "x", Location("a")).level == "error"
    assert Finding.of("TPU042", "x", Location("a")).level == "warning"
    assert Finding.of("TPU021", "x", Location("a"), level="warning").level == "warning"


def test_an_allowed_finding_is_a_note_with_the_reason() -> None:
    """An allowed finding keeps its message and details, and has no help."""
    allowed = Finding.of("TPU021", "x", Location("a"), help="move", details=("a list",)).allowed_by(
        {"TPU021": Allowance("quota granted")}
    )
    assert (allowed.level, allowed.message, allowed.help) == ("note", "x", "")
    assert allowed.details == ("a list", "allowed by the spec: quota granted")


def test_an_allowance_may_be_for_some_places() -> None:
    """A finding outside the places keeps its level."""
    allow = {"TPU021": Allowance("quota granted", (Location("a", 2, 3, 4, 9),))}
    inside, outside = Location("a", 3, 1, 3, 5), Location("a", 4, 1, 4, 10)
    assert Finding.of("TPU021", "x", inside).allowed_by(allow).level == "note"
    assert Finding.of("TPU021", "x", outside).allowed_by(allow).level == "error"
    assert Finding.of("TPU021", "x", inside._replace(file="b")).allowed_by(allow).level == "error"


@given(FINDINGS, st.randoms(use_true_random=False))
def test_findings_are_sorted_by_location_and_severity(
    findings: list[Finding], shuffle: random.Random
) -> None:
    """collect() gives one order, without duplicates, for findings in any order."""
    shuffled = [*findings, *findings]
    shuffle.shuffle(shuffled)
    collected = collect(shuffled)
    assert collected == collect(findings)
    assert set(collected) == set(findings)
    assert len(set(collected)) == len(collected)
    assert [finding.location for finding in collected] == sorted(
        finding.location for finding in collected
    )
    severity = {"error": 0, "warning": 1, "note": 2}
    for before, after in pairwise(collected):
        assert (before.location, severity[before.level]) <= (after.location, severity[after.level])


@given(FINDINGS)
def test_errors_are_those_of_level_error(findings: list[Finding]) -> None:
    """errors() returns neither warnings nor notes."""
    assert errors(findings) == tuple(finding for finding in findings if finding.level == "error")


def test_rules_are_in_the_order_of_their_ids() -> None:
    """Ids are unique and sorted, titles are short, and syntax errors are not allowable."""
    assert list(RULES) == sorted(RULES)
    assert all(
        rule.id == id_ and len(rule.title) < 60 and not rule.title.endswith(".")
        for id_, rule in RULES.items()
    )
    assert not [
        rule for rule in RULES.values() if rule.allowable and "TPU010" <= rule.id <= "TPU011"
    ]
