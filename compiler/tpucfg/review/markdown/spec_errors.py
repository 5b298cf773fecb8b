"""The part of a comment about a spec with errors, which prevent a comparison."""

from collections.abc import Iterator
from typing import Final

from tpucfg.changes.describe import format_keys
from tpucfg.changes.revisions import CompiledRevision
from tpucfg.findings import errors
from tpucfg.findings.formats.text import report
from tpucfg.markdown import code, fence, prose
from tpucfg.redaction import redact_report
from tpucfg.review.markdown.commit_range import format_revision
from tpucfg.review.review import Review

_MAX_FINDINGS: Final = 12


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
