"""The revisions of a review in a comment: the commits that it compares, and the errors of their specs."""

import re
from collections.abc import Iterator
from typing import Final

from tpucfg.changes.describe import format_keys
from tpucfg.changes.revisions import CompiledRevision
from tpucfg.findings import errors
from tpucfg.findings.formats.text import report
from tpucfg.git.snapshots import Snapshot
from tpucfg.markdown import code, fence, prose
from tpucfg.redaction import redact_report
from tpucfg.review.review import Review

_SHORT_ID_LENGTH: Final = 12
"""Fixed, as git's own choice depends on the number of objects in a clone."""
# Git abbreviates ids to at least 7 digits; a full SHA-256 id has 64.
_ID: Final = re.compile(r"[0-9a-f]{7,64}")
_MAX_FINDINGS: Final = 12


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


def spec_errors(review: Review) -> Iterator[str]:
    """Yield blocks of Markdown: the errors of a revision, the jobs of a valid one, and what was not compared.

    Nothing is yielded if both specs are valid.
    """
    if not review.is_broken:
        return
    for revision in sorted((review.after, review.before), key=lambda revision: not revision.is_broken):
        yield from _errors(revision) if revision.is_broken else _jobs(revision)
    if any(environment.source == "preview" for environment in review.environments):
        yield (
            "**The specs were not compared**: data protection and access may have changed in ways that Pulumi's "
            "previews do not show."
        )
    else:
        yield "**The specs were not compared**: data protection and access may have changed too."


def _errors(revision: CompiledRevision) -> Iterator[str]:
    findings = errors(revision.findings)
    text = report(findings[:_MAX_FINDINGS], {revision.snapshot.display_path: revision.text})
    yield f"**The spec in {format_revision(revision.snapshot)} has errors:**"
    yield fence(redact_report(text.rstrip("\n")))
    if len(findings) > _MAX_FINDINGS:
        yield f"… and {len(findings) - _MAX_FINDINGS:,} more: {code('tpucfg check')} lists all of them."


def _jobs(revision: CompiledRevision) -> Iterator[str]:
    if revision.request_bodies:
        keys = format_keys([*revision.jobs])
        yield f"The spec in {format_revision(revision.snapshot)} is valid ({prose(keys)})."
