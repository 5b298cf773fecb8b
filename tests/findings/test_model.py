"""Findings as values: their levels, and the order in which they are said."""

import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tpucfg.findings import RULES, Finding, Location, collect, errors

IDS = st.sampled_from(sorted(RULES))
PLACES = st.builds(Location, st.sampled_from(["a", "b"]), *[st.integers(1, 3)] * 4)
FINDINGS = st.lists(
    st.builds(Finding, IDS, st.sampled_from(["error", "warning", "note"]), st.sampled_from("xyz"), PLACES), max_size=8
)


def test_the_level_is_the_rules_own_unless_the_case_has_another() -> None:
    """A warning of a rule that is usually an error says so itself."""
    assert Finding.of("TPU021", "x", Location("a")).level == "error"
    assert Finding.of("TPU042", "x", Location("a")).level == "warning"
    assert Finding.of("TPU021", "x", Location("a"), level="warning").level == "warning"


def test_what_is_allowed_is_a_note_with_the_reason() -> None:
    """It keeps its sentence and its facts, and no longer says what to do."""
    allowed = Finding.of("TPU021", "x", Location("a"), help="move", details=("a list",)).allowed("quota granted")
    assert (allowed.level, allowed.message, allowed.help) == ("note", "x", "")
    assert allowed.details == ("a list", "allowed by the spec: quota granted")


@given(FINDINGS, st.randoms(use_true_random=False))
def test_the_order_of_findings_is_that_of_their_places(findings: list[Finding], shuffle: random.Random) -> None:
    """Whatever order they were found in, they are said in one, each once: by place, the graver first."""
    shuffled = [*findings, *findings]
    shuffle.shuffle(shuffled)
    said = collect(shuffled)
    assert said == collect(findings)
    assert set(said) == set(findings)
    assert len(set(said)) == len(said)
    assert [it.location for it in said] == sorted(it.location for it in said)
    gravity = {"error": 0, "warning": 1, "note": 2}
    for before, after in pairwise(said):
        assert (before.location, gravity[before.level]) <= (after.location, gravity[after.level])


@given(FINDINGS)
def test_errors_are_those_of_level_error(findings: list[Finding]) -> None:
    """Nothing else stops a command."""
    assert errors(findings) == tuple(finding for finding in findings if finding.level == "error")


def test_rules_are_in_the_order_of_their_ids() -> None:
    """An id is never given twice, and a title says what is wrong in a few words."""
    assert list(RULES) == sorted(RULES)
    assert all(rule.id == id_ and len(rule.title) < 60 and not rule.title.endswith(".") for id_, rule in RULES.items())
    assert not [rule for rule in RULES.values() if rule.allowable and "TPU010" <= rule.id <= "TPU011"]
