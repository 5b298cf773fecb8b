"""Changes to the files that run the review itself: they decide what a comment contains."""

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Final

from tpucfg.changes.statements import LocatedStatement, Risk, Statement
from tpucfg.git.changed_files import ChangedFile

_WORKFLOWS: Final = PurePosixPath(".github/workflows")
_ACTIONS: Final = (PurePosixPath(".github/actions/review"), PurePosixPath(".github/actions/comment"))
_GITLAB: Final = PurePosixPath(".gitlab-ci.yml")
_OWNERS: Final = tuple(
    map(PurePosixPath, (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS"))
)
"""Places where GitHub and GitLab look for it:
https://docs.github.com/repositories/managing-your-repositorys-settings-and-features/customizing-your-repository/about-code-owners."""
WORKFLOW_PATHS: Final = (_WORKFLOWS, *_ACTIONS, _GITLAB, *_OWNERS)
"""The files and folders whose changes are reported; other actions can only be run by a workflow."""
_WORKFLOW_SUFFIXES: Final = (".yml", ".yaml")
_MAY_COMMENT: Final = re.compile(rb"\b(?:pull-requests|issues)\s*:\s*['\"]?write\b|\bwrite-all\b")
"""Permissions with which a job can write comments:
https://docs.github.com/actions/reference/workflows-and-actions/workflow-syntax#permissions."""


def workflow_statements(changed: Iterable[ChangedFile]) -> Iterator[LocatedStatement]:
    """Yield a statement for each changed file of the review, and for other workflows that could write its comment."""
    for file in changed:
        if statement := _statement(file):
            yield LocatedStatement("", statement)


def _statement(file: ChangedFile) -> Statement | None:
    path = str(file.path)
    verb = "added" if file.before is None else "removed" if file.after is None else "changed"
    if any(file.path.is_relative_to(action) for action in _ACTIONS):
        template = f"{{}} {verb}: later reviews run it, so it decides what their comments contain"
        # The first version of an action replaces nothing that reviewers rely on.
        return None if file.before is None else _destructive(template, path)
    if file.path in _OWNERS:
        template = f"{{}} {verb}: it decides who has to approve later changes, those of the review included"
        return Statement(template, (path,), Risk.UNKNOWN)
    if file.path != _GITLAB and (file.path.parent != _WORKFLOWS or file.path.suffix not in _WORKFLOW_SUFFIXES):
        return None
    if file.before is not None and (b"tpucfg" in file.before or file.is_unreadable):
        template = f"{{}} {verb}: it runs this review, so it decides what this comment contains"
        return _destructive(template, path)
    if file.path != _GITLAB and file.after is not None and (_may_comment(file.after) or file.is_unreadable):
        return Statement(f"{{}} {verb}: its jobs may write comments, and replace this one", (path,), Risk.UNKNOWN)
    return None


def _destructive(template: str, path: str) -> Statement:
    return Statement(template, (path,), Risk.DESTRUCTIVE, headline="the review itself changed")


def _may_comment(content: bytes) -> bool:
    """Return True if a workflow requests the permission, or leaves the permissions to the repository's default."""
    return bool(_MAY_COMMENT.search(content)) or b"permissions" not in content
