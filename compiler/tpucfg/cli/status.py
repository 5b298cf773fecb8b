"""The command `tpucfg status`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

from tpucfg.catalog import Catalog
from tpucfg.cli import options, rung_columns
from tpucfg.cli.exit_codes import ERRORS, CommandExit
from tpucfg.cli.interrupts import terminations_as_interrupts
from tpucfg.cli.load_spec import load_compiled, print_findings
from tpucfg.cli.options import SPEC, format_option, option, selection
from tpucfg.cli.table import Column, Section, markdown_sections, text_sections
from tpucfg.markdown import code, prose
from tpucfg.number_format import (
    UNKNOWN,
    floor_percent,
    format_dollars,
    format_metric,
    format_rate,
    format_rounded,
    to_json_number,
)
from tpucfg.paths import grouped
from tpucfg.plan import Job, Rung
from tpucfg.refusal import UsageError
from tpucfg.results import RungEvaluation
from tpucfg.results.gate import (
    PROBE_OPTION,
    NextStep,
    command_line,
    first_rung_note,
    gate_text,
    implausible_notes,
    may_run,
    next_steps,
    other_program_notes,
    run_steps,
)
from tpucfg.results.ignored_records import ignored_records
from tpucfg.results.ladder_status import LadderStatus, ladder_statuses
from tpucfg.spec import Project
from tpucfg.targets import RequestBody
from tpucfg.text_format import json_text, listed

if TYPE_CHECKING:
    from tpucfg.fit.forecast import StepInterval
    from tpucfg.results.live import LiveJob

_REASONS: Final = {"waiting": "waits", "failed": "has failed", "stopped": "was stopped"}
"""The verb before a reason, by state."""


class LiveJobs(NamedTuple):
    """The jobs of one environment, with what its service prints about them."""

    environment: str
    jobs: "tuple[LiveJob, ...]"
    asked: datetime
    spec: Path

    @property
    def title(self) -> str:
        """The heading: `dev, live at 2026-03-01 12:00 UTC`."""
        return f"{self.environment}, live at {self.asked:%Y-%m-%d %H:%M} UTC"

    def columns(self, ladder: LadderStatus) -> list[Column]:
        """Return the columns, without those that no job has a value for."""
        jobs = self.jobs
        columns = [
            Column("job", [each.job.name for each in jobs]),
            Column("state", [_state(each) for each in jobs]),
            Column("step", [_live_steps(each) for each in jobs]),
            Column("s/step", [format_rounded(each.step_seconds) for each in jobs]),
        ]
        bounds = [_bound(each, ladder) for each in jobs]
        if any(bounds):
            columns.append(Column("bound", [format_rounded(bound) for bound in bounds]))
        intervals = [_interval(each, ladder) for each in jobs]
        if any(intervals):
            columns.append(Column("forecast", [_seconds(interval) for interval in intervals]))
        if any(each.usd is not None for each in jobs):
            columns.append(Column("USD so far", [format_dollars(each.usd) for each in jobs]))
            columns.append(Column("of at most", [_most(each) for each in jobs]))
        if any(each.state.restarts is not None for each in jobs):
            restarts = [each.state.restarts for each in jobs]
            columns.append(Column("restarts", [UNKNOWN if number is None else f"{number:,}" for number in restarts]))
        return columns

    @property
    def lines(self) -> list[NextStep]:
        """The lines below the columns: reasons, then the questions that were not answered, once for all jobs."""
        lines = [line for each in self.jobs for line in _lines(each, self.spec)]
        unanswered = ((text, (each.job.name, command)) for each in self.jobs for text, command in each.unanswered)
        for message, questions in grouped(unanswered).items():
            names, command = listed([name for name, _ in questions]), questions[0][1]
            lines.append(NextStep(f"{names}: {message}" + ("; try" if command else ""), command))
        return lines

    def data(self, ladder: LadderStatus) -> list[dict[str, Any]]:
        """Return the jobs as data for JSON; an unknown value is None."""
        return [_live_data(each, ladder) for each in self.jobs]


class _Environment(NamedTuple):
    """An environment's ladder with its next steps."""

    ladder: LadderStatus
    next_steps: tuple[NextStep, ...]
    live: LiveJobs | None = None
    """The answers of its service about the selected jobs; None if it was not asked."""

    @property
    def title(self) -> str:
        """The heading: `dev: vertex-ai in us-central1, results/dev.jsonl`."""
        environment = self.ladder.environment
        return f"{environment.name}: {environment.target} in {environment.region}, {self.ladder.results.file}"


def status(
    spec: options.SpecOption = SPEC,
    env: options.EnvOption = None,
    live: Annotated[bool, option("--live", "Ask the services about the jobs.")] = False,
    size: options.SizeOption = None,
    run: options.RunsOption = None,
    probe: options.ProbeOption = False,
    format: Annotated[str, format_option("text|markdown|json")] = "text",
) -> None:
    """Show each rung's status: what it measured, how it scales, what it costs, and the next rung to run.

    With --live, kubectl and gcloud are asked about the jobs, without a change: their state, the last step of their log,
    their cost so far, and why they wait. --size, --run and --probe choose the jobs.

    Example: tpucfg status --env prod --live --run a1
    """
    if (size or run or probe) and not live:
        raise UsageError("--size, --run and --probe choose the jobs of --live", "add --live, or leave them out")
    catalog = Catalog()
    runs = [*dict.fromkeys(run or ())]
    chosen = selection(env, size, run=runs[0] if runs else None, probe=probe)
    project, compiled = load_compiled(spec, catalog, chosen)
    environments = [job.environment for job in compiled.jobs]
    ladders = ladder_statuses(project, catalog, environments, spec.parent).values()
    statuses = [
        _Environment(ladder, (*run_steps(ladder, project, catalog, spec), *next_steps(ladder, spec)))
        for ladder in ladders
    ]
    if live:
        bodies = [*compiled.request_bodies]
        for other in runs[1:]:
            chosen = selection(env, size, run=other, probe=probe)
            bodies += load_compiled(spec, catalog, chosen, warnings="none")[1].request_bodies
        answers = _ask(project, bodies, spec)
        statuses = [each._replace(live=answers.get(each.ladder.environment.name)) for each in statuses]
    for line in {"text": _text, "markdown": _markdown, "json": _json}[format](project, statuses):
        print(line)
    if findings := [finding for ladder in ladders for finding in ladder.findings]:
        print_findings([*dict.fromkeys(findings)], {file: text for ladder in ladders for file, text in ladder.sources})
        raise CommandExit(ERRORS)


def _text(project: Project, statuses: Sequence[_Environment]) -> Iterator[str]:
    return text_sections(_sections(project, statuses, str))


def _markdown(project: Project, statuses: Sequence[_Environment]) -> Iterator[str]:
    def item(line: NextStep) -> str:
        return f"- {prose(line.text)}" + (f": {code(line.command)}" if line.command else "")

    return markdown_sections(_sections(project, statuses, item))


def _sections(project: Project, statuses: Sequence[_Environment], show: Callable[[NextStep], str]) -> Iterator[Section]:
    """Yield the tables of each environment, with the lines below them."""
    for status in statuses:
        lines = [*map(NextStep, _notes(status.ladder, project)), *status.next_steps]
        yield Section(status.title, _columns(status.ladder, project), _below(map(show, lines)))
        if live := status.live:
            yield Section(live.title, live.columns(status.ladder), _below(map(show, live.lines)))


def _below(lines: Iterable[str]) -> list[str]:
    shown = [*lines]
    return ["", *shown] if shown else []


def _json(project: Project, statuses: Sequence[_Environment]) -> Iterator[str]:
    gate = project.gate._asdict() if project.gate else None
    environments = [
        {
            "name": status.ladder.environment.name,
            "target": status.ladder.environment.target,
            "region": status.ladder.environment.region,
            "results": status.ladder.results.file,
            "rungs": [_rung_data(evaluation, status.ladder) for evaluation in status.ladder.evaluations],
            "findings": [finding.data("id", "message", "location", "help") for finding in status.ladder.findings],
            **({"live": status.live.data(status.ladder)} if status.live else {}),
        }
        for status in statuses
    ]
    yield json_text({"project": project.name, "gate": gate, "environments": environments}).rstrip("\n")


def _columns(ladder: LadderStatus, project: Project) -> list[Column]:
    """Return the columns of an environment. The spec chooses the metric's name, which may be that of another column."""
    evaluations, rungs = ladder.evaluations, ladder.rungs
    tokens = [_tokens_per_second(evaluation, rung) for evaluation, rung in zip(evaluations, rungs, strict=True)]
    efficiencies = [evaluation.efficiency for evaluation in evaluations]
    columns = [
        Column("size", [evaluation.size for evaluation in evaluations]),
        Column("cores", [f"{evaluation.slice.cores:,}" for evaluation in evaluations]),
        *rung_columns.parallelism_columns(rungs),
        Column("examples/s", [format_rate(evaluation.throughput) for evaluation in evaluations]),
        *(_token_columns(evaluations, tokens) if rungs[0].sequence_length is not None else ()),
        Column("per core", [format_rate(evaluation.per_core) for evaluation in evaluations]),
        Column("scaling", [UNKNOWN if share is None else floor_percent(share) for share in efficiencies]),
    ]
    if project.gate and project.gate.metric:
        drops = [None if (drop := each.metric_drop) is None else max(drop, Fraction(0)) for each in evaluations]
        columns.append(_metric_column(project.gate.metric, [evaluation.metric for evaluation in evaluations]))
        columns.append(_metric_column("worse by", drops))
    if project.prices:
        columns += [*rung_columns.capacity_columns(ladder.capacity_names), *rung_columns.cost_columns(ladder, rungs)]
    shares = [_utilization(evaluation, ladder) for evaluation in evaluations]
    if any(shares):
        columns.append(Column("MFU", [UNKNOWN if share is None else floor_percent(share) for share in shares]))
    if ladder.fits:
        columns.append(rung_columns.hbm_column(ladder.fit(rung.size) for rung in rungs))
    return [*columns, Column("status", [_status_word(evaluation, ladder) for evaluation in evaluations])]


def _metric_column(title: str, metrics: Sequence[Fraction | None]) -> Column:
    return Column(title, [UNKNOWN if metric is None else format_metric(metric) for metric in metrics])


def _tokens_per_second(evaluation: RungEvaluation, rung: Rung) -> Fraction | None:
    return evaluation.throughput * rung.sequence_length if evaluation.throughput and rung.sequence_length else None


def _token_columns(evaluations: Sequence[RungEvaluation], tokens: Sequence[Fraction | None]) -> Iterator[Column]:
    yield Column("tokens/s", [*map(format_rate, tokens)])
    yield Column("tokens/s/device", [*map(format_rate, map(_per_device, evaluations, tokens))])


def _per_device(evaluation: RungEvaluation, tokens: Fraction | None) -> Fraction | None:
    return tokens / evaluation.slice.devices if tokens else None


def _utilization(evaluation: RungEvaluation, ladder: LadderStatus) -> Fraction | None:
    """Return the share of the peak that a rung's program reached; None unless its compiled step is known."""
    fit = ladder.fit(evaluation.size)
    if not (fit and fit.current and evaluation.throughput) or evaluation.is_other:
        return None
    from tpucfg.fit.forecast import utilization

    rung = ladder.rung(evaluation.size)
    return utilization(fit.current, rung.slice, rung.batch_size / evaluation.throughput)


def _status_word(evaluation: RungEvaluation, ladder: LadderStatus) -> str:
    may_probe = ladder.probe is not None and may_run(ladder.for_probes(), evaluation.size, is_probe=True)
    if evaluation.record is None:
        return "open" if may_run(ladder, evaluation.size) else "open for a probe" if may_probe else "closed"
    if evaluation.is_other:
        return "other program"
    if not ladder.is_measured:
        return "recorded"
    if evaluation.passed:
        return "passed"
    return "scaling passed" if ladder.probe and ladder.for_probes().evaluation(evaluation.size).passed else "not passed"


def _notes(ladder: LadderStatus, project: Project) -> Iterator[str]:
    if project.gate and (required := gate_text(project.gate)):
        yield f"the gate requires {required}"
    yield from other_program_notes(ladder)
    yield from (ignored.message for ignored in ignored_records(ladder.results, ladder.environment, project.name))
    yield from first_rung_note(ladder)
    yield from implausible_notes(ladder)
    sizes = ladder.environment.sizes
    if any(project.settings[ladder.environment.name, size].trainer.max_run_duration for size in sizes):
        from tpucfg.results.fit_notes import rungs_beyond_duration

        beyond = rungs_beyond_duration(project, ladder, sizes)
        yield from (finding.message for finding in beyond if finding.level != "note")
    if ladder.fits:
        from tpucfg.results.fit_notes import fit_notes

        yield from fit_notes(project, ladder, ladder.fits)
        if any(_utilization(evaluation, ladder) for evaluation in ladder.evaluations):
            yield "MFU counts the matrix products of the compiled step, also those that rematerialization repeats"
    if project.prices:
        yield from rung_columns.cost_note(ladder)


def _rung_data(evaluation: RungEvaluation, ladder: LadderStatus) -> dict[str, Any]:
    """Return one rung as data for JSON; an unknown value is None."""
    record, whole, rung = evaluation.record, evaluation.records.whole, ladder.rung(evaluation.size)
    parallelism = rung_columns.parallelism_data(rung, ladder.rungs)
    if rung.sequence_length is not None:
        tokens = _tokens_per_second(evaluation, rung)
        parallelism["tokens_per_second"] = to_json_number(tokens)
        parallelism["tokens_per_second_per_device"] = to_json_number(_per_device(evaluation, tokens))
    measurements = {
        "size": evaluation.size,
        "chips": evaluation.slice.chips,
        "cores": evaluation.slice.cores,
        "recorded": record is not None,
        "run": record.run if record else None,
        # The final metric is that of the whole run, and the throughput that of the probe.
        "metrics": {**(whole.metrics if whole else {}), **record.metrics} if record else None,
        "examples_per_second_per_core": to_json_number(evaluation.per_core),
        "metric_worse_by": to_json_number(evaluation.metric_drop),
        "scaling_efficiency": to_json_number(evaluation.efficiency),
        "passed": evaluation.passed if ladder.is_measured else None,
        "why_not": [shortfall.reason for shortfall in evaluation.shortfalls],
        "may_run": may_run(ladder, evaluation.size),
        "probe": bool(evaluation.record and evaluation.record.is_probe),
        "other_program": [*evaluation.records.differences] if evaluation.is_other else None,
    }
    if ladder.fits:
        problem = ladder.fit_problems.get(evaluation.size)
        measurements |= rung_columns.fit_data(rung, ladder.fit(evaluation.size))
        measurements["mfu"] = to_json_number(_utilization(evaluation, ladder))
        measurements["why_closed"] = problem.reason if problem else None
    return measurements | parallelism | rung_columns.cost_data(ladder, evaluation.size)


# The jobs of --live.


def _ask(project: Project, bodies: Sequence[tuple[Job, RequestBody]], spec: Path) -> Mapping[str, LiveJobs]:
    """Return what the services print about the selected jobs, by environment."""
    from tpucfg.results.live import live_jobs

    now = datetime.now(UTC)
    with terminations_as_interrupts():  # which ends the clients, too
        by_environment = grouped((each.job.environment.name, each) for each in live_jobs(project, bodies, now))
    return {name: LiveJobs(name, tuple(jobs), now, spec) for name, jobs in by_environment.items()}


def _lines(each: "LiveJob", spec: Path) -> Iterator[NextStep]:
    job, state = each.job, each.state
    if state.reason:
        yield NextStep(f"{job.name} {_REASONS.get(state.state, 'reports')}: {state.reason}")
    if state.state == "not found":
        options = [*(("--run", job.run) if job.run else ()), *((PROBE_OPTION,) if job.whole else ())]
        command = command_line("submit", job.environment.name, job.size, spec, *options)
        reasons = "not started, or deleted" if job.run else "not started, deleted, or started with --run"
        yield NextStep(f"{job.name} is not there ({reasons}); start it with", command)
    if state.log_command:
        yield NextStep(f"{job.name} has its log on its machines", state.log_command.bash())


def _live_data(each: "LiveJob", ladder: LadderStatus) -> dict[str, Any]:
    state, bound = each.state, _bound(each, ladder)
    return {
        "job": each.job.name,
        "size": each.job.size,
        "run": each.job.run,
        "probe": each.job.whole is not None,
        "state": state.state,
        "service_state": state.service_state or None,
        "reason": state.reason or None,
        "step": each.step,
        "steps": each.job.rung.train_steps,
        "seconds_per_step": to_json_number(each.step_seconds),
        "least_step_seconds": to_json_number(bound),
        "forecast_step_seconds": rung_columns.interval_data(_interval(each, ladder)),
        "started": state.started.isoformat() if state.started else None,
        "ended": state.ended.isoformat() if state.ended else None,
        "usd_so_far": to_json_number(each.usd),
        "usd_at_most": to_json_number(each.max_usd),
        "restarts": state.restarts,
        "unanswered": [question._asdict() for question in each.unanswered],
    }


def _state(each: "LiveJob") -> str:
    word = each.state.service_state
    return f"{each.state.state} ({word})" if word else each.state.state


def _live_steps(each: "LiveJob") -> str:
    if each.step is None:
        return UNKNOWN
    steps = each.job.rung.train_steps
    return f"{each.step:,}" if steps is None else f"{each.step:,} of {steps:,}"


def _most(each: "LiveJob") -> str:
    return UNKNOWN if each.usd is None else "not bounded" if each.max_usd is None else format_dollars(each.max_usd)


def _seconds(interval: "StepInterval | None") -> str:
    return UNKNOWN if interval is None else f"{format_rounded(interval.low)}–{format_rounded(interval.high)}"


def _bound(each: "LiveJob", ladder: LadderStatus) -> Fraction | None:
    return rung_columns.step_bound(each.job.rung, ladder.fit(each.job.size))


def _interval(each: "LiveJob", ladder: LadderStatus) -> "StepInterval | None":
    return ladder.forecasts.get(each.job.size)
