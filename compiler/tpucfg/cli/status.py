"""The command `tpucfg status`."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Final

from tpucfg.catalog import Catalog
from tpucfg.cli import options, table
from tpucfg.cli.load_spec import load_compiled, require_none
from tpucfg.cli.options import SPEC, format_option, option, selection
from tpucfg.cli.table import Cell, Line, TableSection, known, print_sections
from tpucfg.number_format import (
    UNKNOWN,
    floor_percent,
    format_dollars,
    format_metric,
    format_rate,
    format_rounded,
)
from tpucfg.paths import grouped
from tpucfg.plan import Job
from tpucfg.refusal import UsageError
from tpucfg.results.gate import (
    PROBE_OPTION,
    NextStep,
    first_rung_note,
    gate_text,
    implausible_notes,
    may_run,
    next_steps,
    other_program_notes,
    run_steps,
)
from tpucfg.results.ladder_status import LadderStatus, RungStatus, ladder_statuses
from tpucfg.results.records import ignored_records
from tpucfg.spec import Project
from tpucfg.targets import RequestBody
from tpucfg.text_format import json_text, listed

if TYPE_CHECKING:
    from tpucfg.results.live import LiveJob

LiveJobs = Mapping[str, "Sequence[LiveJob]"]
"""The answers of the services about jobs, by environment; empty if they were not asked."""
_REASONS: Final = {"waiting": "waits", "failed": "has failed", "stopped": "was stopped"}
"""The verb before a reason, by state."""


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
        raise UsageError(
            "--size, --run and --probe choose the jobs of --live", "add --live, or leave them out"
        )
    catalog = Catalog()
    runs = [*dict.fromkeys(run or ())]
    chosen = selection(env, size, run=runs[0] if runs else None, probe=probe)
    project, compiled = load_compiled(spec, catalog, chosen)
    environments = [job.environment for job in compiled.jobs]
    ladders = ladder_statuses(project, catalog, environments, spec.parent).values()
    answers: LiveJobs = {}
    asked = datetime.now(UTC)
    if live:
        bodies = [*compiled.request_bodies]
        for other in runs[1:]:
            chosen = selection(env, size, run=other, probe=probe)
            bodies += load_compiled(spec, catalog, chosen, warnings="none")[1].request_bodies
        answers = _ask(project, bodies, asked)
    if format == "json":
        sys.stdout.write(json_text(_data(project, ladders, answers)))
    else:
        print_sections(_sections(ladders, answers, asked, catalog), format)
    findings = [finding for ladder in ladders for finding in ladder.findings]
    require_none(
        findings, {file: text for ladder in ladders for file, text in ladder.sources.items()}
    )


def _sections(
    ladders: Iterable[LadderStatus], answers: LiveJobs, asked: datetime, catalog: Catalog
) -> Iterator[TableSection]:
    """Yield the tables of each environment, with the notes and the next steps below them."""
    for ladder in ladders:
        name, target, region = (
            ladder.environment.name,
            ladder.environment.target,
            ladder.environment.region,
        )
        rows = [[*_cells(each, ladder)] for each in ladder.rungs]
        lines: list[Line] = [*_notes(ladder), *run_steps(ladder, catalog), *next_steps(ladder)]
        yield TableSection(
            f"{name}: {target} in {region}, {ladder.results.file}", rows, _below(lines)
        )
        if name in answers:
            yield live_section(ladder, answers[name], asked)


def _below(lines: Sequence[Line]) -> Sequence[Line]:
    """Return the lines below a table, after an empty one."""
    return ["", *lines] if lines else []


def _data(project: Project, ladders: Iterable[LadderStatus], answers: LiveJobs) -> dict[str, Any]:
    environments = [
        {
            "name": (name := ladder.environment.name),
            "target": ladder.environment.target,
            "region": ladder.environment.region,
            "results": ladder.results.file,
            "rungs": [_rung_data(each, ladder) for each in ladder.rungs],
            "findings": [
                finding.data("id", "message", "location", "help") for finding in ladder.findings
            ],
            **(
                {"live": [live_data(each, ladder) for each in answers[name]]}
                if name in answers
                else {}
            ),
        }
        for ladder in ladders
    ]
    gate = project.gate._asdict() if project.gate else None
    return {"project": project.name, "gate": gate, "environments": environments}


def _cells(each: RungStatus, ladder: LadderStatus) -> Iterator[Cell]:
    """Yield the cells of a rung. The spec chooses the metric's name, which may be that of another column."""
    project, evaluation, rung = ladder.project, each.evaluation, each.rung
    yield "size", each.size
    yield "cores", f"{rung.slice.cores:,}"
    yield from table.parallelism_cells(rung, [other.rung for other in ladder.rungs])
    yield "examples/s", format_rate(evaluation.throughput)
    if rung.sequence_length is not None:
        tokens, by_device = _tokens_per_second(each)
        yield "tokens/s", format_rate(tokens)
        yield "tokens/s/device", format_rate(by_device)
    yield "per core", format_rate(evaluation.per_core)
    yield "scaling", known(evaluation.efficiency, floor_percent) or UNKNOWN
    if project.gate and project.gate.metric:
        yield project.gate.metric, known(evaluation.metric, format_metric) or UNKNOWN
        yield (
            "worse by",
            known(evaluation.metric_drop, lambda drop: format_metric(max(drop, Fraction(0))))
            or UNKNOWN,
        )
    if project.prices:
        names = table.capacity_names(ladder)
        yield from table.capacity_cells(names[ladder.rungs.index(each)], names)
        yield from table.cost_cells(ladder, each.size)
    yield "MFU", known(_utilization(each), floor_percent)
    if ladder.fits:
        yield table.hbm_cell(each.fit)
    yield "status", _status_word(each, ladder)


def _tokens_per_second(each: RungStatus) -> tuple[Fraction | None, Fraction | None]:
    """Return the tokens per second of a rung and of each of its devices; None if they are not known."""
    rung, throughput = each.rung, each.evaluation.throughput
    tokens = throughput * rung.sequence_length if throughput and rung.sequence_length else None
    return tokens, tokens / rung.slice.devices if tokens else None


def _utilization(each: RungStatus) -> Fraction | None:
    """Return the share of the peak that a rung's program reached; None unless its compiled step is known."""
    throughput = each.evaluation.throughput
    if not (each.fit and each.fit.current and throughput) or each.evaluation.is_other:
        return None
    from tpucfg.fit.forecast import utilization

    return utilization(each.fit.current, each.rung.slice, each.rung.batch_size / throughput)


def _status_word(each: RungStatus, ladder: LadderStatus) -> str:
    evaluation = each.evaluation
    may_probe = ladder.probe is not None and may_run(ladder.for_probes(), each.size, is_probe=True)
    if evaluation.record is None:
        return (
            "open" if may_run(ladder, each.size) else "open for a probe" if may_probe else "closed"
        )
    if evaluation.is_other:
        return "other program"
    if not ladder.is_measured:
        return "recorded"
    if evaluation.passed:
        return "passed"
    return (
        "scaling passed"
        if ladder.probe and ladder.for_probes().rung(each.size).evaluation.passed
        else "not passed"
    )


def _notes(ladder: LadderStatus) -> Iterator[str]:
    project = ladder.project
    if project.gate and (required := gate_text(project.gate)):
        yield f"the gate requires {required}"
    yield from other_program_notes(ladder)
    yield from (
        ignored.message
        for ignored in ignored_records(ladder.results, ladder.environment, project.name)
    )
    yield from first_rung_note(ladder)
    yield from implausible_notes(ladder)
    sizes = ladder.environment.sizes
    if any(each.settings.trainer.max_run_duration for each in ladder.rungs):
        from tpucfg.results.fit_notes import rungs_beyond_duration

        beyond = rungs_beyond_duration(ladder, sizes)
        yield from (finding.message for finding in beyond if finding.level != "note")
    if ladder.fits:
        from tpucfg.results.fit_notes import fit_notes

        yield from fit_notes(ladder, ladder.fits)
        if any(map(_utilization, ladder.rungs)):
            yield "MFU counts the matrix products of the compiled step, also those that rematerialization repeats"
    if project.prices:
        yield from table.cost_note(ladder)


def _rung_data(each: RungStatus, ladder: LadderStatus) -> dict[str, Any]:
    """Return one rung as data for JSON; an unknown value is None."""
    evaluation, rung = each.evaluation, each.rung
    record, whole = evaluation.record, evaluation.records.whole
    parallelism = table.parallelism_data(rung, [other.rung for other in ladder.rungs])
    if rung.sequence_length is not None:
        tokens, by_device = _tokens_per_second(each)
        parallelism["tokens_per_second"] = tokens
        parallelism["tokens_per_second_per_device"] = by_device
    measurements = {
        "size": each.size,
        "chips": rung.slice.chips,
        "cores": rung.slice.cores,
        "recorded": record is not None,
        "run": record.run if record else None,
        # The final metric is that of the whole run, and the throughput that of the probe.
        "metrics": {**(whole.metrics if whole else {}), **record.metrics} if record else None,
        "examples_per_second_per_core": evaluation.per_core,
        "metric_worse_by": evaluation.metric_drop,
        "scaling_efficiency": evaluation.efficiency,
        "passed": evaluation.passed if ladder.is_measured else None,
        "why_not": [shortfall.reason for shortfall in evaluation.shortfalls],
        "may_run": may_run(ladder, each.size),
        "probe": bool(evaluation.record and evaluation.record.is_probe),
        "other_program": [*evaluation.records.differences] if evaluation.is_other else None,
    }
    if ladder.fits:
        measurements |= table.fit_data(rung, each.fit)
        measurements["mfu"] = _utilization(each)
        measurements["why_closed"] = each.fit_problem.reason if each.fit_problem else None
    return measurements | parallelism | table.cost_data(ladder, each.size)


# The jobs of --live.


def _ask(project: Project, bodies: Sequence[tuple[Job, RequestBody]], now: datetime) -> LiveJobs:
    """Return what the services print about the selected jobs, by environment."""
    from tpucfg.results.live import live_jobs

    return grouped((each.job.environment.name, each) for each in live_jobs(project, bodies, now))


def live_section(ladder: LadderStatus, jobs: "Sequence[LiveJob]", asked: datetime) -> TableSection:
    """Return the table of the jobs of an environment, with what its service printed about them at a time.

    Below it are reasons, then the unanswered questions, once for all jobs.
    """
    lines = [line for each in jobs for line in _lines(each, ladder)]
    unanswered = (
        (text, (each.job.name, command)) for each in jobs for text, command in each.unanswered
    )
    for message, questions in grouped(unanswered).items():
        names, command = listed([name for name, _ in questions]), questions[0][1]
        lines.append(NextStep(f"{names}: {message}" + ("; try" if command else ""), command))
    title = f"{ladder.environment.name}, live at {asked:%Y-%m-%d %H:%M} UTC"
    return TableSection(title, [[*_live_cells(each, ladder)] for each in jobs], _below(lines))


def _lines(each: "LiveJob", ladder: LadderStatus) -> Iterator[NextStep]:
    job, state = each.job, each.state
    if state.reason:
        yield NextStep(f"{job.name} {_REASONS.get(state.state, 'reports')}: {state.reason}")
    if state.state == "not found":
        options = [
            *(("--run", job.run) if job.run else ()),
            *((PROBE_OPTION,) if job.whole else ()),
        ]
        command = ladder.command("submit", job.size, *options)
        reasons = (
            "not started, or deleted" if job.run else "not started, deleted, or started with --run"
        )
        yield NextStep(f"{job.name} is not there ({reasons}); start it with", command)
    if state.log_command:
        yield NextStep(f"{job.name} has its log on its machines", state.log_command.bash())


def _live_cells(each: "LiveJob", ladder: LadderStatus) -> Iterator[Cell]:
    state, steps, rung = each.state, each.job.rung.train_steps, ladder.rung(each.job.size)
    yield "job", each.job.name
    yield "state", f"{state.state} ({state.service_state})" if state.service_state else state.state
    yield (
        "step",
        UNKNOWN
        if each.step is None
        else f"{each.step:,}"
        if steps is None
        else f"{each.step:,} of {steps:,}",
    )
    yield "s/step", format_rounded(each.step_seconds)
    yield "bound", known(table.step_bound(each.job.rung, rung.fit), format_rounded)
    yield (
        "forecast",
        known(
            rung.forecast, lambda time: f"{format_rounded(time.low)}–{format_rounded(time.high)}"
        ),
    )
    yield "USD so far", known(each.usd, format_dollars)
    yield (
        "of at most",
        known(each.usd, lambda _: known(each.max_usd, format_dollars) or "not bounded"),
    )
    yield "restarts", known(state.restarts, "{:,}".format)


def live_data(each: "LiveJob", ladder: LadderStatus) -> dict[str, Any]:
    """Return a job as data for JSON; an unknown value is None."""
    state, rung = each.state, ladder.rung(each.job.size)
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
        "seconds_per_step": each.step_seconds,
        "least_step_seconds": table.step_bound(each.job.rung, rung.fit),
        "forecast_step_seconds": table.interval_data(rung.forecast),
        "started": state.started.isoformat() if state.started else None,
        "ended": state.ended.isoformat() if state.ended else None,
        "usd_so_far": each.usd,
        "usd_at_most": each.max_usd,
        "restarts": state.restarts,
        "unanswered": [question._asdict() for question in each.unanswered],
    }
