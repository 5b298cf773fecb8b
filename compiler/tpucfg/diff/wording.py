"""How a change and the configs that have it are said."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from tpucfg.diff.flags import FLAG, REST
from tpucfg.diff.model import ABSENT, Change, Difference, Group, Key
from tpucfg.spec.document import Path
from tpucfg.wording import dotted, json_text, listed, printable, shown

_LONGEST: Final = 1000
"""Characters of a value: what changed may stand at its end."""
_LONGEST_WHOLE: Final = 300
"""Characters of a list or a mapping that came or went as a whole: its beginning says what it is."""
_MOST_NAMES: Final = 16
EVERY: Final = "every config"
_MISREAD: Final = re.compile(r"|\s.*|.*\s|true|false|null|[-+.\d][-+.\deE]*|[\[{\"].*", re.DOTALL)
"""Texts that are put in quotes, because without them they would be read as something else."""


def where(keys: Sequence[Key], known: Sequence[Key] = ()) -> str:
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


def _sizes(keys: Sequence[Key]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(key.size for key in of_one) for name, of_one in groupby(keys, key=lambda key: key.environment)}


def labels(changes: Sequence[Change]) -> list[str]:
    """A name for each change: a flag's own where only one of them has it, or else the whole path."""
    flags = [next((str(step) for step in it.path if str(step).startswith(FLAG)), "") for it in changes]
    seen = Counter(flags)
    return [
        printable(flag) if flag and seen[flag] == 1 else _dotted(it.path)
        for flag, it in zip(flags, changes, strict=True)
    ]


def _dotted(path: Path) -> str:
    """The whole path; of a line of a script only what the script is called, as nobody counts its lines."""
    if REST in path:
        named = [step for step in path[: path.index(REST)] if isinstance(step, str)]
        return printable(named[-1]) if named else "the whole config"
    return dotted(path, "the whole config")


def value(of: Any, *, flag: bool) -> str:
    """A value on one line; a flag's is written as on the command line."""
    if flag and of is None:
        return "given"
    if flag and isinstance(of, str):
        of = of.strip().removesuffix(" \\")  # of a script's line, what lays it out
    if isinstance(of, str) and (flag or not _MISREAD.fullmatch(of)) and of:
        return shown(of, quoted=False, longest=_LONGEST)
    return shown(of, longest=_LONGEST if isinstance(of, str) else _LONGEST_WHOLE)


def is_flag(change: Change) -> bool:
    """Whether it is the value of a flag, or a line of a script: both are written without quotes."""
    return any(step == REST or str(step).startswith(FLAG) for step in change.path)


def sentence(change: Change, label: str) -> str:
    """`--train_steps: 1000 → 500`, `added --warmup_steps: 200`."""
    flag = is_flag(change)
    if change.before is ABSENT:
        return f"added {label}: {value(change.after, flag=flag)}"
    if change.after is ABSENT:
        return f"removed {label}: {value(change.before, flag=flag)}"
    return f"{label}: {value(change.before, flag=flag)} → {value(change.after, flag=flag)}"


def told(group: Group) -> Iterator[str]:
    """The changes of a group, each on its line, none twice."""
    yield from dict.fromkeys(map(sentence, group.changes, labels(group.changes)))


def counted(found: Difference) -> str:
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


def as_json(change: Change) -> dict[str, Any]:
    """The change for programs; a side that has no value has no key."""
    (label,) = labels([change])
    sides = {"before": change.before, "after": change.after}
    return {
        "name": label,
        "path": [step for step in change.path if step != REST],
        **{side: it for side, it in sides.items() if it is not ABSENT},
    }


def canonical(data: Any) -> str:
    """JSON as commands print it."""
    return json_text(data).rstrip("\n")
