"""Command lines as mappings."""

from typing import Any

import pytest

from tpucfg.diff.change import ABSENT, Change
from tpucfg.diff.command_lines import parse_command_lines
from tpucfg.diff.tree_diff import value_changes

SCRIPT = """#!/bin/bash
docker run --detach --name trainer \\
  --env 'A=%s' \\
  image:1 \\
  --steps=%s \\
  '--title=a b' \\
  --fast%s
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--a=1", "--b=x=y", "--c"], {"--a": "1", "--b": "x=y", "--c": None}),
        (["--a", "1", "--b", "--c", "2"], {"--a": "1", "--b": None, "--c": "2"}),
        (["--a=1", "--a=2"], {"--a": ["1", "2"]}),
        (["train", "--a=1", "--", "more"], {"--a": "1", "": ["train", "--", "more"]}),
        (["--a="], {"--a": ""}),
    ],
)
def test_words_by_flag(words: list[str], expected: dict[str, Any]) -> None:
    """Each flag has its value, a bare one none, a repeated one all, and what is no flag keeps its order."""
    assert parse_command_lines({"any": words}) == {"any": expected}


def test_lists_that_are_no_command_lines_stay() -> None:
    """Without a flag a list is a list, but under `args`, where the first flag may be still to come."""
    assert parse_command_lines({"scope": ["a"], "args": [], "ports": [1]}) == {"scope": ["a"], "args": {}, "ports": [1]}


def test_script_shows_flags_by_name() -> None:
    """In a script a flag that stands on a line of its own is compared by name, and any other line as a line."""
    before = {"script": SCRIPT % (1, 10, "")}
    after = {"script": (SCRIPT % (2, 20, " \\\n  --more=1")).replace("image:1", "image:2")}

    found = list(value_changes(parse_command_lines(before), parse_command_lines(after)))

    assert Change(("script", "--steps"), "10", "20") in found
    assert Change(("script", "--more"), ABSENT, "1") in found
    assert Change(("script", "--env.A"), "1", "2") in found
    assert [(it.before, it.after) for it in found if it.path[1] == ""] == [("  image:1 \\", "  image:2 \\")]
    assert len(found) == 4


def test_variables_by_name() -> None:
    """A container's variables are compared by name; a list of other things with names stays a list."""
    assert parse_command_lines({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}) == {
        "env": {"A": "1", "B": "2"}
    }
    twice = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    others = [{"name": "A", "value": "1", "x": 0}]
    assert parse_command_lines([twice, others, []]) == [twice, others, []]


def test_unclosed_quote_is_a_line() -> None:
    """A line that the shell could not read by itself is compared as it stands."""
    assert parse_command_lines("x\n  '--a=1\n") == {"": ["x", "  '--a=1"]}
