"""The page of outcomes on GKE."""

import outcome_table
import pytest


def test_the_page_has_the_outcomes_that_the_tests_compare() -> None:
    """The tables of docs/targets/tested.md are what `python tools/outcome_table.py` writes."""
    assert [path.name for path, _ in outcome_table.differing()] == []


def test_a_page_that_differs_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --check nothing is written, and the exit status is 1."""
    monkeypatch.setattr(outcome_table, "page", lambda: "another table")
    assert outcome_table.main(["--check"]) == 1
    assert capsys.readouterr().out == "differs: docs/targets/tested.md\n"
