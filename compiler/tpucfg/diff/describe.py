"""How a change and the configs that have it are said."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from tpucfg.diff.change import ABSENT, Change, ConfigKey, Difference, Group
from tpucfg.diff.command_lines import FLAG, REST
from tpucfg.text_format import dotted, format_value, json_text, listed, printable
from tpucfg.yamldoc.document import KeyPath

_LONGEST: Final = 1000
"""Characters of a value: what changed may stand at its end."""
_LONGEST_WHOLE: Final = 300
"""Characters of a list or a mapping that came or went as a whole: its beginning says what it is."""
_MOST_NAMES: Final = 16
EVERY: Final = "every config"
_MISREAD: Final = re.compile(r"|\s.*|.*\s|true|false|null|[-+.\d][-+.\deE]*|[\[{\"].*", re.DOTALL)
"""Texts that are put in quotes, because without them they would be read as something else."""


def format_keys(keys: Sequence[ConfigKey], known: Sequence[ConfigKey] = ()) -> str:
    """Configs by their sizes, `dev, staging: v2-8, v2-32`; `every config` where these are all that are known."""
    if len(keys) == len(known):
        return EVERY if len(keys) > 1 else _named(keys[0].environment, [keys[0].size])
    every = _sizes(known)
    ladders: dict[tuple[str, ...], list[str]] = {}
    whole: list[str] = []
    for environment, sizes in _sizes(keys).items():
        if sizes == every.get(environment) and len(sizes) > 1:
            whole.append(environment)
        else:
            ladders.setdefault(sizes, []).append(environment)
    parts = [f"every size of {listed(whole, _MOST_NAMES)}"] if whole else []
    return "; ".join(parts + [_named(listed(names, _MOST_NAMES), sizes) for sizes, names in ladders.items()])


def _named(environments: str, sizes: Sequence[str]) -> str:
    said = listed([printable(size) for size in sizes], _MOST_NAMES)
    return f"{printable(environments)}: {said}" if environments else said


def _sizes(keys: Sequence[ConfigKey]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(key.size for key in of_one) for name, of_one in groupby(keys, key=lambda key: key.environment)}


def change_labels(changes: Sequence[Change]) -> list[str]:
    """A name for each change: a flag's own where only one of them has it, or else the whole path."""
    flags = [next((str(step) for step in it.path if str(step).startswith(FLAG)), "") for it in changes]
    seen = Counter(flags)
    return [
        printable(flag) if flag and seen[flag] == 1 else _dotted(it.path)
        for flag, it in zip(flags, changes, strict=True)
    ]


def _dotted(path: KeyPath) -> str:
    """The whole path; of a line of a script only what the script is called, as nobody counts its lines."""
    if REST in path:
        named = [step for step in path[: path.index(REST)] if isinstance(step, str)]
        return printable(named[-1]) if named else "the whole config"
    return dotted(path, "the whole config")


def format_change_value(of: Any, *, flag: bool) -> str:
    """A value on one line; a flag's is written as on the command line."""
    if flag and of is None:
        return "given"
    if flag and isinstance(of, str):
        of = of.strip().removesuffix(" \\")  # of a script's line, what lays it out
    if isinstance(of, str) and (flag or not _MISREAD.fullmatch(of)) and of:
        return format_value(of, quoted=False, longest=_LONGEST)
    return format_value(of, longest=_LONGEST if isinstance(of, str) else _LONGEST_WHOLE)


def is_flag(change: Change) -> bool:
    """Whether it is the value of a flag, or a line of a script: both are written without quotes."""
    return any(step == REST or str(step).startswith(FLAG) for step in change.path)


def change_sentence(change: Change, label: str) -> str:
    """`--train_steps: 1000 → 500`, `added --warmup_steps: 200`."""
    flag = is_flag(change)
    if change.before is ABSENT:
        return f"added {label}: {format_change_value(change.after, flag=flag)}"
    if change.after is ABSENT:
        return f"removed {label}: {format_change_value(change.before, flag=flag)}"
    return f"{label}: {format_change_value(change.before, flag=flag)} → {format_change_value(change.after, flag=flag)}"


def group_lines(group: Group) -> Iterator[str]:
    """The changes of a group, each on its line, none twice."""
    yield from dict.fromkeys(map(change_sentence, group.changes, change_labels(group.changes)))


def format_config_counts(found: Difference) -> str:
    """`2 configs change, 1 is added, 9 stay as they are`."""
    parts = [
        (len(found.changed), "changes", "change"),
        (len(found.added), "is added", "are added"),
        (len(found.removed), "is removed", "are removed"),
        (len(found.same), "stays as it is", "stay as they are"),
    ]
    said = [(count, one if count == 1 else many) for count, one, many in parts if count]
    if not said:
        return "there is no config on either side"
    (first, verb), *rest = said
    return ", ".join([f"{first:,} config{'s' * (first != 1)} {verb}", *(f"{count:,} {text}" for count, text in rest)])


def change_json(change: Change) -> dict[str, Any]:
    """The change for programs; a side that has no value has no key."""
    (label,) = change_labels([change])
    sides = {"before": change.before, "after": change.after}
    return {
        "name": label,
        "path": [step for step in change.path if step != REST],
        **{side: it for side, it in sides.items() if it is not ABSENT},
    }


def print_json(data: Any) -> str:
    """JSON as commands print it."""
    return json_text(data).rstrip("\n")


# A difference as text and as JSON; as Markdown it is a part of the review.


def text_lines(found: Difference) -> Iterator[str]:
    """Each change once, below the configs that have it."""
    for verb, keys in (("added", found.added), ("removed", found.removed)):
        if keys:
            yield f"{verb}: {format_keys(keys)}"
    kept = found.kept
    for group in found.groups:
        yield format_keys(group.keys, kept)
        yield from (f"  {line}" for line in group_lines(group))
    if found:
        yield ""
    yield format_config_counts(found)


def json_data(found: Difference) -> dict[str, Any]:
    """The same for programs."""
    return {
        "added": [key._asdict() for key in found.added],
        "removed": [key._asdict() for key in found.removed],
        "changes": [change for group in found.groups for change in _changes(group)],
        "same": len(found.same),
    }


def _changes(group: Group) -> Iterator[dict[str, Any]]:
    configs = [key._asdict() for key in group.keys]  # one list for all of them: there may be fifty thousand
    yield from ({**change_json(change), "configs": configs} for change in group.changes)
