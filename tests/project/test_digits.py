"""Digits are 0 to 9: methods such as `str.isdigit()` also accept the digits of sixty other scripts."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from spec_factory import ROOT
from tpucfg.catalog import Catalog
from tpucfg.number_format import format_figure
from tpucfg.yamldoc.reader import read_text

PYTHON = sorted(path for folder in ("compiler", "stacks") for path in (ROOT / folder).rglob("*.py"))
METHODS = {"isdigit", "isdecimal", "isnumeric"}
NO_USER_TEXT = {"changed_files.py", "objects.py", "supervisor.py"}
"""Modules that test what git and the kernel print."""


def unicode_digits(path: Path) -> Iterator[int]:
    """Yield the lines that accept the digits of other scripts."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    lines = path.read_text(encoding="utf-8").splitlines()
    for node in ast.walk(tree):
        is_method = isinstance(node, ast.Attribute) and node.attr in METHODS
        is_pattern = (
            isinstance(node, ast.Constant) and isinstance(node.value, str) and "\\d" in node.value
        )
        if isinstance(node, ast.expr) and (is_method or is_pattern):
            line = lines[node.lineno - 1]
            if "isascii()" not in line and "re.ASCII" not in line:
                yield node.lineno


@pytest.mark.slow
def test_only_ascii_digits_are_accepted() -> None:
    """No module tests a text with a method or a pattern that accepts the digits of other scripts."""
    wrong = [
        (path, line)
        for path in PYTHON
        if path.name not in NO_USER_TEXT
        for line in unicode_digits(path)
    ]
    assert [f"{path.relative_to(ROOT)}:{line}" for path, line in wrong] == []


@pytest.mark.parametrize("digits", ["１２", "١٢", "१२", "𝟏𝟐"])
def test_other_digits_are_text(digits: str) -> None:
    """A number in the digits of another script is a text, of a spec and of a size."""
    assert read_text(f"a: {digits}\n", "x").data == {"a": digits}
    assert format_figure(digits) == digits
    assert Catalog().find(f"v3-{digits}") is None
