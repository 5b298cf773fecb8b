"""The command `tpucfg submit`."""

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated

from tpucfg.catalog import Catalog
from tpucfg.cli import options
from tpucfg.cli.exit_codes import ERRORS, CommandExit
from tpucfg.cli.load_spec import (
    load_compiled,
    load_fits,
    print_findings,
    print_fit_warnings,
    require_none,
    with_records,
)
from tpucfg.cli.options import SPEC, option, selection
from tpucfg.findings import Finding
from tpucfg.package_data import comment
from tpucfg.plan import Job, RunPart, Selection, ladder, run_progress_in
from tpucfg.plan.job import figures_of
from tpucfg.plan.run_progress import RunProgress, progress_lines
from tpucfg.plan.selection import set_options
from tpucfg.refusal import RefusalError, UsageError
from tpucfg.render.pipeline import CompiledSpec, render_configs
from tpucfg.spec import Project, command_words
from tpucfg.spec.placeholders import RUN_PLACEHOLDERS, used_placeholders
from tpucfg.targets import RequestBody, target_named
from tpucfg.targets.commands import Command, Manifests, Submission, SubmissionError
from tpucfg.text_format import listed, printable

if TYPE_CHECKING:
    from tpucfg.fit.rung_fit import KnownFits


def submit(
    spec: options.SpecOption = SPEC,
    env: options.EnvOption = None,
    size: options.SizeOption = None,
    target: options.TargetOption = None,
    run: options.RunOption = None,
    step: options.StepOption = None,
    changes: options.SetOption = None,
    probe: options.ProbeOption = False,
    execute: Annotated[bool, option("--execute", "Run the command that starts the job.")] = False,
    force: Annotated[bool, option("--force", "Start the job even if the gate refuses it.")] = False,
) -> None:
    """Print the command that starts the job, ready to paste, and those that watch and delete it.

    With `gate:` in the spec, a rung is refused until the one below has passed, and with `gate.fit` until its own
    training step is known to fit: see `tpucfg status`. A probe asks for the scaling of the rung below, not its metric.

    A run that has done steps on another size goes on with those that are left, by its records or by --step.

    Example: tpucfg submit --env prod --size v3-32 --run a1
    """
    catalog = Catalog()
    if changes and run is None:
        raise UsageError(
            "--set needs --run: each set of values is a run of its own", "name it with --run ID"
        )
    chosen = with_records(
        selection(env, size, target, run, probe=probe, step=step, changes=changes), spec
    )
    project, compiled = load_compiled(spec, catalog, chosen, warnings="all")
    runs = {
        job.name: run_progress_in(project, catalog, job.environment, chosen)
        for job in compiled.jobs
    }
    for job in compiled.jobs:
        refuse_other_folder(job, runs[job.name])
    submissions = _submissions(project, compiled, spec)
    fits = load_fits(project, compiled.jobs, spec)
    terms = {
        job.name: (
            *run_terms(project, catalog, job, runs[job.name], chosen, spec),
            *_terms(job, body, project, fits),
        )
        for job, body in compiled.request_bodies
    }
    if execute and len(submissions) != 1:
        raise UsageError(
            f"{len(submissions)} jobs are selected, and --execute starts one",
            "add --env and --size",
        )
    refused = () if force else _refused_names(project, compiled.jobs, catalog, spec, runs)
    allowed = [(job, submission) for job, submission in submissions if job.name not in refused]
    if fits:
        print_fit_warnings(project, fits.of_jobs(job for job, _ in allowed))
    for number, (job, submission) in enumerate(allowed):
        command = _render_command(job, submission, spec, chosen, step)
        if execute:
            from tpucfg.cli.start_job import start_job

            print(*terms[job.name], sep="\n", file=sys.stderr)
            start_job(submission, next(render_configs(compiled)), command)
            keep_steps(project, catalog, job, runs[job.name], chosen, spec)
        else:
            if number:
                print()
            _print(job, submission, _start_text(submission, command, force=force), terms[job.name])
    if refused:
        raise CommandExit(ERRORS)


def _submissions(
    project: Project, compiled: CompiledSpec, spec: Path
) -> list[tuple[Job, Submission]]:
    """Return each job with its submission.

    Raises:
        CommandExit: The spec lacks what a submission needs; the findings name all of it.
    """
    findings: list[Finding] = []
    submissions = []
    for job in compiled.jobs:
        try:
            submissions.append((job, target_named(job.target).submission(job)))
        except SubmissionError as error:
            findings.append(error.problem.finding_in(project.document))
    require_none(findings, {str(spec): project.document.text})
    return submissions


def _refused_names(
    project: Project,
    jobs: Sequence[Job],
    catalog: Catalog,
    spec: Path,
    runs: Mapping[str, RunProgress | None],
) -> Collection[str]:
    """Return the names of the jobs that the gate refuses, and print the reasons to stderr."""
    if project.gate is None:
        return ()
    # The first rung has none below it, but its own step has to fit, and its cost be allowed.
    has_own = project.gate.fit or project.gate.max_usd is not None
    gated = [job for job in jobs if has_own or job.size != job.environment.sizes[0]]
    if not gated:
        return ()
    from tpucfg.results.gate import gate_refusals, image_below_note
    from tpucfg.results.ladder_status import ladder_statuses

    statuses = ladder_statuses(project, catalog, [job.environment for job in gated], spec.parent)
    if gated[0].whole:
        statuses = {name: status.for_probes() for name, status in statuses.items()}
    resumed = [
        job.name
        for job in jobs
        if (run := runs[job.name]) and job.size in {part.size for part in run.parts}
    ]
    refusals = gate_refusals(statuses, gated, resumed)
    refused = [finding for findings in refusals.values() for finding in findings]
    findings = [finding for status in statuses.values() for finding in status.results.findings]
    sources = {status.results.file: status.results.text for status in statuses.values()}
    print_findings([*findings, *refused], {str(spec): project.document.text} | sources)
    # The record of the rung below counts, but another image may have made it.
    for job in gated:
        for note in (
            ()
            if job.name in refusals
            else image_below_note(statuses[job.environment.name], job.size)
        ):
            print(f"note: {note}; see: tpucfg status --env {job.environment.name}", file=sys.stderr)
    return refusals


def _terms(
    job: Job, body: RequestBody, project: Project, fits: "KnownFits | None"
) -> Iterator[str]:
    """Yield the lines about what is bought: the most that a run can cost, the capacity, and the fit if it is known."""
    from tpucfg.results.cost import cost_limit_text

    yield f"cost:   {cost_limit_text(job, body, project.prices)}"
    yield f"capacity: {_capacity(job)}"
    if fits and (fit := fits.of_environment(job.environment.name).get(job.size)):
        from tpucfg.fit.fit_findings import known_text

        yield f"fit:    {known_text(fit)}"


def _capacity(job: Job) -> str:
    if compute_class := job.options.get("compute_class"):
        return f"decided by the compute class {compute_class}, priced as on-demand"
    text = job.capacity_text
    return text if job.capacity.is_set or text == "on-demand" else f"{text}, priced as on-demand"


def _start_text(submission: Submission, command: Sequence[str], *, force: bool) -> str:
    """Return what to paste into bash to start a job; of several objects, below it the command of each, in order."""
    start = submission.start
    if isinstance(start, Command):
        return start.bash(command)
    # The first field of a step is the document that it creates.
    documents = [(step[0], step.create) for step in start.steps]
    if isinstance(start, Manifests) and len(documents) == 1:
        return start.steps[0].create.bash(command)
    lines = [
        join(["tpucfg", "submit", *command[2:], *(["--force"] if force else []), "--execute"]),
        "# which does this, and deletes what it made on failure:",
    ]
    for key, create in documents:
        lines.append(
            comment(f"#   {create.bash([*command, '--format', 'json', '--document', key])}")
        )
    return "\n".join(lines)


def _print(job: Job, submission: Submission, start: str, terms: Sequence[str]) -> None:
    """Print the commands of a job: all except the start command as comments, so that the output can be run."""
    print(f"# {job.name}: {job.size} on {job.target}")
    print(start)
    print(comment(f"# watch:  {submission.watch.bash()}"))
    if submission.log:
        print(comment(f"# log:    {submission.log.bash()}"))
    for delete in submission.deletes:
        print(comment(f"# delete: {delete.bash()}"))
    for term in terms:
        print(comment(f"# {term}"))
    for note in submission.notes:
        print(comment(f"# {note}"))


def _render_command(
    job: Job, submission: Submission, spec: Path, chosen: Selection, steps: Sequence[str] | None
) -> list[str]:
    """Return the command that prints the job's config."""
    is_json = isinstance(submission.start, Command) and submission.start.config_format == "json"
    options = {"target": chosen.target, "run": job.run, "format": "json" if is_json else None}
    return [
        *command_words(
            "render", spec, env=job.environment.name, size=job.size, **options, step=steps
        ),
        *set_options(job.changes),
        *(["--probe"] if job.whole else []),
    ]


# Runs that go on, move to another size, or have the name of another one.


def refuse_other_folder(job: Job, progress: RunProgress | None) -> None:
    """Refuse to move a run to another size if its program has another folder there.

    Raises:
        RefusalError: No placeholder of the run's folder is used.
    """
    if progress is None or progress.last.size == job.size:
        return
    if used_placeholders(job.settings.trainer.texts) & RUN_PLACEHOLDERS:
        return
    message = f"the run {job.run} was on {progress.last.size}, and its program has no folder that is the same on"
    raise RefusalError(
        f"{message} {job.size}: it would begin again at step 0",
        "write the folder of its checkpoints as ${run_dir}, or start a run with another --run",
    )


def run_terms(
    project: Project,
    catalog: Catalog,
    job: Job,
    progress: RunProgress | None,
    chosen: Selection,
    spec: Path,
) -> Iterator[str]:
    """Yield the lines about a run that goes on, or whose name another one has.

    Raises:
        RefusalError: The run would begin again, or go on with other values than it began with.
    """
    if progress:
        from tpucfg.results.ladder_status import command_line

        (before,) = ladder(project, catalog, (progress.last.size,))
        for line in progress_lines(project.training, job.rung, progress, before):
            yield f"run:    {line}"
        for part in _stated(job, progress, chosen):
            step = ("--run", job.run or "", "--step", str(part.step), *set_options(job.changes))
            command = command_line(project, job.environment.name, "record", part.size, *step)
            yield f"run:    --execute records that it was at step {part.step:,} on {part.size}, else: {command}"
    elif job.run and not job.whole and len(job.environment.sizes) > 1:
        yield "run:    has no record, so it begins at step 0; if it was on another size, add --step SIZE:STEP"
    yield from _other_values(project, job, spec)


def _stated(job: Job, progress: RunProgress | None, chosen: Selection) -> list[RunPart]:
    """Return the parts of a run that the command line has, and the records do not."""
    recorded = chosen.recorded.get((job.project, job.environment.name), ())
    known = {(part.size, part.step) for part in recorded}
    return [
        part for part in (progress.parts if progress else ()) if (part.size, part.step) not in known
    ]


def keep_steps(
    project: Project,
    catalog: Catalog,
    job: Job,
    progress: RunProgress | None,
    chosen: Selection,
    spec: Path,
) -> None:
    """Record the steps of a started run that only the command line had: the next submission goes on behind them."""
    from tpucfg.results.records import Record, RecordFileError, append_record

    for part in _stated(job, progress, chosen):
        (rung,) = ladder(project, catalog, (part.size,))
        program = {"figures": figures_of(rung)}
        record = Record(job.project, part.size, {}, job.run, False, program, part.step, job.changes)
        try:
            path = append_record(
                spec.parent, job.environment.name, record._replace(folder=job.run_dir)
            )
        except RecordFileError as error:
            print(
                printable(f"step {part.step} was not recorded: {error}; {error.help}"),
                file=sys.stderr,
            )
        else:
            print(
                printable(f"{path}: recorded {part.size}: step {part.step} of {job.run}"),
                file=sys.stderr,
            )


def _other_values(project: Project, job: Job, spec: Path) -> Iterator[str]:
    """Yield a line about a record of another run with the same name.

    Raises:
        RefusalError: The run would go on with other `--set` values than it began with, or in another folder.
    """
    if job.run is None:
        return
    from tpucfg.plan.job import program_of
    from tpucfg.results.evaluation import other_values, recorded_changes, recorded_folder
    from tpucfg.results.records import Record, read_records

    own = Record(job.project, job.size, {}, job.run, job.whole is not None, changes=job.changes)
    results = read_records(spec.parent, job.environment.name)
    folder = recorded_folder(results, job.project, job.run) if job.rung.seen else None
    if folder not in (None, job.run_dir):
        hint = f"copy them, by: gcloud storage rsync --recursive {folder} {job.run_dir}; then record the step again"
        message = f"the checkpoints of the run {job.run} are in {folder}, and its folder is {job.run_dir} now"
        raise RefusalError(f"{message}: it would begin again at step 0", hint)
    if not (differences := other_values(results, own, program_of(project, job))):
        return
    message = f"the run {job.run} has a record with other values: {listed(differences, 3)}"
    changes = recorded_changes(results, job.project, job.run)
    if job.rung.seen and {*changes} != {*job.changes}:
        options = join(set_options(changes))
        hint = f"give it the values that it began with{': ' if options else ', without --set'}{options}"
        raise RefusalError(message, f"{hint}; or start another run with --run")
    yield f"run:    {message}"
