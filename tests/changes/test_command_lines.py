"""Parsing of command lines into mappings."""

from typing import Any

import pytest

from tpucfg.changes.facts import ABSENT, Change
from tpucfg.changes.tree_diff import parse_command_lines, value_changes

SCRIPT = """#!/bin/bash
docker create --name trainer \\
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
def test_each_flag_has_its_value(words: list[str], expected: dict[str, Any]) -> None:
    """Each flag has its value: none, one, or a list for a repeated flag. Other words keep their order."""
    assert parse_command_lines({"any": words}) == {"any": expected}


def test_other_lists_are_not_changed() -> None:
    """A list without flags stays a list, unless its key is that of a command line that has no flags yet."""
    assert parse_command_lines({"scope": ["a"], "args": [], "ports": [1]}) == {
        "scope": ["a"],
        "args": {},
        "ports": [1],
    }


def test_flags_of_a_script_are_compared_by_name() -> None:
    """A flag on its own line is compared by name, and every other line as a line."""
    before = {"script": SCRIPT % (1, 10, "")}
    after = {"script": (SCRIPT % (2, 20, " \\\n  --more=1")).replace("image:1", "image:2")}

    changes = list(value_changes(parse_command_lines(before), parse_command_lines(after)))

    assert Change(("script", "--steps"), "10", "20") in changes
    assert Change(("script", "--more"), ABSENT, "1") in changes
    assert Change(("script", "--env.A"), "1", "2") in changes
    assert [(change.before, change.after) for change in changes if change.path[1] == ""] == [
        ("  image:1 \\", "  image:2 \\")
    ]
    assert len(changes) == 4


def test_variables_are_compared_by_name() -> None:
    """The variables of a container become a mapping; a list of other objects with names stays a list."""
    assert parse_command_lines(
        {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}
    ) == {"env": {"A": "1", "B": "2"}}
    twice = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    others = [{"name": "A", "value": "1", "x": 0}]
    assert parse_command_lines([twice, others, []]) == [twice, others, []]


def test_line_with_an_unclosed_quote_stays_a_line() -> None:
    """A line that is no complete shell word is compared as text."""
    assert parse_command_lines("x\n  '--a=1\n") == {"": ["x", "  '--a=1"]}


def changes_between(before: str, after: str) -> list[tuple[Any, Any]]:
    """Return the values of all changes between two scripts or command lines."""
    parsed = (parse_command_lines({"args": text}) for text in (before, after))
    return [(change.before, change.after) for change in value_changes(*parsed)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("'--title=a b' \\\n", "'--title=a b'\n"),
        ("'--title=a b' \\\n", "'--title=a b' \\\n\n"),
        ("  image:1 \\\n", "  image:1\n"),
        ("'--title=a b'", '--title="a $(id)"'),
        ("--env 'A=1'", '--env "A=1"\''),
        ("  --steps=10 \\", "\u00a0 --steps=10 \\"),
        ("--steps=10 \\", "--steps=10\r \\"),
        ("  --steps=10 \\\n  '--title=a b' \\\n", "  '--title=a b' \\\n  --steps=10 \\\n"),
    ],
)
def test_layout_with_a_meaning_is_a_change(old: str, new: str) -> None:
    """Backslashes, quotes that expand, other spaces and the order of flags change what bash runs."""
    script = SCRIPT % (1, 10, "")
    assert old in script
    assert changes_between(script, script.replace(old, new))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["--a=1", "--b=2"], ["--b=2", "--a=1"]),
        (["--a=1"], ["--a", "1"]),
        (["--", "--a=1"], ["--a=1", "--"]),
        (
            [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
            [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}],
        ),
        ([{"name": "A", "value": "1"}], {"A": "1"}),
    ],
)
def test_order_and_form_are_a_change(before: Any, after: Any) -> None:
    """Items in another order, or written in another way, are one change."""
    assert len(changes_between(before, after)) == 1


def test_variable_from_a_secret_has_a_name() -> None:
    """A variable whose value comes from elsewhere is compared by name too."""
    reference = {"secretKeyRef": {"name": "wandb", "key": "1"}}
    items = [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": reference}]

    assert parse_command_lines({"env": items}) == {"env": {"A": "1", "B": {"valueFrom": reference}}}
