"""The rungs whose cost changes, each with its cost before and after."""

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

from tpucfg.changes.facts import Scope, sorted_keys
from tpucfg.changes.revisions import CompiledRevision
from tpucfg.review.changes.costs.run_cost import MEASURES, Measure, RunCost
from tpucfg.review.changes.jobs.scaling_table import rung_baselines


class CostRow(NamedTuple):
    """A rung whose cost changes."""

    size: str
    baseline: str
    """The size that `before` belongs to: its own, or that of the rung which it replaces; empty for a new rung."""
    before: RunCost | None
    after: RunCost | None
    """None for a rung that is removed."""
    environments: tuple[str, ...] = ()
    """The environments in which it changes in this way."""

    @property
    def costs(self) -> tuple[RunCost, ...]:
        """The costs before and after, as far as the rung exists."""
        return tuple(cost for cost in (self.before, self.after) if cost)


def changed_rows(
    before: CompiledRevision,
    after: CompiledRevision,
    old: Mapping[Scope, RunCost],
    new: Mapping[Scope, RunCost],
) -> Iterator[CostRow]:
    """Yield a row for each config whose cost changes, and for each that is new or removed."""
    baselines = {
        key: Scope(key.environment, baseline)
        for key, (baseline, is_rung_below) in rung_baselines(before.jobs, after.jobs)
        if baseline and not is_rung_below
    }
    replaced = {*baselines.values()}
    for key in sorted_keys({*old, *new}):
        if key in old and key in new:
            if old[key] != new[key]:
                yield CostRow(key.size, key.size, old[key], new[key], (key.environment,))
        elif key in new:
            baseline = baselines.get(key)
            cost = old[baseline] if baseline else None
            yield CostRow(key.size, baseline.size if baseline else "", cost, new[key], (key.environment,))
        elif key not in replaced:
            yield CostRow(key.size, key.size, old[key], None, (key.environment,))


def group_rows(rows: Iterable[CostRow]) -> tuple[CostRow, ...]:
    """Return each of the rows that differ only in their environment once, the largest growth first."""
    environments: dict[CostRow, list[str]] = {}
    for row in rows:
        environments.setdefault(row._replace(environments=()), []).extend(row.environments)
    grouped = (row._replace(environments=tuple(names)) for row, names in environments.items())
    return tuple(sorted(grouped, key=_sort_key))


def _sort_key(row: CostRow) -> tuple[object, ...]:
    """Sort the largest growth first: of the cost of a run, then of an hour, then of the chips."""
    growth = (-_growth(row, measure) for measure in reversed(MEASURES) if measure.is_summed)
    return (*growth, Scope("", row.size).sort_key, row.environments)


def _growth(row: CostRow, measure: Measure) -> Fraction:
    old, new = (measure.get(cost) if cost else Fraction(0) for cost in (row.before, row.after))
    return Fraction(0) if old is None or new is None else new - old
