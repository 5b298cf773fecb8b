"""The command `tpucfg tune`."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Annotated

from tpucfg.catalog import Catalog
from tpucfg.cli import options
from tpucfg.cli.exit_codes import ERRORS, CommandExit
from tpucfg.cli.fit import (
    ProgressLine,
    compilable_file,
    compilation_limits,
    keep_each,
    require_written,
)
from tpucfg.cli.load_spec import load_compiled, print_findings, require_none, single_job
from tpucfg.cli.options import DEFAULT_TIME_LIMIT, SPEC, format_option, option, selection
from tpucfg.cli.tune_output import TuneReport, candidate_name, print_report
from tpucfg.findings import Level, collect
from tpucfg.fit.failure_findings import failure_findings
from tpucfg.fit.fit_file import FitResult
from tpucfg.fit.rung_fit import RungFit, fit_key, verdict_text
from tpucfg.fit.tune_candidates import (
    MAX_LINES,
    Candidate,
    Choices,
    Line,
    UnwritableError,
    count_lines,
    edited_spec,
    lines_of,
    plan_candidates,
    read_choices,
    step_key,
)
from tpucfg.fit.tune_search import (
    RankedCandidate,
    Ranking,
    Trial,
    keep_results,
    next_candidate,
    rank,
    read_tune_file,
    search,
    tune_path,
)
from tpucfg.fs import staged_files
from tpucfg.plan import Job
from tpucfg.plan.job import program_of
from tpucfg.plan.selection import set_options
from tpucfg.refusal import RefusalError, UsageError
from tpucfg.results.cost import price_per_hour
from tpucfg.results.evaluation import records_of_programs
from tpucfg.results.records import THROUGHPUT, Results, read_records
from tpucfg.spec import Project, command_words
from tpucfg.text_format import format_count, format_value
from tpucfg.yamldoc.reader import read_file


def tune(
    spec: options.SpecOption = SPEC,
    env: options.OneEnvOption = None,
    size: options.RungOption = None,
    sizes: Annotated[
        str | None, option("--sizes SIZES", "The sizes to try, with commas between them.")
    ] = None,
    changes: options.SetOption = None,
    write: Annotated[
        bool, option("--write", "Write the values of the first candidate into the spec.")
    ] = False,
    format: Annotated[str, format_option("text|json")] = "text",
    jobs: options.JobsOption = None,
    time_limit: options.TimeLimitOption = DEFAULT_TIME_LIMIT,
) -> None:
    """Search the cheapest way to run a rung that fits, by compiling its step on other sizes and with other values.

    The global batch, the tokens, the steps and the rate stay. The section tune of the spec, or --sizes, names what is
    tried. What is compiled is kept in results/tune.json next to the spec.

    Example: tpucfg tune --env prod --sizes v5p-32,v6e-32
    """
    limits = compilation_limits(jobs, time_limit)
    catalog, others = Catalog(), tuple(filter(None, (sizes or "").split(",")))
    if write and changes:
        raise UsageError(
            "--write and --set exclude each other: the spec does not have the values of --set"
        )
    project, job = _rung(spec, catalog, env, size, changes)
    choices = _choices(project, catalog, job, others)
    known, records = _known(project, job, spec)
    candidates, unseen = plan_candidates(project, catalog, job, choices)
    lines = lines_of(candidates, choices)
    path = tune_path(spec.parent)
    ended, write_error = keep_each(
        path,
        TuneProgress(candidates, lines, choices, limits.jobs),
        partial(search, lines, candidates[0], known, spec.parent.resolve(), limits),
        lambda trials: keep_results(
            path, [each.result for each in trials if each.result and not each.is_kept]
        ),
    )
    order = {id(candidate): index for index, candidate in enumerate(candidates)}
    trials = sorted(ended, key=lambda trial: order[id(trial.candidate)])
    rankings = _rankings(project, job, records, trials)
    by_step = {step_key(trial.candidate): trial for trial in trials}
    print_report(TuneReport(job, choices, candidates, unseen, lines, by_step, rankings), format)
    sys.stdout.flush()
    names = {id(trial.outcome.job): candidate_name(trial.candidate, choices) for trial in trials}
    repeated = command_words("tune", spec, env=env, size=size, sizes=sizes)
    failed = failure_findings(
        project,
        [each.outcome for each in trials],
        spec.parent,
        limits.seconds,
        command=shlex.join([*repeated, *set_options(changes or ())]),
        name=lambda job: names[id(job)],
    )
    # Where others were compiled, the search has its result.
    level: Level = "warning" if rankings else "error"
    print_findings(
        collect(each._replace(level=level) for each in failed), {str(spec): project.document.text}
    )
    require_written(path, write_error)
    if not rankings:
        raise CommandExit(ERRORS)
    if write:
        own = (ranking.rows for ranking in rankings if ranking.batch_size == job.rung.batch_size)
        _write(spec, catalog, next(own, ()))


def _rung(
    spec: Path, catalog: Catalog, env: str | None, size: str | None, changes: list[str] | None
) -> tuple[Project, Job]:
    """Return the spec and the job of the rung.

    Raises:
        UsageError: The spec has an error, or several environments have the rung.
    """
    chosen = selection([env] if env else None, [size] if size else None, changes=changes)
    project, compiled = load_compiled(spec, catalog, chosen)
    wanted = size or project.training.tuned_on
    matching = [job for job in compiled.jobs if job.size == wanted]
    if not matching:
        known = ", ".join(dict.fromkeys(job.size for job in compiled.jobs))
        raise UsageError(
            f"{wanted}, the tuned size, is in no ladder", f"choose a rung by --size: {known}"
        )
    return project, single_job(matching, wanted)


def _choices(project: Project, catalog: Catalog, job: Job, sizes: Sequence[str]) -> Choices:
    """Return the values to try.

    Raises:
        UsageError: A size does not exist, or there are too many combinations.
    """
    for size in sizes:
        if catalog.find(size) is None:
            near = catalog.nearest(size)
            hint = f"did you mean {near}?" if near else "list the sizes with: tpucfg sizes"
            raise UsageError(f"--sizes: {format_value(size, quoted=False)} is not a TPU size", hint)
    choices = read_choices(project.document, sizes)
    if (count := count_lines(job.rung, choices)) > MAX_LINES:
        message = f"{count:,} combinations of sizes, batches, parallelism and arguments; {MAX_LINES} are the most"
        raise UsageError(
            message, "shorten the lists of tune, and search again with the best of them"
        )
    return choices


def _known(project: Project, job: Job, spec: Path) -> tuple[Sequence[FitResult], Results]:
    """Return the results of earlier compilations, and the records of the environment.

    Raises:
        CommandExit: The rung cannot be compiled, or a file has a mistake.
    """
    fits = compilable_file(project, [job], spec)
    kept = read_tune_file(tune_path(spec.parent))
    records = read_records(spec.parent, job.environment.name)
    require_none(
        (*kept.findings, *records.findings), {str(kept.path): kept.text, records.file: records.text}
    )
    # A result of an earlier version has no forecast.
    of_fit = (result for result in fits.results.values() if result.forecast or not result.fits)
    return [*of_fit, *kept.results.values()], records


def _rankings(
    project: Project, job: Job, records: Results, trials: Sequence[Trial]
) -> Sequence[Ranking]:
    slices = {trial.outcome.job.size: trial.outcome.job.slice for trial in trials}
    prices = {
        size: price_per_hour(slice_, project.prices, job.capacity.kind)
        for size, slice_ in slices.items()
    }
    return rank(trials, prices, _measured(records, trials))


def _measured(records: Results, trials: Sequence[Trial]) -> Mapping[str, Fraction]:
    """Return the seconds of a step of each candidate whose program a record measured."""
    seconds: dict[str, Fraction] = {}
    for trial in trials:
        project, job = trial.candidate.project, trial.outcome.job
        of_rung = records_of_programs(
            records, project.name, {job.size: program_of(project, job)}
        ).get(job.size)
        for record in (of_rung.probe, of_rung.whole) if of_rung else ():
            if record and (rate := record.metric(THROUGHPUT)):
                seconds.setdefault(step_key(trial.candidate), job.rung.batch_size / rate)
    return seconds


def _write(spec: Path, catalog: Catalog, rows: Sequence[RankedCandidate]) -> None:
    """Write the values of the first row into the spec, and print the difference.

    Raises:
        RefusalError: No row is the first, or the spec cannot get its values.
    """
    from difflib import unified_diff

    if not rows or (rows[0].interval is None and len(rows) > 1):
        problem = "no order is claimed without a forecast" if rows else "no candidate fits"
        hint = "shorten the lists of tune until one candidate is left, or set its values yourself"
        raise RefusalError(f"{spec} was not changed: {problem}", hint)
    if rows[0].trial.candidate.is_current:
        print(f"{spec} has the values of the first candidate", file=sys.stderr)
        return
    document = read_file(spec)
    try:
        text = edited_spec(document, catalog, rows[0].trial.candidate)
        with staged_files() as stage, stage(str(spec.resolve())) as file:
            file.write(text.encode())
    except UnwritableError as error:
        raise RefusalError(f"{spec} was not changed: {error}", error.help) from None
    except OSError as error:
        raise RefusalError(f"{spec} cannot be written: {error.strerror or error}") from None
    before, after = (each.splitlines(keepends=True) for each in (document.text, text))
    print("".join(unified_diff(before, after, str(spec), str(spec), n=1)), end="")
    if any(row.trial.candidate.is_current and row.rank == rows[0].rank for row in rows):
        print(
            "not proven to be cheaper than before: the intervals of both overlap", file=sys.stderr
        )


class TuneProgress(ProgressLine[Trial]):
    """The trials that have ended, and what is left of the search, on stderr."""

    def __init__(
        self, candidates: Sequence[Candidate], lines: Sequence[Line], choices: Choices, jobs: int
    ) -> None:
        super().__init__()
        self._lines, self._jobs = lines, jobs
        self._trials: dict[str, Trial] = {}
        self._names = {id(each.job): candidate_name(each, choices) for each in candidates}
        self._seconds: list[float] = []
        self.left = self._left_text()
        self.print_above(
            f"{format_count(len(candidates), 'candidate')} in {format_count(len(lines), 'combination')}"
        )

    def ended(self, each: Trial) -> None:
        """Print the line about a candidate."""
        self._trials[step_key(each.candidate)] = each
        seconds = each.outcome.seconds
        if seconds and seconds.compile is not None and each.result and each.result.fits:
            self._seconds.append(seconds.total)
        self.left = self._left_text()
        verdict = (
            verdict_text(RungFit(fit_key(each.outcome.job), each.result))
            if each.result
            else "failed"
        )
        took = "as kept" if each.is_kept else "" if seconds is None else f"{seconds.total:.1f} s"
        self.print_above(
            f"{self._names[id(each.outcome.job)]}: {verdict}{f' ({took})' if took else ''}; {self.left}"
        )

    def interrupted(self, kept: str) -> None:
        """Print what is left of a search that Ctrl-C has ended."""
        count = sum(trial.result is not None for trial in self._trials.values())
        self.print_above(
            f"interrupted: {format_count(count, 'result')} {kept}; {self.left}; the same command goes on"
        )

    def _left_text(self) -> str:
        undecided = sum(next_candidate(line, self._trials) is not None for line in self._lines)
        if not undecided:
            return "nothing left"
        # One compilation that fits decides most combinations; refusals take seconds.
        minutes = (
            undecided * sum(self._seconds) / len(self._seconds) / self._jobs / 60
            if self._seconds
            else None
        )
        about = f", about {max(1, round(minutes))} min" if minutes else ""
        return f"{undecided} of {format_count(len(self._lines), 'combination')} left{about}"
