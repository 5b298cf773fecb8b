"""The command `tpucfg ladder`."""

import sys
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from tpucfg.catalog import Catalog
from tpucfg.cli import options, table
from tpucfg.cli.exit_codes import ERRORS, CommandExit
from tpucfg.cli.load_spec import load_fits, print_findings, print_result, require_none
from tpucfg.cli.options import SPEC, format_option, selection
from tpucfg.cli.table import TableSection, print_sections
from tpucfg.findings import Finding, errors
from tpucfg.plan import LadderGroup, Rung, group_ladders
from tpucfg.render.pipeline import compile_spec_file
from tpucfg.spec import Number, Project
from tpucfg.text_format import json_text

if TYPE_CHECKING:
    from tpucfg.fit.rung_fit import KnownFits, RungFit
    from tpucfg.results.ladder_status import LadderStatus


class _Ladders(NamedTuple):
    """The ladders of a spec, ready to be printed."""

    project: Project
    findings: Sequence[Finding]
    groups: Sequence[LadderGroup]
    """The ladders; environments with equal tables share one."""
    statuses: Mapping[str, "LadderStatus"]
    """The measurements by environment; empty where the output shows none."""
    fits: "KnownFits | None"
    """The fits of the rungs; None if the spec names no training step."""

    def cost_status(self, group: LadderGroup) -> "LadderStatus | None":
        """Return the status that the cost of a ladder is computed from; None without prices.

        All environments of a group have equal costs, so the status of the first one is used.
        """
        return self.statuses.get(group.environments[0]) if self.project.prices else None

    def fits_of(self, group: LadderGroup) -> "Mapping[str, RungFit] | None":
        """Return the fits of a ladder by size, which all environments of a group share; None without a step."""
        return self.fits.of_environment(group.environments[0]) if self.fits else None

    def section(self, group: LadderGroup) -> TableSection:
        """Return the table of a ladder, and the notes below it."""
        status, fits = self.cost_status(group), self.fits_of(group)
        notes = (*(table.fit_note(group.rungs, fits) if fits else ()), *table.cost_notes(status))
        return TableSection(
            group.title, table.ladder_rows(group, self.project.training, status, fits), notes
        )


def ladder(
    spec: options.SpecOption = SPEC,
    env: options.EnvOption = None,
    size: options.SizeOption = None,
    target: options.TargetOption = None,
    changes: options.SetOption = None,
    probe: options.ProbeOption = False,
    format: Annotated[str, format_option("text|markdown|json|svg")] = "text",
) -> None:
    """Show the ladder: what changes from rung to rung, what a run costs, and the findings about it.

    Example: tpucfg ladder --env prod --format markdown
    """
    catalog = Catalog()
    compiled = compile_spec_file(
        spec, catalog, selection(env, size, target, probe=probe, changes=changes)
    )
    if compiled.plan is None or not compiled.plan.jobs:
        print_result(spec, compiled.findings, compiled.source)
        raise CommandExit(ERRORS)
    # Errors are shown at their places, too; every finding is part of the ladder.
    failures = errors(compiled.findings)
    print_findings(failures, {str(spec): compiled.source})
    project, jobs = compiled.project or compiled.plan.project, compiled.plan.jobs
    # A chart shows the measurements without prices, too.
    shows_results = (project.prices or format == "svg") and not project.broken
    statuses: Mapping[str, LadderStatus] = {}
    if shows_results:
        from tpucfg.results.ladder_status import ladder_statuses

        statuses = ladder_statuses(project, catalog, [job.environment for job in jobs], spec.parent)
    if probe:
        statuses = {name: status.with_costs_of_probes() for name, status in statuses.items()}
    fits = load_fits(project, jobs, spec)
    findings = (*compiled.findings, *(_fit_findings(project, fits) if fits else ()))
    groups = group_ladders(tuple(jobs), _distinct_values(project, statuses, fits))
    ladders = _Ladders(project, findings, groups, statuses, fits)
    if format == "json":
        sys.stdout.write(json_text(_data(ladders)))
    elif format == "svg":
        print(_svg(ladders))
    else:
        print_sections(map(ladders.section, groups), format, findings=findings)
    _require_readable(statuses.values(), fits)
    if failures:
        raise CommandExit(ERRORS)


def _fit_findings(project: Project, fits: "KnownFits") -> Sequence[Finding]:
    """Return the findings about the steps of the rungs; those about the file are not about a ladder."""
    from tpucfg.fit.fit_findings import known_fit_findings

    return () if fits.file.findings else known_fit_findings(project, fits, level="warning")


def _distinct_values(
    project: Project, statuses: Mapping[str, "LadderStatus"], fits: "KnownFits | None"
) -> Mapping[str, Hashable]:
    """Return what else a table shows of each environment: only those with equal tables share one."""
    costs = {
        name: (tuple((each.cost, each.probe_cost) for each in status.rungs), status.others)
        for name, status in statuses.items()
        if project.prices
    }
    if fits is None:
        return costs
    return {name: (costs.get(name), fits.shown_values(name)) for name in project.environments}


def _require_readable(statuses: Collection["LadderStatus"], fits: "KnownFits | None") -> None:
    """Print the errors in the files of results to stderr.

    Raises:
        CommandExit: There is one.
    """
    findings = [finding for status in statuses for finding in status.results.findings]
    sources = {status.results.file: status.results.text for status in statuses}
    if fits:
        findings += fits.file.findings
        sources[str(fits.file.path)] = fits.file.text
    require_none(findings, sources)


def _data(ladders: _Ladders) -> dict[str, Any]:
    return {
        "project": ladders.project.name,
        "tuned_on": ladders.project.training.tuned_on,
        "ladders": [
            {
                "environments": group.environments,
                "region": group.region,
                "target": group.target,
                "rungs": [
                    {**_rung_data(rung, group, ladders), "capacity": capacity}
                    for rung, capacity in zip(group.rungs, group.capacities, strict=True)
                ],
            }
            for group in ladders.groups
        ],
        "findings": [
            finding.data("id", "level", "message", "location", "help")
            for finding in ladders.findings
        ],
    }


def _rung_data(rung: Rung, group: LadderGroup, ladders: _Ladders) -> dict[str, Any]:
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
        "learning_rate": float(Number.read(rung.learning_rate).value)
        if rung.learning_rate
        else None,
        "examples": rung.examples,
    } | table.parallelism_data(rung, group.rungs)
    if fits := ladders.fits_of(group):
        figures |= table.fit_data(rung, fits.get(rung.size))
    if status := ladders.cost_status(group):
        figures |= table.cost_data(status, rung.size)
    return figures


def _svg(ladders: _Ladders) -> str:
    from tpucfg.charts import MeasuredThroughput, build_narrative, render_svg

    throughputs = {
        name: MeasuredThroughput(
            {rung.size: rung.throughput for rung in status.evaluations if rung.throughput},
            status.others,
        )
        for name, status in ladders.statuses.items()
    }
    narratives = [
        build_narrative(ladders.project, group, throughputs, ladders.fits_of(group))
        for group in ladders.groups
    ]
    return render_svg(narratives, ladders.findings)
