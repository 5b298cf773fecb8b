"""Configs of two sides compared."""

from typing import Any

from tpucfg.diff.change import Change, ConfigKey
from tpucfg.diff.config_diff import config_difference
from tpucfg.diff.describe import change_sentence, format_keys, text_lines


def keys(*names: str) -> list[ConfigKey]:
    """`dev/v2-8` as keys."""
    return [ConfigKey(*name.split("/")) for name in names]


def printed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The difference as text."""
    sides = ({ConfigKey(*name.split("/")): data for name, data in side.items()} for side in (before, after))
    return list(text_lines(config_difference(*sides)))


def test_same_change_is_told_once() -> None:
    """Configs that change in the same way stand above the change, by size from small to large."""
    before = {
        f"{env}/{size}": {"image": "i:1", "args": [f"--s={size}"]} for env in ("a", "b") for size in ("v2-32", "v2-8")
    }
    after = {name: {**data, "image": "i:2"} for name, data in before.items()} | {"b/v2-8": {"image": "i:3", "args": []}}

    assert printed(before, after) == [
        "every size of a; b: v2-32",
        "  image: i:1 → i:2",
        "b: v2-8",
        "  image: i:1 → i:3",
        "  removed --s: v2-8",
        "",
        "4 configs change",
    ]


def test_changes_that_differ_in_the_size_alone_are_one() -> None:
    """A folder that has the size or the environment in its name is one change, with marks in their places."""
    sizes = ("v2-8", "v2-32")
    keys = [(env, size) for env in ("dev", "prod") for size in sizes]
    before = {f"{env}/{size}": {"args": [f"--dir=gs://old-{env}/jobs/{size}"]} for env, size in keys}
    after = {f"{env}/{size}": {"args": [f"--dir=gs://new-{env}/jobs/{size}"]} for env, size in keys}
    only = [{name: side[name] for name in side if name.startswith("dev")} for side in (before, after)]

    assert printed(before, after)[1] == "  --dir: gs://old-<env>/jobs/<size> → gs://new-<env>/jobs/<size>"
    assert printed(*only)[1] == "  --dir: gs://old-dev/jobs/<size> → gs://new-dev/jobs/<size>"


def test_size_that_stands_in_every_config_stays_a_word() -> None:
    """A path that happens to hold one of the sizes is shown as it is."""
    before = {f"dev/{size}": {"x": "a"} for size in ("v2-8", "v2-32")}
    after = {f"dev/{size}": {"x": "gs://b/v2-8"} for size in ("v2-8", "v2-32")}

    assert printed(before, after)[1] == "  x: a → gs://b/v2-8"


def test_one_flag_in_two_places_is_named_by_its_path() -> None:
    """A flag stands for itself; where two command lines of one config have it, the path tells them apart."""
    before = {"dev/v2-8": {"a": {"args": ["--x=1"]}, "b": {"args": ["--x=2"]}}}
    after = {"dev/v2-8": {"a": {"args": ["--x=3"]}, "b": {"args": ["--x=4"]}}}

    assert printed(before, after)[1:3] == ["  a.args.--x: 1 → 3", "  b.args.--x: 2 → 4"]


def test_added_and_removed() -> None:
    """What is on one side only is listed, and counted."""
    assert printed({"a/v2-8": {}, "a/v2-32": {}}, {"a/v2-32": {}, "a/v2-128": {}, "b/v2-8": {}}) == [
        "added: a: v2-128; b: v2-8",
        "removed: a: v2-8",
        "",
        "2 configs are added, 1 is removed, 1 stays as it is",
    ]


def test_where_is_short() -> None:
    """Environments with the same sizes are named together, and a long list is cut."""
    known = keys("a/v2-8", "a/v2-32", "b/v2-8", "b/v2-32", "c/v3-8")
    assert format_keys(keys("a/v2-8", "b/v2-8"), known) == "a, b: v2-8"
    assert format_keys(keys("a/v2-8", "a/v2-32"), known) == "every size of a"
    assert format_keys(known, known) == "every config"
    assert format_keys(keys("c/v3-8"), keys("c/v3-8")) == "c: v3-8"
    assert format_keys(keys(*(f"a/v2-{n}" for n in range(30))), known).endswith(" and 14 more")


def test_values_cannot_be_taken_for_others() -> None:
    """A text that reads like a number, null or nothing stands in quotes; a flag's value as on the command line."""
    assert change_sentence(Change(("x",), 1, "1"), "x") == 'x: 1 → "1"'
    assert change_sentence(Change(("x",), None, ""), "x") == 'x: null → ""'
    assert change_sentence(Change(("args", "--x"), None, "1"), "--x") == "--x: given → 1"
    assert change_sentence(Change(("x",), "\x1b[2J", {"a": 1}), "x") == 'x: \\u001b[2J → {"a": 1}'


def test_many_configs_group_into_few() -> None:
    """Three hundred configs with a thousand flags each that change alike are one group."""
    flags = [f"--flag_{number}={number}" for number in range(1000)]
    before = {ConfigKey(f"e{env}", f"v2-{size}"): {"args": flags} for env in range(3) for size in range(100)}
    after = {key: {"args": [*flags[:500], "--new=1", *flags[501:]]} for key in before}

    (group,) = config_difference(before, after).groups

    assert len(group.keys) == 300
    assert len(group.changes) == 2


def test_what_comes_as_a_whole_is_told_by_its_values() -> None:
    """The tail of a large value is seen, and what all configs share is told once, with marks for their own names."""
    after = {
        f"dev/{size}": {"x": 1, "node": {"spec": [{"id": f"run-{size}", "image": "r/i:1", "zones": ["a", "b"]}]}}
        for size in ("v2-8", "v2-32")
    }

    assert printed({name: {"x": 1} for name in after}, after) == [
        "every config",
        "  added node.spec[0].id: run-<size>",
        "  added node.spec[0].image: r/i:1",
        '  added node.spec[0].zones: ["a", "b"]',
        "",
        "2 configs change",
    ]


def test_what_has_too_many_values_stays_whole() -> None:
    """A value of a thousand parts is one line, not a thousand."""
    after = {"dev/v2-8": {"node": {f"k{at}": at for at in range(1000)}}}

    assert len(printed({"dev/v2-8": {}}, after)) == 4
