"""Changed paths of nested values, in Pulumi's notation: `lifecycleRules[0].condition.age`."""

from collections.abc import Iterator
from enum import Enum
from typing import Any


class Change(Enum):
    """Kind of change at a path."""

    ADD = "add"
    DELETE = "delete"
    UPDATE = "update"


def changes_between(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Change]:
    """Return every path that differs, with the kind of change."""
    return dict(_walk("", old, new))


def _walk(path: str, old: object, new: object) -> Iterator[tuple[str, Change]]:
    if isinstance(old, dict) and isinstance(new, dict):
        steps = [(name, f".{name}" if path else name) for name in sorted({*old, *new})]
        yield from _walk_items(path, steps, old, new)
    elif isinstance(old, list) and isinstance(new, list):
        longest = range(max(len(old), len(new)))
        steps = [(index, f"[{index}]") for index in longest]
        yield from _walk_items(path, steps, dict(enumerate(old)), dict(enumerate(new)))
    elif old != new:
        yield path, Change.UPDATE


def _walk_items(
    path: str, steps: list[tuple[Any, str]], old: dict[Any, Any], new: dict[Any, Any]
) -> Iterator[tuple[str, Change]]:
    for key, step in steps:
        if key not in old:
            yield path + step, Change.ADD
        elif key not in new:
            yield path + step, Change.DELETE
        else:
            yield from _walk(path + step, old[key], new[key])
