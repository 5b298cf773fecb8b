"""The output of `tpucfg fit`: the compiled rungs of each environment as tables with notes, and as data for JSON."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final, NamedTuple

from tpucfg.cli.table import Cell, TableSection, interval_data, known, memory_data, print_sections
from tpucfg.findings import Finding
from tpucfg.fit.fit_file import NAME, FitResult, Memory, Part, forecast_payload
from tpucfg.fit.fit_findings import HOST_OFFLOAD
from tpucfg.fit.forecast import (
    UNBOUNDED,
    RunForecast,
    StepInterval,
    lower_bound,
    run_of,
    step_interval,
    utilization,
)
from tpucfg.fit.launcher import Outcome
from tpucfg.fit.rung_fit import gib, interval_text, step_time
from tpucfg.number_format import UNKNOWN, format_dollars, format_percent, format_rounded
from tpucfg.paths import grouped
from tpucfg.plan import Job, LadderGroup, group_ladders
from tpucfg.results.cost import price_per_hour
from tpucfg.results.ladder_status import LadderStatus
from tpucfg.spec import Project
from tpucfg.text_format import format_count, json_text, listed

# The rungs, and what their results mean: the time, the cost and the length of a run.


class FittedRung(NamedTuple):
    """One rung, and what its result means."""

    outcome: Outcome
    bound: Fraction | None
    """The least seconds of a step."""
    forecast: StepInterval | None
    usd_per_hour: Fraction | None

    @property
    def job(self) -> Job:
        """The rung's job."""
        return self.outcome.job

    @property
    def result(self) -> FitResult | None:
        """The result; None after a failure."""
        return self.outcome.result

    @property
    def ends(self) -> tuple[Fraction, ...]:
        """The seconds of a step at both ends of the forecast; else the least alone, if that is known."""
        if self.forecast:
            return (self.forecast.low, self.forecast.high)
        return () if self.bound is None else (self.bound,)

    def runs(self, steps: int | None) -> tuple[RunForecast, ...]:
        """Return a run of that many steps, at both ends of the forecast or at the least."""
        runs = (run_of(seconds, steps, self.usd_per_hour) for seconds in self.ends)
        return tuple(run for run in runs if run)

    @property
    def rates(self) -> list[Fraction]:
        """The tokens or examples a second by the forecast, from low to high."""
        amount = Fraction(self.job.rung.batch_size * (self.job.rung.sequence_length or 1))
        return [amount / seconds for seconds in reversed(self.ends)] if self.forecast else []

    @property
    def shares(self) -> list[Fraction]:
        """The shares of the peak by the forecast, from low to high."""
        if self.forecast is None or self.result is None:
            return []
        shares = [
            utilization(self.result, self.job.slice, seconds) for seconds in reversed(self.ends)
        ]
        return [share for share in shares if share is not None]


Fits = Sequence[tuple[LadderGroup, Sequence[FittedRung]]]
"""The rungs of each environment; those whose tables and notes are equal share one."""


def rung_row(project: Project, outcome: Outcome, status: LadderStatus) -> FittedRung:
    """Return a rung with the meaning of its result."""
    job = outcome.job
    price = price_per_hour(job.slice, project.prices, job.capacity.kind)
    if not (outcome.result and outcome.result.fits):
        return FittedRung(outcome, None, None, price)
    # A result that could not be written is in no file, from which the status has its forecast.
    forecast = status.rung(job.size).forecast or step_interval(outcome.result, job.slice)
    return FittedRung(outcome, lower_bound(outcome.result, job.slice), forecast, price)


# The output.


INDICATIVE = (
    "indicative: memory and time are of the step alone, without prefetched batches, input, evaluation and checkpoints; "
    "step ≥ is the least by the peak of the chips"
)

PARTS: Final[Mapping[Part, str]] = {
    "products": "matrix products",
    "kernels": "kernels",
    "fusions": "other fusions",
    "communication": "waiting for other chips",
    "copies": "waiting for copies",
    "host": "waiting for the host",
}
"""The words for the parts of a step."""
_MIN_HOURS: Final = Fraction(1, 100)
"""Shorter runs are written as less than this."""


def environment_fits(
    project: Project, outcomes: Sequence[Outcome], statuses: Mapping[str, LadderStatus]
) -> Fits:
    """Return the outcomes by environment."""
    rows = grouped(
        (name := outcome.job.environment.name, rung_row(project, outcome, statuses[name]))
        for outcome in outcomes
    )
    shown = {
        name: tuple((*_cells(row, project), row.outcome.is_committed) for row in of)
        for name, of in rows.items()
    }
    groups = group_ladders([outcome.job for outcome in outcomes], shown)
    return [(group, rows[group.environments[0]]) for group in groups]


def _cells(row: FittedRung, project: Project) -> Iterator[Cell]:
    rung, result = row.job.rung, row.result
    memory = result.memory if result else None
    yield "size", row.job.size
    yield "devices", f"{row.job.slice.devices:,}"
    yield "HBM GiB", known(memory, used_text)
    yield "available", known(memory, lambda each: gib(each.available))
    yield "headroom", _headroom(result)
    yield "step ≥", known(row.bound, step_time) or UNKNOWN
    yield "step", known(row.forecast, interval_text)
    yield f"{'tokens' if rung.sequence_length else 'examples'}/s", _range(row.rates, format_rounded)
    yield "MFU", _range(row.shares, format_percent)
    hours, dollars = _runs_cells(row, rung.train_steps)
    yield "hours", hours
    if project.prices:
        yield "USD", dollars


def used_text(memory: Memory) -> str:
    """Return the memory that a step needs, in GiB; after a refusal, the least."""
    return ("" if memory.exact else "≥ ") + gib(memory.used)


def _runs_cells(row: FittedRung, steps: int | None) -> tuple[str | None, str | None]:
    """Return the hours and the dollars of a run of that many steps."""
    runs = row.runs(steps)
    dollars = [run.usd for run in runs if run.usd is not None]
    return _amount(row, [run.hours for run in runs], _hours), _amount(row, dollars, format_dollars)


def _amount(
    row: FittedRung, values: Sequence[Fraction], form: Callable[[Fraction], str]
) -> str | None:
    """Return the ends of an amount; with its sign, the least if there is no forecast."""
    return _range(values, form) if row.forecast or not values else f"≥ {form(values[0])}"


def _range(values: Sequence[Fraction], form: Callable[[Fraction], str]) -> str | None:
    ends = list(dict.fromkeys(map(form, values)))
    if len(ends) > 1 and all(end.endswith("%") for end in ends):
        ends[0] = ends[0].removesuffix("%")
    return "–".join(ends) or None


def _notes(fits: Fits, project: Project) -> Iterator[str]:
    """Yield the notes below the tables: what the figures leave out, and what is not known."""
    rows = [row for _, each in fits for row in each if row.result]
    if not rows:
        return
    yield INDICATIVE
    for note, sizes in grouped(
        (note, row.job.size) for row in rows for note in _rung_notes(row)
    ).items():
        yield f"{note}: on {listed([*dict.fromkeys(sizes)])}"
    if not all(row.result.files for row in rows if row.result):
        yield "the step imports no file below the spec's folder, so other commands notice no change of it"
    if any(row.job.rung.train_steps is None for row in rows):
        yield "the time of a run is not known: its length is given in epochs, not in steps"
    elif project.prices:
        unpriced = {row.job.slice.generation for row in rows if row.usd_per_hour is None}
        if unpriced:
            yield f"the spec has no price for {listed(sorted(unpriced))} at the capacity of these rungs"
    if project.probe:
        cells = {row.job.size: _runs_cells(row, project.probe.steps) for row in rows if row.ends}
        usd = ", {} USD" if project.prices else ""
        sizes = [
            f"{size} {hours} hours{usd.format(dollars or UNKNOWN)}"
            for size, (hours, dollars) in cells.items()
        ]
        if sizes:
            yield f"a probe of {format_count(project.probe.steps, 'step')}: {'; '.join(sizes)}"


def _rung_data(row: FittedRung, project: Project) -> dict[str, Any]:
    """Return one rung as data for JSON; an unknown value is None."""
    result, slice_, seconds, steps = (
        row.result,
        row.job.slice,
        row.outcome.seconds,
        row.job.rung.train_steps,
    )
    probe_steps = project.probe.steps if project.probe else None
    least = run_of(row.bound, steps, row.usd_per_hour) if row.bound else None
    runs, probes = ((row.runs(count) if row.forecast else ()) for count in (steps, probe_steps))
    data: dict[str, Any] = {
        "size": row.job.size,
        "chips": slice_.chips,
        "devices": slice_.devices,
        "compiled": result is not None,
        "fits": result.fits if result else None,
        "hbm": memory_data(result.memory) if result else None,
        "flops": result.flops if result else None,
        "flops_8bit": result.flops_8bit if result else None,
        "uncounted": list(result.uncounted) if result else None,
        "least_step_seconds": row.bound,
        "forecast_step_seconds": interval_data(row.forecast),
        "model": forecast_payload(result.forecast) if result and result.forecast else None,
        "train_steps": steps,
        "least_hours": least.hours if least else None,
        "forecast_hours": [run.hours for run in runs],
        "probe_hours": [run.hours for run in probes],
    }
    if project.prices:
        data["usd_per_hour"] = row.usd_per_hour
        data["least_usd"] = least.usd if least else None
        data["forecast_usd"] = [run.usd for run in runs]
        data["probe_usd"] = [run.usd for run in probes]
    versions = {**result.compiler._asdict(), "stablehlo": result.stablehlo} if result else {}
    timing = (
        {key: round(value, 3) for key, value in seconds._asdict().items() if value is not None}
        if seconds
        else {}
    )
    reused = {
        "unchanged": row.outcome.is_known,
        "as_committed": row.outcome.is_committed if result else None,
    }
    return data | versions | reused | {"seconds": timing}


def part_lines(fits: Fits) -> Iterator[str]:
    """Yield a line for each rung with the parts of its step, as the model has them."""
    for group, rows in fits:
        for row in rows:
            model = row.result.forecast if row.result else None
            if model and model.seconds:
                parts = (
                    f"{PARTS[part]} {seconds / model.seconds:.0%}"
                    for part, seconds in model.parts.items()
                )
                yield f"{row.job.size} in {listed(group.environments, last=' and ')}: {', '.join(parts)}"


def _hours(hours: Fraction) -> str:
    return f"<{float(_MIN_HOURS)}" if 0 < hours < _MIN_HOURS else format_rounded(hours)


def _headroom(result: FitResult | None) -> str:
    if result is None:
        return "not compiled"
    return gib(result.memory.headroom) if result.fits else "does not fit"


def _rung_notes(row: FittedRung) -> Iterator[str]:
    """Yield what the figures of a compiled rung leave out, what the forecast is by, or why there is none."""
    result, forecast = row.result, row.forecast
    if result is None:
        return
    if result.uncounted:
        yield f"the bound leaves out {', '.join(result.uncounted)}"
    if unforecast := _unforecast(result, forecast):
        yield unforecast
    if forecast and forecast.rows:
        yield f"step is by {forecast.basis}, of which at least four in five took a time in this range of the model's"
    elif forecast:
        yield "step is that of the record"
    if row.job.slice.peak_tflops is None:
        yield "no page states the peak, so the least time is not known"
    if row.outcome.is_committed:
        yield f"the step is unchanged, and its figures are as committed in results/{NAME}; --fresh compiles it again"


def _unforecast(result: FitResult, forecast: StepInterval | None) -> str:
    """Return what the forecast leaves out, or why there is none; empty if neither is to be said."""
    model = result.forecast
    if not result.is_reliable:
        return f"neither memory nor time is reliable: {HOST_OFFLOAD}"
    if result.fits and model is None:
        return "the time of the compiled program is not known"
    if result.fits and forecast is None:
        is_endless = model and UNBOUNDED in model.uncounted
        reason = (
            "it has a loop whose length is data"
            if is_endless
            else "too few published runs tell the error"
        )
        return f"the step is not forecast: {reason}"
    return (
        f"the forecast leaves out {', '.join(model.uncounted)}" if model and model.uncounted else ""
    )


def print_fits(
    project: Project, fits: Fits, findings: Sequence[Finding], file: str, format: str
) -> None:
    """Print the tables with their notes, in Markdown also the findings, or all of it as JSON."""
    if format == "json":
        sys.stdout.write(json_text(_data(project, fits, findings, file)))
        return
    # Tables whose every rung failed are left out: without a figure, they would only hide the findings.
    sections = [
        TableSection(group.title, [[*_cells(row, project)] for row in rows])
        for group, rows in fits
        if any(row.result for row in rows)
    ]
    # As text, the findings are on stderr, with their places.
    print_sections(
        sections, format, [*_notes(fits, project)], findings if format == "markdown" else ()
    )


def _data(project: Project, fits: Fits, findings: Sequence[Finding], file: str) -> dict[str, Any]:
    return {
        "project": project.name,
        "results": file,
        "environments": [
            {
                "environments": group.environments,
                "region": group.region,
                "target": group.target,
                "rungs": [_rung_data(row, project) for row in rows],
            }
            for group, rows in fits
        ],
        "findings": [
            finding.data("id", "level", "message", "help", "details", "location")
            for finding in findings
        ],
    }
