"""The review as one Markdown comment: heading, cautions, effects of each changed spec, and folded details."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import quote

from tpucfg.changes.facts import Risk
from tpucfg.changes.resources import count_phrases
from tpucfg.changes.revisions import CompiledRevision
from tpucfg.changes.statements import format_config_counts, format_environments
from tpucfg.findings import errors, format_counts
from tpucfg.findings.text import report
from tpucfg.git.snapshots import Snapshot
from tpucfg.markdown import alert, code, fence, prose, table
from tpucfg.paths import grouped
from tpucfg.redaction import redact_report
from tpucfg.review.cautions import bound_cautions, repository_cautions, spec_cautions
from tpucfg.review.effects import (
    Part,
    cost_parts,
    cost_phrase,
    finding_blocks,
    fit_block,
    impact_parts,
)
from tpucfg.review.folds import Fold, config_folds, join_within_limit, resource_folds
from tpucfg.review.review import EnvironmentReview, RepositoryReview, Review, Source
from tpucfg.spec import SPEC_NAME, command_words
from tpucfg.text_format import format_count, listed

_MAX_PHRASES: Final = 4


# The review in one line


def repository_headline(reviewed: RepositoryReview) -> str:
    """Return the sum of all reviews in one line; of one review, its own headline."""
    if only := reviewed.only:
        return headline(only)
    changed = sum(review.is_change for review in reviewed.reviews)
    total = len(reviewed.reviews) + len(reviewed.failures) + len(reviewed.others)
    broken = sum(review.is_broken for review in reviewed.reviews) + len(reviewed.failures)
    destructive = sum(review.is_destructive for review in reviewed.reviews)
    unknown = sum(not review.is_known for review in reviewed.reviews if not review.is_broken)
    phrases = [
        f"{changed:,} of {format_count(total, 'spec')} changed",
        f"{broken:,} with errors" if broken else "",
        f"{destructive:,} {'loses' if destructive == 1 else 'lose'} data or protection"
        if destructive
        else "",
        f"resource changes of {unknown:,} unknown" if unknown else "",
        *dict.fromkeys(located.statement.headline for located in reviewed.statements),
    ]
    return ", ".join(phrase for phrase in phrases if phrase)


def headline(review: Review) -> str:
    """Return the review of one spec in one line."""
    drifted = sum(len(environment.preview.drift) for environment in review.environments)
    drift = (
        f"; {format_count(drifted, 'resource')} differ{'s' * (drifted == 1)} in the cloud"
        if drifted
        else ""
    )
    return f"{_change_headline(review)}{drift}"


def _change_headline(review: Review) -> str:
    for revision, subject in ((review.after, "the spec"), (review.before, "the spec of the base")):
        if revision.is_broken:
            return _with_phrases(
                f"{subject} has {format_counts(errors(revision.findings))}", review
            )
    known = "" if review.is_known else "known "
    if not review.is_change:
        return _with_phrases(f"no {known}changes", review)
    difference = review.difference
    configs = {
        "changed": difference.changed,
        "added": difference.added,
        "removed": difference.removed,
    }
    phrases = [
        f"{format_count(count, 'resource')} {phrase}"
        for count, phrase in count_phrases(review.resources)
    ]
    phrases += [
        f"{format_count(len(keys), 'config')} {verb}" for verb, keys in configs.items() if keys
    ]
    # Without any, the cautions are what has changed.
    cautions = sum(item.statement.risk > Risk.NONE for item in review.impact.statements)
    rest = (
        format_count(cautions, "caution") if cautions else f"no {known}config or resource changes"
    )
    return _with_phrases(", ".join(phrases) or rest, review)


def _with_phrases(counts: str, review: Review) -> str:
    """Add what no count includes: a higher cost, and changes such as a lifted protection, the riskiest first."""
    located = [item for item in review.impact.statements if item.statement.headline]
    located.sort(key=lambda item: -item.statement.risk)
    phrases = dict.fromkeys(
        f"{item.statement.headline} in {item.scope}" if item.scope else item.statement.headline
        for item in located
    )
    parts = (
        counts,
        _unknown_phrase(review.environments),
        cost_phrase(review.costs),
        listed([*phrases], _MAX_PHRASES),
    )
    return "; ".join(part for part in parts if part)


def _unknown_phrase(environments: Sequence[EnvironmentReview]) -> str:
    """Name the environments of which a failed program or preview hides changes; a failure is not `no change`."""
    names = [
        environment.environment
        for environment in environments
        if environment.problem or environment.unverified
    ]
    return f"changes to resources unknown in {format_environments(names)}" if names else ""


_MAX_NAMES: Final = 16
_MAX_FILES: Final = 6
_MAX_ROWS: Final = 40
"""Rows of the table of specs; further specs are counted, and have parts of their own."""
_HINT: Final = f"_Complete output: {code('tpucfg review --format json')}._"
"""The last line of a comment from which something is omitted."""


# The comment


def comment(reviewed: RepositoryReview) -> str:
    """Return the comment. Equal reviews have equal bytes, so that a workflow can skip an unchanged comment."""
    only = reviewed.only
    spec = only.path if only else ""
    name = f" of {code(spec)}" if _has_own_marker(spec) else ""
    # The next review of a repository may affect other specs: its comment has to replace this one.
    first_line = marker("" if reviewed.is_of_repository else spec)
    head = [
        first_line,
        f"### tpucfg review{name}: {repository_headline(reviewed)}",
        _commit_range(reviewed),
    ]
    if only:
        # The errors are why the effects are not known.
        blocks, folds = _split(_effects(only))
        head += [*spec_errors(only), _caution_block(reviewed), *blocks]
        foot = [*_other_files(reviewed), footer(only)]
    else:
        shown = sorted(filter(_is_worth_a_part, reviewed.reviews), key=_sort_key)
        head += [_caution_block(reviewed), _spec_table(shown)]
        folds = [*_parts(shown)]
        paths = [code(review.path) for review in reviewed.reviews if not _is_worth_a_part(review)]
        foot = [
            f"_No effect on {listed(paths, _MAX_NAMES)}._" if paths else "",
            *_other_files(reviewed),
        ]
    return join_within_limit(head, folds, foot, hint=_HINT)


def marker(spec: str) -> str:
    """Return the first line of a comment, by which a workflow finds the comment again.

    Args:
        spec: the spec's path in the repository. The marker of a spec other than tpucfg.yaml at the root contains it, so
            that each spec has a comment of its own.
    """
    # `--` would end the HTML comment: https://html.spec.whatwg.org/multipage/syntax.html#comments
    path = f": {quote(spec, safe='/').replace('--', '%2D%2D')}" if _has_own_marker(spec) else ""
    return f"<!-- tpucfg-review{path} -->"


def _has_own_marker(spec: str) -> bool:
    return spec not in {"", SPEC_NAME}


def _commit_range(reviewed: RepositoryReview) -> str:
    """Return both revisions as a line of Markdown."""
    ranges = (
        map(_format_commit, (review.before.snapshot, review.after.snapshot))
        for review in reviewed.reviews
    )
    return next((f"_From {' to '.join(commits)}._" for commits in ranges), "")


def _caution_block(reviewed: RepositoryReview) -> str:
    block = bound_cautions(repository_cautions(reviewed))
    lines = [*(caution.text for caution in block.lines), *filter(None, [block.omission])]
    return alert(lines) if lines else ""


# One spec


def _effects(review: Review) -> Iterator[Part]:
    """Yield the parts below the cautions: effects, details."""
    if not review.is_change:
        yield f"{format_config_counts(review.difference)}.".capitalize()
    if reason := review.not_run:
        yield f"Resource changes are not known: {prose(reason.reason)}. To show them: {code(reason.command)}."
    yield from (*cost_parts(review), fit_block(review), *impact_parts(review))
    yield from finding_blocks(review)
    yield from resource_folds(review.environments)
    yield from config_folds(review.difference)


def _split(parts: Iterable[Part]) -> tuple[list[str], list[Fold]]:
    """Return the blocks and the folds, which follow all blocks."""
    all_parts = [*parts]
    blocks = [part for part in all_parts if isinstance(part, str) and part]
    return blocks, [part for part in all_parts if isinstance(part, Fold)]


# Several specs


def _is_worth_a_part(review: Review) -> bool:
    return bool(review.is_change or not review.is_known or review.has_drift or review.fits.notices)


def _sort_key(review: Review) -> tuple[object, ...]:
    """Sort specs by the numbers of their cautions, the most of the highest risk first, and by path."""
    risks = [caution.risk for caution in spec_cautions(review)]
    return (*(-risks.count(risk) for risk in sorted(Risk, reverse=True)), review.path)


def _spec_table(reviews: Sequence[Review]) -> str:
    """Return a row for each changed spec."""
    rows = [
        [code(review.path), headline(review), f"{len(spec_cautions(review)):,}"]
        for review in reviews[:_MAX_ROWS]
    ]
    if more := reviews[_MAX_ROWS:]:
        rows.append(
            [f"{len(more):,} more", "", f"{sum(len(spec_cautions(review)) for review in more):,}"]
        )
    return table(["spec", "changes", "cautions"], rows, [2]) if rows else ""


def _parts(reviews: Iterable[Review]) -> Iterator[Fold]:
    """Yield the part of each spec: its heading and effects, then its folds. Specs with equal parts share one."""
    for (effects, *sections), paths in grouped(
        (_part(review), code(review.path)) for review in reviews
    ).items():
        names = listed(paths, _MAX_NAMES)
        yield effects._replace(title=names, opening=f"#### {names}: {effects.opening}")
        yield from (section._replace(title=f"{section.title} of {names}") for section in sections)


def _part(review: Review) -> tuple[Fold, ...]:
    blocks, folds = _split((*spec_errors(review), *_effects(review), footer(review)))
    return Fold("", f"{headline(review)}\n\n", tuple(f"{block}\n" for block in blocks)), *folds


def _other_files(reviewed: RepositoryReview) -> Iterator[str]:
    """Yield the lines about what is not reviewed."""
    if reviewed.unjudged:
        yield f"_Changed, and not judged by this review: {listed([*map(code, reviewed.unjudged)], _MAX_FILES)}._"
    if count := len(reviewed.others):
        yield f"_{format_count(count, 'other spec')} of this repository {'is' if count == 1 else 'are'} not affected._"


# Commits, errors of specs, and sources of resources


_SHORT_ID_LENGTH: Final = 12
"""Fixed, as git's own choice depends on the number of objects in a clone."""
_MAX_FINDINGS: Final = 12
_SOURCES: Final[Mapping[Source, str]] = {
    "preview": "from Pulumi's preview",
    "program": "from the stack programs of both revisions{}, run without credentials; drift is not detected",
    "unchanged": "unchanged, as the stack program{} and all that it reads are equal; drift is not detected",
    "head": "declared by the stack program of {head}{}; how they change is unknown",
}
"""The sources of resources, with places for the revision and for the programs that are not its own."""
_NO_DRIFT: Final = f"not detected without {code('--refresh')} and {code('PULUMI_ENABLE_STREAMING_JSON_PREVIEW=true')}"


def _format_commit(snapshot: Snapshot) -> str:
    """Return a revision with its commit. Ids are not code, because GitHub and GitLab link plain ids."""
    if (commit := snapshot.commit) is None:
        return f"{format_revision(snapshot)}{' (no commits yet)' if snapshot.exported_to else ''}"
    text = f"{'merge base ' if commit.is_merge_base else ''}{commit.id[:_SHORT_ID_LENGTH]}"
    # Authors know the commit that they pushed, but not the merge commit that GitHub created for it.
    merges = (
        f", which merges {commit.merges[:_SHORT_ID_LENGTH]} into the base" if commit.merges else ""
    )
    is_id = commit.id.startswith(snapshot.title)
    return f"{text if is_id else f'{code(snapshot.title)} ({text})'}{merges}"


def format_revision(snapshot: Snapshot) -> str:
    """Return the name of a git revision as code, and the words `the working tree` as prose."""
    return code(snapshot.title) if snapshot.exported_to else snapshot.title


def spec_errors(review: Review) -> Iterator[str]:
    """Yield blocks of Markdown: the errors of a revision, and what was not compared; nothing if both are valid."""
    if review.is_broken:
        for revision in filter(lambda revision: revision.is_broken, (review.after, review.before)):
            yield from _errors(revision)
        yield "**The specs were not compared**: data protection and access may have changed in ways not shown here."


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
    return shlex.join(
        command_words("check", *(revision.snapshot.display_path for revision in revisions))
    )


# The last line


def footer(review: Review) -> str:
    """Return the line about where the resources come from; empty if there are none."""
    sentences = [*_source_sentences(review), *map(prose, review.notes)]
    return f"_{' '.join(sentences)}_" if sentences else ""


def _source_sentences(review: Review) -> Iterator[str]:
    environments = review.environments
    by_source = {
        source: [item for item in environments if item.source == source] for source in _SOURCES
    }
    for source, text in _SOURCES.items():
        if covered := by_source[source]:
            # Environments are named only if there may be several sources.
            names = f" of {_names(covered)}" if by_source["preview"] else ""
            yield f"Resources{names}: {text.format(_bundled(review), head=format_revision(review.after.snapshot))}."
    if unknown := [
        item for item in by_source["preview"] if not (item.preview.is_refreshed or item.problem)
    ]:
        yield f"Drift of {_names(unknown)} is {_NO_DRIFT}."
    if missing := [environment for environment in environments if environment.preview.has_no_stack]:
        subject, verb = ("stack", "does") if len(missing) == 1 else ("stacks", "do")
        yield f"The {subject} of {_names(missing)} {verb} not exist yet."


def _bundled(review: Review) -> str:
    """Return the revisions without a stack program of their own, in brackets; empty if there are none."""
    snapshots = (review.before.snapshot, review.after.snapshot)
    titles = [
        format_revision(item)
        for item in snapshots
        if item.title in review.revisions_with_bundled_program
    ]
    return f" (the one bundled with tpucfg for {listed(titles, last=' and ')})" if titles else ""


def _names(environments: Sequence[EnvironmentReview]) -> str:
    return listed([code(environment.environment) for environment in environments], _MAX_NAMES)
