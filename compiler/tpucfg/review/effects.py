"""Effects of a change on the jobs, as parts of a comment: cost, fit, impact, warnings."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Final

from tpucfg.changes.costs import COST_FORMATS, COST_TITLES, CostChanges, cost_growth
from tpucfg.changes.figures import (
    MONEY,
    RungComparison,
    changed_columns,
    figure_values,
    row_label,
    rung_cell,
)
from tpucfg.changes.fits import FitChanges, FitRow
from tpucfg.changes.statements import join_statements
from tpucfg.findings import Finding
from tpucfg.fit.rung_fit import RungFit, short_amount, verdict_text
from tpucfg.markdown import code, html, items, prose, table
from tpucfg.number_format import format_percent
from tpucfg.redaction import redact
from tpucfg.review.folds import Fold, count_fitting, cut_middle, fold
from tpucfg.review.review import Review
from tpucfg.text_format import format_count, format_value, listed

Part = str | Fold
"""A block of Markdown that is always shown, or a fold."""
_MAX_OPEN_ROWS: Final = 12
"""Rungs that can be read at a glance; a longer table is folded."""
_MAX_STATEMENTS: Final = 40
_MAX_STATEMENT_LENGTH: Final = 1_500
"""One scope must not push the others out of the block."""
_MAX_IMPACT_BYTES: Final = 10_000
_MAX_FINDINGS: Final = 12
_MAX_MESSAGE_LENGTH: Final = 500
_MIN_HEADLINE_GROWTH: Final = Fraction(1, 10)
"""The least growth of a cost that is news."""


def _rung_table(
    title: str, rows: Sequence[RungComparison], names: Sequence[str], titles: Callable[[str], str]
) -> Iterator[Part]:
    """Yield a table of figures as a block, or as a fold if it is long; nothing if it has no rows or no columns."""
    cells = [[prose(row_label(row)), *(rung_cell(row, name) for name in names)] for row in rows]
    text = table(["rung", *map(titles, names)], cells, range(1, len(names) + 1))
    if len(rows) > _MAX_OPEN_ROWS:
        header, rule, *lines = text.split("\n")
        title = f"{title} {len(rows):,} rungs"
        yield fold(title, html(title), lines, f"{header}\n{rule}")
    elif rows and names:
        yield text


# Cost


def cost_phrase(costs: CostChanges) -> str:
    """Return the largest growth for the headline: `+1,240.00 USD/run on v2-8 in dev (+25%)`; empty if it is small.

    What is known for all rungs that change comes first: what is not known can be the largest. A rung without such a
    figure, as of reserved machines, is no unknown one.
    """
    rows = [row for row in costs.rows if row.differs]

    def is_unknown(key: str) -> bool:
        return any(
            cost_growth(row, key) is None for row in rows if key in row.before or key in row.after
        )

    for key in sorted(COST_TITLES, key=is_unknown):
        growths = [
            (growth, row) for row in rows if (growth := cost_growth(row, key)) and growth > 0
        ]
        if growths:
            growth, row = max(growths, key=lambda pair: pair[0])
            share = growth / old if (old := figure_values(row.before).get(key)) else None
            # Without any job before, all of it is new.
            if share is None or share >= _MIN_HEADLINE_GROWTH:
                percent = f" (+{format_percent(share)})" if share else ""
                return (
                    f"+{COST_FORMATS[key](growth)} {COST_TITLES[key]} on {row_label(row)}{percent}"
                )
    return ""


def cost_parts(review: Review) -> Iterator[Part]:
    """Yield the table of rungs whose cost differs, or of the dearest; nothing if the change does not touch the jobs."""
    changed = [row for row in review.costs.rows if row.differs]
    rows = changed or (review.costs.rows[:1] if review.difference else ())
    known = {
        name for row in rows for name in (*figure_values(row.before), *figure_values(row.after))
    }
    # If only chips are known, the table of figures has them as hosts and cores.
    if known.isdisjoint((*MONEY, "hours")):
        return
    names = [*dict.fromkeys((*changed_columns(rows), *(name for name in MONEY if name in known)))]
    if names:
        yield "**Cost**" if changed else "**Cost** as before, of the dearest rung"
        yield from _rung_table(
            "the cost of", rows, sorted(names, key=[*COST_TITLES].index), COST_TITLES.__getitem__
        )
        if review.costs.notes:
            yield f"_{prose(' '.join(review.costs.notes))}_"


# Fit


def fit_block(review: Review) -> str:
    """Return the rungs that differ, and a count of the others; empty if the change touches neither jobs nor results."""
    fits = review.fits
    is_touched = any(
        row.differs or (row.before and row.before.result != row.after.result) for row in fits.rows
    )
    if not (fits.rows and (is_touched or review.difference or fits.notices)):
        return ""
    lines = [_fit_line(row, fits) for row in fits.rows if row.differs]
    same = Counter[str]()
    for row in fits.rows:
        verdict = f"{row.after.verdict}, as committed" if _is_committed(row) else row.after.verdict
        same[verdict] += 0 if row.differs else len(row.environments)
    counts = [
        f"{format_count(count, 'config')} ({verdict})" for verdict, count in same.items() if count
    ]
    lines += [f"as before: {', '.join(counts)}"] if counts else []
    return f"**Fit**: memory (HBM) of a device\n\n{items(lines, _MAX_STATEMENTS)}"


def _fit_line(row: FitRow, fits: FitChanges) -> str:
    """Return the fit of a rung as a line of Markdown: `v5litepod-64 in dev: 11.2 of 15.75 GiB, was 9.8`."""
    source = " (as committed)" if _is_committed(row) else ""
    label = prose(f"{row.size} in {listed(row.environments)}")
    return f"{label}: {_fit_after(row.after, fits)}{source}{_fit_before(row)}"


def _is_committed(row: FitRow) -> bool:
    """Return True for a result that no job of this run made."""
    return row.after.current is not None and not row.after.is_trusted


def _fit_after(fit: RungFit, fits: FitChanges) -> str:
    if fit.result is None and fits.problem:
        return "not known"
    changes = format_value(redact(listed(fit.changes)), quoted=False, max_length=200)
    return (
        f"{fit.verdict}, compiled before a change of {code(changes)}"
        if fit.changes
        else verdict_text(fit)
    )


def _fit_before(row: FitRow) -> str:
    if row.before is None:
        return ""
    old, new = row.before.current, row.after.current
    if old and new and old.fits and old.memory.available == new.memory.available:
        return f", was {short_amount(old.memory.used)}"
    return f", was {verdict_text(row.before)}"


# Impact


def impact_parts(review: Review) -> Iterator[Part]:
    """Yield the statements that are no cautions, and the table of rungs if a figure of theirs differs."""
    harmless = (located for located in review.impact.statements if not located.statement.risk)
    texts = [cut_middle(text, _MAX_STATEMENT_LENGTH) for text in join_statements(harmless)]
    count = count_fitting(texts[:_MAX_STATEMENTS], _MAX_IMPACT_BYTES)
    more = [f"- … and {len(texts) - count:,} more"] if count < len(texts) else []
    lines = [*(f"- {text}" for text in texts[:count]), *more]
    # A rung that replaces one with equal figures has no columns.
    names = changed_columns(review.impact.rows)
    if lines or names:
        yield "**Impact**"
        yield "\n".join(lines)
    rule = review.after.project.training.learning_rate_rule if review.after.project else "keep"
    yield from _rung_table(
        "the figures of", review.impact.rows, names, lambda name: _column_title(name, rule)
    )


def _column_title(name: str, learning_rate_rule: str) -> str:
    if name == "learning rate" and learning_rate_rule != "keep":
        return f"{name} ({learning_rate_rule} rule)"
    # A name with an underscore is a key of `steps` in the spec.
    return code(name) if "_" in name else prose(name)


# Warnings


def finding_blocks(review: Review) -> Iterator[str]:
    """Yield the warnings of the spec that are new or changed, resolved, or now allowed."""
    impact = review.impact
    title = "New or changed warnings" if review.before.project else "Warnings"
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
