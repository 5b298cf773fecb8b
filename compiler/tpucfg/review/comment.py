"""The review as one Markdown comment: heading, cautions, counts, effects of each changed spec, and folded details."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final
from urllib.parse import quote

from tpucfg.changes.describe import format_config_counts
from tpucfg.changes.statements import Risk
from tpucfg.markdown import alert, code, prose, table
from tpucfg.paths import grouped
from tpucfg.review.bounds import Fold, join_within_limit
from tpucfg.review.cautions import bound_cautions, repository_cautions, spec_cautions
from tpucfg.review.effects import Part, cost_parts, drift_block, finding_blocks, fit_block, impact_parts
from tpucfg.review.folds import config_folds, drift_folds, resource_folds
from tpucfg.review.review import RepositoryReview, Review
from tpucfg.review.revisions import footer, format_commit_range, spec_errors
from tpucfg.review.summary import counts_table, headline, repository_headline
from tpucfg.spec import SPEC_NAME
from tpucfg.text_format import format_count, listed

_MAX_NAMES: Final = 16
_MAX_ROWS: Final = 40
"""Rows of the table of specs; further specs are counted, and have parts of their own."""
_HINT: Final = f"_Complete output: {code('tpucfg review --format json')}._"
"""The last line of a comment from which something is omitted."""


def comment(reviewed: RepositoryReview) -> str:
    """Return the comment. Equal reviews have equal bytes, so that a workflow can skip an unchanged comment."""
    only = reviewed.only
    spec = only.path if only else ""
    name = f" of {code(spec)}" if _has_own_marker(spec) else ""
    # The next review of a repository may affect other specs: its comment has to replace this one.
    first_line = marker("" if reviewed.is_of_repository else spec)
    head = [first_line, f"### tpucfg review{name}: {repository_headline(reviewed)}", _commit_range(reviewed)]
    if only:
        # The errors are why the effects are not known.
        blocks, folds = _split(_effects(only))
        head += [*spec_errors(only), _caution_block(reviewed), *blocks]
        foot = [_others_line(reviewed), footer(only)]
    else:
        shown = sorted(filter(_is_worth_a_part, reviewed.reviews), key=_sort_key)
        head += [_caution_block(reviewed), _spec_table(shown)]
        folds = [*_parts(shown)]
        foot = [_unchanged_line(reviewed), _others_line(reviewed)]
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
    snapshots = next(((review.before.snapshot, review.after.snapshot) for review in reviewed.reviews), None)
    return format_commit_range(*snapshots) if snapshots else ""


def _caution_block(reviewed: RepositoryReview) -> str:
    block = bound_cautions(repository_cautions(reviewed))
    lines = [*(caution.text for caution in block.lines), *filter(None, [block.omission])]
    return alert(lines) if lines else ""


# One spec


def _effects(review: Review) -> Iterator[Part]:
    """Yield the parts below the cautions: counts, effects, details."""
    if not review.is_change:
        yield f"{format_config_counts(review.difference)}.".capitalize()
    yield counts_table(review)
    if reason := review.not_run:
        yield f"Resource changes are not known: {prose(reason.reason)}. To show them: {code(reason.command)}."
    yield from (*cost_parts(review), fit_block(review), *impact_parts(review), drift_block(review))
    yield from finding_blocks(review)
    yield from (*resource_folds(review.environments), *drift_folds(review.environments))
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
    counts = [len(spec_cautions(review)) for review in reviews]
    rows = [
        [code(review.path), headline(review), f"{count:,}"]
        for review, count in zip(reviews[:_MAX_ROWS], counts, strict=False)
    ]
    if more := counts[_MAX_ROWS:]:
        rows.append([f"{len(more):,} more", "", f"{sum(more):,}"])
    return table(["spec", "changes", "cautions"], rows, [2]) if rows else ""


def _parts(reviews: Iterable[Review]) -> Iterator[Fold]:
    """Yield the part of each spec: its heading and effects, then its folds. Specs with equal parts share one."""
    for (effects, *sections), paths in grouped((_part(review), code(review.path)) for review in reviews).items():
        names = listed(paths, _MAX_NAMES)
        yield effects._replace(title=names, opening=f"#### {names}: {effects.opening}")
        yield from (section._replace(title=f"{section.title} of {names}") for section in sections)


def _part(review: Review) -> tuple[Fold, ...]:
    blocks, folds = _split((*spec_errors(review), *_effects(review), footer(review)))
    return Fold("", f"{headline(review)}\n\n", tuple(f"{block}\n" for block in blocks)), *folds


def _others_line(reviewed: RepositoryReview) -> str:
    if not reviewed.others:
        return ""
    count = len(reviewed.others)
    return f"_{format_count(count, 'other spec')} of this repository {'is' if count == 1 else 'are'} not affected._"


def _unchanged_line(reviewed: RepositoryReview) -> str:
    paths = [review.path for review in reviewed.reviews if not _is_worth_a_part(review)]
    return f"_No effect on {listed([code(path) for path in paths], _MAX_NAMES)}._" if paths else ""
