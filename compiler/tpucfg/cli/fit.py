"""The command `tpucfg fit`."""

import re
import shutil
import sys
import time
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Generic, TypeVar

from tpucfg.catalog import Catalog
from tpucfg.cli import options
from tpucfg.cli.exit_codes import ERRORS, CommandExit, delayed_interrupts
from tpucfg.cli.fit_output import environment_fits, part_lines, print_fits
from tpucfg.cli.load_spec import load_compiled, print_findings, require_none
from tpucfg.cli.options import DEFAULT_TIME_LIMIT, SPEC, format_option, option, selection
from tpucfg.findings import Finding, collect, errors
from tpucfg.fit.failure_findings import failure_findings, machine_finding, missing_step_finding
from tpucfg.fit.fit_file import FitFile, FitKey, FitResult, fit_path, read_fit_file, update_fit_file
from tpucfg.fit.fit_findings import fit_findings
from tpucfg.fit.launcher import Outcome, compile_rungs
from tpucfg.fit.machine import available_memory, default_jobs, machine_problem
from tpucfg.fit.rung_fit import RungFit, fit_command, fit_key, memory_settings, verdict_text
from tpucfg.fit.worker_process import Limits, Observer, Running
from tpucfg.fs import explain_error
from tpucfg.plan import Job
from tpucfg.refusal import RefusalError, UsageError
from tpucfg.results.fit_notes import (
    records_beyond_bound,
    records_outside_forecast,
    rungs_beyond_duration,
)
from tpucfg.results.ladder_status import ladder_statuses
from tpucfg.spec import Duration, Project
from tpucfg.text_format import format_value, printable

_Ended = TypeVar("_Ended")
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
    parts: Annotated[
        bool, option("--parts", "Show what the time of a step is made of, below the tables.")
    ] = False,
    fresh: Annotated[
        bool, option("--fresh", "Compile unchanged steps again, and trust no earlier result.")
    ] = False,
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
    known = file._replace(results={}) if fresh else file
    ended, write_error = keep_each(
        file.path,
        FitProgress(sum(job.settings.trainer.fit is not None for job in compiled.jobs)),
        partial(compile_rungs, project, compiled.jobs, known, spec.parent.resolve(), limits),
        partial(_write, project, file.path),
    )
    order = {fit_key(job): index for index, job in enumerate(compiled.jobs)}
    outcomes = sorted(ended, key=lambda outcome: order[fit_key(outcome.job)])
    fits = [
        RungFit(
            fit_key(job := each.job), each.result, memory_settings=memory_settings(project, job)
        )
        for each in outcomes
    ]
    failed = failure_findings(project, outcomes, spec.parent, limits.seconds)
    findings = collect((*fit_findings(project, fits), *failed))
    statuses = ladder_statuses(
        project, catalog, [job.environment for job in compiled.jobs], spec.parent
    )
    environments = environment_fits(project, outcomes, statuses)
    beyond = [finding for status in statuses.values() for finding in records_beyond_bound(status)]
    print_fits(project, environments, findings, str(file.path), format)
    if parts and format == "text":
        print("", *part_lines(environments), sep="\n")
    for status in statuses.values() if format == "text" else ():
        overlong = rungs_beyond_duration(status, [job.size for job in compiled.jobs])
        for note in (*records_outside_forecast(status), *(each.message for each in overlong)):
            print(printable(note))
    sys.stdout.flush()
    sources = {name: text for status in statuses.values() for name, text in status.sources.items()}
    serious = [finding for finding in beyond if finding.level != "note"]
    print_findings([*findings, *serious], sources | {str(spec): project.document.text})
    require_written(file.path, write_error)
    if errors(findings):
        raise CommandExit(ERRORS)


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
    file = read_fit_file(
        fit_path(spec.parent), command=fit_command(project, [*project.environments])
    )
    if not with_step:
        findings: Sequence[Finding] = [missing_step_finding(project, jobs)]
    elif problem := machine_problem():
        findings = [machine_finding(project, with_step[0], problem)]
    else:
        findings = file.findings
    require_none(findings, {str(spec): project.document.text, str(file.path): file.text})
    return file


def _write(project: Project, path: Path, outcomes: Sequence[Outcome]) -> None:
    """Add the results to the file, without those that the spec has no rung for.

    Another run may have written the file since this one read it, so it is read again while no other one writes it.
    """
    new = {outcome.result.key: outcome.result for outcome in outcomes if outcome.result}

    def merged() -> Iterable[FitResult]:
        before = read_fit_file(path).results
        kept = {key: result for key, result in before.items() if _is_kept(project, key)}
        return (kept | new).values()

    if new or path.exists():
        update_fit_file(path, merged)


def _is_kept(project: Project, key: FitKey) -> bool:
    """Return True for a result of another project, or of a rung that the spec still has."""
    settings = project.settings.get((key.environment, key.size))
    return key.name != project.name or (settings is not None and settings.trainer.fit is not None)


# The progress of compilations: each result is kept as it ends, and stderr shows what is left.


_REFRESH_SECONDS: Final = 0.5
_CLEAR: Final = "\r\x1b[K"
"""Back to the start of the line, and erase it."""


class ProgressLine(Generic[_Ended]):
    """The last line of stderr, which is drawn again and again; nothing unless stderr is a terminal."""

    left = ""
    """The number of compilations that are left, or what the search is at: the start of the line."""

    def __init__(self) -> None:
        self._drawn = 0.0
        self._is_terminal = sys.stderr.isatty()

    @abstractmethod
    def ended(self, each: _Ended) -> None:
        """Print the line about a compilation."""

    @abstractmethod
    def interrupted(self, kept: str) -> None:
        """Print what is left after Ctrl-C; `kept` is the place of the results, or why they are in none."""

    def observe(self, running: Sequence[Running]) -> None:
        """Draw the line with the phase and the seconds of each compilation, at most twice a second."""
        if not self._is_terminal or time.monotonic() - self._drawn < _REFRESH_SECONDS:
            return
        self._drawn = time.monotonic()
        parts = (
            f"{each.task.name} {each.process.phase or 'start'} {each.process.seconds:.0f} s"
            for each in running
        )
        text = printable(f"{self.left}: {', '.join(parts)}")
        sys.stderr.write(f"{_CLEAR}{text[: shutil.get_terminal_size().columns - 1]}")
        sys.stderr.flush()

    def print_above(self, text: str) -> None:
        """Print a line that stays, on a terminal or not."""
        self.clear()
        print(printable(text), file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Remove the line."""
        if self._is_terminal:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()


class FitProgress(ProgressLine[Outcome]):
    """The number of rungs that have ended, and the phases of those that are compiled."""

    def __init__(self, total: int) -> None:
        super().__init__()
        self._ended, self._compiled, self._total = 0, 0, total
        self.left = f"0/{total}"

    def ended(self, each: Outcome) -> None:
        """Print the line about a rung."""
        self._ended += 1
        self._compiled += each.result is not None
        self.left = f"{self._ended}/{self._total}"
        seconds = "" if each.seconds is None else f" ({each.seconds.total:.1f} s)"
        verdict = verdict_text(RungFit(fit_key(each.job), each.result))
        if each.is_known:
            verdict += ", unchanged, as committed" if each.is_committed else ", unchanged"
        self.print_above(
            f"{self.left} {each.job.environment.name} {each.job.size}: {verdict}{seconds}"
        )

    def interrupted(self, kept: str) -> None:
        """Print what is left of a run that Ctrl-C has ended."""
        rest = f"; {kept}; run the command again without --fresh: a step that is kept takes seconds"
        self.print_above(
            f"interrupted: {self._compiled} of {self._total} rungs compiled{rest if self._compiled else ''}"
        )


def keep_each(
    path: Path,
    progress: ProgressLine[_Ended],
    start: Callable[[Observer], Generator[_Ended, None, None]],
    keep: Callable[[Sequence[_Ended]], None],
) -> tuple[list[_Ended], OSError | None]:
    """Run compilations, and keep the result of each as soon as it is complete: a killed run loses no other.

    Args:
        path: The file of the results.
        progress: Prints what has ended and what is left.
        start: Starts the compilations.
        keep: Writes all results so far.

    Returns:
        What has ended, in this order, and the error if a result could not be written.
    """
    ended: list[_Ended] = []
    write_error: OSError | None = None
    with delayed_interrupts() as check_interrupts:

        def observe(running: Sequence[Running]) -> None:
            check_interrupts()
            progress.observe(running)

        try:
            with closing(start(observe)) as compilations:
                for each in compilations:
                    ended.append(each)
                    progress.ended(each)
                    try:
                        keep(ended)
                        write_error = None
                    except OSError as error:
                        write_error = error
        finally:
            progress.clear()
            if isinstance(sys.exception(), KeyboardInterrupt):
                progress.interrupted(
                    _write_message(path, write_error) if write_error else f"kept in {path}"
                )
    return ended, write_error


def require_written(path: Path, error: OSError | None) -> None:
    """Raise RefusalError for results that could not be written."""
    if error:
        raise RefusalError(
            _write_message(path, error), f"{explain_error(error)[1]}, and run the command again"
        )


def _write_message(path: Path, error: OSError) -> str:
    return f"{path} cannot be written: {explain_error(error)[0]}"
