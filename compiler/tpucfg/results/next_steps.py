"""The next steps on a ladder, and notes about its measurements, as lines of text with commands to paste."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Final, NamedTuple

from tpucfg.catalog import Catalog
from tpucfg.number_format import floor_percent, format_dollars, format_hours, format_metric
from tpucfg.plan import Selection, SelectionError, run_progress_in
from tpucfg.plan.run_progress import examples_of_run
from tpucfg.plan.rung import NO_OVERRIDE
from tpucfg.results.evaluation import RungEvaluation
from tpucfg.results.gate import (
    PROBE_OPTION,
    command_line,
    cost_problem,
    fit_remedy,
    has_passed_below,
    next_run,
    remedy,
    set_options,
)
from tpucfg.results.ladder_status import LadderStatus
from tpucfg.results.records import THROUGHPUT, exact_decimal, recorded_changes, run_parts
from tpucfg.spec import Gate, Project

IMPLAUSIBLE_SCALING: Final = Fraction(5, 4)
"""A scaling efficiency above this is implausible.

Caches make a large slice slightly faster per core. A throughput that was recorded for one host instead of the slice
causes a much higher value.
"""


class NextStep(NamedTuple):
    """One line: a sentence, or the purpose of a command and the command."""

    text: str
    command: str = ""

    def __str__(self) -> str:
        """Return the line for a terminal."""
        return f"{self.text}: {self.command}" if self.command else self.text


def gate_text(gate: Gate) -> str:
    """Return the gate's requirements in words."""
    return ", and ".join(_requirements(gate))


def _requirements(gate: Gate) -> Iterator[str]:
    if gate.min_scaling_efficiency is not None:
        yield f"a scaling of {floor_percent(exact_decimal(gate.min_scaling_efficiency))}"
    if gate.metric:
        max_drop = format_metric(exact_decimal(gate.max_drop or 0))
        direction = "below" if gate.goal == "max" else "above"
        yield f"{gate.metric} at most {max_drop} {direction} that of the previous rung"
    if gate.same_image:
        yield "records of the job's own image"
    if gate.fit:
        yield "a training step that is known to fit"
    if gate.max_usd is not None:
        yield f"a cost of at most ${format_dollars(exact_decimal(gate.max_usd))}"


def other_program_notes(status: LadderStatus, size: str | None = None) -> Iterator[str]:
    """Yield a note for each rung whose last record is of another program or image; with a size, only for that one."""
    consequence = ", which does not count for the gate" if status.is_measured else ""
    for rung in status.evaluations:
        if size not in (None, rung.size):
            continue
        if rung.records.other:
            yield f"{rung.size} was last {rung.other_text}{consequence}"
        elif note := _image_note(status, rung):
            yield note


def _image_note(status: LadderStatus, rung: RungEvaluation) -> str:
    """Return the note about a record that counts, and that another image made; empty if there is none."""
    program = status.programs.get(rung.size)
    if not (program and rung.record and rung.record.image) or rung.record.image == program.image:
        return ""
    return f"{rung.size} was recorded with the image {rung.record.image}, and its job now has {program.image}"


def image_below_note(status: LadderStatus, size: str) -> Iterator[str]:
    """Yield a note if the rung below, on which the gate depends, was recorded with another image."""
    below = status.below(size)
    if status.is_measured and below and (note := _image_note(status, below)):
        yield f"{note}; {size} is compared with it"


def implausible_notes(status: LadderStatus, size: str | None = None) -> Iterator[str]:
    """Yield a note for each rung that scales implausibly well; with a size, only for comparisons with that rung."""
    for rung in status.evaluations:
        if not rung.below or not rung.efficiency or rung.efficiency <= IMPLAUSIBLE_SCALING:
            continue
        if size in (None, rung.size, rung.below.size):
            scaling = f"{rung.size} scales to {floor_percent(rung.efficiency)} of {rung.below.size}"
            yield f"{scaling}: check that {THROUGHPUT} is that of the whole slice on both"


def overlong_notes(status: LadderStatus, project: Project) -> Iterator[str]:
    """Yield a note for each rung whose run takes longer than its `max_run_duration`, as measured or forecast."""
    for rung, cost in zip(status.rungs, status.costs, strict=True):
        limit = project.settings[status.environment.name, rung.size].trainer.max_run_duration
        if limit and cost.hours is not None and cost.hours * 3600 > limit.seconds:
            basis = "as measured" if cost.source == rung.size else f"as forecast from {cost.source}"
            hours = format_hours(cost.hours)
            yield f"a run on {rung.size} takes {hours} hours, {basis}: longer than max_run_duration, {limit.text}"


def run_steps(status: LadderStatus, project: Project, catalog: Catalog, spec: Path) -> Iterator[NextStep]:
    """Yield how far each recorded run is that has not ended, and the commands with which it goes on.

    Where its last size is not to be had, these are the sizes of `fallback`.
    """
    environment = status.environment
    if status.results.findings:
        return
    names = (record.run for record in status.results.records if record.step)
    for run in filter(None, dict.fromkeys(names)):
        parts = run_parts({environment.name: status.results}, run)
        try:
            progress = run_progress_in(project, catalog, environment, Selection(run=run, recorded=parts))
        except SelectionError as error:
            yield NextStep(f"the run {run} cannot go on: {error}")
            continue
        promised = examples_of_run(project.training)
        if progress is None or (promised and progress.seen.examples >= promised):
            continue
        size = progress.last.size
        seen = f", with {progress.seen.examples:,} of {int(promised):,} examples seen" if promised else ""
        yield NextStep(f"the run {run} is at step {progress.seen.step:,} on {size}{seen}")
        changes = recorded_changes(status.results, project.name, run)
        options = ("--run", run, *set_options(changes))
        fallback = project.overrides.get(size, NO_OVERRIDE).fallback
        for other in dict.fromkeys((size, *fallback)):
            if other in environment.sizes:
                text = "it goes on with" if other == size else f"or on {other}, a fallback of {size}, with"
                yield NextStep(text, command_line("submit", environment.name, other, spec, *options))


def first_rung_note(status: LadderStatus) -> Iterator[str]:
    """Yield a note that the gate cannot check the first rung's metric."""
    # There is no rung below, so even a first run that diverged passes, and the user has to check its metric.
    first, gate = status.evaluations[0], status.gate
    if gate and gate.metric and first.metric is not None:
        value = format_metric(first.metric)
        yield f"{first.size} is the first rung: its {gate.metric} of {value} is not compared with anything"


def next_steps(status: LadderStatus, spec: Path) -> Iterator[NextStep]:
    """Yield the reasons why measured rungs have not passed, then the commands for the lowest unmeasured rung.

    A rung that `gate.fit` refuses is compiled first, so that no step is one that the gate refuses.
    """
    environment = status.environment.name
    # An invalid line could be the last record of any rung, so no other step can be recommended.
    if status.results.findings:
        yield NextStep(f"{status.results.file} {status.results.problem}: fix it first")
        return
    for rung in status.evaluations:
        if rung.record and rung.shortfalls and not rung.is_other:  # a note is about another program
            reasons = "; ".join(shortfall.reason for shortfall in rung.shortfalls)
            yield NextStep(f"{rung.size} has not passed: {reasons}")
    # A probe measures how a rung scales at a fraction of the cost of a run, so the ladder is measured by probes first.
    kind, measured = ((PROBE_OPTION,), status.for_probes()) if status.probe else ((), status)
    unmeasured = [
        rung for rung in measured.evaluations if rung.record is None or (rung.is_other and status.is_measured)
    ]
    reached = next((rung for rung in unmeasured if has_passed_below(measured, rung.size)), None)
    if reached:
        size = reached.size
        fixes = fit_remedy(status, size, spec)
        yield from (NextStep(f"next, {fix}", command) for fix, command in fixes)
        # The folder of the other program's run may have checkpoints.
        options = (*kind, *(("--run", next_run(status, size)) if reached.is_other else ()))
        if reason := cost_problem(status, size, is_probe=bool(kind)):
            yield NextStep(f"the gate does not let {size} start: {reason}")
            return
        submit = command_line("submit", environment, size, spec, *options)
        yield NextStep(f"once {size} is known to fit" if fixes else "next", submit)
        yield NextStep("then", command_line("record", environment, size, spec, *options, "--from", "LOG"))
    elif unmeasured and (blocking := measured.below(unmeasured[0].size)):
        yield from _remedy_steps(measured, blocking, spec)
    # Every rung is recorded: the lowest one that has not passed is to be run again.
    elif failed := next((rung for rung in status.evaluations if not rung.passed), None):
        yield from _remedy_steps(status, failed, spec)
    elif status.is_measured:
        yield NextStep("every rung has passed")
    else:
        yield NextStep("every rung is recorded")


def _remedy_steps(status: LadderStatus, rung: RungEvaluation, spec: Path) -> Iterator[NextStep]:
    return (NextStep(*step) for step in (*fit_remedy(status, rung.size, spec), *remedy(status, rung, spec)))
