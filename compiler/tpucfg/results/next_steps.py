"""What to do next on a ladder, as lines with commands to paste."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Final, NamedTuple

from tpucfg.results.evaluation import RungEvaluation, decimal, percent
from tpucfg.results.gate import command_line, may_run, remedy
from tpucfg.results.ladder_status import LadderStatus
from tpucfg.results.record import THROUGHPUT, exact_decimal
from tpucfg.spec.project import Gate

IMPLAUSIBLE_SCALING: Final = Fraction(5, 4)
"""Of linear scaling: caches make a slice a little faster than its parts, and a figure of one host makes it much so."""


class NextStep(NamedTuple):
    """One line: a sentence, or what a command is for."""

    text: str
    command: str = ""

    def __str__(self) -> str:
        """The line, for a terminal."""
        return f"{self.text}: {self.command}" if self.command else self.text


def gate_text(gate: Gate) -> str:
    """What the gate asks of a rung, in words."""
    scaling = f"scaling of {percent(exact_decimal(gate.min_scaling_efficiency))}"
    if not gate.metric:
        return scaling
    direction = "below" if gate.goal == "max" else "above"
    return (
        f"{scaling}, and {gate.metric} at most {decimal(exact_decimal(gate.max_drop or 0))} {direction} the rung below"
    )


def outdated_notes(survey: LadderStatus) -> Iterator[str]:
    """Records that count, but of a config that the spec does not make any more."""
    for size in survey.outdated:
        now = f": {survey.jobs[size]}" if size in survey.jobs else ""
        yield f"{size} was recorded for another config than the spec makes now{now}"


def outdated_below_note(survey: LadderStatus, size: str) -> Iterator[str]:
    """That the record which decides about a rung is one of those."""
    below = survey.below(size)
    if survey.gate and below and below.size in survey.outdated:
        said = f"{below.size}, which {size} is compared with"
        yield f"{said}, was recorded for another config than the spec makes now"


def implausible_notes(survey: LadderStatus, size: str | None = None) -> Iterator[str]:
    """Measurements that are too good to be true: all, or those in which one size has a part."""
    for it in survey.evaluations:
        if (
            it.below
            and it.efficiency
            and it.efficiency > IMPLAUSIBLE_SCALING
            and size in (None, it.size, it.below.size)
        ):
            said = f"{it.size} scales to {percent(it.efficiency)} of {it.below.size}"
            yield f"{said}: is {THROUGHPUT} that of the whole slice on both?"


def unjudged_note(survey: LadderStatus) -> Iterator[str]:
    """That nobody compares the first rung's metric with anything: a run that diverged looks like any other."""
    first, gate = survey.evaluations[0], survey.gate
    if gate and gate.metric and first.metric is not None:
        value = decimal(first.metric)
        yield f"{first.size} is the first rung: its {gate.metric} of {value} is taken as it is, compared with nothing"


def next_steps(survey: LadderStatus, spec: Path) -> Iterator[NextStep]:
    """Why rungs that were measured have not passed, then the lowest rung that is still to be measured."""
    environment = survey.environment.name
    if survey.results.findings:
        yield NextStep(f"{survey.results.file} {survey.results.problem}: fix it first")
        return
    for standing in survey.evaluations:
        if standing.record and standing.shortfalls:
            yield NextStep(f"{standing.size} has not passed: {'; '.join(it.why for it in standing.shortfalls)}")
    waiting = [it for it in survey.evaluations if it.record is None]
    open_ = [it for it in waiting if may_run(survey, it.size)]
    if open_:
        size = open_[0].size
        yield NextStep("next", command_line("submit", environment, size, spec))
        yield NextStep("then", command_line("record", environment, size, spec, "--from", "LOG"))
    elif waiting and (closed := survey.below(waiting[0].size)):
        yield from _again(survey, closed, spec)
    elif failed := next((it for it in survey.evaluations if survey.gate and not it.passed), None):
        yield from _again(survey, failed, spec)
    elif survey.gate:
        yield NextStep("every rung has passed")
    else:
        yield NextStep("every rung is recorded")


def _again(survey: LadderStatus, standing: RungEvaluation, spec: Path) -> Iterator[NextStep]:
    return (NextStep(*step) for step in remedy(survey, standing, spec))
