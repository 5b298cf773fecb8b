"""The weight of the compiler by room: lowered freely, raised only together with a reason."""

from pathlib import Path
from typing import Any, Final

import yaml
from code_lines import count_code_lines, room_sizes

BUDGET: Final[dict[str, dict[str, Any]]] = yaml.safe_load(
    Path(__file__).with_name("budget.yaml").read_text()
)


def test_every_room_keeps_its_budget() -> None:
    """Lines of code and modules of each room do not exceed the budget: remove something, or raise it with a reason."""
    sizes = room_sizes()
    assert [*sizes] == sorted(BUDGET)
    exceeded = {
        room: (*size, "budget", BUDGET[room]["lines"], BUDGET[room]["modules"])
        for room, size in sizes.items()
        if size.lines > BUDGET[room]["lines"] or size.modules > BUDGET[room]["modules"]
    }
    assert exceeded == {}, "see tests/project/budget.yaml"


def test_a_raised_budget_has_a_reason() -> None:
    """A budget above the planned lines of its room has a sentence why."""
    assert [
        room for room, row in BUDGET.items() if row["lines"] > row["planned"] and not row["because"]
    ] == []


def test_code_lines_are_neither_blank_nor_comments_nor_docstrings() -> None:
    """Only code counts, each line of a statement over several lines once."""
    code = '"""Docstring."""\n\n# Comment.\nx = (\n    1,  # one\n)\n"""Of x."""\ny = """\n\n"""\n'
    assert count_code_lines(code) == 6
