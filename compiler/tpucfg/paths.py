"""Paths into nested data, the language of patterns by which tables name them, and values grouped by key.

A path is a tuple of keys and indices. A pattern is a text of steps that dots separate: `*` is any one step, `**` any
number of steps, none too, and `*` within a word any characters. A key with dots is in brackets:
`labels.[kueue.x-k8s.io/*]`. An index matches its digits.
"""

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final, TypeVar

KeyPath = tuple[str | int, ...]

_STEP: Final = r"\[([^]]+)\]|([^.[]+)"
_Row = TypeVar("_Row")
ITEM_NAMES: Final = ("name", "key")
"""The fields that name an item of a list: the first of them that every item has."""


def value_at(data: Any, path: Iterable[str | int], default: Any = None) -> Any:
    """Return the value at a path, or the default if the path leads nowhere."""
    for step in path:
        is_index = isinstance(data, list) and isinstance(step, int) and 0 <= step < len(data)
        if not is_index and not (isinstance(data, dict) and step in data):
            return default
        data = data[step]
    return data


def children(data: Any) -> Iterable[tuple[str | int, Any]]:
    """Return the keys of a mapping or the indices of a list, each with its value; nothing for any other value."""
    if isinstance(data, dict):
        return data.items()
    return enumerate(data) if isinstance(data, list) else ()


def leaf_paths(data: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield the paths of the scalars and of the empty mappings and lists in a value, in their order."""
    if not isinstance(data, dict | list) or not data:
        yield path
        return
    for step, value in children(data):
        yield from leaf_paths(value, (*path, step))


def is_object_list(value: Any) -> bool:
    """Return True for a list of mappings that is not empty."""
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def item_names(items: Iterable[Any]) -> list[str]:
    """Return the names of a list's items; nothing unless each has one of its own."""
    items = list(items)
    for field in ITEM_NAMES:
        names = [item.get(field) if isinstance(item, dict) else None for item in items]
        texts = [name for name in names if isinstance(name, str)]
        if len({*texts}) == len(items):
            return texts
    return []


def path_with_indices(data: Any, path: Iterable[str | int]) -> KeyPath:
    """Return a path with indices for items that it names: of `metadata.items.startup-script`, the index of that item.

    A step that names no item stays as it is.
    """
    steps: list[str | int] = []
    for step in path:
        names = item_names(data) if isinstance(data, list) and isinstance(step, str) else []
        steps.append(names.index(step) if step in names else step)
        data = value_at(data, steps[-1:])
    return tuple(steps)


def overlap(path: KeyPath, other: KeyPath) -> bool:
    """Return True if the value at one of the paths contains that at the other."""
    shared = min(len(path), len(other))
    return path[:shared] == other[:shared]


@cache
def pattern_steps(pattern: str) -> tuple[str, ...]:
    """Split a pattern into its steps."""
    return tuple(quoted or plain for quoted, plain in re.findall(_STEP, pattern))


def matches(pattern: str, path: KeyPath) -> bool:
    """Return True if a pattern matches a path."""
    return _regex(pattern).fullmatch(_text(path)) is not None


def first_match(rows: Iterable[tuple[str, _Row]], path: KeyPath) -> _Row | None:
    """Return the first row of a table whose pattern matches a path; None if no row does."""
    return next(all_matches(rows, path), None)


def all_matches(rows: Iterable[tuple[str, _Row]], path: KeyPath) -> Iterator[_Row]:
    """Yield the rows of a table whose patterns match a path, in the order of the table."""
    text = _text(path)
    return (row for pattern, row in rows if _regex(pattern).fullmatch(text))


def values_at(data: Any, pattern: str) -> Iterator[tuple[KeyPath, Any]]:
    """Yield each value whose path matches a pattern, with the path, in the order of the data."""
    return _walk(data, pattern_steps(pattern), ())


def fields_at(data: Any, pattern: str) -> Iterator[tuple[KeyPath, Any, dict[str, Any]]]:
    """Yield the path and the value of each field that a pattern matches, and its mapping; None for a missing value.

    Steps without a star lead through missing mappings too, as if they were empty.
    """
    *steps, key = pattern_steps(pattern)
    parents: list[tuple[KeyPath, Any]] = [((), data)]
    for step in steps:
        if step == "*":
            parents = [
                ((*path, inner), value)
                for path, parent in parents
                for inner, value in children(parent)
            ]
        else:
            parents = [
                ((*path, step), parent.get(step, {}))
                for path, parent in parents
                if isinstance(parent, dict)
            ]
    for path, parent in parents:
        if isinstance(parent, dict):
            yield (*path, key), parent.get(key), parent


def _walk(data: Any, steps: tuple[str, ...], path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    if not steps:
        yield path, data
        return
    wanted, *rest = steps
    if wanted == "**":
        yield from _walk(data, tuple(rest), path)
    for step, value in children(data):
        if wanted == "**":
            yield from _walk(value, steps, (*path, step))
        elif wanted in ("*", str(step)) or (
            "*" in wanted and _step_regex(wanted).fullmatch(str(step))
        ):
            yield from _walk(value, tuple(rest), (*path, step))


def _text(path: KeyPath) -> str:
    return "".join(f"\0{step}" for step in path)


@cache
def _regex(pattern: str) -> re.Pattern[str]:
    steps = (
        "(?:\0[^\0]*)*" if step == "**" else f"\0{_step_regex(step).pattern}"
        for step in pattern_steps(pattern)
    )
    return re.compile("".join(steps), re.DOTALL)


@cache
def _step_regex(step: str) -> re.Pattern[str]:
    return re.compile("[^\0]*".join(map(re.escape, step.split("*"))), re.DOTALL)


_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


def sort_keys(value: Any) -> Any:
    """Return plain data with the keys of every mapping sorted; lists keep their order."""
    if isinstance(value, Mapping):
        return {key: sort_keys(value[key]) for key in sorted(value)}
    return [sort_keys(item) for item in value] if isinstance(value, list) else value


def grouped(pairs: Iterable[tuple[_Key, _Value]]) -> dict[_Key, list[_Value]]:
    """Return the values of each key; keys and values keep their order."""
    groups: dict[_Key, list[_Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups
