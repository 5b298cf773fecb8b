"""The weight of the compiler by room: lowered freely, raised only together with a reason."""

from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from code_lines import count_code_lines, room_sizes

BUDGET: Final[dict[str, dict[str, Any]]] = yaml.safe_load(Path(__file__).with_name("budget.yaml").read_text())
SIZES: Final = room_sizes()


def test_every_room_has_a_budget() -> None:
    """The budget lists the rooms that exist, and no other."""
    assert [*SIZES] == sorted(BUDGET)


@pytest.mark.parametrize("room", SIZES)
def test_a_room_keeps_its_budget(room: str) -> None:
    """Lines of code and modules do not exceed the budget: remove something, or raise it with a reason beside it."""
    budget = BUDGET[room]
    size = SIZES[room]
    assert size.lines <= budget["lines"], f"{room}: see tests/project/budget.yaml"
    assert size.modules <= budget["modules"], f"{room}: see tests/project/budget.yaml"


@pytest.mark.parametrize("room", SIZES)
def test_a_raised_budget_has_a_reason(room: str) -> None:
    """A budget above the planned lines of its room has a sentence why."""
    budget = BUDGET[room]
    assert budget["lines"] <= budget["planned"] or budget["because"]


def test_code_lines_are_neither_blank_nor_comments_nor_docstrings() -> None:
    """Only code counts, each line of a statement over several lines once."""
    code = '"""Docstring."""\n\n# Comment.\nx = (\n    1,  # one\n)\n"""Of x."""\ny = """\n\n"""\n'
    assert count_code_lines(code) == 6
