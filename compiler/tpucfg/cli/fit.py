"""The command `tpucfg fit`."""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

from tpucfg.catalog import Catalog
from tpucfg.cli import options
from tpucfg.cli.exit_codes import ERRORS, CommandExit
from tpucfg.cli.fit_output import FORMATS, environment_fits, part_lines
from tpucfg.cli.interrupts import delayed_interrupts
from tpucfg.cli.load_spec import load_compiled, print_findings
from tpucfg.cli.options import DEFAULT_TIME_LIMIT, SPEC, format_option, option, selection
from tpucfg.cli.progress import FitProgress
from tpucfg.findings import Finding, collect, errors
from tpucfg.fit.failure_findings import failure_findings, machine_finding, missing_step_finding
from tpucfg.fit.fit_file import FitFile, FitKey, FitResult, fit_path, read_fit_file, update_fit_file
from tpucfg.fit.fit_findings import fit_findings
from tpucfg.fit.forecast import StepInterval, step_interval
from tpucfg.fit.launcher import Outcome, compile_rungs
from tpucfg.fit.machine import available_memory, default_jobs, machine_problem
from tpucfg.fit.rung_fit import RungFit, fit_command, fit_key, memory_settings
from tpucfg.fit.schedule import Limits, Running
from tpucfg.plan import Job
from tpucfg.refusal import RefusalError, UsageError
from tpucfg.results.fit_notes import records_beyond_bound, records_outside_forecast, rungs_beyond_duration
from tpucfg.results.ladder_status import LadderStatus, ladder_statuses
from tpucfg.results.records import explain_error
from tpucfg.spec import Duration, Project
from tpucfg.text_format import format_value, printable

_DURATION: Final = re.compile(r"[1-9][0-9]{0,6}[smhd]")
_USABLE_MEMORY: Final = 0.9
"""The share of the free memory that compilations may use."""


def fit(
    spec: options.SpecOption = SPEC,
    env: options.EnvOption = None,
    size: options.SizeOption = None,
    changes: options.SetOption = None,
    format: Annotated[str, format_option("text|json|markdown")] = "text",
    jobs: options.JobsOption = None,
    time_limit: options.TimeLimitOption = DEFAULT_TIME_LIMIT,
    parts: Annotated[bool, option("--parts", "Show what the time of a step is made of, below the tables.")] = False,
    fresh: Annotated[bool, option("--fresh", "Compile unchanged steps again, and trust no earlier result.")] = False,
) -> None:
    """Compile the training step of each rung with the TPU compiler: memory, time and cost of a run.

    The step is the function that trainer.fit names; it runs in trainer.fit.python, which needs jax[tpu] and no TPU.
    The results are kept in results/fit.json next to the spec.

    Example: tpucfg fit --env dev --size v5litepod-16
    """
    limits = compilation_limits(jobs, time_limit)
    catalog = Catalog()
    project, compiled = load_compiled(spec, catalog, selection(env, size, changes=changes))
    file = compilable_file(project, compiled.jobs, spec)
    outcomes, write_error = _compile(project, compiled.jobs, spec, file, limits, fresh=fresh)
    fits = [
        RungFit(fit_key(job := each.job), each.result, memory_settings=memory_settings(project, job))
        for each in outcomes
    ]
    failed = failure_findings(project, outcomes, spec.parent, limits.seconds)
    findings = collect((*fit_findings(project, fits), *failed))
    statuses = ladder_statuses(project, catalog, [job.environment for job in compiled.jobs], spec.parent)
    environments = environment_fits(project, outcomes, _forecasts(statuses, outcomes))
    beyond = [finding for status in statuses.values() for finding in records_beyond_bound(project, status)]
    for line in FORMATS[format](project, environments, findings, str(fit_path(spec.parent))):
        print(line)
    if parts and format == "text":
        print("", *part_lines(environments), sep="\n")
    for status in statuses.values() if format == "text" else ():
        overlong = rungs_beyond_duration(project, status, [job.size for job in compiled.jobs])
        for note in (*records_outside_forecast(status), *(each.message for each in overlong)):
            print(printable(note))
    sys.stdout.flush()
    sources = {name: text for status in statuses.values() for name, text in status.sources}
    serious = [finding for finding in beyond if finding.level != "note"]
    print_findings([*findings, *serious], sources | {str(spec): project.document.text})
    if write_error:
        raise unwritten(fit_path(spec.parent), write_error)
    if errors(findings):
        raise CommandExit(ERRORS)


def _forecasts(
    statuses: Mapping[str, LadderStatus], outcomes: Sequence[Outcome]
) -> Mapping[str, Mapping[str, StepInterval]]:
    """Return the forecasts by environment and size, also of results that could not be written."""
    forecasts = {name: dict(status.forecasts) for name, status in statuses.items()}
    for outcome in outcomes:
        of_environment, job, result = forecasts[outcome.job.environment.name], outcome.job, outcome.result
        if job.size not in of_environment and result and result.fits and (own := step_interval(result, job.slice)):
            of_environment[job.size] = own
    return forecasts


def compilation_limits(jobs: int | None, time_limit: str) -> Limits:
    """Return the limits that --jobs and --time-limit set.

    Raises:
        UsageError: The time is not a number and a unit.
    """
    if not _DURATION.fullmatch(time_limit):
        message = f"--time-limit {format_value(time_limit, quoted=False)}: it takes a number above zero and a unit"
        raise UsageError(message, "for example: --time-limit 30m")
    memory = int(available_memory() * _USABLE_MEMORY)
    return Limits(jobs or default_jobs(), Duration.read(time_limit).seconds, memory)


def compilable_file(project: Project, jobs: Sequence[Job], spec: Path) -> FitFile:
    """Return the file of results if the jobs can be compiled.

    Raises:
        CommandExit: No step is named, the machine cannot compile, or the file has a mistake.
    """
    with_step = [job for job in jobs if job.settings.trainer.fit]
    file = read_fit_file(fit_path(spec.parent), command=fit_command(project, [*project.environments]))
    if not with_step:
        findings: Sequence[Finding] = [missing_step_finding(project, jobs)]
    elif problem := machine_problem():
        findings = [machine_finding(project, with_step[0], problem)]
    else:
        findings = file.findings
    if findings:
        print_findings(findings, {str(spec): project.document.text, str(file.path): file.text})
        raise CommandExit(ERRORS)
    return file


def _compile(
    project: Project, jobs: Sequence[Job], spec: Path, file: FitFile, limits: Limits, *, fresh: bool
) -> tuple[list[Outcome], OSError | None]:
    """Compile the rungs, and write the result of each as soon as it is complete: a killed run loses no other.

    Returns the outcomes in the order of the jobs, and the error if the results could not be written.
    """
    path = fit_path(spec.parent)
    outcomes: list[Outcome] = []
    write_error: OSError | None = None
    progress = FitProgress(sum(job.settings.trainer.fit is not None for job in jobs))
    with delayed_interrupts() as check_interrupts:

        def observe(running: Sequence[Running]) -> None:
            check_interrupts()
            progress.observe(running)

        known = file._replace(results={}) if fresh else file
        compilations = compile_rungs(project, jobs, known, spec.parent.resolve(), limits, observe)
        try:
            for outcome in compilations:
                outcomes.append(outcome)
                progress.ended(outcome)
                if outcome.result and not outcome.is_known:  # known ones cost nothing, and are written at the end
                    _write(project, path, [outcome])
        finally:
            compilations.close()
            progress.clear()
            write_error = _write(project, path, outcomes)
            if isinstance(sys.exception(), KeyboardInterrupt):
                kept = _write_message(path, write_error) if write_error else f"kept in {path}"
                progress.interrupted(outcomes, kept)
    order = {fit_key(job): index for index, job in enumerate(jobs)}
    return sorted(outcomes, key=lambda outcome: order[fit_key(outcome.job)]), write_error


def _write(project: Project, path: Path, outcomes: Sequence[Outcome]) -> OSError | None:
    """Add the results to the file, without those that the spec has no rung for; return the error if that fails.

    Another run may have written the file since this one read it, so it is read again while no other one writes it.
    """
    new = {outcome.result.key: outcome.result for outcome in outcomes if outcome.result}
    if not new and not path.exists():
        return None

    def merged() -> Iterable[FitResult]:
        before = read_fit_file(path).results
        kept = {key: result for key, result in before.items() if _is_kept(project, key)}
        return (kept | new).values()

    try:
        update_fit_file(path, merged)
    except OSError as error:
        return error
    return None


def unwritten(path: Path, error: OSError) -> RefusalError:
    """Return the end of a command whose results cannot be written."""
    return RefusalError(_write_message(path, error), f"{explain_error(error)[1]}, and run the command again")


def _write_message(path: Path, error: OSError) -> str:
    return f"{path} cannot be written: {explain_error(error)[0]}"


def _is_kept(project: Project, key: FitKey) -> bool:
    """Return True for a result of another project, or of a rung that the spec still has."""
    settings = project.settings.get((key.environment, key.size))
    return key.name != project.name or (settings is not None and settings.trainer.fit is not None)
