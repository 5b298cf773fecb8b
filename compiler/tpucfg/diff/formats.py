"""A difference as text and as JSON; as Markdown it is a part of the review."""

from collections.abc import Iterator
from typing import Any

from tpucfg.diff.model import Difference, Group
from tpucfg.diff.wording import as_json, counted, told, where


def text_lines(found: Difference) -> Iterator[str]:
    """Each change once, below the configs that have it."""
    for verb, keys in (("added", found.added), ("removed", found.removed)):
        if keys:
            yield f"{verb}: {where(keys)}"
    kept = found.kept
    for group in found.groups:
        yield where(group.keys, kept)
        yield from (f"  {line}" for line in told(group))
    if found:
        yield ""
    yield counted(found)


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
    yield from ({**as_json(change), "configs": configs} for change in group.changes)
