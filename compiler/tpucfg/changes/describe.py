"""Describe changes and the configs that have them, as text and as JSON."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from tpucfg.changes.command_lines import FLAG, REST
from tpucfg.changes.config_diff import Difference, Group
from tpucfg.changes.facts import ABSENT, Change, Scope, sorted_keys
from tpucfg.changes.statements import LocatedStatement, Statement, show_change
from tpucfg.changes.tree_diff import ORDER
from tpucfg.paths import KeyPath, grouped
from tpucfg.text_format import dotted, format_count, listed, printable

ALL_CONFIGS: Final = "every config"
_MAX_NAMES: Final = 16
_MAX_TEXT_LENGTH: Final = 1000
"""Limit for a text; of longer ones, the part that differs is shown."""


def text_lines(difference: Difference) -> Iterator[str]:
    """Yield the difference as lines of text: each change once, below the configs that have it."""
    for verb, keys in (("added", difference.added), ("removed", difference.removed)):
        if keys:
            yield f"{verb}: {format_keys(keys)}"
    common = difference.common
    for group in difference.groups:
        yield format_keys(group.keys, common, difference.noun)
        # A script can have the same line, and so the same change, several times.
        yield from dict.fromkeys(
            f"  {change_sentence(change, label)}"
            for change, label in zip(group.changes, change_labels(group.changes), strict=True)
        )
    if difference:
        yield ""
    yield format_config_counts(difference)


def difference_json(difference: Difference) -> dict[str, Any]:
    """Return the difference as data for JSON."""
    return {
        "added": [*map(_scope_json, difference.added)],
        "removed": [*map(_scope_json, difference.removed)],
        "changes": [change for group in difference.groups for change in _group_json(group)],
        "same": len(difference.unchanged),
    }


def _group_json(group: Group) -> Iterator[dict[str, Any]]:
    # All changes share this list, as there may be fifty thousand of them.
    configs = [*map(_scope_json, group.keys)]
    yield from ({**change_json(change), "configs": configs} for change in group.changes)


def _scope_json(scope: Scope) -> dict[str, str]:
    return {"environment": scope.environment, "size": scope.size}


def change_json(change: Change) -> dict[str, Any]:
    """Return the change as data for JSON; a value that is absent has no key."""
    (label,) = change_labels([change])
    values = {"before": change.before, "after": change.after}
    return {
        "name": label,
        "path": [step for step in change.path if step != REST],
        **{key: value for key, value in values.items() if value is not ABSENT},
    }


def format_config_counts(difference: Difference) -> str:
    """Return a sentence such as `2 configs change, 1 is added, 9 stay as they are`."""
    counts = [
        (len(difference.changed), "changes", "change"),
        (len(difference.added), "is added", "are added"),
        (len(difference.removed), "is removed", "are removed"),
        (len(difference.unchanged), "stays as it is", "stay as they are"),
    ]
    phrases = [(count, singular if count == 1 else plural) for count, singular, plural in counts if count]
    if not phrases:
        return f"there are no {difference.noun}s to compare"
    (first, verb), *rest = phrases
    return ", ".join([f"{format_count(first, difference.noun)} {verb}", *(f"{count:,} {verb}" for count, verb in rest)])


def format_keys(keys: Sequence[Scope], known: Sequence[Scope] = (), noun: str = "config") -> str:
    """Return configs by their sizes, as in `dev, staging: v2-8, v2-32`.

    Args:
        keys: the configs, sorted.
        known: all configs, sorted; `every config` and `every size of dev` refer to these.
        noun: the word for a config.
    """
    if len(keys) == len(known):
        return f"every {noun}" if len(keys) > 1 else _format_sizes(keys[0].environment, [keys[0].size])
    known_sizes = _sizes_by_environment(known)
    sizes_of = _sizes_by_environment(keys)
    complete = [name for name, sizes in sizes_of.items() if sizes == known_sizes.get(name) and len(sizes) > 1]
    parts = [f"every size of {listed(complete, _MAX_NAMES)}"] if complete else []
    others = grouped((sizes, name) for name, sizes in sizes_of.items() if name not in complete)
    parts += [_format_sizes(listed(names, _MAX_NAMES), sizes) for sizes, names in others.items()]
    return "; ".join(parts)


def group_by_config(
    scoped: Iterable[tuple[Scope, Statement]], known: Iterable[Scope] = ()
) -> Iterator[LocatedStatement]:
    """Yield each statement once, with all configs that it is about; `known` are all configs."""
    known = sorted_keys(known)
    for statement, keys in grouped((statement, key) for key, statement in scoped).items():
        yield LocatedStatement(format_keys(sorted_keys(keys), known), statement)


def _format_sizes(environments: str, sizes: Sequence[str]) -> str:
    text = listed([printable(size) for size in sizes], _MAX_NAMES)
    return f"{printable(environments)}: {text}" if environments else text


def _sizes_by_environment(keys: Sequence[Scope]) -> dict[str, tuple[str, ...]]:
    groups = groupby(keys, key=lambda key: key.environment)
    return {environment: tuple(key.size for key in group) for environment, group in groups}


def change_sentence(change: Change, label: str) -> str:
    """Return a line such as `--train_steps: 1000 → 500` or `added --warmup_steps: 200`."""
    shown = show_change(change, max_length=_MAX_TEXT_LENGTH, flag=is_flag(change))
    if change.before is ABSENT:
        return f"added {label}: {shown.after}"
    if change.after is ABSENT:
        return f"removed {label}: {shown.before}"
    return f"{label}: {shown.before} → {shown.after}{f' ({shown.note})' if shown.note else ''}"


def change_diff(change: Change, label: str, *, flag: bool) -> Iterator[str]:
    """Yield a line of a diff for each revision that has the value: `- image: i:1`, `+ image: i:2`."""
    shown = show_change(change, max_length=_MAX_TEXT_LENGTH, flag=flag)
    if change.before is not ABSENT:
        yield f"- {label}: {shown.before}"
    if change.after is not ABSENT:
        yield f"+ {label}: {shown.after}{f' ({shown.note})' if shown.note else ''}"


def change_labels(changes: Sequence[Change]) -> list[str]:
    """Return a name for each change: the flag if only one change is of that flag, else the whole path."""
    flags = [next((str(step) for step in change.path if str(step).startswith(FLAG)), "") for change in changes]
    counts = Counter(flags)
    return [
        printable(flag) if flag and counts[flag] == 1 else _format_path(change.path)
        for flag, change in zip(flags, changes, strict=True)
    ]


def _format_path(path: KeyPath) -> str:
    """Return the whole path; for a line of a script, only the script's key, as line numbers identify nothing."""
    if path[-1:] == (ORDER,):
        return f"order of {dotted(path[:-1], 'the whole config')}"
    if REST in path:
        keys = [step for step in path[: path.index(REST)] if isinstance(step, str)]
        return printable(keys[-1]) if keys else "the whole config"
    return dotted(path, "the whole config")


def is_flag(change: Change) -> bool:
    """Return True for the value of a flag and for a line of a script, which are written without quotes."""
    return any(step == REST or str(step).startswith(FLAG) for step in change.path)
