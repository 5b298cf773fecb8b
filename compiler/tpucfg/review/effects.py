"""Effects of a change on the jobs, as blocks of a comment: fit, impact, drift, warnings."""

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final

from tpucfg.changes.figures import ScalingRow, row_label, scaling_cell, scaling_columns
from tpucfg.changes.fits import FitChanges, FitRow
from tpucfg.changes.statements import join_statements
from tpucfg.findings import Finding
from tpucfg.fit.rung_fit import RungFit
from tpucfg.fit.wording import short_amount, verdict_text
from tpucfg.git.repository import FIT_FILE
from tpucfg.markdown import code, html, items, prose, table
from tpucfg.number_format import format_percent
from tpucfg.redaction import redact
from tpucfg.review.bounds import Fold, bound_lines, fold
from tpucfg.review.folds import drift_line
from tpucfg.review.review import Review
from tpucfg.review.revisions import format_revision
from tpucfg.text_format import format_count, format_value, listed

MAX_OPEN_ROWS: Final = 12
"""Rungs that can be read at a glance; a longer table is folded."""
_MAX_STATEMENTS: Final = 40
_MAX_IMPACT_BYTES: Final = 10_000
_MAX_FINDINGS: Final = 12
_MAX_MESSAGE_LENGTH: Final = 500
_MIN_HEADLINE_GROWTH: Final = Fraction(1, 10)
_MIN_HEADLINE_BYTES: Final = 64 << 20
"""The growth of a smaller amount is no news, however large its percentage."""


def table_with_fold(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[str, list[Fold]]:
    """Return a table of numbers as a block, or as a fold if it is long; neither if it has no rows."""
    text = table(header, rows, range(1, len(header))) if rows else ""
    if len(rows) <= MAX_OPEN_ROWS:
        return text, []
    names, rule, *lines = text.split("\n")
    return "", [fold(title, html(title), lines, f"{names}\n{rule}")]


# Fit


def fit_block(review: Review) -> str:
    """Return the rungs that differ, and a count of the others; empty if the change touches neither jobs nor results."""
    fits = review.fits
    is_touched = any(row.differs or (row.before and row.before.result != row.after.result) for row in fits.rows)
    if not (fits.rows and (is_touched or review.difference or fits.notices)):
        return ""
    lines = [_fit_line(row, fits) for row in fits.rows if row.differs]
    same = Counter[str]()
    for row in fits.rows:
        same[row.after.verdict] += 0 if row.differs else len(row.environments)
    counts = [f"{format_count(count, 'config')} ({verdict})" for verdict, count in same.items() if count]
    lines += [f"as before: {', '.join(counts)}"] if counts else []
    return f"**Fit**: memory (HBM) of a device, {_fit_source(fits.rows)}\n\n{items(lines, _MAX_STATEMENTS)}"


def fit_phrase(fits: FitChanges) -> str:
    """Return the largest growth of a rung's memory for the headline; empty if it is small."""
    grown = [(row.growth, row.size) for row in fits.rows if row.is_change and row.growth and _is_large(row.after)]
    growth, size = max(grown, default=(Fraction(0), ""))
    return f"+{format_percent(growth)} memory on {size}" if growth >= _MIN_HEADLINE_GROWTH else ""


def _is_large(fit: RungFit) -> bool:
    return fit.current is not None and fit.current.memory.used >= _MIN_HEADLINE_BYTES


def _fit_source(rows: Sequence[FitRow]) -> str:
    """Return the source of the results that are known; of several sources, each line about the other one names it."""
    known = {row.after.is_trusted for row in rows if row.after.current}
    if True not in known:
        return f"as committed in {code(str(FIT_FILE))}"
    return "compiled by this run unless noted" if False in known else "compiled by this run"


def _fit_line(row: FitRow, fits: FitChanges) -> str:
    """Return the fit of a rung as a line of Markdown: `v5litepod-64: 11.2 of 15.75 GiB, was 9.8`."""
    names = "" if row.is_everywhere else f", in {listed(row.environments)}"
    has_both = len({other.after.is_trusted for other in fits.rows if other.after.current}) > 1
    source = " (as committed)" if has_both and row.after.current and not row.after.is_trusted else ""
    return f"{prose(row.size + names)}: {_fit_after(row.after, fits)}{source}{_fit_before(row)}"


def _fit_after(fit: RungFit, fits: FitChanges) -> str:
    if fit.result is None and fits.problem:
        return "not known"
    changes = format_value(redact(listed(fit.changes)), quoted=False, max_length=200)
    return f"{fit.verdict}, compiled before a change of {code(changes)}" if fit.changes else verdict_text(fit)


def _fit_before(row: FitRow) -> str:
    if row.before is None:
        return ""
    old, new = row.before.current, row.after.current
    if old and new and old.fits and old.memory.available == new.memory.available:
        return f", was {short_amount(old.memory.used)}"
    return f", was {verdict_text(row.before)}"


# Impact


def impact_block(review: Review) -> str:
    """Return the statements that are no cautions, and the table of rungs if it is short."""
    harmless = (located for located in review.impact.statements if not located.statement.risk)
    lines = bound_lines(join_statements(harmless), _MAX_STATEMENTS, _MAX_IMPACT_BYTES)
    rungs, _ = _rung_table(review)
    blocks = [block for block in ("\n".join(lines), rungs) if block]
    return "\n\n".join(["**Impact**", *blocks]) if blocks else ""


def rung_folds(review: Review) -> list[Fold]:
    """Return a fold with the table of rungs if it is long."""
    return _rung_table(review)[1]


def _rung_table(review: Review) -> tuple[str, list[Fold]]:
    """Return the table; none if no figure differs, as when a rung replaces one with equal figures."""
    names = scaling_columns(review.impact.rows)
    rows: tuple[ScalingRow, ...] = review.impact.rows if names else ()
    rule = review.after.project.training.learning_rate_rule if review.after.project else "keep"
    header = ["rung", *(_column_title(name, rule) for name in names)]
    cells = [[prose(row_label(row)), *(scaling_cell(row, name) for name in names)] for row in rows]
    return table_with_fold(f"the figures of {len(rows):,} rungs", header, cells)


def _column_title(name: str, learning_rate_rule: str) -> str:
    if name == "learning rate" and learning_rate_rule != "keep":
        return f"{name} ({learning_rate_rule} rule)"
    # A name with an underscore is a key of `steps` in the spec.
    return code(name) if "_" in name else prose(name)


def drift_block(review: Review) -> str:
    """Return what differs in the cloud without being a caution."""
    lines = [
        f"**{prose(environment.environment)}**: {drift_line(drift)}"
        for environment in review.environments
        for drift in environment.drift
        if not drift.risk
    ]
    return f"**Drift**\n\n{items(lines, _MAX_STATEMENTS)}" if lines else ""


# Warnings


def finding_blocks(review: Review) -> Iterator[str]:
    """Yield the warnings of the spec that are new, that are resolved, and that are now allowed."""
    impact = review.impact
    if review.before.is_broken:
        title = f"Warnings in {format_revision(review.after.snapshot)}"
    else:
        title = "New warnings" if review.before.project else "Warnings"
    for heading, findings in (
        (title, impact.new_warnings),
        ("Resolved warnings", impact.ended_warnings),
        ("Now allowed by the spec, and reported as notes", impact.allowed),
    ):
        if findings:
            lines = [f"{code(finding.id)} {prose(_message(finding))}" for finding in findings]
            yield f"**{heading}**\n\n{items(lines, _MAX_FINDINGS)}"


def _message(finding: Finding) -> str:
    return format_value(redact(finding.message), quoted=False, max_length=_MAX_MESSAGE_LENGTH)
