"""The costs of the jobs before and after: the largest growth of each measure, and the rungs that change."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from tpucfg.changes.costs import MEASURES, CostChanges, CostRow, Largest, Measure
from tpucfg.markdown import prose
from tpucfg.number_format import format_factor, format_percent
from tpucfg.review.bounds import Fold
from tpucfg.review.effects import table_with_fold
from tpucfg.review.review import Review
from tpucfg.text_format import listed

_MIN_HEADLINE_GROWTH: Final = Fraction(1, 10)


class _Amount(NamedTuple):
    """The texts about the run for which a measure grows most."""

    line: str
    """A line of the comment, with a place for the run and one for the amounts."""
    phrase: str
    """The words after the growth in the headline, with a place for the run."""


_AMOUNTS: Final = {
    "usd": _Amount("a run on {} costs {} USD", "USD for a run on {}"),
    "usd_per_hour": _Amount("an hour of {} costs {} USD", "USD an hour on {}"),
    "max_usd": _Amount("a run on {} can cost at most {} USD", "USD at most for a run on {}"),
    "reserved": _Amount("reserved: an hour of {} costs {} USD, with or without a run", "USD an hour reserved on {}"),
    "chip_hours": _Amount("a run on {} takes {} chip hours", "chip hours for a run on {}"),
    "chips": _Amount("{} has {} chips", "chips on {}"),
}
"""In the order in which the headline prefers them."""
_PRICED: Final = ("usd", "usd_per_hour", "max_usd", "reserved")
"""The measures that are amounts of money."""
_FORMATS: Final = {measure.key: measure.format for measure in MEASURES}


def cost_phrase(costs: CostChanges) -> str:
    """Return the largest growth for the headline: `+1,240.00 USD for a run on v2-8 in dev (+25%)`; empty if small."""
    for key in _shown(costs):
        largest = costs.largest[key]
        added, growth = largest.after - largest.before, largest.growth
        # Without any job before, all of it is new.
        if added > 0 and (growth is None or growth >= _MIN_HEADLINE_GROWTH):
            phrase = _AMOUNTS[key].phrase.format(largest.place)
            return f"+{_FORMATS[key](added)} {phrase}{_share(largest)}{_unknown(costs, key, ', ')}"
    return ""


def cost_block(review: Review) -> str:
    """Return the amounts, and the table of rungs if it is short; empty if the change does not touch the jobs."""
    costs = review.costs
    lines = [f"- {line}" for line in amount_lines(costs)] if costs.rows or review.difference else []
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


def amount_lines(costs: CostChanges) -> Iterator[str]:
    """Yield a line for each measure; one that no config of the head has known has no amount, rather than 0."""
    for key in _shown(costs):
        largest = costs.largest[key]
        if not largest.place:
            yield f"{_AMOUNTS[key].line.format('each config', '–')}{_unknown(costs, key)}"
            continue
        amounts = [_FORMATS[key](amount) for amount in dict.fromkeys((largest.before, largest.after))]
        share = _share(largest) if len(amounts) > 1 else " (as before)"
        yield f"{_AMOUNTS[key].line.format(largest.place, ' → '.join(amounts))}{share}{_unknown(costs, key)}"
    if costs.has_prices and costs.unbounded and "max_usd" not in costs.largest:
        yield f"the most that a run can cost is not bounded: {'; '.join(costs.unbounded)}"


def _unknown(costs: CostChanges, key: str, separator: str = "; ") -> str:
    """Return for how many configs an amount is not known, with the reasons if they have no limit."""
    largest = costs.largest[key]
    if not largest.unknown:
        return ""
    is_unbounded = key == "max_usd" and bool(costs.unbounded) and not costs.largest["usd_per_hour"].unknown
    reasons = f": {'; '.join(costs.unbounded)}" if is_unbounded and separator == "; " else ""
    word = "not bounded" if is_unbounded else "not known"
    return f"{separator}{word} for {largest.unknown:,} of {largest.configs:,}{reasons}"


def _shown(costs: CostChanges) -> list[str]:
    """Return the keys of the measures that are shown; hours and chips only for what has no cost."""
    known = costs.largest
    shown = [key for key in _AMOUNTS if key in known and (key in _PRICED or known[key].before != known[key].after)]
    for priced, unpriced in (("usd", "chip_hours"), ("usd_per_hour", "chips"), ("reserved", "chips")):
        if unpriced in shown and priced in known and known[priced].unknown <= known[unpriced].unknown:
            shown.remove(unpriced)
    return shown


def _share(largest: Largest) -> str:
    """Return the change as a share of the amount before: ` (+25%)`."""
    if not largest.growth:
        return ""
    sign = "+" if largest.growth > 0 else "-"
    return f" ({sign}{format_percent(abs(largest.growth))})"


# Rungs


def _cost_table(costs: CostChanges) -> tuple[str, list[Fold]]:
    """Return the table; none if only chips are known, as it would repeat that of the hosts and cores."""
    is_known = any(cost.usd_per_hour or cost.hours for row in costs.rows for cost in row.costs)
    rows = costs.rows if is_known else ()
    measures = [measure for measure in MEASURES if measure.column and _is_shown(measure, rows)]
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
