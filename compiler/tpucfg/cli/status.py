"""The command `tpucfg status`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any, Final, NamedTuple

from tpucfg.catalog import Catalog
from tpucfg.cli.exit_codes import ERRORS, CommandExit
from tpucfg.cli.load_spec import load_compiled, print_findings
from tpucfg.cli.options import SPEC, EnvOption, SpecOption, format_option, require_choice, selection
from tpucfg.cli.rung_columns import (
    capacity_cells,
    cost_cells,
    cost_data,
    cost_note,
    fit_data,
    hbm_cell,
    parallelism_cells,
    parallelism_data,
)
from tpucfg.cli.table import markdown_table, text_table
from tpucfg.markdown import code, prose
from tpucfg.number_format import UNKNOWN, floor_percent, format_metric, format_rate, to_json_number
from tpucfg.plan import Rung
from tpucfg.results import RungEvaluation
from tpucfg.results.gate import may_run
from tpucfg.results.ignored_records import ignored_records
from tpucfg.results.ladder_status import LadderStatus, ladder_statuses
from tpucfg.results.next_steps import (
    NextStep,
    first_rung_note,
    gate_text,
    implausible_notes,
    next_steps,
    outdated_notes,
    overlong_notes,
)
from tpucfg.spec import Project
from tpucfg.text_format import json_text, printable


class _Environment(NamedTuple):
    """An environment's ladder with its next steps."""

    ladder: LadderStatus
    next_steps: tuple[NextStep, ...]

    @property
    def title(self) -> str:
        """The heading: `dev: vertex-ai in us-central1, results/dev.jsonl`."""
        environment = self.ladder.environment
        return f"{environment.name}: {environment.target} in {environment.region}, {self.ladder.results.file}"


def status(
    spec: SpecOption = SPEC,
    env: EnvOption = None,
    format: Annotated[str, format_option("text|markdown|json")] = "text",
) -> None:
    """Show each rung's status: what it measured, how it scales, what it costs, and the next rung to run.

    Example: tpucfg status --env prod
    """
    require_choice(format, tuple(_FORMATS), "--format")
    catalog = Catalog()
    project, compiled = load_compiled(spec, catalog, selection(env), quiet=True)
    environments = [job.environment for job in compiled.jobs]
    ladders = ladder_statuses(project, catalog, environments, spec.parent).values()
    statuses = [_Environment(ladder, tuple(next_steps(ladder, spec))) for ladder in ladders]
    for line in _FORMATS[format](project, statuses):
        print(line)
    if findings := [finding for ladder in ladders for finding in ladder.findings]:
        print_findings([*dict.fromkeys(findings)], {file: text for ladder in ladders for file, text in ladder.sources})
        raise CommandExit(ERRORS)


def _text(project: Project, statuses: Sequence[_Environment]) -> Iterator[str]:
    for number, environment in enumerate(statuses):
        yield from ([""] if number else [])
        yield printable(environment.title)
        yield from text_table(*_table(environment, project))
        yield ""
        yield from map(str, _lines(environment, project))


def _markdown(project: Project, statuses: Sequence[_Environment]) -> Iterator[str]:
    for number, environment in enumerate(statuses):
        yield from ([""] if number else [])
        yield f"**{prose(environment.title)}**"
        yield ""
        yield from markdown_table(*_table(environment, project))
        yield ""
        for text, command in _lines(environment, project):
            yield f"- {prose(text)}" + (f": {code(command)}" if command else "")


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
        }
        for status in statuses
    ]
    yield json_text({"project": project.name, "gate": gate, "environments": environments}).rstrip("\n")


def _table(status: _Environment, project: Project) -> tuple[list[str], list[list[str]]]:
    """Return the header, and a row for each rung."""
    rows = [list(_cells(evaluation, status.ladder, project)) for evaluation in status.ladder.evaluations]
    return [name for name, _ in rows[0]], [[cell for _, cell in row] for row in rows]


def _cells(evaluation: RungEvaluation, ladder: LadderStatus, project: Project) -> Iterator[tuple[str, str]]:
    """Yield the name and the cell of each column of a rung."""
    # Pairs instead of a mapping: the spec chooses the metric's name, which may equal the name of a column.
    yield "size", evaluation.size
    yield "cores", f"{evaluation.slice.cores:,}"
    rung = ladder.rung(evaluation.size)
    yield from parallelism_cells(rung, ladder.rungs).items()
    yield "examples/s", format_rate(evaluation.throughput)
    if rung.sequence_length is not None:
        yield "tokens/s", format_rate(_tokens_per_second(evaluation, rung))
    yield "per core", format_rate(evaluation.per_core)
    yield "scaling", UNKNOWN if evaluation.efficiency is None else floor_percent(evaluation.efficiency)
    if project.gate and project.gate.metric:
        yield project.gate.metric, UNKNOWN if evaluation.metric is None else format_metric(evaluation.metric)
        yield (
            "worse by",
            UNKNOWN if evaluation.metric_drop is None else format_metric(max(evaluation.metric_drop, Fraction(0))),
        )
    if project.prices:
        yield from capacity_cells(ladder.rungs, ladder.capacities)[evaluation.size].items()
        yield from cost_cells(ladder)[evaluation.size].items()
    if ladder.fits:
        yield "HBM", hbm_cell(ladder.fit(evaluation.size))
    yield "status", _status_word(evaluation, ladder)


def _tokens_per_second(evaluation: RungEvaluation, rung: Rung) -> Fraction | None:
    return evaluation.throughput * rung.sequence_length if evaluation.throughput and rung.sequence_length else None


def _status_word(evaluation: RungEvaluation, ladder: LadderStatus) -> str:
    if evaluation.record is None:
        return "open" if may_run(ladder, evaluation.size) else "closed"
    if not ladder.is_measured:
        return "recorded"
    return "passed" if evaluation.passed else "not passed"


def _lines(status: _Environment, project: Project) -> Iterator[NextStep]:
    """Yield the lines below the table: notes, then the next steps."""
    yield from map(NextStep, _notes(status.ladder, project))
    yield from status.next_steps


def _notes(ladder: LadderStatus, project: Project) -> Iterator[str]:
    if project.gate and (project.gate.measures or project.gate.fit):
        yield f"the gate requires {gate_text(project.gate)}"
    yield from outdated_notes(ladder)
    yield from (ignored.message for ignored in ignored_records(ladder.results, ladder.environment, project.name))
    yield from first_rung_note(ladder)
    yield from implausible_notes(ladder)
    yield from overlong_notes(ladder, project)
    if ladder.fits:
        from tpucfg.results.fit_notes import fit_notes

        yield from fit_notes(project, ladder, ladder.fits)
    if project.prices:
        yield from cost_note(ladder)


def _rung_data(evaluation: RungEvaluation, ladder: LadderStatus) -> dict[str, Any]:
    """Return one rung as data for JSON; an unknown value is None."""
    record, rung = evaluation.record, ladder.rung(evaluation.size)
    parallelism = parallelism_data(rung, ladder.rungs)
    if rung.sequence_length is not None:
        parallelism["tokens_per_second"] = to_json_number(_tokens_per_second(evaluation, rung))
    measurements = {
        "size": evaluation.size,
        "chips": evaluation.slice.chips,
        "cores": evaluation.slice.cores,
        "recorded": record is not None,
        "run": record.run if record else None,
        "metrics": record.metrics if record else None,
        "examples_per_second_per_core": to_json_number(evaluation.per_core),
        "metric_worse_by": to_json_number(evaluation.metric_drop),
        "scaling_efficiency": to_json_number(evaluation.efficiency),
        "passed": evaluation.passed if ladder.is_measured else None,
        "why_not": [shortfall.reason for shortfall in evaluation.shortfalls],
        "may_run": may_run(ladder, evaluation.size),
        "job_changed": evaluation.size in ladder.outdated,
    }
    if ladder.fits:
        problem = ladder.fit_problems.get(evaluation.size)
        measurements |= fit_data(rung, ladder.fit(evaluation.size))
        measurements["why_closed"] = problem.reason if problem else None
    return measurements | parallelism | cost_data(ladder, evaluation.size)


_FORMATS: Final[Mapping[str, Callable[[Project, Sequence[_Environment]], Iterator[str]]]] = {
    "text": _text,
    "markdown": _markdown,
    "json": _json,
}
