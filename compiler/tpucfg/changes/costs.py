"""Changes to what the jobs cost: of each rung, and of the run whose cost grows most.

Both revisions are judged by the same prices and the same records, so that only what the change does to the jobs counts:
a price that is lowered along with a larger slice would otherwise hide what the slice costs. A price that only the head
has does not count, and amounts of runs that are not made together are not added up.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from tpucfg.catalog import Slice
from tpucfg.changes.facts import Scope, sorted_keys
from tpucfg.changes.figures import rung_baselines
from tpucfg.changes.records import NO_RECORDS, RevisionRecords, judged_throughputs
from tpucfg.changes.revisions import CompiledRevision, config_key
from tpucfg.changes.statements import LocatedStatement, Risk, Statement, group_by_config
from tpucfg.number_format import format_dollars, format_number, format_rounded
from tpucfg.paths import grouped
from tpucfg.plan.rung import Rung, probe_rung
from tpucfg.results.cost import RunLimit, price_per_hour, run_hours, run_limit
from tpucfg.results.records import FOLDER
from tpucfg.spec.project import Prices


class RunCost(NamedTuple):
    """The cost of one run of a config; None for a value that is not known."""

    chips: Fraction
    usd_per_hour: Fraction | None
    hours: Fraction | None
    limit: RunLimit
    """The longest time that the config allows."""
    probe_hours: Fraction | None = None
    """The duration of a probe; None also for a spec without probes."""
    is_reserved: bool = False
    """True if the machines are reserved, and paid for whether a run uses them or not."""

    @property
    def attempt_hours(self) -> Fraction | None:
        """The limit of one attempt; None if the config sets none."""
        return None if self.limit.seconds is None else self.limit.seconds / 3600


def _product(value: Fraction | None, other: Fraction | None) -> Fraction | None:
    """Return the product of two values; None if one of them is not known."""
    return None if value is None or other is None else value * other


class Measure(NamedTuple):
    """A value of RunCost that is compared."""

    key: str
    column: str
    """Its column in the table of rungs; empty if that has another for it."""
    get: Callable[[RunCost], Fraction | None]
    format: Callable[[Fraction | None], str]
    line: str
    """A line of the comment, with a place for the run and one for the amounts."""
    phrase: str
    """The words after the growth in the headline, with a place for the run."""
    is_money: bool = False
    """True for an amount of money, which is shown even if it stays."""
    is_of: Callable[[RunCost], bool] = lambda _: True
    """Returns True for the costs whose growth the measure compares."""


def _money(key: str, column: str, hours: Callable[[RunCost], Fraction | None], line: str, phrase: str) -> Measure:
    """Return the measure of what some hours cost, where the machines are paid by use."""
    return Measure(
        key,
        column,
        lambda cost: _product(hours(cost), cost.usd_per_hour),
        format_dollars,
        line,
        phrase,
        is_money=True,
        is_of=lambda cost: not cost.is_reserved,
    )


MEASURES: Final = (
    _money("usd", "USD/run", lambda cost: cost.hours, "a run on {} costs {} USD", "USD for a run on {}"),
    _money("usd_per_hour", "USD/hour", lambda _: Fraction(1), "an hour of {} costs {} USD", "USD an hour on {}"),
    _money(
        "max_usd",
        "USD/run at most",
        lambda cost: cost.limit.hours,
        "a run on {} can cost at most {} USD",
        "USD at most for a run on {}",
    ),
    _money(
        "probe_usd", "USD/probe", lambda cost: cost.probe_hours, "a probe on {} costs {} USD", "USD for a probe on {}"
    ),
    Measure(
        "reserved",
        "",
        lambda cost: cost.usd_per_hour,
        format_dollars,
        "reserved: an hour of {} costs {} USD, with or without a run",
        "USD an hour reserved on {}",
        is_money=True,
        is_of=lambda cost: cost.is_reserved,
    ),
    Measure(
        "hours", "hours", lambda cost: cost.hours, format_rounded, "a run on {} takes {} hours", "hours for a run on {}"
    ),
    Measure("chips", "chips", lambda cost: cost.chips, format_number, "{} has {} chips", "chips on {}"),
)
"""In the order in which the headline and the table of rungs have them."""


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

    @property
    def place(self) -> str:
        """The rung with its environments: `v2-32 in dev, prod`."""
        return f"{self.size} in {', '.join(self.environments)}"


class Largest(NamedTuple):
    """The run with the largest growth of a measure; the most expensive run if the measure grows for none."""

    place: str
    """`v2-32 in dev`; empty if no config of the head has a known value."""
    before: Fraction
    """0 for a new rung."""
    after: Fraction
    configs: int
    """The number of configs of the head that have the measure."""
    unknown: int
    """The number of these for which it is not known in one of the revisions."""

    @property
    def growth(self) -> Fraction | None:
        """The growth as a share of the value before; None if that is 0."""
        return self.after / self.before - 1 if self.before else None


class CostChanges(NamedTuple):
    """The costs of the jobs of two revisions."""

    largest: Mapping[str, Largest]
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
        return "usd_per_hour" in self.largest


NO_COSTS: Final = CostChanges({}, ())


def compute_costs(
    before: CompiledRevision,
    after: CompiledRevision,
    records: tuple[RevisionRecords, RevisionRecords] = (NO_RECORDS, NO_RECORDS),
) -> CostChanges:
    """Return the changes to the cost of each rung of two revisions without errors."""
    if after.project is None:
        return NO_COSTS
    ladders = _ladders((before, after))
    prices = _judged_prices(before.project.prices if before.project else None, after.project.prices)
    throughputs = judged_throughputs(ladders, *records)
    old, new = (_run_costs(revision, prices, throughputs) for revision in (before, after))
    rows = tuple(_rows(before, after, old, new))
    changed = [row for row in rows if row.before != row.after]
    return CostChanges(
        largest=dict(_largest_of_all(rows)),
        rows=_grouped(changed),
        statements=tuple(_short_limits(changed, new)),
        notes=tuple(_notes(before, after, records, is_forecast=bool(throughputs))),
        unbounded=tuple(dict.fromkeys(cost.limit.unbounded for cost in new.values() if cost.limit.unbounded)),
    )


def _judged_prices(before: Prices | None, after: Prices) -> Prices:
    """Return the prices that the base has, as they are in the head if it has them too; a first spec has its own."""
    if before is None:
        return after
    return {
        name: {kind: after.get(name, {}).get(kind, price) for kind, price in by_kind.items()}
        for name, by_kind in before.items()
    }


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
    probe = revision.project.probe if revision.project else None
    return {
        key: RunCost(
            chips=Fraction(job.slice.chips),
            usd_per_hour=price_per_hour(job.slice, prices, job.capacity.kind),
            hours=_hours_of(job.rung, throughputs.get(key)),
            limit=run_limit(job, body),
            probe_hours=_hours_of(probe_rung(job.rung, probe), throughputs.get(key)) if probe else None,
            is_reserved=job.capacity.kind == "reservation",
        )
        for job, body in revision.request_bodies
        for key in (config_key(job),)
    }


def _hours_of(rung: Rung, throughput: Fraction | None) -> Fraction | None:
    """Return the hours of a run by the tokens of its examples, or by the examples without a sequence length."""
    return run_hours(rung.tokens or rung.examples, throughput)


# Rungs


def _rows(
    before: CompiledRevision, after: CompiledRevision, old: Mapping[Scope, RunCost], new: Mapping[Scope, RunCost]
) -> Iterator[CostRow]:
    """Yield a row for each config of the head, and for each that is removed and not replaced."""
    baselines = {
        key: Scope(key.environment, baseline)
        for key, (baseline, is_rung_below) in rung_baselines(before.jobs, after.jobs)
        if baseline and not is_rung_below
    }
    replaced = {*baselines.values()}
    for key in sorted_keys({*old, *new}):
        baseline = key if key in old else baselines.get(key)
        if key in new or key not in replaced:
            cost = old[baseline] if baseline else None
            yield CostRow(key.size, baseline.size if baseline else "", cost, new.get(key), (key.environment,))


def _grouped(rows: Iterable[CostRow]) -> tuple[CostRow, ...]:
    """Return each of the rows that differ only in their environment once, the largest growth first."""
    environments = grouped((row._replace(environments=()), name) for row in rows for name in row.environments)
    shared = (row._replace(environments=tuple(names)) for row, names in environments.items())
    return tuple(sorted(shared, key=_sort_key))


def _sort_key(row: CostRow) -> tuple[object, ...]:
    """Sort the largest growth first: of the cost of a run, then of an hour, then of the chips."""
    growth = (-_growth(row, measure) for measure in MEASURES)
    return (*growth, Scope("", row.size).sort_key, row.environments)


def _growth(row: CostRow, measure: Measure) -> Fraction:
    old, new = (measure.get(cost) if cost else Fraction(0) for cost in (row.before, row.after))
    return Fraction(0) if old is None or new is None else new - old


def _largest_of_all(rows: Sequence[CostRow]) -> Iterator[tuple[str, Largest]]:
    """Yield each measure that is known for a config of the head, or was for one of the base."""
    for measure in MEASURES:
        of_head = [row for row in rows if row.after and measure.is_of(row.after)]
        known = _grouped(row for row in of_head if _is_known(row, measure))
        is_lost = any(row.before and measure.get(row.before) is not None for row in rows)
        # A most that is not known because no run of the head is limited has a line of its own.
        is_limited = measure.key != "max_usd" or any(row.after and row.after.limit.hours for row in of_head)
        # Nor has a spec without probes a cost of one.
        is_limited &= measure.key != "probe_usd" or any(row.after and row.after.probe_hours for row in of_head)
        unknown = sum(not _is_known(row, measure) for row in of_head)
        if known:
            growths = {row: _growth(row, measure) for row in known}
            row = max(known, key=lambda row: (max(growths[row], 0), abs(growths[row]), _amount(row.after, measure)))
            amounts = _amount(row.before, measure), _amount(row.after, measure)
            yield measure.key, Largest(row.place, *amounts, len(of_head), unknown)
        elif of_head and is_lost and is_limited:
            yield measure.key, Largest("", Fraction(0), Fraction(0), len(of_head), unknown)


def _amount(cost: RunCost | None, measure: Measure) -> Fraction:
    return (measure.get(cost) if cost else None) or Fraction(0)


def _is_known(row: CostRow, measure: Measure) -> bool:
    return all(measure.get(cost) is not None for cost in row.costs)


# Limits


def _short_limits(rows: Iterable[CostRow], configs: Collection[Scope]) -> Iterator[LocatedStatement]:
    """Yield the runs that their limit would end, if it did not before: no restart follows it."""
    scoped = []
    for row in rows:
        if row.after and _is_too_long(row.after) and not (row.before and _is_too_long(row.before)):
            hours, limit = _hours(row.after.hours), _hours(row.after.attempt_hours)
            text = f"by the records, a run takes {hours}, but it is ended after {limit}"
            scoped += [(Scope(name, row.size), Statement(text, risk=Risk.CAUTION)) for name in row.environments]
    return group_by_config(scoped, configs)


def _hours(value: Fraction | None) -> str:
    return "1 hour" if value == 1 else f"{format_rounded(value)} hours"


def _is_too_long(cost: RunCost) -> bool:
    return bool(cost.hours and cost.attempt_hours and cost.hours > cost.attempt_hours)


def _notes(
    before: CompiledRevision,
    after: CompiledRevision,
    records: tuple[RevisionRecords, RevisionRecords],
    *,
    is_forecast: bool,
) -> Iterator[str]:
    old, new = (revision.project.prices if revision.project else {} for revision in (before, after))
    if old and old != new:
        yield "Before and after are both at the prices of the head that the base has too, or that the head removes."
    if any(job.capacity.kind == "reservation" for job in after.jobs.values()) and (old or new):
        yield "Reserved machines are paid for whether a run uses them or not, so their amounts are shown apart."
    if is_forecast:
        yield "Hours follow from the examples/s in results/, as committed by the base, or else by the head."
    for name, problem in sorted({**records[0].problems, **records[1].problems}.items()):
        yield f"{FOLDER}/{name}.jsonl {problem}."
