"""Records of two revisions, and what the change does to the cost of each rung and to the rungs that may run.

A record is a line of a committed file, which anyone can write. A change is therefore judged by the records of the base
where it has any, so that a line that the change adds cannot hide what it costs; the line itself is reported. Both
revisions are judged by the same prices, so that only what the change does to the jobs counts: a price that is lowered
along with a larger slice would otherwise hide what the slice costs. A price that only the head has does not count, and
amounts of runs that are not made together are not added up.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from tpucfg.catalog import Catalog, Slice
from tpucfg.changes.facts import Risk, Scope, canonical_json
from tpucfg.changes.figures import MONEY, Figures, RungRow, figure_values, rung_baselines, rung_rows
from tpucfg.changes.revisions import CompiledRevision, config_key
from tpucfg.changes.statements import LocatedStatement, Statement, group_by_config
from tpucfg.number_format import format_dollars, format_metric, format_number, format_rounded
from tpucfg.paths import grouped
from tpucfg.plan import Job
from tpucfg.plan.rung import Rung, probe_rung
from tpucfg.results.cost import forecast_throughputs, price_per_hour, run_hours, run_limit
from tpucfg.results.fit_notes import records_beyond_bound
from tpucfg.results.gate import has_passed_below, passed_sizes
from tpucfg.results.ladder_status import LadderStatus, ladder_statuses
from tpucfg.results.records import FOLDER, Results, exact_decimal, latest_rates, record_line
from tpucfg.spec.project import Number, Prices, Probe
from tpucfg.targets import RequestBody
from tpucfg.text_format import format_count, listed

_MAX_METRICS: Final = 4
_MAX_RUNGS: Final = 8


class RevisionRecords(NamedTuple):
    """The records of a revision."""

    tokens: Mapping[str, Mapping[str, Fraction]]
    """Tokens per second by environment and size; examples per second where no sequence length is known.

    Without environments that have no record.
    """
    statuses: Mapping[str, LadderStatus] = {}
    """The ladders with their records, by environment."""

    @property
    def problems(self) -> dict[str, str]:
        """By environment, the reason why its file may have more records, as the end of a sentence."""
        statuses = self.statuses.items()
        return {name: status.results.problem for name, status in statuses if status.results.findings}


NO_RECORDS: Final = RevisionRecords({})


def read_revision_records(revision: CompiledRevision) -> RevisionRecords:
    """Read the records of every environment."""
    project = revision.project
    if project is None:
        return NO_RECORDS
    folder = revision.snapshot.spec.parent
    statuses = ladder_statuses(project, Catalog(), project.environments.values(), folder)
    # The length of the spec counts for a record that states none.
    default = project.training.sequence_length or 1
    tokens = {
        name: {size: rate * (length or default) for size, (rate, length) in rates.items()}
        for name, status in statuses.items()
        if (rates := latest_rates(status.results, project.name))
    }
    return RevisionRecords(tokens, statuses)


def judged_throughputs(
    ladders: Mapping[str, Sequence[Slice]], before: RevisionRecords, after: RevisionRecords
) -> Mapping[Scope, Fraction]:
    """Return the throughputs that both revisions are judged by; a record of the base takes precedence over the head's.

    They are in tokens per second for a spec with a sequence length, else in examples per second.

    Args:
        ladders: by environment, the sizes of both revisions, from small to large.
        before: the records of the base.
        after: the records of the head.
    """
    return {
        Scope(name, size): forecast.throughput
        for name, slices in ladders.items()
        for records in (after, before)
        for size, forecast in forecast_throughputs(slices, records.tokens.get(name, {})).items()
    }


def result_statements(before: RevisionRecords, after: RevisionRecords) -> Iterator[LocatedStatement]:
    """Yield the records that are changed, and the rungs that a changed record, program or gate opens or closes."""
    for name, status in after.statuses.items():
        statements = _statements(before.statuses.get(name), status)
        yield from (LocatedStatement(name, statement) for statement in statements)


def _statements(old: LadderStatus | None, new: LadderStatus) -> Iterator[Statement]:
    if opened := [rung.size for rung in new.rungs if _is_opened(rung.size, old, new)]:
        text = "results: the gate lets {} start, and did not before: the records below pass it, as committed"
        yield Statement(text, (listed(opened, _MAX_RUNGS),), Risk.CAUTION, "gate opened")
    if new.results.findings and not (old and old.results.findings):
        consequence = ": the gate stays closed until it can be read" if new.is_measured else ""
        yield Statement(f"results: {{}} {new.results.problem}{consequence}", (_file(new),), Risk.CAUTION)
    yield from _impossible(old, new)
    yield from _losses(old, new)
    lines = Counter(map(record_line, new.results.records))
    old_lines = Counter(map(record_line, old.results.records)) if old else Counter[str]()
    # A file that cannot be read in one revision has no records to compare.
    removed = 0 if new.results.findings else (old_lines - lines).total()
    if removed:
        text = (
            f"results: {format_count(removed, 'record')} of {{}} removed or rewritten: records are only ever appended"
        )
        yield Statement(text, (_file(new),), Risk.CAUTION)
    before, after = ({} if status is None else _last_metrics(status.results) for status in (old, new))
    # The last record counts, so that one of the same program that is appended is enough for other costs or the gate.
    replaced = [key for key, metrics in after.items() if key in before and before[key] != metrics]
    for key in replaced[:_MAX_RUNGS]:
        text = "results: {} recorded with {}, previously {}"
        yield Statement(text, (key[1], after[key], before[key]), Risk.CAUTION, "another record")
    if (more := len(replaced) - _MAX_RUNGS) > 0:
        yield Statement(f"results: {more:,} more rungs recorded with other figures", (), Risk.CAUTION)
    if added := (lines - old_lines).total():
        first = listed([f"{key[1]}: {metrics}" for key, metrics in after.items() if key not in before], _MAX_RUNGS)
        text = f"results: {format_count(added, 'record')} added to {{}}{' ({})' if first else ''}"
        yield Statement(text, (_file(new), first) if first else (_file(new),))


def _last_metrics(results: Results) -> dict[tuple[str, str, bool, str], str]:
    """Return the metrics of the last record of each program, by project, size, kind and program."""
    return {
        (record.name, record.size, record.is_probe, canonical_json({**record.program})): listed(
            [f"{name} {format_metric(exact_decimal(value))}" for name, value in record.metrics.items()], _MAX_METRICS
        )
        for record in results.records
        if record.metrics
    }


def _impossible(old: LadderStatus | None, new: LadderStatus) -> Iterator[Statement]:
    """Yield the records that are faster than the TPU can be, and were not in the base."""
    known = {finding.message for finding in records_beyond_bound(old)} if old else set[str]()
    for finding in records_beyond_bound(new):
        if finding.level != "note" and finding.message not in known:
            yield Statement("results: {}: {}", (finding.id, finding.message), Risk.CAUTION, "impossible record")


def _losses(old: LadderStatus | None, new: LadderStatus) -> Iterator[Statement]:
    """Yield the rungs whose program is no longer the recorded one, and those that may no longer run."""
    if old is None or new.results.findings:
        return
    before = {rung.size: rung for rung in old.evaluations}
    kept = [(rung, before[rung.size]) for rung in new.evaluations if rung.size in before]
    others = [rung.size for rung, known in kept if rung.is_other and known.record and not known.is_other]
    if others:
        text = "results: the program of {} is another one than was recorded: hours and costs by records are an estimate"
        yield Statement(text, (listed(others, _MAX_RUNGS),))
    closed = [size for rung, _ in kept if has_passed_below(old, size := rung.size) and not has_passed_below(new, size)]
    if closed and old.is_measured:
        text = "results: {} may no longer run, as the rung below does not pass the gate"
        yield Statement(text, (listed(closed, _MAX_RUNGS),))


def _file(status: LadderStatus) -> str:
    return f"{FOLDER}/{status.environment.name}.jsonl"


def _is_opened(size: str, old: LadderStatus | None, new: LadderStatus) -> bool:
    """Return True if the gate below a rung is open, and was not; a fit has a sentence of its own."""
    below = new.rung(size).evaluation.below
    if not new.is_measured or below is None or not has_passed_below(new, size):
        return False
    if old is None:
        return True
    if size in {rung.size for rung in old.rungs}:
        return old.is_measured and not has_passed_below(old, size)
    # A new rung is opened by its record below, unless the base has that, too.
    return below.size not in passed_sizes(old)


# Costs


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

    rows: tuple[RungRow, ...]
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
    jobs = sorted({**before.jobs, **after.jobs}.values(), key=lambda job: (job.slice.cores, job.size))
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
    return CostChanges(tuple(rows), tuple(_short_limits(rows, new)), tuple(_notes(before, after, records, throughputs)))


def _judged_prices(before: Prices | None, after: Prices) -> Prices:
    """Return the prices that the base has, as they are in the head if it has them too; a first spec has its own."""
    if before is None:
        return after
    return {
        name: {kind: after.get(name, {}).get(kind, price) for kind, price in by_kind.items()}
        for name, by_kind in before.items()
    }


# Figures


def _costs(revision: CompiledRevision, prices: Prices, throughputs: Mapping[Scope, Fraction]) -> dict[Scope, Figures]:
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
    amounts = {"usd": _least(hours, limit.hours), "usd_per_hour": Fraction(1), "max_usd": limit.hours}
    if probe:
        amounts["probe_usd"] = _least(_hours(probe_rung(job.rung, probe), throughput), limit.hours)
    if job.capacity.kind == "reservation":
        amounts = {"reserved": Fraction(1)}
    values = {
        **{key: None if price is None or amount is None else price * amount for key, amount in amounts.items()},
        "hours": hours,
        "max_hours": None if limit.seconds is None else limit.seconds / 3600,
        "chips": Fraction(job.slice.chips),
    }
    return {key: None if value is None else Number(value, COST_FORMATS[key](value)) for key, value in values.items()}


def _least(hours: Fraction | None, limit: Fraction | None) -> Fraction | None:
    return hours if hours is None or limit is None else min(hours, limit)


def _hours(rung: Rung, throughput: Fraction | None) -> Fraction | None:
    """Return the hours of a run by the tokens of its examples, or by the examples without a sequence length."""
    return run_hours(rung.tokens or rung.examples, throughput)


def _sort_key(row: RungRow) -> tuple[object, ...]:
    """Sort the largest growth first: of the cost of a run, then of an hour, then of the chips; then the dearest."""
    amounts = figure_values(row.after)
    growths = (-(cost_growth(row, key) or 0) for key in COST_TITLES)
    return (*growths, *(-amounts.get(key, 0) for key in COST_TITLES), Scope("", row.size).sort_key, row.environments)


def cost_growth(row: RungRow, key: str) -> Fraction | None:
    """Return the growth of a figure, from nothing for a new rung; None if the rung has none, or it is not known."""
    old, new = (figure_values(figures).get(key) if figures else Fraction(0) for figures in (row.before, row.after))
    return None if old is None or new is None else new - old


# Limits


def _short_limits(rows: Iterable[RungRow], configs: Collection[Scope]) -> Iterator[LocatedStatement]:
    """Yield the runs that their limit would end, if it did not before: no restart follows it."""
    scoped = []
    for row in rows:
        if _is_too_long(row.after) and not _is_too_long(row.before):
            hours, limit = (number.text for key in ("hours", "max_hours") if (number := row.after[key]))
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
