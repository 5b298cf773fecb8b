"""What `tpucfg status` says of one environment: its table, the remarks below it, and the same as data."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

from tpucfg.cli.cost_table import cost_cells, cost_data, cost_note
from tpucfg.number_format import UNKNOWN, floor_percent, format_metric, format_rate
from tpucfg.results import RungEvaluation
from tpucfg.results.gate import may_run
from tpucfg.results.ignored_records import ignored_records
from tpucfg.results.ladder_status import LadderStatus
from tpucfg.results.next_steps import NextStep, first_rung_note, gate_text, implausible_notes, outdated_notes
from tpucfg.spec.project import Project


class EnvironmentStatus(NamedTuple):
    """What there is to say about one environment."""

    survey: LadderStatus
    advice: tuple[NextStep, ...]

    @property
    def title(self) -> str:
        """`dev: vertex-ai in us-central1, results/dev.jsonl`."""
        environment = self.survey.environment
        return f"{environment.name}: {environment.target} in {environment.region}, {self.survey.results.file}"


def _word(it: RungEvaluation, made: LadderStatus, project: Project) -> str:
    """One word for a rung."""
    if it.record is None:
        return "open" if may_run(made, it.size) else "closed"
    if project.gate is None:
        return "recorded"
    return "passed" if it.passed else "not passed"


def status_table(one: EnvironmentStatus, project: Project) -> tuple[list[str], list[list[str]]]:
    """The header, and a row for each rung."""
    rows = [list(_cells(it, one.survey, project)) for it in one.survey.evaluations]
    return [name for name, _ in rows[0]], [[cell for _, cell in row] for row in rows]


def _cells(it: RungEvaluation, survey: LadderStatus, project: Project) -> Iterator[tuple[str, str]]:
    """The columns of one rung; the metric's has the name that the spec gives it, which may be any."""
    yield "size", it.size
    yield "cores", f"{it.slice.cores:,}"
    yield "examples/s", format_rate(it.throughput)
    yield "per core", format_rate(it.per_core)
    yield "scaling", UNKNOWN if it.efficiency is None else floor_percent(it.efficiency)
    if project.gate and project.gate.metric:
        yield project.gate.metric, UNKNOWN if it.metric is None else format_metric(it.metric)
        yield "worse by", UNKNOWN if it.metric_drop is None else format_metric(max(it.metric_drop, Fraction(0)))
    if project.prices:
        yield from cost_cells(survey)[it.size].items()
    yield "standing", _word(it, survey, project)


def status_notes(one: EnvironmentStatus, project: Project) -> Iterator[NextStep]:
    """What stands below the table."""
    yield from map(NextStep, _facts(one, project))
    yield from one.advice


def _facts(one: EnvironmentStatus, project: Project) -> Iterator[str]:
    if project.gate:
        yield f"the gate asks for {gate_text(project.gate)}"
    yield from outdated_notes(one.survey)
    survey = one.survey
    yield from (it.message for it in ignored_records(survey.results, survey.environment, project.name))
    yield from first_rung_note(one.survey)
    yield from implausible_notes(one.survey)
    if project.prices:
        yield from cost_note(one.survey)


def rung_data(one: EnvironmentStatus, at: int, project: Project) -> dict[str, Any]:
    """One rung for a program; null is what is not known."""
    it = one.survey.evaluations[at]
    return {
        "size": it.size,
        "chips": it.slice.chips,
        "cores": it.slice.cores,
        "recorded": it.record is not None,
        "run": it.record.run if it.record else None,
        "metrics": it.record.metrics if it.record else None,
        "examples_per_second_per_core": None if it.per_core is None else float(it.per_core),
        "metric_worse_by": None if it.metric_drop is None else float(it.metric_drop),
        "scaling_efficiency": None if it.efficiency is None else float(it.efficiency),
        "passed": it.passed if project.gate else None,
        "why_not": [shortfall.reason for shortfall in it.shortfalls],
        "may_be_climbed": may_run(one.survey, it.size),
        "job_changed": it.size in one.survey.outdated,
    } | cost_data(one.survey, it.size)
