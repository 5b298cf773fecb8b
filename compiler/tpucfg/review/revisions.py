"""The sources of a review in a comment: the commits that it compares, the errors of their specs, the last line."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tpucfg.changes.revisions import CompiledRevision
from tpucfg.changes.statements import format_keys
from tpucfg.findings import errors
from tpucfg.findings.text import report
from tpucfg.git.snapshots import Snapshot
from tpucfg.markdown import code, fence, prose
from tpucfg.redaction import redact_report
from tpucfg.review.review import EnvironmentReview, Review, Source
from tpucfg.spec import SPEC_NAME
from tpucfg.text_format import listed

_SHORT_ID_LENGTH: Final = 12
"""Fixed, as git's own choice depends on the number of objects in a clone."""
# Git abbreviates ids to at least 7 digits; a full SHA-256 id has 64.
_ID: Final = re.compile(r"[0-9a-f]{7,64}")
_MAX_FINDINGS: Final = 12
_MAX_NAMES: Final = 16
_SOURCES: Final[Mapping[Source, str]] = {
    "preview": "from Pulumi's preview",
    "program": "from the stack programs of both revisions{}, run without credentials; drift is not detected",
    "head": "declared by the stack program of {head}{}; how they change is unknown",
}
"""The sources of resources, with places for the revision and for the programs that are not its own."""
_NO_DRIFT: Final = f"not detected without {code('--refresh')} and {code('PULUMI_ENABLE_STREAMING_JSON_PREVIEW=true')}"


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
        command = code(check_command(revision))
        yield f"… and {len(findings) - _MAX_FINDINGS:,} more: {command} lists all of them."


def check_command(*revisions: CompiledRevision) -> str:
    """Return the command that prints all findings about specs, quoted for a shell."""
    paths = [revision.snapshot.display_path for revision in revisions]
    options = [] if paths == [SPEC_NAME] else [word for path in paths for word in ("--spec", path)]
    return shlex.join(["tpucfg", "check", *options])


def _jobs(revision: CompiledRevision) -> Iterator[str]:
    if revision.request_bodies:
        keys = format_keys([*revision.jobs])
        yield f"The spec in {format_revision(revision.snapshot)} is valid ({prose(keys)})."


# The last line


def footer(review: Review) -> str:
    """Return the line about where the resources come from; empty if there are none."""
    sentences = [*_source_sentences(review), *map(prose, review.notes)]
    return f"_{' '.join(sentences)}_" if sentences else ""


def _source_sentences(review: Review) -> Iterator[str]:
    environments = review.environments
    by_source = {source: [item for item in environments if item.source == source] for source in _SOURCES}
    for source, text in _SOURCES.items():
        if covered := by_source[source]:
            # Environments are named only if there may be several sources.
            names = f" of {_names(covered)}" if by_source["preview"] else ""
            yield f"Resources{names}: {text.format(_bundled(review), head=format_revision(review.after.snapshot))}."
    if unknown := [item for item in by_source["preview"] if not (item.preview.is_refreshed or item.problem)]:
        yield f"Drift of {_names(unknown)} is {_NO_DRIFT}."
    if missing := [environment for environment in environments if environment.preview.has_no_stack]:
        subject, verb = ("stack", "does") if len(missing) == 1 else ("stacks", "do")
        yield f"The {subject} of {_names(missing)} {verb} not exist yet."


def _bundled(review: Review) -> str:
    """Return the revisions without a stack program of their own, in brackets; empty if there are none."""
    snapshots = (review.before.snapshot, review.after.snapshot)
    titles = [format_revision(item) for item in snapshots if item.title in review.revisions_with_bundled_program]
    return f" (the one bundled with tpucfg for {listed(titles, last=' and ')})" if titles else ""


def _names(environments: Sequence[EnvironmentReview]) -> str:
    return listed([code(environment.environment) for environment in environments], _MAX_NAMES)
