"""`tpucfg ladder`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from tpucfg.catalog import Catalog
from tpucfg.cli.exit_codes import ERRORS, CommandExit
from tpucfg.cli.ladder_table import cost_notes, ladder_table
from tpucfg.cli.load_spec import load_compiled, print_findings, project_of
from tpucfg.cli.options import (
    SPEC,
    EnvOption,
    SizeOption,
    SpecOption,
    TargetOption,
    format_option,
    require_choice,
    selection,
)
from tpucfg.cli.table import markdown_table, text_table
from tpucfg.findings import Finding
from tpucfg.plan import Rung
from tpucfg.plan.grouping import LadderGroup, group_ladders
from tpucfg.render.pipeline import CompiledSpec
from tpucfg.spec.project import Number, Project
from tpucfg.text_format import json_text

if TYPE_CHECKING:
    from tpucfg.charts import MeasuredThroughput
    from tpucfg.results.ladder_status import LadderStatus


def ladder(
    spec: SpecOption = SPEC,
    env: EnvOption = None,
    size: SizeOption = None,
    target: TargetOption = None,
    format: Annotated[str, format_option("text|markdown|json|svg|html")] = "text",
) -> None:
    """Print the ladder: what changes from rung to rung, and what to think of it.

    Example: tpucfg ladder --env prod --format markdown
    """
    require_choice(format, tuple(_FORMATS), "--format")
    catalog = Catalog()
    compiled = load_compiled(spec, catalog, selection(env, size, target), quiet=True)
    project, jobs = project_of(compiled), compiled.plan.jobs
    is_shown = project.prices or format in _PICTURES
    measured = _surveys(compiled, catalog, spec) if is_shown else {}
    apart = {name: (it.costs, it.outdated) for name, it in measured.items() if project.prices}
    for line in _FORMATS[format](compiled, group_ladders(jobs, apart), measured):
        print(line)
    if found := [finding for it in measured.values() for finding in it.results.findings]:
        print_findings(found, {it.results.file: it.results.text for it in measured.values()})
        raise CommandExit(ERRORS)


def _surveys(compiled: CompiledSpec, catalog: Catalog, spec: Path) -> Mapping[str, "LadderStatus"]:
    from tpucfg.results.ladder_status import ladder_statuses

    environments = [job.environment for job in compiled.plan.jobs]
    return ladder_statuses(project_of(compiled), catalog, environments, spec.parent)


def _priced(climb: LadderGroup, project: Project, measured: Mapping[str, "LadderStatus"]) -> "LadderStatus | None":
    """What a climb's cost comes from, which is the same for each of its environments; None without prices."""
    return measured.get(climb.environments[0]) if project.prices else None


def _remarks(findings: Sequence[Finding]) -> Iterator[str]:
    for finding in findings:
        yield f"{finding.level}[{finding.id}]: {finding.message}"


def _text(
    compiled: CompiledSpec, climbs: Sequence[LadderGroup], measured: Mapping[str, "LadderStatus"]
) -> Iterator[str]:
    for number, climb in enumerate(climbs):
        yield from ([""] if number else [])
        yield climb.title
        survey = _priced(climb, project_of(compiled), measured)
        yield from text_table(*ladder_table(climb, project_of(compiled).training, survey))
        yield from cost_notes(survey)
    if compiled.findings:
        yield ""
        yield from _remarks(compiled.findings)


def _markdown(
    compiled: CompiledSpec, climbs: Sequence[LadderGroup], measured: Mapping[str, "LadderStatus"]
) -> Iterator[str]:
    for number, climb in enumerate(climbs):
        yield from ([""] if number else [])
        yield f"**{climb.title}**"
        yield ""
        survey = _priced(climb, project_of(compiled), measured)
        yield from markdown_table(*ladder_table(climb, project_of(compiled).training, survey))
        yield from (f"\n{note}" for note in cost_notes(survey))
    if compiled.findings:
        yield ""
        yield from (f"- {remark}" for remark in _remarks(compiled.findings))


def _json(
    compiled: CompiledSpec, climbs: Sequence[LadderGroup], measured: Mapping[str, "LadderStatus"]
) -> Iterator[str]:
    findings = [finding._asdict() | {"location": str(finding.location)} for finding in compiled.findings]
    kept = ("id", "level", "message", "location", "help")
    document = {
        "project": project_of(compiled).name,
        "tuned_on": project_of(compiled).training.tuned_on,
        "ladders": [
            {
                "environments": climb.environments,
                "region": climb.region,
                "target": climb.target,
                "rungs": [_rung(rung, _priced(climb, project_of(compiled), measured)) for rung in climb.rungs],
            }
            for climb in climbs
        ],
        "findings": [{key: finding[key] for key in kept} for finding in findings],
    }
    yield json_text(document).rstrip("\n")


def _rung(rung: Rung, survey: "LadderStatus | None") -> dict[str, Any]:
    figures = {
        "size": rung.size,
        "chips": rung.slice.chips,
        "cores": rung.slice.cores,
        "hosts": rung.slice.hosts,
        "topology": rung.slice.topology,
        "scale": float(rung.scale),
        "per_core_batch_size": float(rung.per_core),
        "batch_size": rung.batch_size,
        "steps": dict(rung.steps),
        "epochs": float(Number.read(rung.epochs).value) if rung.epochs else None,
        "learning_rate": float(Number.read(rung.learning_rate).value) if rung.learning_rate else None,
        "examples": rung.examples,
    }
    if survey is None:
        return figures
    from tpucfg.cli.cost_table import cost_data

    return figures | cost_data(survey, rung.size)


def _svg(
    compiled: CompiledSpec, climbs: Sequence[LadderGroup], measured: Mapping[str, "LadderStatus"]
) -> Iterator[str]:
    from tpucfg.charts import build_narrative, render_svg

    speeds = _speeds(measured)
    yield render_svg([build_narrative(project_of(compiled), climb, speeds) for climb in climbs], compiled.findings)


def _html(
    compiled: CompiledSpec, climbs: Sequence[LadderGroup], measured: Mapping[str, "LadderStatus"]
) -> Iterator[str]:
    from tpucfg.charts import ChartSection, build_narrative, render_html

    project, speeds = project_of(compiled), _speeds(measured)
    tables = [ladder_table(climb, project.training, _priced(climb, project, measured)) for climb in climbs]
    sections = [
        ChartSection(build_narrative(project, climb, speeds), *table)
        for climb, table in zip(climbs, tables, strict=True)
    ]
    yield render_html(project.name, sections, compiled.findings)


def _speeds(measured: Mapping[str, "LadderStatus"]) -> dict[str, "MeasuredThroughput"]:
    """What was recorded of examples per second, by environment."""
    from tpucfg.charts import MeasuredThroughput

    return {
        name: MeasuredThroughput(
            {it.size: it.throughput for it in survey.evaluations if it.throughput}, survey.outdated
        )
        for name, survey in measured.items()
    }


_FORMATS: Final[
    Mapping[str, Callable[[CompiledSpec, Sequence[LadderGroup], Mapping[str, "LadderStatus"]], Iterator[str]]]
] = {
    "text": _text,
    "markdown": _markdown,
    "json": _json,
    "svg": _svg,
    "html": _html,
}
_PICTURES: Final = ("svg", "html")
"""They show what was measured, with prices or without."""
