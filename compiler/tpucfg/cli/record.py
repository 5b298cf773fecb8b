"""The command `tpucfg record`."""

import re
import sys
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from tpucfg.catalog import Catalog
from tpucfg.cli import options
from tpucfg.cli.load_spec import load_compiled, print_findings, single_job
from tpucfg.cli.options import SPEC, option, selection
from tpucfg.plan import Job, RunPart
from tpucfg.plan.job import SpeedSettings, program_of
from tpucfg.plan.run_progress import joined_parts
from tpucfg.refusal import RefusalError, UsageError
from tpucfg.results.records import THROUGHPUT, Record, recorded_program
from tpucfg.spec import Project
from tpucfg.spec.presets import Preset
from tpucfg.text_format import format_value, listed, printable, quote_key

if TYPE_CHECKING:
    from tpucfg.results.log_metrics import LogMetrics

_MAX_STEP: Final = 10**12
_METRIC_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,62}")
_NUMBER: Final = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,3})?")


def record(
    size: options.OneSizeOption,
    spec: options.SpecOption = SPEC,
    env: options.OneEnvOption = None,
    metric: Annotated[
        list[str] | None,
        option(
            "--metric NAME=VALUE", "A metric; with --from, a NAME is read from the log. Repeatable."
        ),
    ] = None,
    log: Annotated[
        str | None, option("--from FILE", "Read the metrics from a log; - is the standard input.")
    ] = None,
    run: options.RunOption = None,
    step: Annotated[
        int | None,
        option("--step STEP", "The step of the run's last checkpoint.", min=1, max=_MAX_STEP),
    ] = None,
    changes: options.SetOption = None,
    probe: options.ProbeOption = False,
) -> None:
    """Record what a rung measured, in results/ENV.jsonl next to the spec. The last record of each kind counts.

    The record of a probe decides how the rung scales, and that of a whole run has the gate's metric. With --step, it is
    that of a part of a run, which submit lets go on from there, on any size.

    --from reads examples_per_second and the gate's metric, or what --metric names: from the last line of JSON that has
    all of them, or the latest such entry in the output of `gcloud logging read --format=json`; with `flags: maxtext`
    also from the lines of MaxText's steps.

    Example: tpucfg record --env dev --size v2-8 --metric examples_per_second=1234.5 --metric accuracy=0.97
    """
    options.require_run(step, run, probe=probe)
    given, wanted = _parse_metrics(metric or [], has_log=log is not None, has_step=step is not None)
    catalog = Catalog()
    project, compiled = load_compiled(
        spec, catalog, selection([env] if env else None, [size], probe=probe, changes=changes)
    )
    job = single_job(compiled.jobs, size)
    is_whole = not probe and step is None
    if log is not None and not wanted:
        wanted = _required_metrics(project, given, is_whole=is_whole)
    read = (
        None
        if log is None
        else _read_log(log, wanted, project.training.preset, job, is_whole=is_whole)
    )
    metrics = {**(read.metrics if read else {}), **given}
    program = program_of(project, job)
    record_ = Record(
        project.name, job.size, metrics, run, probe, recorded_program(program), step, job.changes
    )
    if step is not None and run:
        # The selection has no run, as this part is not among its records yet.
        record_ = record_._replace(folder=job._replace(run=run).run_dir)
    _refuse_other_values(record_, program, job, spec)
    _append(record_, job, spec, dict.fromkeys(read.metrics, f"{read.location}: ") if read else {})
    if read and read.note:
        print(read.note)
    _print_status(project, job, catalog, spec)


def _parse_metrics(
    texts: Sequence[str], *, has_log: bool, has_step: bool
) -> tuple[dict[str, float], list[str]]:
    """Return the metrics with a value on the command line, and the names of those to read from the log.

    Raises:
        UsageError: One of them is malformed or given twice, or there is nothing to record.
    """
    metrics: dict[str, float] = {}
    wanted: list[str] = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not _METRIC_NAME.fullmatch(name):
            rule = "has up to 63 letters, digits, dots, dashes and underscores, and starts with a letter"
            raise UsageError(
                f"--metric {format_value(text, quoted=False)}: a metric's name {rule}",
                "write NAME=VALUE",
            )
        if name in metrics or name in wanted:
            raise UsageError(f"--metric {name} is given twice", "leave one of the two out")
        if not equals and not has_log:
            raise UsageError(
                f"--metric {name} has no value", f"write --metric {name}=VALUE, or add --from FILE"
            )
        if not equals:
            wanted.append(name)
        # float() would also accept nan, inf and underscores.
        elif _NUMBER.fullmatch(value) and isfinite(float(value)):
            metrics[name] = float(value)
        else:
            message = f"--metric {format_value(text, quoted=False)}: the value is not a number"
            raise UsageError(message, f"write it as a plain number: --metric {name}=0.97")
    if not texts and not has_log and not has_step:
        raise UsageError(
            "there is nothing to record", f"add --metric {THROUGHPUT}=VALUE, or --from FILE"
        )
    return metrics, wanted


def _refuse_other_values(record: Record, program: SpeedSettings, job: Job, spec: Path) -> None:
    """Refuse a record of a run that has one with other values, or a later step on another size.

    Raises:
        RefusalError: The run's last record differs, or the step at which the run moved is not known.
    """
    from tpucfg.results.evaluation import other_values
    from tpucfg.results.records import read_records, run_parts

    results = read_records(spec.parent, job.environment.name)
    if record.step and record.run:
        parts = run_parts({job.environment.name: results}, record.run).get(
            (record.name, job.environment.name), ()
        )
        joined_parts(parts, (RunPart(record.size, record.step),))
    if differences := other_values(results, record, program):
        message = f"nothing was recorded: the run {record.run} has a record with other values"
        raise RefusalError(
            f"{message}: {listed(differences, 3)}",
            "give this run another id with --run, as at its submission",
        )


def _required_metrics(project: Project, given: Mapping[str, float], *, is_whole: bool) -> list[str]:
    """Return the metrics that gate and cost need and the command line lacks; only a whole run has a final one.

    Raises:
        UsageError: The command line has all of them.
    """
    gate = [project.gate.metric] if project.gate and project.gate.metric and is_whole else []
    if wanted := [name for name in (THROUGHPUT, *gate) if name not in given]:
        return wanted
    message = "--from has no metric to read: all of them are given"
    raise UsageError(message, "leave --from out, or name another metric")


def _read_log(
    log: str, wanted: Sequence[str], preset: Preset | None, job: Job, *, is_whole: bool
) -> "LogMetrics":
    from tpucfg.results.log_metrics import Steps, last_metrics

    rung = job.rung
    tokens = (
        Fraction(rung.batch_size * rung.sequence_length, rung.slice.devices)
        if rung.sequence_length
        else None
    )
    total = rung.train_steps if is_whole else None
    steps = Steps(preset.step_line, rung.batch_size, tokens, total) if preset else None
    try:
        if log == "-" and sys.stdin:  # None if the shell closed it
            return last_metrics(sys.stdin.buffer, "the standard input", wanted, steps)
        with Path(log).open("rb") as file:
            return last_metrics(file, printable(log), wanted, steps)
    except OSError as error:
        message = f"{format_value(log, quoted=False)} cannot be read: {error.strerror or error}"
        raise RefusalError(
            message, "give the log's path with --from, or - for the standard input"
        ) from None


def _append(record: Record, job: Job, spec: Path, origins: Mapping[str, str]) -> None:
    """Append a record to the results, and print it.

    Args:
        record: The record.
        job: Its job.
        spec: The path of the spec.
        origins: The file and line, as a prefix of a message, of each metric that was read from a log.

    Raises:
        RefusalError: The record is invalid or cannot be written.
    """
    from tpucfg.results.records import RecordFileError, append_record, record_problems

    if problems := record_problems(record):
        numbers = " ".join(
            f"--metric {problem.path[1]}=NUMBER" for problem in problems if len(problem.path) > 1
        )
        hint = (
            f"record what the run measured: {numbers}"
            if numbers
            else "record fewer metrics, each with --metric"
        )
        messages = "; ".join(
            origins.get(str(problem.path[-1]), "") + problem.message for problem in problems
        )
        raise RefusalError(f"nothing was recorded: {messages}", hint)
    try:
        path = append_record(spec.parent, job.environment.name, record)
    except RecordFileError as error:
        raise RefusalError(f"nothing was recorded: {printable(str(error))}", error.help) from None
    metrics = ", ".join(
        f"{quote_key(name)} {value:.12g}" for name, value in sorted(record.metrics.items())
    )
    name = f"a probe of {job.size}" if record.is_probe else job.size
    reached = f"step {record.step} of {record.run}" if record.step else ""
    print(f"{printable(str(path))}: recorded {name}: {', '.join(filter(None, (reached, metrics)))}")


def _print_status(project: Project, job: Job, catalog: Catalog, spec: Path) -> None:
    """Print what the record means for the ladder, and the next steps."""
    from tpucfg.results.gate import (
        first_rung_note,
        implausible_notes,
        next_steps,
        other_program_notes,
    )
    from tpucfg.results.ladder_status import ladder_status

    status = ladder_status(project, catalog, job.environment, spec.parent)
    findings = [*status.results.findings]
    if status.fits:
        from tpucfg.results.fit_notes import records_beyond_bound

        findings += records_beyond_bound(status, {job.size})
    print_findings(findings, {status.results.file: status.results.text})
    # The first rung has nothing to be compared with, which the note explains.
    is_first = job.size == job.environment.sizes[0] and not job.whole
    for line in (
        *(first_rung_note(status) if is_first else ()),
        *other_program_notes(status, job.size),
        *implausible_notes(status, job.size),
        *next_steps(status),
    ):
        print(line)
