"""The last line of a comment: the source of the resource changes, and what that source cannot show."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tpucfg.markdown import code, prose
from tpucfg.review.markdown.commit_range import format_revision
from tpucfg.review.preview.refresh import RefreshScope
from tpucfg.review.review import EnvironmentReview, Review, Source
from tpucfg.text_format import listed

_MAX_NAMES: Final = 16
_DRIFT_EFFECTS: Final[Mapping[RefreshScope, str]] = {
    "none": f"is not detected, as its preview was taken without {code('--refresh')}",
    "changed": (
        "is shown only of resources that the update changes, as its preview was taken without "
        f"{code('PULUMI_ENABLE_STREAMING_JSON_PREVIEW=true')}"
    ),
}
"""Limits of the comment, by the scope of the preview's refresh."""


def footer(review: Review) -> str:
    """Return the line; empty if there are no resources."""
    sentences = [*_source_sentences(review), *map(prose, review.notes)]
    return f"_{' '.join(sentences)}_" if sentences else ""


def _source_sentences(review: Review) -> Iterator[str]:
    previewed, compared, declared = (_names(review, source) for source in ("preview", "program", "head"))
    if previewed:
        yield f"Resources of {_listed(previewed)}: from Pulumi's preview."
        for scope, effect in _DRIFT_EFFECTS.items():
            if names := [name.environment for name in review.environments if _has_scope(name, scope)]:
                yield f"Drift of {_listed(names)} {effect}."
    # Environments are named only if there are several sources.
    others = f" of {_listed(compared or declared)}" if previewed else ""
    if compared:
        yield f"Resources{others}: from {_programs(review)}, run without credentials; drift is not detected."
    if declared:
        yield f"Resources{others}: declared by {_program_of_head(review)}; how they change is unknown."
    if missing := [environment.environment for environment in review.environments if environment.has_no_stack]:
        subject, verb = ("stack", "does") if len(missing) == 1 else ("stacks", "do")
        yield f"The {subject} of {_listed(missing)} {verb} not exist yet."


def _names(review: Review, source: Source) -> list[str]:
    return [environment.environment for environment in review.environments if environment.source == source]


def _has_scope(environment: EnvironmentReview, scope: RefreshScope) -> bool:
    is_previewed = environment.source == "preview" and not environment.problem
    return is_previewed and environment.refresh == scope


def _programs(review: Review) -> str:
    """Return which stack programs were run."""
    if not review.revisions_with_bundled_program:
        return "the stack programs of both revisions"
    if len(review.revisions_with_bundled_program) > 1:
        return "the stack program bundled with tpucfg, as neither revision has its own"
    snapshots = (review.before.snapshot, review.after.snapshot)
    without = next(snapshot for snapshot in snapshots if snapshot.title in review.revisions_with_bundled_program)
    bundled = f"{format_revision(without)} has none, so the one bundled with tpucfg was used"
    return f"the stack programs of both revisions ({bundled})"


def _program_of_head(review: Review) -> str:
    head = review.after.snapshot
    if head.title in review.revisions_with_bundled_program:
        return f"the stack program bundled with tpucfg, as {format_revision(head)} has none"
    return f"the stack program of {format_revision(head)}"


def _listed(names: Sequence[str]) -> str:
    return listed([code(name) for name in names], _MAX_NAMES)
