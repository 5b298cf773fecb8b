"""Comparison of the configs of two revisions."""

from typing import Any

import pytest

from tpucfg.changes.config_diff import config_difference
from tpucfg.changes.facts import Change, Scope
from tpucfg.changes.statements import change_sentence, format_keys, text_lines


def keys(*names: str) -> list[Scope]:
    """Return keys from texts such as `dev/v2-8`."""
    return [Scope(*name.split("/")) for name in names]


def difference_lines(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return the difference of two sets of configs as lines of text; keys are texts such as `dev/v2-8`."""
    configs = (
        {Scope(*name.split("/")): data for name, data in texts.items()} for texts in (before, after)
    )
    return list(text_lines(config_difference(*configs)))


def test_common_change_is_printed_once() -> None:
    """A change is printed once, below all configs that have it, which are sorted by size."""
    before = {
        f"{env}/{size}": {"image": "i:1", "args": [f"--s={size}"]}
        for env in ("a", "b")
        for size in ("v2-32", "v2-8")
    }
    after = {name: {**data, "image": "i:2"} for name, data in before.items()} | {
        "b/v2-8": {"image": "i:3", "args": []}
    }

    assert difference_lines(before, after) == [
        "every size of a; b: v2-32",
        "  image: i:1 → i:2",
        "b: v2-8",
        "  image: i:1 → i:3",
        "  removed --s: v2-8",
        "",
        "4 configs change",
    ]


def test_changes_that_differ_only_in_size_are_merged() -> None:
    """Paths that contain the size or environment of their config are one change with placeholders."""
    sizes = ("v2-8", "v2-32")
    keys = [(env, size) for env in ("dev", "prod") for size in sizes]
    before = {
        f"{env}/{size}": {"args": [f"--dir=gs://old-{env}/jobs/{size}"]} for env, size in keys
    }
    after = {f"{env}/{size}": {"args": [f"--dir=gs://new-{env}/jobs/{size}"]} for env, size in keys}
    dev_only = [
        {name: configs[name] for name in configs if name.startswith("dev")}
        for configs in (before, after)
    ]

    assert (
        difference_lines(before, after)[1]
        == "  --dir: gs://old-<env>/jobs/<size> → gs://new-<env>/jobs/<size>"
    )
    assert (
        difference_lines(*dev_only)[1]
        == "  --dir: gs://old-dev/jobs/<size> → gs://new-dev/jobs/<size>"
    )


def test_size_in_a_value_of_every_config_is_not_replaced() -> None:
    """A value that all configs have exactly is printed unchanged, even if it contains one of their sizes."""
    before = {f"dev/{size}": {"x": "a"} for size in ("v2-8", "v2-32")}
    after = {f"dev/{size}": {"x": "gs://b/v2-8"} for size in ("v2-8", "v2-32")}

    assert difference_lines(before, after)[1] == "  x: a → gs://b/v2-8"


def test_flag_of_two_command_lines_is_named_by_its_path() -> None:
    """If two command lines of one config have the same flag, the path distinguishes them."""
    before = {"dev/v2-8": {"a": {"args": ["--x=1"]}, "b": {"args": ["--x=2"]}}}
    after = {"dev/v2-8": {"a": {"args": ["--x=3"]}, "b": {"args": ["--x=4"]}}}

    assert difference_lines(before, after)[1:3] == ["  a.args.--x: 1 → 3", "  b.args.--x: 2 → 4"]


def test_added_and_removed_configs_are_listed() -> None:
    """Configs that only one revision has are listed and counted."""
    assert difference_lines(
        {"a/v2-8": {}, "a/v2-32": {}}, {"a/v2-32": {}, "a/v2-128": {}, "b/v2-8": {}}
    ) == [
        "added: a: v2-128; b: v2-8",
        "removed: a: v2-8",
        "",
        "2 configs are added, 1 is removed, 1 stays as it is",
    ]


def test_lists_of_configs_are_short() -> None:
    """Environments with the same sizes share an entry, and long lists are cut."""
    known = keys("a/v2-8", "a/v2-32", "b/v2-8", "b/v2-32", "c/v3-8")
    assert format_keys(keys("a/v2-8", "b/v2-8"), known) == "a, b: v2-8"
    assert format_keys(keys("a/v2-8", "a/v2-32"), known) == "every size of a"
    assert format_keys(known, known) == "every config"
    assert format_keys(keys("c/v3-8"), keys("c/v3-8")) == "c: v3-8"
    assert format_keys(keys(*(f"a/v2-{n}" for n in range(30))), known).endswith(" and 14 more")


def test_values_are_unambiguous() -> None:
    """A text that looks like a number, null or nothing is quoted; the value of a flag is not."""
    assert change_sentence(Change(("x",), 1, "1"), "x") == 'x: 1 → "1"'
    assert change_sentence(Change(("x",), None, ""), "x") == 'x: null → ""'
    assert change_sentence(Change(("args", "--x"), None, "1"), "--x") == "--x: given → 1"
    assert change_sentence(Change(("x",), "\x1b[2J", {"a": 1}), "x") == 'x: \\u001b[2J → {"a": 1}'


def test_many_equal_configs_are_one_group() -> None:
    """Sixty configs with two hundred flags each and the same changes form one group."""
    flags = [f"--flag_{number}={number}" for number in range(200)]
    before = {
        Scope(f"e{env}", f"v2-{size}"): {"args": flags} for env in range(3) for size in range(20)
    }
    after = {key: {"args": [*flags[:100], "--new=1", *flags[101:]]} for key in before}

    (group,) = config_difference(before, after).groups

    assert len(group.keys) == 60
    assert len(group.changes) == 2


def test_added_mapping_is_split_into_its_values() -> None:
    """Each value of an added mapping is a change, and configs share those that differ only in their own names."""
    after = {
        f"dev/{size}": {
            "x": 1,
            "node": {"spec": [{"id": f"run-{size}", "image": "r/i:1", "zones": ["a", "b"]}]},
        }
        for size in ("v2-8", "v2-32")
    }

    assert difference_lines({name: {"x": 1} for name in after}, after) == [
        "every config",
        "  added node.spec[0].id: run-<size>",
        "  added node.spec[0].image: r/i:1",
        '  added node.spec[0].zones: ["a", "b"]',
        "",
        "2 configs change",
    ]


def test_mapping_with_too_many_values_is_not_split() -> None:
    """An added mapping with a thousand values is one change."""
    after = {"dev/v2-8": {"node": {f"k{number}": number for number in range(1000)}}}

    assert len(difference_lines({"dev/v2-8": {}}, after)) == 4


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ({"x": 1}, {"x": 1.0}, "  x: 1 → 1.0"),
        ({"x": 0.0}, {"x": -0.0}, "  x: 0.0 → -0.0"),
        ({"s": "a\n"}, {"s": "a"}, '  s: "a\\n" → "a" (only spaces differ)'),
        ({"args": ["--a=1"]}, {"args": ["--a", "1"]}, '  order of args: ["--a"] → ["--a "]'),
    ],
)
def test_values_written_differently_are_a_change(before: Any, after: Any, line: str) -> None:
    """Configs that are written differently are never called equal."""
    assert difference_lines({"dev/v2-8": before}, {"dev/v2-8": after})[1] == line


def test_placeholder_in_a_value_is_not_another_config_s_name() -> None:
    """A value that contains `<env>` itself is not merged with one that contains the name of its environment."""
    before = {"dev/v2-8": {"x": "a"}, "prod/v2-8": {"x": "a"}}
    after = {"dev/v2-8": {"x": "b-<env>"}, "prod/v2-8": {"x": "b-prod"}}

    assert "  x: a → b-<env>" in difference_lines(before, after)
    assert "  x: a → b-prod" in difference_lines(before, after)
