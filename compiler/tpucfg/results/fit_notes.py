"""The fits of a ladder beside its records: notes below its table, and records that are faster than the TPU can be."""

from collections.abc import Container, Iterable, Iterator, Sequence
from fractions import Fraction
from math import ceil
from typing import Final

from tpucfg.findings import Finding, Location
from tpucfg.fit.fit_file import NAME
from tpucfg.fit.fit_findings import fit_findings, unknown_fits_text
from tpucfg.fit.forecast import lower_bound, run_of, step_interval
from tpucfg.fit.rung_fit import KnownFits, fit_key, interval_text, step_time
from tpucfg.number_format import format_rate, format_rounded
from tpucfg.paths import grouped
from tpucfg.plan import Job
from tpucfg.plan.rules.capacity_rules import writes_checkpoints
from tpucfg.plan.rules.scaling_warnings import is_checkpoint_interval
from tpucfg.results.ladder_status import LadderStatus, RungStatus
from tpucfg.results.records import THROUGHPUT
from tpucfg.spec import Project
from tpucfg.text_format import dotted
from tpucfg.yamldoc import KeyPath


def fit_notes(status: LadderStatus, fits: KnownFits) -> Iterator[str]:
    """Yield a note about each step that does not fit or hardly does, each unlikely record, and what is not known."""
    if fits.file.findings:
        yield f"{fits.file.path} cannot be read, so no fit is known"
        return
    findings = (*fit_findings(status.project, fits.rungs.values()), *records_beyond_bound(status))
    # Notes are findings that the spec allows.
    yield from (finding.message for finding in findings if finding.level != "note")
    yield from records_outside_forecast(status)
    if unknown := unknown_fits_text(fits, status.environment.name):
        yield unknown
    if any(fit.result and not fit.is_trusted for fit in fits.rungs.values()):
        yield f"HBM is as committed in results/{NAME}"


def records_outside_forecast(status: LadderStatus) -> Iterator[str]:
    """Yield a note about each record whose step took less or more time than published runs let expect."""
    for each in status.rungs:
        current, throughput = each.fit and each.fit.current, each.evaluation.throughput
        expected = step_interval(current, each.rung.slice) if current and current.fits else None
        if expected is None or each.evaluation.is_other or not throughput:
            continue
        seconds = each.rung.batch_size / throughput
        if not expected.low <= seconds <= expected.high:
            yield (
                f"the record of {each.size} is outside its forecast: a step took {step_time(seconds)}, and "
                f"{interval_text(expected)} was expected, by {expected.basis}"
            )


def records_beyond_bound(
    status: LadderStatus, sizes: Container[str] | None = None
) -> Iterator[Finding]:
    """Yield a warning for each record that is faster than the TPU can be, with `allow` of the spec applied.

    Args:
        status: The ladder of one environment.
        sizes: The rungs to compare; all by default.
    """
    for each in status.rungs:
        if (sizes is None or each.size in sizes) and (finding := _beyond_bound(status, each)):
            yield finding.allowed_by(status.project.allow)


def _beyond_bound(status: LadderStatus, each: RungStatus) -> Finding | None:
    """Return the finding about one record; None without a record of the current job, or without a bound for it."""
    evaluation, bound, batch_size = each.evaluation, _bound(each), each.rung.batch_size
    if not (evaluation.record and evaluation.throughput and bound) or evaluation.is_other:
        return None
    step_seconds = batch_size / evaluation.throughput
    if step_seconds >= bound:
        return None
    measured, most = format_rate(evaluation.throughput), format_rate(Fraction(batch_size) / bound)
    return Finding.of(
        "TPU108",
        f"the record of {each.size} is faster than the TPU can be: {measured} examples/s is a step of "
        f"{step_time(step_seconds)}, and the least is {step_time(bound)}",
        evaluation.record.location or Location(status.results.file),
        help=f"check that {THROUGHPUT} counts examples of the whole slice, and not tokens or micro-batches, and that "
        "trainer.fit.step is the step that ran; if both are right, allow TPU108 with your reason",
        details=(
            f"in the least time, a batch of {batch_size:,} is {most} examples/s",
            "or the bound is wrong: it divides the work that the compiled step was counted to do by the catalog's peak",
        ),
    )


def rungs_beyond_duration(status: LadderStatus, sizes: Container[str]) -> Iterator[Finding]:
    """Yield a finding for each `max_run_duration` that ends whole runs, with the submissions that these take.

    It is a warning, as a run goes on from its checkpoints; an error if nothing shows that there are any.
    """
    too_long = (
        (each.settings.source(("trainer", "max_run_duration")), (each, hours))
        for each in status.rungs
        if each.size in sizes
        and (hours := _hours(each))
        and each.cost.limit_hours
        and hours > each.cost.limit_hours
    )
    for path, rungs in grouped(too_long).items():
        yield _beyond_duration(status, path, rungs).allowed_by(status.project.allow)


def _beyond_duration(
    status: LadderStatus, path: KeyPath, rungs: Sequence[tuple[RungStatus, Fraction]]
) -> Finding:
    lengths = [
        f"{'' if each.cost.hours else 'at least '}{format_rounded(hours)} h on {each.size}, "
        f"{ceil(hours / (each.cost.limit_hours or hours))} submissions"
        for each, hours in rungs
    ]
    is_kept = all(writes_checkpoints(status.project, each.settings) for each, _ in rungs)
    loss = "" if is_kept else ", and nothing in the spec shows that the program writes checkpoints"
    name, environment = dotted(path), status.environment.name
    return Finding.of(
        "TPU129",
        f"a run in {environment} takes longer than {name}, after which the slice is gone: {'; '.join(lengths)}{loss}",
        status.project.document.value_location(path),
        help=f"set {name} to {max(ceil(hours) for _, hours in rungs)}h or more, or allow TPU129 with your reason",
        level="warning" if is_kept else "error",
    )


_GB: Final = 10**9
MIN_DELETED_BYTES: Final = 1_000 * _GB
"""The amount of deleted checkpoints that has a note."""


def deleted_checkpoints(
    project: Project, jobs: Iterable[Job], fits: KnownFits
) -> Iterator[Finding]:
    """Yield a note for each environment whose bucket may keep many deleted checkpoints, with their size by the fit."""
    largest: dict[str, tuple[int, int, Job]] = {}
    for job in jobs:
        fit = fits.rungs.get(fit_key(job))
        size, count = (fit and fit.current and fit.current.state_bytes) or 0, _checkpoint_count(job)
        name = job.environment.name
        largest[name] = max(
            largest.get(name, (0, 0, job)), (size * count, count, job), key=lambda each: each[0]
        )
    for total, count, job in largest.values():
        environment = job.environment
        path = (*environment.path, "soft_delete_days")
        if (
            total < MIN_DELETED_BYTES
            or not environment.creates_bucket
            or not environment.deleted_days
        ):
            continue
        yield Finding.of(
            "TPU132",
            f"a run on {job.size} in {environment.name} writes {count:,} checkpoints of {total / count / _GB:,.0f} GB, "
            f"and each that the program deletes is billed for {environment.deleted_days} days more: up to "
            f"{total / _GB:,.0f} GB",
            project.document.value_location(path),
            help=f"set {dotted(path)} to 0 if no deleted checkpoint has to be restored",
            details=(
                "a checkpoint is counted as all that the compiled training step returns",
                "see https://cloud.google.com/storage/docs/soft-delete",
            ),
        )


def _checkpoint_count(job: Job) -> int:
    """Return the checkpoints of a whole run, by the first figure that is an interval between two; 0 without one."""
    intervals = [
        steps for key, steps in job.rung.steps.items() if is_checkpoint_interval(key) and steps
    ]
    return (job.rung.train_steps or 0) // intervals[0] if intervals and job.whole is None else 0


def _hours(each: RungStatus) -> Fraction | None:
    """Return the hours of a whole run, from the records or at least by the fit; None if neither is known."""
    seconds = each.forecast.low if each.forecast else _bound(each)
    least = run_of(seconds, each.rung.train_steps, None) if seconds else None
    return each.cost.hours or (least and least.hours)


def _bound(each: RungStatus) -> Fraction | None:
    current = each.fit and each.fit.current
    return lower_bound(current, each.rung.slice) if current else None
