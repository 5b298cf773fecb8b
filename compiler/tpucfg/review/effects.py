"""Effects of a change on the jobs, as parts of a comment: cost, fit, impact, drift, warnings."""

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final

from tpucfg.changes.costs import MEASURES, CostChanges, CostRow, Largest, Measure
from tpucfg.changes.figures import ScalingRow, row_label, scaling_cell, scaling_columns
from tpucfg.changes.fits import FitChanges, FitRow
from tpucfg.changes.statements import join_statements
from tpucfg.findings import Finding
from tpucfg.fit.rung_fit import RungFit, short_amount, verdict_text
from tpucfg.git.trees import FIT_FILE
from tpucfg.markdown import code, html, items, prose, table
from tpucfg.number_format import format_factor, format_percent
from tpucfg.redaction import redact
from tpucfg.review.folds import Fold, count_fitting, cut_middle, drift_line, fold
from tpucfg.review.review import Review
from tpucfg.review.revisions import format_revision
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
_MIN_HEADLINE_BYTES: Final = 64 << 20
"""The growth of a smaller amount is no news, however large its percentage."""


_PRICES: Final = {"hours": ("usd",), "chips": ("usd_per_hour", "reserved")}
"""The measures that are shown only for what has no cost, each with the costs of it."""


def _rung_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[Part]:
    """Yield a table of numbers as a block, or as a fold if it is long; nothing if it has no rows."""
    text = table(header, rows, range(1, len(header)))
    if len(rows) > _MAX_OPEN_ROWS:
        names, rule, *lines = text.split("\n")
        title = f"{title} {len(rows):,} rungs"
        yield fold(title, html(title), lines, f"{names}\n{rule}")
    elif rows:
        yield text


# Cost


def cost_phrase(costs: CostChanges) -> str:
    """Return the largest growth for the headline: `+1,240.00 USD for a run on v2-8 in dev (+25%)`; empty if small.

    Money that is known for all configs comes first: what is not known can be the largest.
    """
    for measure in sorted(_shown(costs), key=lambda item: not item.is_money or costs.largest[item.key].unknown > 0):
        largest = costs.largest[measure.key]
        added, growth = largest.after - largest.before, largest.growth
        # Without any job before, all of it is new.
        if added > 0 and (growth is None or growth >= _MIN_HEADLINE_GROWTH):
            phrase = measure.phrase.format(largest.place)
            return f"+{measure.format(added)} {phrase}{_share(largest)}{_unknown(costs, measure, ', ')}"
    return ""


def cost_parts(review: Review) -> Iterator[Part]:
    """Yield the amounts, the table of rungs and its notes; nothing if the change does not touch the jobs."""
    costs = review.costs
    lines = [f"- {line}" for line in amount_lines(costs)] if costs.rows or review.difference else []
    if not lines:
        return
    yield "**Cost**"
    # A cost that stays needs one line.
    yield "\n".join(lines if costs.rows else lines[:1])
    # If only chips are known, the table of figures has them as hosts and cores.
    is_known = any(cost.usd_per_hour or cost.hours for row in costs.rows for cost in row.costs)
    rows = costs.rows if is_known else ()
    measures = [measure for measure in MEASURES if measure.column and _is_shown(measure, rows)]
    cells = [[prose(_row_label(row)), *(_cell(row, measure) for measure in measures)] for row in rows]
    yield from _rung_table("the cost of", ["rung", *(measure.column for measure in measures)], cells)
    if costs.rows and costs.notes:
        yield f"_{prose(' '.join(costs.notes))}_"


def amount_lines(costs: CostChanges) -> Iterator[str]:
    """Yield a line for each measure; one that no config of the head has known has no amount, rather than 0."""
    for measure in _shown(costs):
        largest, unknown = costs.largest[measure.key], _unknown(costs, measure)
        if not largest.place:
            yield f"{measure.line.format('each config', '–')}{unknown}"
            continue
        amounts = [measure.format(amount) for amount in dict.fromkeys((largest.before, largest.after))]
        share = _share(largest) if len(amounts) > 1 else " (as before)"
        yield f"{measure.line.format(largest.place, ' → '.join(amounts))}{share}{unknown}"
    if costs.has_prices and costs.unbounded and "max_usd" not in costs.largest:
        yield f"the most that a run can cost is not bounded: {'; '.join(costs.unbounded)}"


def _unknown(costs: CostChanges, measure: Measure, separator: str = "; ") -> str:
    """Return for how many configs an amount is not known, with the reasons if they have no limit."""
    largest = costs.largest[measure.key]
    if not largest.unknown:
        return ""
    is_unbounded = measure.key == "max_usd" and bool(costs.unbounded) and not costs.largest["usd_per_hour"].unknown
    reasons = f": {'; '.join(costs.unbounded)}" if is_unbounded and separator == "; " else ""
    word = "not bounded" if is_unbounded else "not known"
    return f"{separator}{word} for {largest.unknown:,} of {largest.configs:,}{reasons}"


def _shown(costs: CostChanges) -> Iterator[Measure]:
    """Yield the measures that are known, and that change or are money; hours and chips only for what has no cost."""
    for measure in MEASURES:
        if largest := costs.largest.get(measure.key):
            prices = [costs.largest[key] for key in _PRICES.get(measure.key, ()) if key in costs.largest]
            is_priced = any(price.unknown <= largest.unknown for price in prices)
            if (measure.is_money or largest.before != largest.after) and not is_priced:
                yield measure


def _share(largest: Largest) -> str:
    """Return the change as a share of the amount before: ` (+25%)`."""
    if not largest.growth:
        return ""
    sign = "+" if largest.growth > 0 else "-"
    return f" ({sign}{format_percent(abs(largest.growth))})"


def _is_shown(measure: Measure, rows: Sequence[CostRow]) -> bool:
    """Return True for money, and for other values that change and are known."""
    pairs = [_values(row, measure) for row in rows]
    is_known = any(value is not None for pair in pairs for value in pair)
    return is_known and (measure.is_money or any(old != new for old, new in pairs))


def _row_label(row: CostRow) -> str:
    names = listed(row.environments)
    if row.after is None:
        return f"{row.size}, removed from {names}"
    if not row.baseline:
        return f"{row.size}, new in {names}"
    replaced = f"{row.baseline} → " if row.baseline != row.size else ""
    return f"{replaced}{row.size}, in {names}"


def _cell(row: CostRow, measure: Measure) -> str:
    old, new = _values(row, measure)
    if old == new or row.before is None:
        return measure.format(new)
    factor = f" ({format_factor(new / old)})" if old and new else ""
    return f"{measure.format(old)} → {measure.format(new)}{factor}"


def _values(row: CostRow, measure: Measure) -> tuple[Fraction | None, Fraction | None]:
    old, new = (measure.get(cost) if cost else None for cost in (row.before, row.after))
    return old, new


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


def impact_parts(review: Review) -> Iterator[Part]:
    """Yield the statements that are no cautions, and the table of rungs if a figure of theirs differs."""
    harmless = (located for located in review.impact.statements if not located.statement.risk)
    texts = [cut_middle(text, _MAX_STATEMENT_LENGTH) for text in join_statements(harmless)]
    count = count_fitting(texts[:_MAX_STATEMENTS], _MAX_IMPACT_BYTES)
    more = [f"- … and {len(texts) - count:,} more"] if count < len(texts) else []
    lines = [*(f"- {text}" for text in texts[:count]), *more]
    # A rung that replaces one with equal figures has no columns.
    names = scaling_columns(review.impact.rows)
    rows: tuple[ScalingRow, ...] = review.impact.rows if names else ()
    if lines or rows:
        yield "**Impact**"
        yield "\n".join(lines)
    rule = review.after.project.training.learning_rate_rule if review.after.project else "keep"
    header = ["rung", *(_column_title(name, rule) for name in names)]
    cells = [[prose(row_label(row)), *(scaling_cell(row, name) for name in names)] for row in rows]
    yield from _rung_table("the figures of", header, cells)


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
        for drift in environment.preview.drift
        if not drift.risk
    ]
    return f"**Drift**\n\n{items(lines, _MAX_STATEMENTS)}" if lines else ""


# Warnings


def finding_blocks(review: Review) -> Iterator[str]:
    """Yield the warnings of the spec that are new, changed, resolved, or now allowed."""
    impact = review.impact
    if review.before.is_broken:
        title = f"Warnings in {format_revision(review.after.snapshot)}"
    else:
        title = "New warnings" if review.before.project else "Warnings"
    for heading, findings in (
        (title, impact.new_warnings),
        ("Warnings with other numbers", impact.changed_warnings),
        ("Resolved warnings", impact.ended_warnings),
        ("Now allowed by the spec, and reported as notes", impact.allowed),
    ):
        if findings:
            lines = [f"{code(finding.id)} {prose(_message(finding))}" for finding in findings]
            yield f"**{heading}**\n\n{items(lines, _MAX_FINDINGS)}"


def _message(finding: Finding) -> str:
    return format_value(redact(finding.message), quoted=False, max_length=_MAX_MESSAGE_LENGTH)
