"""Changes to what the jobs cost: of each rung, and of one run of every config.

Both revisions are judged by the same prices and the same records, so that only what the change does to the jobs counts:
a price that is lowered along with a larger slice would otherwise hide what the slice costs.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from tpucfg.catalog import Slice
from tpucfg.changes.describe import format_keys
from tpucfg.changes.facts import Scope, sorted_keys
from tpucfg.changes.revisions import CompiledRevision, config_key
from tpucfg.changes.statements import LocatedStatement, Risk, Statement, group_statements
from tpucfg.number_format import format_hours
from tpucfg.results.cost import price_per_hour, run_hours
from tpucfg.results.record_file import FOLDER
from tpucfg.results.run_limit import run_limit
from tpucfg.review.changes.costs.cost_rows import CostRow, changed_rows, group_rows
from tpucfg.review.changes.costs.record_changes import (
    NO_RECORDS,
    RevisionRecords,
    judged_throughputs,
    record_statements,
)
from tpucfg.review.changes.costs.run_cost import MEASURES, RunCost
from tpucfg.spec.project import Prices

_TERM_DECIMALS: Final = 12
"""Decimal places of an amount in a sum: thousands of fractions with different denominators would add up slowly."""
_SUM_DECIMALS: Final = 6
"""Fewer than those of its terms, whose rounding is then invisible."""
_NO_LIMIT: Final = "cost of a run not limited"
_NEVER_LIMITED: Final = "the spec sets no limit of time, as it does for all configs of the base"


class Total(NamedTuple):
    """A measure summed over the configs of each revision, without those for which it is unknown in either.

    A rung and the one that replaces it are left out together: the sum would otherwise fall by what is only unknown.
    """

    before: Fraction
    after: Fraction
    configs: int
    """The number of configs of the head."""
    unknown: int
    """The number of these that are not in the sums."""

    @property
    def growth(self) -> Fraction | None:
        """The growth as a share of the sum before; None if that is 0."""
        return self.after / self.before - 1 if self.before else None


class CostChanges(NamedTuple):
    """The costs of the jobs of two revisions."""

    totals: Mapping[str, Total]
    """By the key of the measure."""
    rows: tuple[CostRow, ...]
    """The largest growth first."""
    statements: tuple[LocatedStatement, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences about where the figures come from."""
    unbounded: tuple[str, ...] = ()
    """The reasons why nothing limits what some configs of the head can cost, or what would limit it."""

    @property
    def has_prices(self) -> bool:
        """True if the spec has a price for some config."""
        return "usd_per_hour" in self.totals


NO_COSTS: Final = CostChanges({}, ())


def compute_costs(
    before: CompiledRevision,
    after: CompiledRevision,
    records: tuple[RevisionRecords, RevisionRecords] = (NO_RECORDS, NO_RECORDS),
) -> CostChanges:
    """Return the changes to the cost of each rung, and to that of all configs, of two revisions without errors."""
    if after.project is None:
        return NO_COSTS
    ladders = _ladders((before, after))
    prices = _best_known_prices(before.project.prices if before.project else {}, after.project.prices)
    throughputs = judged_throughputs(ladders, *records)
    old, new = (_run_costs(revision, prices, throughputs) for revision in (before, after))
    rows = tuple(changed_rows(before, after, old, new))
    return CostChanges(
        totals=dict(_totals(old, new, _replacements(rows))),
        rows=group_rows(rows),
        statements=(*_limit_statements(rows, old, new), *record_statements(ladders, *records)),
        notes=tuple(_notes(before, after, records, is_forecast=bool(throughputs))),
        unbounded=tuple(dict.fromkeys(cost.limit.unbounded for cost in new.values() if cost.limit.unbounded)),
    )


def _best_known_prices(before: Prices, after: Prices) -> Prices:
    """Return the prices after the change; one that it removes is still the best that is known."""
    return {name: {**before.get(name, {}), **after.get(name, {})} for name in {**before, **after}}


def _ladders(revisions: Iterable[CompiledRevision]) -> Mapping[str, Sequence[Slice]]:
    """Return the sizes of both revisions by environment, from small to large."""
    slices: dict[str, dict[str, Slice]] = {}
    for revision in revisions:
        for job, _ in revision.request_bodies:
            slices.setdefault(job.environment.name, {})[job.size] = job.slice
    return {
        name: sorted(by_size.values(), key=lambda slice_: (slice_.cores, slice_.size))
        for name, by_size in sorted(slices.items())
    }


def _run_costs(
    revision: CompiledRevision, prices: Prices, throughputs: Mapping[Scope, Fraction]
) -> dict[Scope, RunCost]:
    return {
        key: RunCost(
            chips=Fraction(job.slice.chips),
            usd_per_hour=price_per_hour(job.slice, prices, job.capacity.kind),
            hours=run_hours(job.rung.examples, throughputs.get(key)),
            limit=run_limit(job, body),
        )
        for job, body in revision.request_bodies
        for key in (config_key(job),)
    }


def _replacements(rows: Iterable[CostRow]) -> Mapping[Scope, Scope]:
    """Return the configs of the base that others replace, by these."""
    return {
        Scope(name, row.size): Scope(name, row.baseline)
        for row in rows
        if row.baseline != row.size and row.before
        for name in row.environments
    }


def _totals(
    before: Mapping[Scope, RunCost],
    after: Mapping[Scope, RunCost],
    replacements: Mapping[Scope, Scope],
) -> Iterator[tuple[str, Total]]:
    keys = {*before, *after}
    for measure in MEASURES:
        if not measure.is_summed:
            continue
        values = [{key: measure.get(costs[key]) for key in costs} for costs in (before, after)]
        unknown = {key for by_key in values for key, value in by_key.items() if value is None}
        # A most that is not known because no run of the head is limited has a line of its own.
        is_limited = measure.key != "max_usd" or any(cost.max_hours for cost in after.values())
        is_lost = is_limited and any(value is not None for value in values[0].values())
        if keys - unknown or is_lost:
            pairs = [{*pair} for pair in replacements.items()]
            known = keys - unknown.union(*(pair for pair in pairs if pair & unknown))
            old, new = (_sum(value for key, value in by_key.items() if key in known and value) for by_key in values)
            yield measure.key, Total(old, new, len(after), len(after.keys() - known))


def _sum(amounts: Iterable[Fraction]) -> Fraction:
    return round(sum((round(amount, _TERM_DECIMALS) for amount in amounts), Fraction(0)), _SUM_DECIMALS)


def _limit_statements(
    rows: Iterable[CostRow], before: Mapping[Scope, RunCost], after: Collection[Scope]
) -> Iterator[LocatedStatement]:
    """Yield the runs without a limit that had one or are new, and those that their limit would end."""
    is_always_limited = bool(before) and all(cost.limit.seconds for cost in before.values())
    owned = (
        (Scope(name, row.size), statement)
        for row in rows
        for name in row.environments
        for statement in _limit_changes(row, is_always_limited=is_always_limited)
    )
    yield from group_statements(owned, lambda keys: format_keys(sorted_keys(keys), sorted_keys(after)))


def _limit_changes(row: CostRow, *, is_always_limited: bool) -> Iterator[Statement]:
    old, new = row.before, row.after
    if new is None:
        return
    if old is None:
        text = _NEVER_LIMITED if is_always_limited and not new.limit.seconds else ""
    else:
        text = _lost_limit(old, new)
    if text:
        yield Statement(text, (), Risk.CAUTION, _NO_LIMIT)
    if _is_too_long(new) and not (old and _is_too_long(old)):
        text = f"by the records, a run takes {_hours(new.hours)}, but it is ended after {_hours(new.max_hours)}"
        yield Statement(text, risk=Risk.CAUTION)


def _lost_limit(old: RunCost, new: RunCost) -> str:
    """Return the sentence about a limit that is gone; empty if there was none, or there still is one."""
    if old.max_hours and not new.max_hours:
        if new.limit.seconds:
            was = _hours(old.max_hours)
            return f"only each attempt of a run is limited, and no longer all together to {was}: {new.limit.unbounded}"
        return f"the spec no longer limits the length of a run, previously to {_hours(old.max_hours)}"
    if old.limit.seconds and not new.limit.seconds:
        return f"the spec no longer limits the length of an attempt, previously to {_hours(old.limit.seconds / 3600)}"
    return ""


def _hours(value: Fraction | None) -> str:
    return "1 hour" if value == 1 else f"{format_hours(value)} hours"


def _is_too_long(cost: RunCost) -> bool:
    return bool(cost.hours and cost.max_hours and cost.hours > cost.max_hours)


def _notes(
    before: CompiledRevision,
    after: CompiledRevision,
    records: tuple[RevisionRecords, RevisionRecords],
    *,
    is_forecast: bool,
) -> Iterator[str]:
    old, new = (revision.project.prices if revision.project else {} for revision in (before, after))
    if old and old != new:
        yield "Before and after are both at the prices of the head, or at those of the base that it removes."
    if is_forecast:
        yield "Hours follow from the examples/s in results/, as committed by the base, or else by the head."
    for name, problem in sorted({**records[0].problems, **records[1].problems}.items()):
        yield f"{FOLDER}/{name}.jsonl {problem}."
