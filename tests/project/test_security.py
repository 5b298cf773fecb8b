"""The table of attacks in SECURITY.md names tests that exist."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def rows() -> list[list[str]]:
    """Return the cells of each row that has tests."""
    table = (ROOT / "SECURITY.md").read_text().partition("<!-- attacks:")[2].split("\n\n")[1]
    cells = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    return [row for row in cells if len(row) == 3]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][:40])
def test_attack_names_its_tests(row: list[str]) -> None:
    """Each row names a protection and at least one test, and each test exists."""
    names = re.findall(r"`([^`]+)`", row[2])
    assert row[1]
    assert names
    for name in names:
        path, is_test, function = name.partition("::")
        if is_test:
            assert f"def {function}(" in (ROOT / "tests" / path).read_text(), name
        else:
            subject, _, identity = name.partition("/")
            attacks = importlib.import_module(f"attacks.{subject}").ATTACKS
            assert identity in {attack.id for attack in attacks}, name


def test_table_is_not_empty() -> None:
    """The table is found."""
    assert len(rows()) > 20
