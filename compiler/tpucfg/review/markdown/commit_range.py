"""The commits that a review compares, in one line."""

import re
from typing import Final

from tpucfg.git.snapshots import Snapshot
from tpucfg.markdown import code

_SHORT_ID_LENGTH: Final = 12
"""Fixed, as git's own choice depends on the number of objects in a clone."""
# Git abbreviates ids to at least 7 digits; a full SHA-256 id has 64.
_ID: Final = re.compile(r"[0-9a-f]{7,64}")


def format_commit_range(before: Snapshot, after: Snapshot) -> str:
    """Return both revisions as a line of Markdown. Ids are not code, because GitHub and GitLab link plain ids."""
    head = _format_head(after)
    if before.commit is None:
        return f"_From nothing ({code(before.title)} has no commits yet) to {head}._"
    name, commit = _given_name(before), short_id(before.commit.id)
    if before.commit.is_merge_base:
        return f"_From {commit}, the merge base with {name or 'the base'}, to {head}._"
    return f"_From {f'{name} ({commit})' if name else commit} to {head}._"


def format_revision(snapshot: Snapshot) -> str:
    """Return the name of a git revision as code, and the words `the working tree` as prose."""
    return code(snapshot.title) if snapshot.exported_to else snapshot.title


def _format_head(head: Snapshot) -> str:
    if head.commit is None:
        return format_revision(head)
    name, commit = _given_name(head), short_id(head.commit.id)
    if head.commit.merges:
        # Authors know the commit that they pushed, but not the merge commit that GitHub created for it.
        return f"{name or commit}, which merges {short_id(head.commit.merges)} into the base"
    return f"{name} ({commit})" if name else commit


def _given_name(snapshot: Snapshot) -> str:
    """Return the revision as it was given; empty if that was the commit's id."""
    title, commit = snapshot.title, snapshot.commit
    is_id = commit and _ID.fullmatch(title) and commit.id.startswith(title)
    return "" if is_id else code(title)


def short_id(commit: str) -> str:
    """Return the beginning of a commit's id."""
    return commit[:_SHORT_ID_LENGTH]
