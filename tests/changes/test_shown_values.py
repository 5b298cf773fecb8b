"""Pairs of values that differ, as they are shown."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpucfg.changes.facts import Change, redact_change
from tpucfg.changes.statements import change_sentence, show_change, show_texts


@given(st.text(max_size=40), st.text(max_size=40), st.integers(3, 30))
def test_texts_that_differ_are_shown_differently(prefix: str, suffix: str, max_length: int) -> None:
    """Two texts that differ are never shown as the same text without a note."""
    before, after = f"{prefix}a{suffix}", f"{prefix}b{suffix}"
    shown = show_texts(before, after, max_length)

    assert shown.before != shown.after or shown.note
    assert before.isprintable() is False or len(shown.before) <= max(max_length, len(before))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("a", "b", ("a", "b", "")),
        ("a b", "a  b", ('"a b"', '"a  b"', "only spaces differ")),
        ("a", "a\n", ('"a"', '"a\\n"', "only spaces differ")),
        (
            "caf\u00e9",
            "cafe\u0301",
            ("caf\\u00e9", "cafe\\u0301", "characters that look alike differ"),
        ),
        ("admin", "\u0430dmin", ("admin", "\\u0430dmin", "characters that look alike differ")),
        ("\u6771\u4eac", "\u5927\u962a", ("\u6771\u4eac", "\u5927\u962a", "")),
        (
            "x" * 99 + "a",
            "x" * 99 + "b",
            (f"…{'x' * 20}a", f"…{'x' * 20}b", "they differ from character 100 on"),
        ),
        ("a" + "x" * 99, "b" + "x" * 99, ("a" + "x" * 48 + "…", "b" + "x" * 48 + "…", "")),
        ("", "a", ("", "a", "")),
    ],
)
def test_difference_can_be_seen(before: str, after: str, expected: tuple[str, str, str]) -> None:
    """Long texts begin near their first difference; texts that look alike are escaped or quoted."""
    assert show_texts(before, after, 50) == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (1, "1", ("1", '"1"')),
        (1, True, ("1", "true")),
        (1, 1.0, ("1", "1.0")),
        (0.0, -0.0, ("0.0", "-0.0")),
        (None, "null", ("null", '"null"')),
        ([], {}, ("[]", "{}")),
        ("", None, ('""', "null")),
    ],
)
def test_types_are_told_apart(before: Any, after: Any, expected: tuple[str, str]) -> None:
    """Values of different types are shown differently."""
    assert show_change(Change((), before, after), max_length=50)[:2] == expected


def test_bare_flag_differs_from_its_word() -> None:
    """A bare flag is shown as `given`, and the value `given` in quotes."""
    assert change_sentence(Change(("--x",), None, "given"), "--x") == '--x: given → "given"'


def test_values_that_redaction_makes_equal_are_marked() -> None:
    """Another person or another secret is reported as such, without showing either."""
    people = redact_change(Change(("owner",), "user:jane@example.com", "user:john@example.com"))
    secrets = redact_change(Change(("api_key",), "hunter2", "hunter3"))
    lists = redact_change(Change(("members",), ["jane@example.com"], ["john@example.com"]))

    assert people.after == "user:[redacted]@example.com (another person)"
    assert secrets.after == "[secret] (another value)"
    assert lists.after == '["[redacted]@example.com"] (another person)'
