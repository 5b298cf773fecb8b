"""The command `tpucfg ladder`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

from tpucfg.catalog import Catalog
from tpucfg.cli.exit_codes import ERRORS, CommandExit
from tpucfg.cli.ladder_table import cost_notes, ladder_table, parallelism_data
from tpucfg.cli.load_spec import load_compiled, print_findings
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
from tpucfg.plan import Job, Rung
from tpucfg.plan.grouping import LadderGroup, group_ladders
from tpucfg.spec.project import Number, Project
from tpucfg.text_format import json_text

if TYPE_CHECKING:
    from tpucfg.charts import MeasuredThroughput
    from tpucfg.results.ladder_status import LadderStatus


class _Ladders(NamedTuple):
    """The ladders of a spec, ready to be printed."""

    project: Project
    findings: Sequence[Finding]
    groups: Sequence[LadderGroup]
    """The ladders; environments with equal tables share one."""
    statuses: Mapping[str, "LadderStatus"]
    """The measurements by environment; empty where the output shows none."""

    def cost_status(self, group: LadderGroup) -> "LadderStatus | None":
        """Return the status that the cost of a ladder is computed from; None without prices.

        All environments of a group have equal costs, so the status of the first one is used.
        """
        return self.statuses.get(group.environments[0]) if self.project.prices else None


def ladder(
    spec: SpecOption = SPEC,
    env: EnvOption = None,
    size: SizeOption = None,
    target: TargetOption = None,
    format: Annotated[str, format_option("text|markdown|json|svg|html")] = "text",
) -> None:
    """Show the ladder: what changes from rung to rung, what a run costs, and the findings about it.

    Example: tpucfg ladder --env prod --format markdown
    """
    require_choice(format, tuple(_FORMATS), "--format")
    catalog = Catalog()
    project, compiled = load_compiled(spec, catalog, selection(env, size, target), quiet=True)
    jobs = [job for job, _ in compiled.request_bodies]
    statuses = _statuses(project, catalog, jobs, spec) if project.prices or format in _CHARTS else {}
    costs = {name: (status.costs, status.outdated) for name, status in statuses.items() if project.prices}
    groups = group_ladders(tuple(jobs), costs)
    for line in _FORMATS[format](_Ladders(project, compiled.findings, groups, statuses)):
        print(line)
    if findings := [finding for status in statuses.values() for finding in status.results.findings]:
        print_findings(findings, {status.results.file: status.results.text for status in statuses.values()})
        raise CommandExit(ERRORS)


def _statuses(project: Project, catalog: Catalog, jobs: Sequence[Job], spec: Path) -> Mapping[str, "LadderStatus"]:
    from tpucfg.results.ladder_status import ladder_statuses

    return ladder_statuses(project, catalog, [job.environment for job in jobs], spec.parent)


def _text(ladders: _Ladders) -> Iterator[str]:
    for number, group in enumerate(ladders.groups):
        yield from ([""] if number else [])
        yield group.title
        status = ladders.cost_status(group)
        yield from text_table(*ladder_table(group, ladders.project.training, status))
        yield from cost_notes(status)
    if ladders.findings:
        yield ""
        yield from _finding_lines(ladders.findings)


def _markdown(ladders: _Ladders) -> Iterator[str]:
    for number, group in enumerate(ladders.groups):
        yield from ([""] if number else [])
        yield f"**{group.title}**"
        yield ""
        status = ladders.cost_status(group)
        yield from markdown_table(*ladder_table(group, ladders.project.training, status))
        yield from (f"\n{note}" for note in cost_notes(status))
    if ladders.findings:
        yield ""
        yield from (f"- {line}" for line in _finding_lines(ladders.findings))


def _finding_lines(findings: Sequence[Finding]) -> Iterator[str]:
    for finding in findings:
        yield f"{finding.level}[{finding.id}]: {finding.message}"


def _json(ladders: _Ladders) -> Iterator[str]:
    findings = [finding._asdict() | {"location": str(finding.location)} for finding in ladders.findings]
    keys = ("id", "level", "message", "location", "help")
    document = {
        "project": ladders.project.name,
        "tuned_on": ladders.project.training.tuned_on,
        "ladders": [
            {
                "environments": group.environments,
                "region": group.region,
                "target": group.target,
                "rungs": [
                    {**_rung_data(rung, group.rungs, ladders.cost_status(group)), "capacity": capacity}
                    for rung, capacity in zip(group.rungs, group.capacities, strict=True)
                ],
            }
            for group in ladders.groups
        ],
        "findings": [{key: finding[key] for key in keys} for finding in findings],
    }
    yield json_text(document).rstrip("\n")


def _rung_data(rung: Rung, rungs: Sequence[Rung], status: "LadderStatus | None") -> dict[str, Any]:
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
    } | parallelism_data(rung, rungs)
    if status is None:
        return figures
    from tpucfg.cli.cost_table import cost_data

    return figures | cost_data(status, rung.size)


def _svg(ladders: _Ladders) -> Iterator[str]:
    from tpucfg.charts import build_narrative, render_svg

    throughputs = _throughputs(ladders.statuses)
    narratives = [build_narrative(ladders.project, group, throughputs) for group in ladders.groups]
    yield render_svg(narratives, ladders.findings)


def _html(ladders: _Ladders) -> Iterator[str]:
    from tpucfg.charts import ChartSection, build_narrative, render_html

    project, throughputs = ladders.project, _throughputs(ladders.statuses)
    sections = []
    for group in ladders.groups:
        table = ladder_table(group, project.training, ladders.cost_status(group))
        sections.append(ChartSection(build_narrative(project, group, throughputs), *table))
    yield render_html(project.name, sections, ladders.findings)


def _throughputs(statuses: Mapping[str, "LadderStatus"]) -> dict[str, "MeasuredThroughput"]:
    """Return the recorded examples per second, by environment."""
    from tpucfg.charts import MeasuredThroughput

    return {
        name: MeasuredThroughput(
            {rung.size: rung.throughput for rung in status.evaluations if rung.throughput}, status.outdated
        )
        for name, status in statuses.items()
    }


_FORMATS: Final[Mapping[str, Callable[[_Ladders], Iterator[str]]]] = {
    "text": _text,
    "markdown": _markdown,
    "json": _json,
    "svg": _svg,
    "html": _html,
}
_CHARTS: Final = ("svg", "html")
"""The formats that show measurements, with prices or without."""
