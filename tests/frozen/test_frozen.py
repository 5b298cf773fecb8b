"""The comparison with the frozen data: what counts as milder. `make frozen-test` compares all cases."""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from frozen.compare import RISKS, case_differences, overlaps
from frozen.freeze import read
from frozen.observe import Case

_REVIEW: Final[Case] = {
    "status": 3,
    "destructive": True,
    "known": True,
    "change": True,
    "configs": "3 files",
    "findings": ["note TPU041 tpucfg.yaml:7:3"],
    "environments": ["dev", "prod"],
    "statements": [
        ["none", "every config", "image changed"],
        ["access", "dev", "the bucket is public"],
    ],
    "block": ["dev"],
}
"""A frozen review."""


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({}, ""),
        ({"statements": [["none", "", "x"], ["unknown", "dev, prod", "y"]]}, ""),
        (
            {"statements": [["none", "", "x"], ["caution", "dev", "y"]]},
            "access for dev, now at most caution: the bucket",
        ),
        (
            {"statements": [["none", "", "x"], ["access", "prod", "y"]]},
            "access for dev, now at most none: the bucket",
        ),
        ({"statements": [["access", "dev: v2-8", "x"]]}, ""),
        ({"statements": []}, "none for every config, now nothing: image changed"),
        ({"block": ["prod"]}, "no caution above the folds for dev"),
        ({"block": ["every config"]}, ""),
        ({"status": 0}, "status under --fail-on destructive: 3 → 0"),
        ({"destructive": False}, "verdict destructive: True → False"),
        ({"known": False}, "verdict known: True → False"),
        ({"findings": []}, "finding gone: note TPU041 tpucfg.yaml:7:3"),
        (
            {"findings": ["note TPU041 tpucfg.yaml:7:3"] * 2},
            "finding new: note TPU041 tpucfg.yaml:7:3",
        ),
        ({"configs": "2 files"}, "configs: 3 files → 2 files"),
    ],
)
def test_a_milder_review_is_a_difference(change: Mapping[str, Any], sentence: str) -> None:
    """Lower risks, other scopes, milder verdicts, other findings and configs are differences, stricter ones are not."""
    sentences = [*case_differences(_REVIEW, {**_REVIEW, **change})]
    assert bool(sentences) == bool(sentence)
    assert not sentence or sentences[0].startswith(sentence)


def test_a_refused_review_is_a_difference() -> None:
    """A command that prints no report differs from one that did."""
    refused = {
        "status": 2,
        "configs": "3 files",
        "findings": _REVIEW["findings"],
        "refusal": "no such option",
    }
    assert [*case_differences(_REVIEW, refused)] == ["review refused: no such option"]


@pytest.mark.parametrize(
    ("scope", "other", "expected"),
    [
        ("dev", "dev, prod", True),
        ("dev", "prod", False),
        ("dev", "", True),
        ("every config", "dev: v2-8", True),
        ("dev: v2-8", "dev: v2-32", False),
        ("dev: v2-8, v2-32", "v2-32", True),
        ("dev-2", "dev", False),
    ],
)
def test_scopes_overlap(scope: str, other: str, *, expected: bool) -> None:
    """Scopes overlap if they have an environment and a size in common, and one without names has all of them."""
    assert overlaps(scope, other, {"dev", "dev-2", "prod"}) is expected


def test_frozen_statements_have_known_risks() -> None:
    """The risks in the frozen data are those that are compared."""
    cases = [case for group in ("review", "attacks") for case in read(group).values()]
    assert {risk for case in cases for risk, _, _ in case.get("statements", ())} == {*RISKS} - {
        "public"
    }
