"""Which commits a review lies between: what a reader has to know before the rest, in one line."""

import re
from typing import Any, Final

from tpucfg.git.snapshots import Snapshot
from tpucfg.markdown import code

_SHORT: Final = 12
"""Characters of an id. Git's own choice depends on how many objects a clone has."""
_ID: Final = re.compile(r"[0-9a-f]{7,64}")


def format_commit_range(before: Snapshot, after: Snapshot) -> str:
    """Both sides as a line of Markdown; ids stand outside of code, where services make links of them."""
    head = _head(after)
    if before.commit is None:
        return f"_From nothing, as {code(before.title)} has no commit yet, to {head}._"
    name, of = _named(before), _short(before.commit.id)
    if before.commit.is_merge_base:
        return f"_From {of}, where the change left {name or 'its base'}, to {head}._"
    return f"_From {f'{name} ({of})' if name else of} to {head}._"


def snapshot_json(side: Snapshot) -> dict[str, Any]:
    """The same for programs; of the working tree nothing is known."""
    commit = side.commit
    return {
        "revision": side.title if side.exported_to else None,
        "commit": commit.id if commit else None,
        "merges": (commit.merges or None) if commit else None,
    }


def _head(side: Snapshot) -> str:
    if side.commit is None:
        return code(side.title) if side.exported_to else side.title
    name, of = _named(side), _short(side.commit.id)
    if side.commit.merges:  # whoever reads the comment knows that commit, and not the one that tries the merge
        return f"{name or of}, which merges {_short(side.commit.merges)} into it"
    return f"{name} ({of})" if name else of


def _named(side: Snapshot) -> str:
    """What the side was called; empty where that was its id."""
    is_id = side.commit and _ID.fullmatch(side.title) and side.commit.id.startswith(side.title)
    return "" if is_id else code(side.title)


def _short(commit: str) -> str:
    return commit[:_SHORT]
