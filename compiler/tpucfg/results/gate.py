"""The gate between rungs: it decides if a rung may be started, and suggests commands for a rung that has not passed."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import count
from typing import Final, NamedTuple

from tpucfg.catalog import Catalog
from tpucfg.findings import Finding
from tpucfg.number_format import floor_percent, format_dollars, format_metric
from tpucfg.paths import grouped
from tpucfg.plan import Job, Selection, SelectionError, run_progress_in
from tpucfg.plan.run_progress import examples_of_run
from tpucfg.plan.rung import NO_OVERRIDE
from tpucfg.plan.selection import set_options
from tpucfg.results.cost import Cost
from tpucfg.results.evaluation import RungEvaluation, recorded_changes
from tpucfg.results.ladder_status import LadderStatus
from tpucfg.results.records import THROUGHPUT, exact_decimal, run_parts
from tpucfg.spec import Gate

PROBE_OPTION: Final = "--probe"
_FROM_LOG: Final = ("--from", "LOG")


class NextStep(NamedTuple):
    """One line: a sentence, or the purpose of a command and the command."""

    text: str
    command: str = ""

    def __str__(self) -> str:
        """Return the line for a terminal."""
        return f"{self.text}: {self.command}" if self.command else self.text


def may_run(status: LadderStatus, size: str, *, is_probe: bool = False) -> bool:
    """Return True if the gate lets a run or a probe start: the rung below has passed, and its own step and cost do."""
    has_passed = has_passed_below(status, size) and not status.rung(size).fit_problem
    return has_passed and not cost_problem(status, size, is_probe=is_probe)


def cost_problem(status: LadderStatus, size: str, *, is_probe: bool = False) -> str:
    """Return the reason why `gate.max_usd` lets a run or a probe not start; empty if it does, or for a gate without."""
    limit = status.gate.max_usd if status.gate else None
    if limit is None:
        return ""
    rung = status.rung(size)
    kind, cost = ("probe", rung.probe_cost) if is_probe else ("run", rung.cost)
    usd = cost.submission_usd if cost else None
    if usd is None:
        source = (
            f": the record of {cost.source} is of another program"
            if cost and cost.is_of_other
            else ""
        )
        return f"the cost of a {kind} is not known{source}"
    allowed = exact_decimal(limit)
    if usd <= allowed:
        return ""
    basis = _basis(cost) if cost else ""
    return f"a {kind} costs ${format_dollars(usd)} {basis}, and the gate allows ${format_dollars(allowed)}"


def _basis(cost: Cost) -> str:
    """Return the words for what a cost is from."""
    if cost.source and not cost.is_of_other:
        return f"by the record of {cost.source}"
    if cost.forecast_hours and (
        cost.limit_hours is None or cost.forecast_hours <= cost.limit_hours
    ):
        return "by the upper end of its forecast"
    return "if it takes its max_run_duration"


def has_passed_below(status: LadderStatus, size: str) -> bool:
    """Return True if the rung below has passed; always for the first rung, and if the gate compares no measurement."""
    below = status.rung(size).evaluation.below
    if below is None or not status.is_measured:
        return True
    return below.size in passed_sizes(status)


def passed_sizes(status: LadderStatus) -> frozenset[str]:
    """Return the sizes of the rungs that have passed."""
    # A line that is not a record could have been the last one of a rung, so findings keep the gate closed.
    is_known = not status.results.findings
    return frozenset(rung.size for rung in status.evaluations if rung.passed and is_known)


def gate_refusals(
    statuses: Mapping[str, LadderStatus], jobs: Iterable[Job], resumed: Collection[str]
) -> Mapping[str, tuple[Finding, ...]]:
    """Return the findings about jobs that may not be started yet, by job name; other jobs are absent.

    The jobs named in `resumed` go on with a run that was on their size before: the gate has let it start.
    """
    refusals = {
        job.name: tuple(
            _refusals(statuses[job.environment.name], job, is_resumed=job.name in resumed)
        )
        for job in jobs
    }
    return {name: findings for name, findings in refusals.items() if findings}


def remedy(
    status: LadderStatus, rung: RungEvaluation, changes: Sequence[str] = ()
) -> Iterator[NextStep]:
    """Yield the steps that let a rung pass, with these `--set` values."""
    missing = next((shortfall for shortfall in rung.shortfalls if shortfall.unrecorded_size), None)
    size = missing.unrecorded_size if missing and missing.unrecorded_size else rung.size
    evaluation, of_metric = (
        status.rung(size).evaluation,
        (missing or rung.shortfalls[0]).is_of_metric,
    )
    # The metric is that of a whole run; the rest is measured by a probe, which costs less.
    kind = (PROBE_OPTION,) if status.probe and not of_metric else ()
    name = f"a probe of {size}" if kind else size
    run = ("--run", next_run(status))

    def step(text: str, command: str, *more: str) -> NextStep:
        options = (*kind, *more, *set_options(changes))
        return NextStep(text, status.command(command, size, *options))

    if missing and not evaluation.is_other:
        if evaluation.record is None or (of_metric and evaluation.records.whole is None):
            first = run if changes else ()  # other values need a run of their own
            yield step(f"run {name}", "submit", *first)
            yield step("then", "record", *first, *_FROM_LOG)
        else:
            yield step(
                f"record {name} again, with every metric that the gate compares",
                "record",
                *_FROM_LOG,
            )
        return
    start = (
        f"run {name} again"
        if missing
        else f"fix {size} and run {'a probe of it' if kind else 'it'} again"
    )
    # With the run's id the job has its own folder: the failed run's checkpoints are not continued.
    yield step(f"{start} in a new job folder", "submit", *run)
    yield step("then", "record", *run, *_FROM_LOG)


def fit_remedy(status: LadderStatus, size: str) -> tuple[NextStep, ...]:
    """Return the steps after which `gate.fit` lets a rung start."""
    problem = status.rung(size).fit_problem
    return (NextStep(problem.fix, status.command("fit", size)),) if problem else ()


def next_run(status: LadderStatus) -> str:
    """Return a run id that no record has."""
    # With the id of a finished run, the trainer would find its checkpoints and resume at the last step.
    # Of any size: the folder of a named run is the same on all of them.
    taken = {record.run for record in status.results.records}
    return next(run for number in count(2) if (run := f"a{number}") not in taken)


def _refusals(status: LadderStatus, job: Job, *, is_resumed: bool) -> Iterator[Finding]:
    """Yield the findings about the rung below, and about the fit and the cost of the rung itself."""
    size, is_probe = job.size, job.whole is not None
    below = status.rung(size).evaluation.below
    if below and not is_resumed and not has_passed_below(status, size):
        yield _not_passed(status, job, below)
    problem, rows = status.rung(size).fit_problem, []
    if problem:
        rows.append(
            ("TPU111", problem.reason, "fit", ", ".join(map(str, fit_remedy(status, size))))
        )
    if reason := cost_problem(status, size, is_probe=is_probe):
        rows.append(("TPU130", reason, "max_usd", _cost_remedy(status, job)))
    for id_, reason, key, fix in rows:
        yield Finding.of(
            id_,
            f"{size} may not be started in {status.environment.name}: {reason}",
            status.project.document.value_location(("gate", key)),
            help=f"{fix}; or start it anyway with --force",
        )


def _cost_remedy(status: LadderStatus, job: Job) -> str:
    """Return what makes the cost of a job known, or less."""
    rung = status.rung(job.size)
    cost = rung.cost
    if cost.usd_per_hour is None:
        return f"set prices.{job.slice.generation} to what you pay for a chip hour"
    if cost.submission_usd is not None:
        return "set gate.max_usd to what it may cost, or trainer.max_run_duration to a shorter time"
    if rung.fit and not rung.fit.current:
        return f"compile it, which forecasts its time: {status.command('fit', job.size)}"
    if job.whole is None and status.probe and not cost_problem(status, job.size, is_probe=True):
        options = ("--run", next_run(status), *set_options(job.changes)) if job.changes else ()
        probe = status.command("submit", job.size, PROBE_OPTION, *options)
        return f"measure it with a probe: {probe}; or set trainer.max_run_duration, after which it ends"
    return "set trainer.max_run_duration, after which it ends"


def _not_passed(status: LadderStatus, job: Job, below: RungEvaluation) -> Finding:
    """Return the finding about a rung whose predecessor has not passed."""
    if below.shortfalls:
        reason = "; ".join(shortfall.reason for shortfall in below.shortfalls)
        path = below.shortfalls[0].path
        fix = ", ".join(map(str, remedy(status, below, job.changes)))
    # The rung below has passed, so the gate is closed by an error in the file.
    else:
        reason = f"{status.results.file} {status.results.problem}, so the gate cannot be evaluated"
        path = ("gate",)
        fix = f"fix {status.results.file}"
    record = below.record
    return Finding.of(
        "TPU110",
        f"{job.size} may not be started in {status.environment.name}: {reason}",
        status.project.document.value_location(path),
        help=f"{fix}; or start it anyway with --force",
        related=((record.location, f"the last record of {below.size}"),)
        if record and record.location
        else (),
    )


# The next steps on a ladder, and notes about its measurements, as lines of text with commands to paste.


IMPLAUSIBLE_SCALING: Final = Fraction(5, 4)
"""A scaling efficiency above this is implausible.

Caches make a large slice slightly faster per core. A throughput that was recorded for one host instead of the slice
causes a much higher value.
"""


def gate_text(gate: Gate) -> str:
    """Return the gate's requirements in words."""
    scaling, max_usd = gate.min_scaling_efficiency, gate.max_usd
    direction = "below" if gate.goal == "max" else "above"
    max_drop = f"at most {format_metric(exact_decimal(gate.max_drop or 0))} {direction} that of the previous rung"
    requirements = (
        scaling is not None and f"a scaling of {floor_percent(exact_decimal(scaling))}",
        gate.metric and f"{gate.metric} {max_drop}",
        gate.same_image and "records of the job's own image",
        gate.fit and "a training step that is known to fit",
        max_usd is not None and f"a cost of at most ${format_dollars(exact_decimal(max_usd))}",
    )
    return ", and ".join(text for text in requirements if text)


def other_program_notes(status: LadderStatus, size: str | None = None) -> Iterator[str]:
    """Yield a note for each rung whose last record is of another program or image; with a size, only for that one."""
    consequence = ", which does not count for the gate" if status.is_measured else ""
    for rung in status.evaluations:
        if size not in (None, rung.size):
            continue
        if rung.records.other:
            yield f"{rung.size} was last {rung.other_text}{consequence}"
        elif note := _image_note(status, rung):
            yield note


def _image_note(status: LadderStatus, rung: RungEvaluation) -> str:
    """Return the note about a record that counts, and that another image made; empty if there is none."""
    program = status.programs.get(rung.size)
    if not (program and rung.record and rung.record.image) or rung.record.image == program.image:
        return ""
    return f"{rung.size} was recorded with the image {rung.record.image}, and its job now has {program.image}"


def image_below_note(status: LadderStatus, size: str) -> Iterator[str]:
    """Yield a note if the rung below, on which the gate depends, was recorded with another image."""
    below = status.rung(size).evaluation.below
    if status.is_measured and below and (note := _image_note(status, below)):
        yield f"{note}; {size} is compared with it"


def implausible_notes(status: LadderStatus, size: str | None = None) -> Iterator[str]:
    """Yield a note for each rung that scales implausibly well; with a size, only for comparisons with that rung."""
    for rung in status.evaluations:
        if not rung.below or not rung.efficiency or rung.efficiency <= IMPLAUSIBLE_SCALING:
            continue
        if size in (None, rung.size, rung.below.size):
            scaling = f"{rung.size} scales to {floor_percent(rung.efficiency)} of {rung.below.size}"
            yield f"{scaling}: check that {THROUGHPUT} is that of the whole slice on both"


def run_steps(status: LadderStatus, catalog: Catalog) -> Iterator[NextStep]:
    """Yield how far each recorded run is that has not ended, and the commands with which it goes on.

    Where its last size is not to be had, these are the sizes of `fallback`.
    """
    project, environment = status.project, status.environment
    if status.results.findings:
        return
    records = grouped((record.run, record) for record in status.results.records)
    for run, of_run in records.items():
        if not (run and any(record.step for record in of_run)):
            continue
        results = status.results._replace(records=tuple(of_run))
        parts = run_parts({environment.name: results}, run)
        try:
            progress = run_progress_in(
                project, catalog, environment, Selection(run=run, recorded=parts)
            )
        except SelectionError as error:
            yield NextStep(f"the run {run} cannot go on: {error}")
            continue
        promised = examples_of_run(project.training)
        if progress is None or (promised and progress.seen.examples >= promised):
            continue
        size = progress.last.size
        seen = (
            f", with {progress.seen.examples:,} of {int(promised):,} examples seen"
            if promised
            else ""
        )
        yield NextStep(f"the run {run} is at step {progress.seen.step:,} on {size}{seen}")
        changes = recorded_changes(results, project.name, run)
        options = ("--run", run, *set_options(changes))
        fallback = project.overrides.get(size, NO_OVERRIDE).fallback
        for other in dict.fromkeys((size, *fallback)):
            if other in environment.sizes:
                text = (
                    "it goes on with"
                    if other == size
                    else f"or on {other}, a fallback of {size}, with"
                )
                yield NextStep(text, status.command("submit", other, *options))


def first_rung_note(status: LadderStatus) -> Iterator[str]:
    """Yield a note that the gate cannot check the first rung's metric."""
    # There is no rung below, so even a first run that diverged passes, and the user has to check its metric.
    first, gate = status.evaluations[0], status.gate
    if gate and gate.metric and first.metric is not None:
        value = format_metric(first.metric)
        yield f"{first.size} is the first rung: its {gate.metric} of {value} is not compared with anything"


def next_steps(status: LadderStatus) -> Iterator[NextStep]:
    """Yield the reasons why measured rungs have not passed, then the commands for the lowest unmeasured rung.

    A rung that `gate.fit` refuses is compiled first, so that no step is one that the gate refuses.
    """
    # An invalid line could be the last record of any rung, so no other step can be recommended.
    if status.results.findings:
        yield NextStep(f"{status.results.file} {status.results.problem}: fix it first")
        return
    for rung in status.evaluations:
        if rung.record and rung.shortfalls and not rung.is_other:  # a note is about another program
            reasons = "; ".join(shortfall.reason for shortfall in rung.shortfalls)
            yield NextStep(f"{rung.size} has not passed: {reasons}")
    # A probe measures how a rung scales at a fraction of the cost of a run, so the ladder is measured by probes first.
    kind, measured = ((PROBE_OPTION,), status.for_probes()) if status.probe else ((), status)
    unmeasured = [
        rung
        for rung in measured.evaluations
        if rung.record is None or (rung.is_other and status.is_measured)
    ]
    reached = next((rung for rung in unmeasured if has_passed_below(measured, rung.size)), None)
    if reached:
        size = reached.size
        fixes = fit_remedy(status, size)
        yield from (NextStep(f"next, {fix.text}", fix.command) for fix in fixes)
        # The folder of the other program's run may have checkpoints.
        options = (*kind, *(("--run", next_run(status)) if reached.is_other else ()))
        if reason := cost_problem(status, size, is_probe=bool(kind)):
            yield NextStep(f"the gate does not let {size} start: {reason}")
            return
        submit = status.command("submit", size, *options)
        yield NextStep(f"once {size} is known to fit" if fixes else "next", submit)
        yield NextStep("then", status.command("record", size, *options, "--from", "LOG"))
    elif unmeasured and (blocking := unmeasured[0].below):
        yield from (*fit_remedy(measured, blocking.size), *remedy(measured, blocking))
    # Every rung is recorded: the lowest one that has not passed is to be run again.
    elif failed := next((rung for rung in status.evaluations if not rung.passed), None):
        yield from (*fit_remedy(status, failed.size), *remedy(status, failed))
    elif status.is_measured:
        yield NextStep("every rung has passed")
    else:
        yield NextStep("every rung is recorded")
