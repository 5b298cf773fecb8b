"""The costs of the jobs before and after: a line for each sum, a table of the rungs that change, and a phrase."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from tpucfg.markdown import prose
from tpucfg.number_format import format_factor, format_percent
from tpucfg.review.bounds import Fold
from tpucfg.review.changes.costs.cost_changes import CostChanges, Total
from tpucfg.review.changes.costs.cost_rows import CostRow
from tpucfg.review.changes.costs.run_cost import MEASURES, Measure
from tpucfg.review.effects import table_with_fold
from tpucfg.review.review import Review
from tpucfg.text_format import listed

_MIN_HEADLINE_GROWTH: Final = Fraction(1, 10)


class _Sum(NamedTuple):
    """The texts about a sum over all configs."""

    line: str
    """A line of the comment, with the amounts."""
    phrase: str
    """The words after the growth in the headline, with a place for the configs that the sum covers."""
    all_configs: str = "each config"
    """The words for these configs, if the sum covers all."""


_SUMS: Final = {
    "usd": _Sum("one run of each config costs {} USD", "USD for one run of {}"),
    "usd_per_hour": _Sum("all configs together cost {} USD an hour", "USD an hour for {}", "all configs together"),
    "max_usd": _Sum("one run of each config can cost at most {} USD", "USD at most for one run of {}"),
    "chip_hours": _Sum("one run of each config takes {} chip hours", "chip hours for one run of {}"),
    "chips": _Sum("all configs together have {} chips", "chips"),
}
"""In the order in which the headline prefers them."""
_NOT_BOUNDED: Final = "not bounded"
_PRICED: Final = ("usd", "usd_per_hour", "max_usd")
"""The measures that are amounts of money."""
_FORMATS: Final = {measure.key: measure.format for measure in MEASURES}


def cost_phrase(costs: CostChanges) -> str:
    """Return the growth for the headline: `+1,240.00 USD for one run of each config (+25%)`; empty if it is small.

    A sum that leaves configs out names how many it covers: `for one run of 1 of 3 configs (+25%), 2 not known`.
    """
    for key in _shown_sums(costs):
        total = costs.totals[key]
        added, growth = total.after - total.before, total.growth
        # Without any job before, all of it is new. Rounded, because the amounts of a sum are.
        if added > 0 and (growth is None or round(growth, 6) >= _MIN_HEADLINE_GROWTH):
            sum_, known = _SUMS[key], total.configs - total.unknown
            configs = f"{known:,} of {total.configs:,} configs" if total.unknown else sum_.all_configs
            unknown = f", {total.unknown:,} {_unknown_word(costs, key)}" if total.unknown else ""
            return f"+{_FORMATS[key](added)} {sum_.phrase.format(configs)}{_share(total)}{unknown}"
    return ""


def cost_block(review: Review) -> str:
    """Return the sums, and the table of rungs if it is short; empty if the change does not touch the jobs."""
    costs = review.costs
    lines = [f"- {line}" for line in sum_lines(costs)] if costs.rows or review.difference else []
    if not lines:
        return ""
    if not costs.rows:
        # A cost that stays needs one line.
        return f"**Cost**\n\n{lines[0]}"
    rungs, _ = _cost_table(costs)
    notes = f"_{prose(' '.join(costs.notes))}_" if costs.notes else ""
    return "\n\n".join(filter(None, ["**Cost**", "\n".join(lines), rungs, notes]))


def cost_folds(review: Review) -> list[Fold]:
    """Return a fold with the table of rungs if it is long."""
    return _cost_table(review.costs)[1]


def sum_lines(costs: CostChanges) -> Iterator[str]:
    """Yield a line for each sum; one that covers no config of the head has no amount, rather than 0."""
    for key in _shown_sums(costs):
        total = costs.totals[key]
        if total.configs and total.unknown == total.configs:
            yield f"{_SUMS[key].line.format('–')}{_unknown(costs, key)}"
            continue
        amounts = [_FORMATS[key](amount) for amount in dict.fromkeys((total.before, total.after))]
        share = _share(total) if len(amounts) > 1 else " (as before)"
        yield f"{_SUMS[key].line.format(' → '.join(amounts))}{share}{_unknown(costs, key)}"
    if costs.has_prices and "max_usd" not in costs.totals:
        yield f"the most that a run can cost is not bounded: {'; '.join(costs.unbounded)}"


def _unknown(costs: CostChanges, key: str) -> str:
    total = costs.totals[key]
    if not total.unknown:
        return ""
    word = _unknown_word(costs, key)
    reasons = f": {'; '.join(costs.unbounded)}" if word == _NOT_BOUNDED else ""
    return f"; {word} for {total.unknown:,} of {total.configs:,}{reasons}"


def _unknown_word(costs: CostChanges, key: str) -> str:
    """Return the word for the configs that a sum leaves out: without a limit, or without a price or a record."""
    return _NOT_BOUNDED if key == "max_usd" and not costs.totals["usd_per_hour"].unknown else "not known"


def _shown_sums(costs: CostChanges) -> list[str]:
    """Return the keys of the sums that are known; hours and chips only for what has no cost."""
    totals = costs.totals
    shown = [key for key in _SUMS if key in totals and (key in _PRICED or totals[key].before != totals[key].after)]
    for priced, unpriced in (("usd", "chip_hours"), ("usd_per_hour", "chips")):
        if unpriced in shown and priced in totals and totals[priced].unknown <= totals[unpriced].unknown:
            shown.remove(unpriced)
    return shown


def _share(total: Total) -> str:
    """Return the change as a share of the sum before: ` (+25%)`."""
    if not total.growth:
        return ""
    sign = "+" if total.growth > 0 else "-"
    return f" ({sign}{format_percent(abs(total.growth))})"


# Rungs


def _cost_table(costs: CostChanges) -> tuple[str, list[Fold]]:
    """Return the table; none if only chips are known, as it would repeat that of the hosts and cores."""
    is_known = any(cost.usd_per_hour or cost.hours for row in costs.rows for cost in row.costs)
    rows = costs.rows if is_known else ()
    measures = [measure for measure in MEASURES if _is_shown(measure, rows)]
    header = ["rung", *(measure.column for measure in measures)]
    cells = [[prose(_row_label(row)), *(_cell(row, measure) for measure in measures)] for row in rows]
    return table_with_fold(f"the cost of {len(rows):,} rungs", header, cells)


def _is_shown(measure: Measure, rows: Sequence[CostRow]) -> bool:
    """Return True for money, and for other values that change and are known; chip hours only if they have no price."""
    pairs = [_values(row, measure) for row in rows]
    is_known = any(value is not None for pair in pairs for value in pair)
    if measure.key == "chip_hours" and all(cost.usd_per_hour for row in rows for cost in row.costs):
        return False
    return is_known and (measure.key in _PRICED or any(old != new for old, new in pairs))


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
