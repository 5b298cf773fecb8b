"""Changes to what the jobs cost: the figures of each rung in hours and money, and runs that their limit would end.

Both revisions are judged by the same prices and the same records, so that only what the change does to the jobs counts:
a price that is lowered along with a larger slice would otherwise hide what the slice costs. A price that only the head
has does not count, and amounts of runs that are not made together are not added up.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Final, NamedTuple

from tpucfg.changes.facts import Risk, Scope
from tpucfg.changes.figures import (
    MONEY,
    Figures,
    RungComparison,
    figure_values,
    rung_baselines,
    rung_rows,
)
from tpucfg.changes.records import NO_RECORDS, RevisionRecords, judged_throughputs
from tpucfg.changes.revisions import CompiledRevision, config_key
from tpucfg.changes.statements import LocatedStatement, Statement, group_by_config
from tpucfg.number_format import format_dollars, format_number, format_rounded
from tpucfg.paths import grouped
from tpucfg.plan import Job
from tpucfg.plan.rung import Rung, probe_rung
from tpucfg.results.cost import price_per_hour, run_hours, run_limit
from tpucfg.results.records import FOLDER
from tpucfg.spec.project import Number, Prices, Probe
from tpucfg.targets import RequestBody

COST_TITLES: Final = {
    "usd": "USD/run",
    "usd_per_hour": "USD/hour",
    "max_usd": "USD/run at most",
    "probe_usd": "USD/probe",
    "reserved": "USD/hour reserved",
    "hours": "hours",
    "max_hours": "hours at most",
    "chips": "chips",
}
"""The figures of costs, in the order in which the headline and the table of rungs have them, with their columns."""
COST_FORMATS: Final[Mapping[str, Callable[[Fraction | None], str]]] = {
    **dict.fromkeys(MONEY, format_dollars),
    **dict.fromkeys(("hours", "max_hours"), format_rounded),
    "chips": format_number,
}


class CostChanges(NamedTuple):
    """The costs of the jobs of two revisions."""

    rows: tuple[RungComparison, ...]
    """Every rung, the largest growth first, and of those without one the dearest."""
    statements: tuple[LocatedStatement, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences about where the figures come from, and about what nothing limits."""


NO_COSTS: Final = CostChanges(())


def compute_costs(
    before: CompiledRevision,
    after: CompiledRevision,
    records: tuple[RevisionRecords, RevisionRecords] = (NO_RECORDS, NO_RECORDS),
) -> CostChanges:
    """Return the changes to the cost of each rung of two revisions without errors."""
    if after.project is None:
        return NO_COSTS
    prices = _judged_prices(before.project.prices if before.project else None, after.project.prices)
    jobs = sorted(
        {**before.jobs, **after.jobs}.values(), key=lambda job: (job.slice.cores, job.size)
    )
    ladders = grouped((job.environment.name, job.slice) for job in jobs)
    throughputs = judged_throughputs(ladders, *records)
    old, new = (_costs(revision, prices, throughputs) for revision in (before, after))
    baselines = {
        key: (size, old[Scope(key.environment, size)])
        for key, (size, is_rung_below) in rung_baselines(before.jobs, after.jobs)
        if size and not is_rung_below
    }
    replaced = {Scope(key.environment, size) for key, (size, _) in baselines.items()}
    kept = {key: figures for key, figures in old.items() if key in new or key not in replaced}
    rows = sorted(rung_rows(kept, new, baselines), key=_sort_key)
    return CostChanges(
        tuple(rows),
        tuple(_short_limits(rows, new)),
        tuple(_notes(before, after, records, throughputs)),
    )


def _judged_prices(before: Prices | None, after: Prices) -> Prices:
    """Return the prices that the base has, as they are in the head if it has them too; a first spec has its own."""
    if before is None:
        return after
    return {
        name: {kind: after.get(name, {}).get(kind, price) for kind, price in by_kind.items()}
        for name, by_kind in before.items()
    }


# Figures


def _costs(
    revision: CompiledRevision, prices: Prices, throughputs: Mapping[Scope, Fraction]
) -> dict[Scope, Figures]:
    probe = revision.project.probe if revision.project else None
    return {
        config_key(job): _job_costs(job, body, prices, throughputs.get(config_key(job)), probe)
        for job, body in revision.request_bodies
    }


def _job_costs(
    job: Job, body: RequestBody, prices: Prices, throughput: Fraction | None, probe: Probe | None
) -> Figures:
    """Return what a job costs. Of reserved machines, which are paid for whether a run uses them or not, the hour."""
    price, limit = price_per_hour(job.slice, prices, job.capacity.kind), run_limit(job, body)
    hours = _hours(job.rung, throughput)
    # A run that takes longer than its limit is ended by it, and costs no more.
    amounts = {
        "usd": _least(hours, limit.hours),
        "usd_per_hour": Fraction(1),
        "max_usd": limit.hours,
    }
    if probe:
        amounts["probe_usd"] = _least(_hours(probe_rung(job.rung, probe), throughput), limit.hours)
    if job.capacity.kind == "reservation":
        amounts = {"reserved": Fraction(1)}
    values = {
        **{
            key: None if price is None or amount is None else price * amount
            for key, amount in amounts.items()
        },
        "hours": hours,
        "max_hours": None if limit.seconds is None else limit.seconds / 3600,
        "chips": Fraction(job.slice.chips),
    }
    return {
        key: None if value is None else Number(value, COST_FORMATS[key](value))
        for key, value in values.items()
    }


def _least(hours: Fraction | None, limit: Fraction | None) -> Fraction | None:
    return hours if hours is None or limit is None else min(hours, limit)


def _hours(rung: Rung, throughput: Fraction | None) -> Fraction | None:
    """Return the hours of a run by the tokens of its examples, or by the examples without a sequence length."""
    return run_hours(rung.tokens or rung.examples, throughput)


def _sort_key(row: RungComparison) -> tuple[object, ...]:
    """Sort the largest growth first: of the cost of a run, then of an hour, then of the chips; then the dearest."""
    amounts = figure_values(row.after)
    growths = (-(cost_growth(row, key) or 0) for key in COST_TITLES)
    return (
        *growths,
        *(-amounts.get(key, 0) for key in COST_TITLES),
        Scope("", row.size).sort_key,
        row.environments,
    )


def cost_growth(row: RungComparison, key: str) -> Fraction | None:
    """Return the growth of a figure, from nothing for a new rung; None if the rung has none, or it is not known."""
    old, new = (
        figure_values(figures).get(key) if figures else Fraction(0)
        for figures in (row.before, row.after)
    )
    return None if old is None or new is None else new - old


# Limits


def _short_limits(
    rows: Iterable[RungComparison], configs: Collection[Scope]
) -> Iterator[LocatedStatement]:
    """Yield the runs that their limit would end, if it did not before: no restart follows it."""
    scoped = []
    for row in rows:
        if _is_too_long(row.after) and not _is_too_long(row.before):
            hours, limit = (
                number.text for key in ("hours", "max_hours") if (number := row.after[key])
            )
            text = f"by the records, a run takes {hours} h, but it is ended after {limit} h"
            statement = Statement(text, risk=Risk.CAUTION)
            scoped += [(Scope(name, row.size), statement) for name in row.environments]
    return group_by_config(scoped, configs)


def _is_too_long(figures: Figures) -> bool:
    hours = figure_values(figures)
    return bool("hours" in hours and "max_hours" in hours and hours["hours"] > hours["max_hours"])


def _notes(
    before: CompiledRevision,
    after: CompiledRevision,
    records: tuple[RevisionRecords, RevisionRecords],
    throughputs: Mapping[Scope, Fraction],
) -> Iterator[str]:
    old, new = (revision.project.prices if revision.project else {} for revision in (before, after))
    if old and old != new:
        yield "Before and after are both at the prices of the head that the base has too, or that the head removes."
    limits = (run_limit(job, body).unbounded for job, body in after.request_bodies)
    if (old or new) and (reasons := dict.fromkeys(reason for reason in limits if reason)):
        yield f"The most that a run can cost is not bounded: {'; '.join(reasons)}."
    if throughputs:
        yield "Hours follow from the examples/s in results/, as committed by the base, or else by the head."
    for name, problem in sorted({**records[0].problems, **records[1].problems}.items()):
        yield f"{FOLDER}/{name}.jsonl {problem}."
