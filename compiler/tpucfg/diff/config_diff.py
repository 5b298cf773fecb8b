"""The configs of two sides compared, and equal changes of several of them told once."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from tpucfg.diff.change import ABSENT, Change, ConfigKey, Difference, Group, canonical_json, sorted_keys
from tpucfg.diff.command_lines import parse_command_lines
from tpucfg.diff.tree_diff import unfold, value_changes

_Owned = tuple[Change, tuple[ConfigKey, ...]]


def config_difference(before: Mapping[ConfigKey, Any], after: Mapping[ConfigKey, Any]) -> Difference:
    """What differs between two sets of configs, given as plain data."""
    both = sorted_keys(before.keys() & after.keys())
    found = {key: tuple(_changes(before[key], after[key])) for key in both}
    return Difference(
        added=sorted_keys(after.keys() - before.keys()),
        removed=sorted_keys(before.keys() - after.keys()),
        groups=tuple(_grouped(found)),
        same=tuple(key for key in both if not found[key]),
    )


def _changes(before: Any, after: Any) -> Iterator[Change]:
    if repr(before) != repr(after):  # in the quickest way there is: most configs of a large ladder have not changed
        for change in value_changes(parse_command_lines(before), parse_command_lines(after)):
            yield from unfold(change)


def _grouped(found: Mapping[ConfigKey, Sequence[Change]]) -> Iterator[Group]:
    owners: dict[str, list[ConfigKey]] = {}
    told: dict[str, Change] = {}
    for key, of_one in found.items():
        for change in of_one:
            token = _token(change)
            told[token] = change
            owners.setdefault(token, []).append(key)
    groups: dict[tuple[ConfigKey, ...], list[Change]] = {}
    for change, keys in _generalised({token: (change, tuple(owners[token])) for token, change in told.items()}):
        groups.setdefault(keys, []).append(change)
    for keys in sorted(groups, key=lambda keys: (-len(keys), [key.rank for key in keys])):
        yield Group(keys, tuple(groups[keys]))


def _generalised(owned: Mapping[str, _Owned]) -> Iterator[_Owned]:
    """Changes that differ in nothing but the config's own size or environment become one."""
    alike: dict[str, list[_Owned]] = {}
    for exact, (change, keys) in owned.items():
        owned_by_all = all(_names(exact, key) for key in keys)
        forms = {_token(_general(change, key)) for key in keys} if owned_by_all else set[str]()
        # A change that all its configs have to the letter stays as it is: the size in it is a word like any other.
        token = next(iter(forms)) if len(forms) == 1 else exact
        alike.setdefault(token, []).append((change, keys))
    for members in alike.values():
        if len(members) == 1:
            yield members[0]
        else:
            keys = sorted_keys(key for _, keys in members for key in keys)
            yield _general(members[0][0], members[0][1][0], _told_apart(keys)), keys


def _names(token: str, key: ConfigKey) -> bool:
    """Whether a change may hold the config's own size or environment; a file at the root of a folder has none."""
    return any(word and word in token for word in key)


def _told_apart(keys: Sequence[ConfigKey]) -> tuple[bool, bool]:
    """Whether the configs differ in environment, and in size: what they share needs no mark in its place."""
    return len({key.environment for key in keys}) > 1, len({key.size for key in keys}) > 1


def _general(change: Change, key: ConfigKey, marked: tuple[bool, bool] = (True, True)) -> Change:
    own, pattern = _own(key, marked)
    return change._replace(before=_with(own, pattern, change.before), after=_with(own, pattern, change.after))


@cache
def _own(key: ConfigKey, marked: tuple[bool, bool]) -> tuple[Mapping[str, str], re.Pattern[str]]:
    marks = ((key.environment, "<env>"), (key.size, "<size>"))
    own = {word: mark for (word, mark), is_marked in zip(marks, marked, strict=True) if is_marked}
    words = "|".join(re.escape(word) for word in own if word)
    return own, re.compile(rf"(?<![A-Za-z0-9])(?:{words})(?![A-Za-z0-9])")


def _with(own: Mapping[str, str], pattern: re.Pattern[str], value: Any) -> Any:
    if isinstance(value, str):
        return pattern.sub(lambda match: own[match[0]], value)
    if isinstance(value, dict):
        return {name: _with(own, pattern, inner) for name, inner in value.items()}
    return [_with(own, pattern, item) for item in value] if isinstance(value, list) else value


def _token(change: Change) -> str:
    return canonical_json([change.path, *([] if it is ABSENT else [it] for it in change[1:])])
