"""The reviews of several specs as one Markdown comment: all cautions, their sum, and a part for each changed spec."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from tpucfg.changes.statements import Risk
from tpucfg.markdown import code, prose, table
from tpucfg.review.markdown.cautions import Caution, cautions
from tpucfg.review.markdown.comment import (
    OMISSION_HINT,
    caution_block,
    comment,
    description,
    effects,
    folds,
    marker,
    markers,
)
from tpucfg.review.markdown.commit_range import format_commit_range
from tpucfg.review.markdown.footer import footer
from tpucfg.review.markdown.section import Section, markdown_blocks
from tpucfg.review.markdown.since_line import since_line
from tpucfg.review.markdown.size_limit import join_within_limit
from tpucfg.review.markdown.spec_errors import spec_errors
from tpucfg.review.markdown.summary import headline
from tpucfg.review.review import RepositoryReview, Review
from tpucfg.text_format import format_count, listed

_MAX_NAMES: Final = 16
_MAX_ROWS: Final = 40
"""Rows of the table of specs; further specs are counted, and have parts of their own."""
_MAX_SHARED: Final = 3
"""Specs that the line of a caution names; of more, it gives the number and the first ones."""


class _Part(NamedTuple):
    """A reviewed spec, as the comment shows it."""

    path: str
    headline: str
    cautions: tuple[Caution, ...]
    blocks: tuple[str, ...]
    folds: tuple[Section, ...]
    footer: str

    @property
    def gravity(self) -> tuple[int, ...]:
        """The numbers of its cautions by risk, the highest risk first."""
        risks = [caution.risk for caution in self.cautions]
        return tuple(risks.count(risk) for risk in sorted(Risk, reverse=True))


def repository_comment(reviewed: RepositoryReview) -> str:
    """Return the comment on all reviewed specs. One reviewed spec has its usual comment."""
    others = _others_line(reviewed)
    if len(reviewed.reviews) == 1 and not reviewed.failures:
        review = reviewed.reviews[0].with_statements(reviewed.statements)
        return comment(review, others, reviewed.earlier, is_of_repository=reviewed.is_of_repository)
    changed = sorted(_changed_parts(reviewed), key=lambda part: ([-count for count in part.gravity], part.path))
    unchanged = [review.after.snapshot.repository_path for review in reviewed.reviews if not _is_worth_a_part(review)]
    first_lines = markers("", reviewed.reviews[0], reviewed.earlier) if reviewed.reviews else marker("")
    head = [first_lines, f"### tpucfg review: {repository_headline(reviewed)}", _commit_line(reviewed)]
    head.append(since_line(reviewed.earlier))
    head += [caution_block(_all_cautions(changed, reviewed)), _spec_table(changed)]
    sections = [section for group in _equal_parts(changed) for section in _group_sections(group)]
    last = [_unchanged_line(unchanged), others, *_footers(changed)]
    text = "\n\n".join(block for block in head if block)
    return join_within_limit(text, sections, "\n\n".join(filter(None, last)), omission_hint=OMISSION_HINT)


def repository_headline(reviewed: RepositoryReview) -> str:
    """Return the sum of all reviews in one line; of one review, its own headline."""
    if len(reviewed.reviews) == 1 and not reviewed.failures:
        return headline(reviewed.reviews[0].with_statements(reviewed.statements))
    changed = [review for review in reviewed.reviews if review.is_change]
    total = len(reviewed.reviews) + len(reviewed.failures) + len(reviewed.others)
    phrases = [f"{len(changed):,} of {format_count(total, 'spec')} changed"]
    broken = sum(review.is_broken for review in reviewed.reviews) + len(reviewed.failures)
    if broken:
        phrases.append(f"{broken:,} with errors")
    destructive = sum(review.is_destructive for review in reviewed.reviews)
    if destructive:
        phrases.append(f"{destructive:,} {'loses' if destructive == 1 else 'lose'} data or protection")
    unknown = sum(not review.is_known for review in reviewed.reviews if not review.is_broken)
    if unknown:
        phrases.append(f"resource changes of {unknown:,} unknown")
    phrases += dict.fromkeys(
        located.statement.headline for located in reviewed.statements if located.statement.headline
    )
    return ", ".join(phrases)


def _is_worth_a_part(review: Review) -> bool:
    return bool(review.is_change or not review.is_known or review.has_drift or review.fits.notices)


def _changed_parts(reviewed: RepositoryReview) -> Iterator[_Part]:
    for review in reviewed.reviews:
        if _is_worth_a_part(review):
            yield _Part(
                review.after.snapshot.repository_path,
                headline(review),
                tuple(cautions(review)),
                tuple(filter(None, (*spec_errors(review), *description(review), *effects(review)))),
                tuple(folds(review)),
                footer(review),
            )


def _commit_line(reviewed: RepositoryReview) -> str:
    snapshots = next(((review.before.snapshot, review.after.snapshot) for review in reviewed.reviews), None)
    return format_commit_range(*snapshots) if snapshots else ""


def _spec_table(parts: Sequence[_Part]) -> str:
    """Return a row for each changed spec."""
    rows = [[code(part.path), part.headline, f"{len(part.cautions):,}"] for part in parts[:_MAX_ROWS]]
    if more := parts[_MAX_ROWS:]:
        rows.append([f"{len(more):,} more", "", f"{sum(len(part.cautions) for part in more):,}"])
    return table(["spec", "changes", "cautions"], rows, [2]) if rows else ""


def _all_cautions(parts: Sequence[_Part], reviewed: RepositoryReview) -> list[Caution]:
    """Return the cautions of all specs, the highest risk first; specs with the same caution share a line."""
    specs: dict[Caution, list[str]] = {}
    for part in parts:
        for caution in part.cautions:
            specs.setdefault(caution, []).append(part.path)
    grouped = [caution._replace(text=f"{_specs(paths)}: {caution.text}") for caution, paths in specs.items()]
    failed = [
        Caution(Risk.UNKNOWN, f"{code(failure.path)}: not reviewed: {prose(failure.reason)}; {prose(failure.help)}")
        for failure in reviewed.failures
    ]
    own = [Caution(located.statement.risk, located.statement.markdown) for located in reviewed.statements]
    return sorted([*own, *failed, *grouped], key=lambda caution: -caution.risk)


def _specs(paths: Sequence[str]) -> str:
    names = listed([code(path) for path in paths], _MAX_SHARED)
    return names if len(paths) <= _MAX_SHARED else f"{len(paths):,} specs ({names})"


def _equal_parts(parts: Sequence[_Part]) -> Iterable[Sequence[_Part]]:
    """Return the parts grouped by their text in the comment, in the order of their first members."""
    groups: dict[tuple[str, ...], list[_Part]] = {}
    for part in parts:
        content = (part.headline, *part.blocks, *(section.text for section in part.folds))
        groups.setdefault(content, []).append(part)
    return groups.values()


def _group_sections(parts: Sequence[_Part]) -> Iterator[Section]:
    """Yield a part of the comment: its heading and effects, then its folds."""
    first, names = parts[0], listed([code(part.path) for part in parts], _MAX_NAMES)
    heading = f"#### {names}: {first.headline}"
    yield Section(names, heading, tuple(block for text in first.blocks for block in markdown_blocks(text)))
    for section in first.folds:
        yield section._replace(title=f"{section.title} of {names}")


def _others_line(reviewed: RepositoryReview) -> str:
    if not reviewed.others:
        return ""
    count = len(reviewed.others)
    return f"_{format_count(count, 'other spec')} of this repository {'is' if count == 1 else 'are'} not affected._"


def _unchanged_line(paths: Sequence[str]) -> str:
    return f"_No effect on {listed([code(path) for path in paths], _MAX_NAMES)}._" if paths else ""


def _footers(parts: Iterable[_Part]) -> Iterator[str]:
    """Yield each different last line once."""
    paths: dict[str, list[str]] = {}
    for part in parts:
        if part.footer:
            paths.setdefault(part.footer, []).append(part.path)
    for line, owners in paths.items():
        yield line if len(paths) == 1 else f"{listed([code(path) for path in owners], _MAX_NAMES)}: {line}"
