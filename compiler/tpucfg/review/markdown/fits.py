"""The fit of each rung before and after: a line for each that differs, a fold for the others, and a phrase."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from tpucfg.fit.rung_fit import RungFit
from tpucfg.fit.wording import short_amount, verdict_text
from tpucfg.git.export import FIT_FILE
from tpucfg.markdown import code, html, items, prose
from tpucfg.number_format import format_percent
from tpucfg.redaction import redact
from tpucfg.review.changes.fits.fit_changes import FitChanges, FitRow
from tpucfg.review.markdown.section import Block, Item, Section, fold
from tpucfg.review.review import Review
from tpucfg.text_format import format_count, format_value, listed

_MAX_OPEN_ROWS: Final = 12
"""Rungs that can be read at a glance; further ones are folded."""
_MIN_HEADLINE_GROWTH: Final = Fraction(1, 10)
_MIN_HEADLINE_BYTES: Final = 64 << 20
"""The growth of a smaller amount is no news, however large its percentage."""
_VERDICTS: Final = {
    "fits": ("fits", "fit"),
    "does not fit": ("does not fit", "do not fit"),
    "outdated": ("is outdated", "are outdated"),
    "not compiled": ("was never compiled", "were never compiled"),
}
"""By verdict, the words after the number of rungs with it."""
_BY_THIS_RUN: Final = "compiled by this run"
_AS_COMMITTED: Final = "as committed"


def fit_block(review: Review) -> str:
    """Return the rungs that differ, and a count of the others; empty if the change touches neither jobs nor results."""
    if not _is_shown(review):
        return ""
    fits = review.fits
    differing = fit_lines(fits)
    lines = [items(differing, _MAX_OPEN_ROWS)] if differing else []
    if same := [row for row in fits.rows if not row.differs]:
        lines.append(f"- {'as before: ' if differing else 'as before, '}{_counts(same)}")
    return "\n\n".join([f"**Fit**: memory (HBM) of a device, {_source(fits.rows)}", "\n".join(lines)])


def fit_sections(review: Review) -> list[Section]:
    """Return a fold with the rungs that the block only counts."""
    fits = review.fits
    if not _is_shown(review):
        return []
    more = fit_lines(fits)[_MAX_OPEN_ROWS:]
    same = [_line(row, fits) for row in fits.rows if not row.differs]
    if not more and not same:
        return []
    title = f"the fit of {format_count(len(more) + len(same), 'rung')}"
    lines = tuple(Item(f"- {line}", line.partition(":")[0]) for line in (*more, *same))
    return [fold(title, html(title), [Block(lines)])]


def fit_lines(fits: FitChanges) -> list[str]:
    """Return the rungs that differ, as lines of Markdown: `v5litepod-64: 11.2 of 15.75 GiB, was 9.8`."""
    return [_line(row, fits) for row in _differing(fits)]


def fit_phrase(fits: FitChanges) -> str:
    """Return the largest growth of a rung's memory for the headline; empty if it is small."""
    grown = [(row.growth, row.size) for row in fits.rows if row.is_change and row.growth and _is_large(row.after)]
    growth, size = max(grown, default=(Fraction(0), ""))
    return f"+{format_percent(growth)} memory on {size}" if growth >= _MIN_HEADLINE_GROWTH else ""


def _is_large(fit: RungFit) -> bool:
    return fit.current is not None and fit.current.memory.used >= _MIN_HEADLINE_BYTES


def _is_shown(review: Review) -> bool:
    fits = review.fits
    is_compiled_anew = any(row.before and row.before.result != row.after.result for row in fits.rows)
    return bool(fits.rows and (_differing(fits) or review.difference or fits.notices or is_compiled_anew))


def _differing(fits: FitChanges) -> list[FitRow]:
    return [row for row in fits.rows if row.differs]


def _counts(rows: Sequence[FitRow]) -> str:
    """Return the number of configs by verdict: `3 configs fit, 1 does not fit`."""
    counts = Counter[str]()
    for row in rows:
        counts[row.after.verdict] += len(row.environments)
    known = [(counts[verdict], words) for verdict, words in _VERDICTS.items() if counts[verdict]]
    (first, verbs), *others = known
    phrases = (f"{count:,} {words[count != 1]}" for count, words in others)
    return ", ".join([f"{format_count(first, 'config')} {verbs[first != 1]}", *phrases])


def _source(rows: Sequence[FitRow]) -> str:
    """Return the source of the results, if it is the same for all that are known."""
    known = {row.after.is_trusted for row in rows if row.after.current}
    if known == {True}:
        return _BY_THIS_RUN
    if known == {True, False}:
        return f"{_BY_THIS_RUN} unless noted"
    return f"as committed in {code(str(FIT_FILE))}"


def _line(row: FitRow, fits: FitChanges) -> str:
    names = "" if row.is_everywhere else f", in {listed(row.environments)}"
    has_both = len({other.after.is_trusted for other in fits.rows if other.after.current}) > 1
    source = f" ({_AS_COMMITTED})" if has_both and row.after.current and not row.after.is_trusted else ""
    return f"{prose(row.size + names)}: {_after(row.after, fits)}{source}{_before(row)}"


def _after(fit: RungFit, fits: FitChanges) -> str:
    if fit.result is None and fits.problem:
        return "not known"
    changes = format_value(redact(listed(fit.changes)), quoted=False, max_length=200)
    return f"{fit.verdict}, compiled before a change of {code(changes)}" if fit.changes else verdict_text(fit)


def _before(row: FitRow) -> str:
    if row.before is None or not row.differs:
        return ""
    old, new = row.before.current, row.after.current
    if old and new and old.fits and old.memory.available == new.memory.available:
        return f", was {short_amount(old.memory.used)}"
    return f", was {verdict_text(row.before)}"
