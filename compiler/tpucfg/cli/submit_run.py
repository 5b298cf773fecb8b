"""The part of `tpucfg submit` about runs: those that go on, move to another size, or have the name of another one."""

import sys
from collections.abc import Iterator
from pathlib import Path
from shlex import join

from tpucfg.catalog import Catalog
from tpucfg.cli.exit_codes import ERRORS, CommandExit
from tpucfg.cli.options import SPEC
from tpucfg.plan import Job, RunPart, Selection, ladder
from tpucfg.plan.program import figures_of
from tpucfg.plan.run_progress import Progress, progress_lines
from tpucfg.spec import Project
from tpucfg.spec.placeholders import RUN_PLACEHOLDERS, used_placeholders
from tpucfg.text_format import listed, printable


def refuse_other_folder(job: Job, progress: Progress | None) -> None:
    """Refuse to move a run to another size if its program has another folder there.

    Raises:
        CommandExit: No placeholder of the run's folder is used.
    """
    if progress is None or progress.last.size == job.size:
        return
    if used_placeholders(job.settings.trainer.texts) & RUN_PLACEHOLDERS:
        return
    message = f"the run {job.run} was on {progress.last.size}, and its program has no folder that is the same on"
    raise CommandExit(
        ERRORS,
        f"{message} {job.size}: it would begin again at step 0",
        "write the folder of its checkpoints as ${run_dir}, or start a run with another --run",
    )


def run_terms(
    project: Project, catalog: Catalog, job: Job, progress: Progress | None, chosen: Selection, spec: Path
) -> Iterator[str]:
    """Yield the lines about a run that goes on, or whose name another one has.

    Raises:
        CommandExit: The run would begin again, or go on with other values than it began with.
    """
    if progress:
        (before,) = ladder(project, catalog, (progress.last.size,))
        for line in progress_lines(project.training, job.rung, progress, before):
            yield f"run:    {line}"
        for part in _stated(job, progress, chosen):
            step = ("--size", part.size, "--run", job.run or "", "--step", str(part.step))
            changes = (word for change in job.changes for word in ("--set", change))
            options = () if spec == SPEC else ("--spec", str(spec))
            command = join(("tpucfg", "record", *options, "--env", job.environment.name, *step, *changes))
            yield f"run:    --execute records that it was at step {part.step:,} on {part.size}, else: {command}"
    elif job.run and not job.whole and len(job.environment.sizes) > 1:
        yield "run:    has no record, so it begins at step 0; if it was on another size, add --step SIZE:STEP"
    yield from _other_values(project, job, spec)


def _stated(job: Job, progress: Progress | None, chosen: Selection) -> list[RunPart]:
    """Return the parts of a run that the command line has, and the records do not."""
    recorded = chosen.recorded.get((job.project, job.environment.name), ())
    known = {(part.size, part.step) for part in recorded}
    return [part for part in (progress.parts if progress else ()) if (part.size, part.step) not in known]


def keep_steps(
    project: Project, catalog: Catalog, job: Job, progress: Progress | None, chosen: Selection, spec: Path
) -> None:
    """Record the steps of a started run that only the command line had: the next submission goes on behind them."""
    from tpucfg.results import Record
    from tpucfg.results.records import RecordFileError, append_record

    for part in _stated(job, progress, chosen):
        (rung,) = ladder(project, catalog, (part.size,))
        program = {"figures": figures_of(rung)}
        record = Record(job.project, part.size, {}, job.run, False, program, part.step, job.changes)
        try:
            path = append_record(spec.parent, job.environment.name, record._replace(folder=job.run_dir))
        except RecordFileError as error:
            print(printable(f"step {part.step} was not recorded: {error}; {error.help}"), file=sys.stderr)
        else:
            print(printable(f"{path}: recorded {part.size}: step {part.step} of {job.run}"), file=sys.stderr)


def _refuse_other_bucket(folder: str | None, job: Job) -> None:
    """Refuse to go on in another folder than that of the run's records.

    Raises:
        CommandExit: The bucket or the name of the spec has changed.
    """
    if folder is None or folder == job.run_dir:
        return
    hint = f"copy them, by: gcloud storage rsync --recursive {folder} {job.run_dir}; then record the step again"
    message = f"the checkpoints of the run {job.run} are in {folder}, and its folder is {job.run_dir} now"
    raise CommandExit(ERRORS, f"{message}: it would begin again at step 0", hint)


def _other_values(project: Project, job: Job, spec: Path) -> Iterator[str]:
    """Yield a line about a record of another run with the same name.

    Raises:
        CommandExit: The run would go on with other `--set` values than it began with.
    """
    if job.run is None:
        return
    from tpucfg.plan.program import program_of
    from tpucfg.results import ExampleRecord, Record, read_records
    from tpucfg.results.records import other_values, recorded_changes, recorded_folder

    own = Record(job.project, job.size, {}, job.run, job.whole is not None, changes=job.changes)
    results = read_records(spec.parent, job.environment.name, ExampleRecord(job.project, job.size))
    if job.rung.seen:
        _refuse_other_bucket(recorded_folder(results, job.project, job.run), job)
    if not (differences := other_values(results, own, program_of(project, job))):
        return
    message = f"the run {job.run} has a record with other values: {listed(differences, 3)}"
    changes = recorded_changes(results, job.project, job.run)
    if job.rung.seen and {*changes} != {*job.changes}:
        options = join(word for change in changes for word in ("--set", change))
        hint = f"give it the values that it began with{': ' if options else ', without --set'}{options}"
        raise CommandExit(ERRORS, message, f"{hint}; or start another run with --run")
    yield f"run:    {message}"
