"""The output of `tpucfg fit`: the compiled rungs of each environment as tables with notes, and as data for JSON."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import groupby
from typing import Any, Final, NamedTuple

from tpucfg.cli.table import Column, Section, markdown_sections, text_sections
from tpucfg.findings import Finding
from tpucfg.fit.fit_file import NAME, FitResult
from tpucfg.fit.launcher import Outcome
from tpucfg.fit.roofline import Bound, LeastRun, least_run, lower_bound
from tpucfg.fit.rung_fit import fit_command
from tpucfg.fit.wording import flops_text, gib, incomplete_text, step_time
from tpucfg.markdown import prose
from tpucfg.number_format import UNKNOWN, format_dollars, format_hours, to_json_number
from tpucfg.plan import Job
from tpucfg.results.cost import price_per_hour
from tpucfg.spec import Project
from tpucfg.text_format import json_text, listed

INDICATIVE = (
    "indicative: memory is what the compiler plans, without prefetched batches, evaluation and checkpoints; the step "
    "time is a lower bound by the peaks of the chips, and a real step takes longer"
)

_MIN_HOURS: Final = Fraction(1, 100)
"""Shorter runs are written as less than this."""


class _RungRow(NamedTuple):
    """One rung, and what its result means."""

    outcome: Outcome
    bound: Bound | None
    least: LeastRun | None
    """None without a bound, or for a run that is counted in epochs."""
    usd_per_hour: Fraction | None

    @property
    def job(self) -> Job:
        """The rung's job."""
        return self.outcome.job

    @property
    def result(self) -> FitResult | None:
        """The result; None after a failure."""
        return self.outcome.result


class EnvironmentFits(NamedTuple):
    """The rungs of an environment, or of several whose tables and notes are equal."""

    names: tuple[str, ...]
    region: str
    target: str
    rows: tuple[_RungRow, ...]

    @property
    def title(self) -> str:
        """The heading: `dev, staging: vertex-ai in us-central1`."""
        return f"{', '.join(self.names)}: {self.target} in {self.region}"


def environment_fits(project: Project, outcomes: Sequence[Outcome]) -> tuple[EnvironmentFits, ...]:
    """Return the outcomes by environment; environments with equal tables and notes share one."""
    groups: dict[tuple[object, ...], EnvironmentFits] = {}
    for name, group in groupby(outcomes, key=lambda outcome: outcome.job.environment.name):
        rows = tuple(_row(project, outcome) for outcome in group)
        job = rows[0].job
        fits = EnvironmentFits((), job.environment.region, job.target, rows)
        cells = (column.cells for column in _columns(fits, project))
        notes = ((row.outcome.is_committed, _overlong(row)) for row in rows)
        key = (fits.region, fits.target, *map(tuple, cells), *notes)
        known = groups.setdefault(key, fits)
        groups[key] = known._replace(names=(*known.names, name))
    return tuple(groups.values())


def _columns(environment: EnvironmentFits, project: Project) -> list[Column]:
    rows = environment.rows
    results, bounds = [row.result for row in rows], [row.bound for row in rows]
    memories = [result.memory if result else None for result in results]
    columns = [
        Column("size", [row.job.size for row in rows]),
        Column("devices", [f"{row.job.slice.devices:,}" for row in rows]),
        Column("HBM GiB", [("" if each.exact else "≥ ") + gib(each.used) if each else UNKNOWN for each in memories]),
        Column("available", [gib(each.available) if each else UNKNOWN for each in memories]),
        Column("headroom", [*map(_headroom, results)]),
        Column("FLOPs/step", [flops_text(each.flops + each.flops_8bit) if each else UNKNOWN for each in results]),
        Column("step ≥", [step_time(each.seconds) if each else UNKNOWN for each in bounds]),
        Column("limited by", [each.limit if each else UNKNOWN for each in bounds]),
    ]
    if any(row.job.rung.train_steps for row in rows):
        columns.append(Column("hours ≥", [_hours(row.least.hours) if row.least else UNKNOWN for row in rows]))
        if project.prices:
            columns.append(Column("USD ≥", [format_dollars(row.least.usd if row.least else None) for row in rows]))
    return columns


def _notes(environments: Sequence[EnvironmentFits], project: Project) -> Iterator[str]:
    """Yield the notes below the tables: what the figures leave out, and what is not known."""
    rows = [row for environment in environments for row in environment.rows if row.result]
    if not rows:
        return
    yield INDICATIVE
    for text in dict.fromkeys(incomplete_text(row.result) for row in rows if row.result):
        if text:
            sizes = [row.job.size for row in rows if row.result and incomplete_text(row.result) == text]
            yield f"{text}: on {listed(list(dict.fromkeys(sizes)))}"
    yield from _unknown_peaks(rows)
    if not all(row.result.files for row in rows if row.result):
        yield "the step imports no file below the spec's folder, so other commands notice no change of it"
    if any(row.job.rung.train_steps is None for row in rows):
        yield "the least time of a run is not known: its length is given in epochs, not in steps"
    elif project.prices:
        unpriced = {row.job.slice.generation for row in rows if row.usd_per_hour is None}
        if unpriced:
            yield f"the spec has no price for {listed(sorted(unpriced))} at the capacity of these rungs"
    yield from _overlong_notes(environments)
    yield from _committed_note(environments, project)


def _rung_data(row: _RungRow, project: Project) -> dict[str, Any]:
    """Return one rung as data for JSON; an unknown value is None."""
    result, slice_, seconds = row.result, row.job.slice, row.outcome.seconds
    data: dict[str, Any] = {
        "size": row.job.size,
        "chips": slice_.chips,
        "devices": slice_.devices,
        "compiled": result is not None,
        "fits": result.fits if result else None,
        "hbm": {**result.memory._asdict(), "headroom": result.memory.headroom} if result else None,
        "flops": result.flops if result else None,
        "flops_8bit": result.flops_8bit if result else None,
        "uncounted": list(result.uncounted) if result else None,
        "hbm_bytes": result.hbm_bytes if result else None,
        "ici_bytes": result.ici_bytes if result else None,
        "least_step_seconds": to_json_number(row.bound.seconds) if row.bound else None,
        "limited_by": row.bound.limit if row.bound else None,
        "least_seconds": {part: to_json_number(value) for part, value in row.bound.parts.items()} if row.bound else {},
        "train_steps": row.job.rung.train_steps,
        "least_hours": to_json_number(row.least.hours) if row.least else None,
    }
    if project.prices:
        data["usd_per_hour"] = to_json_number(row.usd_per_hour)
        data["least_usd"] = to_json_number(row.least.usd) if row.least else None
    versions = {**result.compiler._asdict(), "stablehlo": result.stablehlo} if result else {}
    timing = {key: round(value, 3) for key, value in seconds._asdict().items() if value is not None} if seconds else {}
    reused = {"unchanged": row.outcome.is_known, "as_committed": row.outcome.is_committed if result else None}
    return data | versions | reused | {"seconds": timing}


def _row(project: Project, outcome: Outcome) -> _RungRow:
    job = outcome.job
    price = price_per_hour(job.slice, project.prices, job.capacity.kind)
    bound = lower_bound(outcome.result, job.slice) if outcome.result and outcome.result.fits else None
    least = least_run(bound, job.rung.train_steps, price) if bound else None
    return _RungRow(outcome, bound, least, price)


def _hours(hours: Fraction) -> str:
    return f"<{float(_MIN_HOURS)}" if 0 < hours < _MIN_HOURS else format_hours(hours)


def _overlong_notes(environments: Sequence[EnvironmentFits]) -> Iterator[str]:
    for fits in environments:
        for row in fits.rows:
            if text := _overlong(row):
                yield f"a run on {row.job.size} in {listed(fits.names, last=' and ')} {text}"


def _overlong(row: _RungRow) -> str:
    """Return the clause about a run that takes longer than its `max_run_duration`; empty for another one."""
    limit = row.job.max_run_duration
    if limit is None or row.least is None or row.least.hours * 3600 <= limit.seconds:
        return ""
    return f"takes at least {format_hours(row.least.hours)} hours: longer than max_run_duration, {limit.text}"


def _committed_note(environments: Sequence[EnvironmentFits], project: Project) -> Iterator[str]:
    """Yield a note about the figures that this run has not computed itself."""
    rungs = [
        (name, row.job.size)
        for fits in environments
        for name in fits.names
        for row in fits.rows
        if row.outcome.is_committed
    ]
    if rungs:
        names, sizes = (list(dict.fromkeys(column)) for column in zip(*rungs, strict=True))
        command = fit_command(project, names, *sizes)
        yield (
            f"{listed(sizes)}: the step is unchanged, and its figures are as committed in results/{NAME}; compile it "
            f"again with: {command} --fresh"
        )


def _headroom(result: FitResult | None) -> str:
    if result is None:
        return "not compiled"
    return gib(result.memory.headroom) if result.fits else "does not fit"


def _unknown_peaks(rows: Sequence[_RungRow]) -> Iterator[str]:
    """Yield a note about each peak that no page states, and that the bound therefore leaves out."""
    missing: dict[str, set[str]] = {}
    for row in rows:
        slice_, result = row.job.slice, row.result
        peaks = {"compute": slice_.peak_tflops, "HBM": slice_.hbm_gbps, "ICI": slice_.ici_gbps}
        for part in (part for part, peak in peaks.items() if peak is None and result and result.fits):
            missing.setdefault(part, set()).add(slice_.generation)
    for part, generations in missing.items():
        yield f"the bound leaves out {part} on {listed(sorted(generations))}: no page states its peak"


_Render = Callable[[Project, Sequence[EnvironmentFits], Sequence[Finding], str], Iterator[str]]


def _text(
    project: Project, environments: Sequence[EnvironmentFits], _findings: Sequence[Finding], _file: str
) -> Iterator[str]:
    sections = _sections(environments, project)
    yield from text_sections(sections)
    yield from [""] if sections else []
    yield from _notes(environments, project)


def _markdown(
    project: Project, environments: Sequence[EnvironmentFits], findings: Sequence[Finding], _file: str
) -> Iterator[str]:
    sections = _sections(environments, project)
    yield from markdown_sections(sections)
    yield from [""] if sections else []
    yield from (f"- {prose(note)}" for note in _notes(environments, project))
    for finding in findings:
        yield f"- {finding.level}[{finding.id}]: {prose(finding.message)}"
        if finding.help:
            yield f"  help: {prose(finding.help)}"


def _sections(environments: Sequence[EnvironmentFits], project: Project) -> list[Section]:
    """Return the tables, except those whose every rung failed: without a figure, they would only hide the findings."""
    compiled = [environment for environment in environments if any(row.result for row in environment.rows)]
    return [Section(environment.title, _columns(environment, project)) for environment in compiled]


def _json(
    project: Project, environments: Sequence[EnvironmentFits], findings: Sequence[Finding], file: str
) -> Iterator[str]:
    document = {
        "project": project.name,
        "results": file,
        "environments": [
            {
                "environments": environment.names,
                "region": environment.region,
                "target": environment.target,
                "rungs": [_rung_data(row, project) for row in environment.rows],
            }
            for environment in environments
        ],
        "findings": [finding.data("id", "level", "message", "help", "details", "location") for finding in findings],
    }
    yield json_text(document).rstrip("\n")


FORMATS: Final[Mapping[str, _Render]] = {"text": _text, "json": _json, "markdown": _markdown}
