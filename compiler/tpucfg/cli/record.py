"""`tpucfg record`."""

import re
import sys
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tpucfg.catalog import Catalog
from tpucfg.cli.exit_codes import ERRORS, USAGE, CommandExit
from tpucfg.cli.load_spec import load_compiled, print_findings, project_of
from tpucfg.cli.options import SPEC, OneEnvOption, OneSizeOption, RunOption, SpecOption, selection
from tpucfg.render.pipeline import CompiledSpec, job_hash
from tpucfg.results import THROUGHPUT, Record
from tpucfg.spec.project import Project
from tpucfg.text_format import format_value, printable, quote_key

if TYPE_CHECKING:
    from tpucfg.results.log_metrics import LogMetrics

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,62}")
_NUMBER: Final = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?")


def record(
    size: OneSizeOption,
    spec: SpecOption = SPEC,
    env: OneEnvOption = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            metavar="NAME=VALUE",
            help="What was measured; may be repeated. With --from a NAME alone is looked for there.",
        ),
    ] = None,
    log: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Take the metrics from the last line of a log that has them all, as JSON, or from the latest such"
            " entry of what `gcloud logging read --format=json` prints; - is the standard input."
            f" [default: {THROUGHPUT} and the gate's metric]",
        ),
    ] = None,
    run: RunOption = None,
) -> None:
    """Note what a rung measured, in results/ENV.jsonl beside the spec. The last record of a rung counts.

    Example: tpucfg record --env dev --size v2-8 --metric examples_per_second=1234.5 --metric accuracy=0.97
    """
    given, wanted = _metrics(metric or [], log)
    catalog = Catalog()
    compiled = load_compiled(spec, catalog, selection([env] if env else None, [size]), quiet=True)
    if len(compiled.request_bodies) > 1:
        names = [job.environment.name for job, _ in compiled.request_bodies]
        message = f"{size} is a rung of {len(names)} environments: {', '.join(names)}"
        raise CommandExit(USAGE, message, f"say which one, for example: --env {names[0]}")
    places: Mapping[str, str] = {}
    if log is not None:
        looked_for = wanted or _looked_for(project_of(compiled), given)
        if not looked_for:
            raise CommandExit(
                USAGE, "--from has nothing to look for: every metric is given", "leave --from out, or name one more"
            )
        read, location = _from(log, looked_for)
        given = {**read, **given}
        places = dict.fromkeys(read, f"{location}: ")
    _append(compiled, given, run, spec, places)
    _say_next(compiled, catalog, spec)


def _metrics(texts: Sequence[str], log: str | None) -> tuple[dict[str, float], list[str]]:
    """The metrics that were given with their values, and the names of those to be looked for."""
    given: dict[str, float] = {}
    wanted: list[str] = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not _NAME.fullmatch(name):
            rule = "has up to 63 letters, digits, dots, dashes and underscores, and starts with a letter"
            raise CommandExit(
                USAGE, f"--metric {format_value(text, quoted=False)}: a metric's name {rule}", "write NAME=VALUE"
            )
        if name in given or name in wanted:
            raise CommandExit(USAGE, f"--metric {name} is given twice", "leave one of the two out")
        if equals and not (_NUMBER.fullmatch(value) and isfinite(float(value))):
            hint = f"write it as a plain number: --metric {name}=0.97"
            raise CommandExit(USAGE, f"--metric {format_value(text, quoted=False)}: the value is no number", hint)
        if not equals and log is None:
            raise CommandExit(
                USAGE, f"--metric {name} has no value", f"write --metric {name}=VALUE, or add --from FILE"
            )
        if equals:
            given[name] = float(value)
        else:
            wanted.append(name)
    if not texts and log is None:
        raise CommandExit(USAGE, "there is nothing to record", f"add --metric {THROUGHPUT}=VALUE, or --from FILE")
    return given, wanted


def _looked_for(project: Project, given: Mapping[str, float]) -> list[str]:
    """What a log is searched for where no name is given: what the gate and the cost need."""
    gate = [project.gate.metric] if project.gate and project.gate.metric else []
    return [name for name in (THROUGHPUT, *gate) if name not in given]


def _from(log: str, wanted: Sequence[str]) -> "LogMetrics":
    from tpucfg.results.log_metrics import LogError, last_metrics

    try:
        if log == "-" and sys.stdin:  # there is none where a shell closed it
            return last_metrics(sys.stdin.buffer, "the standard input", wanted)
        with Path(log).open("rb") as file:
            return last_metrics(file, printable(log), wanted)
    except LogError as error:
        raise CommandExit(ERRORS, str(error), error.help) from None
    except OSError as error:
        message = f"{format_value(log, quoted=False)} cannot be read: {error.strerror or error}"
        raise CommandExit(ERRORS, message, "give the log's path with --from, or - for the standard input") from None


def _append(
    compiled: CompiledSpec, metrics: Mapping[str, float], run: str | None, spec: Path, places: Mapping[str, str]
) -> None:
    """Write the record; `places` says of a metric that a log has where it stands."""
    from tpucfg.results.record_file import RecordFileError, append_record
    from tpucfg.results.record_parser import record_problems

    ((job, message),) = compiled.request_bodies
    made = Record(project_of(compiled).name, job.size, metrics, job_hash(job, message), run)
    if found := record_problems(made):
        again = " ".join(f"--metric {it.path[1]}=NUMBER" for it in found if len(it.path) > 1)
        hint = f"record what the run measured: {again}" if again else "name fewer of them, each with --metric"
        said = "; ".join(places.get(str(it.path[-1]), "") + it.message for it in found)
        raise CommandExit(ERRORS, f"nothing was recorded: {said}", hint)
    try:
        path = append_record(spec.parent, job.environment.name, made)
    except RecordFileError as error:
        raise CommandExit(ERRORS, f"nothing was recorded: {printable(str(error))}", error.help) from None
    said = ", ".join(f"{quote_key(name)} {value:.12g}" for name, value in sorted(metrics.items()))
    print(f"{printable(str(path))}: recorded {job.size}: {said}")


def _say_next(compiled: CompiledSpec, catalog: Catalog, spec: Path) -> None:
    """What the record means for the climb."""
    from tpucfg.results.ladder_status import ladder_status
    from tpucfg.results.next_steps import first_rung_note, implausible_notes, next_steps, outdated_below_note

    ((job, _),) = compiled.request_bodies
    made = ladder_status(project_of(compiled), catalog, job.environment, spec.parent)
    print_findings(made.results.findings, {made.results.file: made.results.text})
    if job.size == job.environment.sizes[0]:
        print(*first_rung_note(made), sep="\n", end="\n" if made.gate and made.gate.metric else "")
    for line in (*outdated_below_note(made, job.size), *implausible_notes(made, job.size), *next_steps(made, spec)):
        print(line)
