"""The narrative of a ladder: headline, lead and charts."""

from collections.abc import Mapping, Sequence
from typing import Final

from tpucfg.charts.chart import Column, Narrative
from tpucfg.charts.ladder_chart import ladder_chart
from tpucfg.charts.numbers import MAX_PROSE_COUNT_LENGTH, count_text
from tpucfg.charts.scaling_chart import MeasuredThroughput, scaling_chart
from tpucfg.number_format import format_rounded
from tpucfg.plan import Rung
from tpucfg.plan.grouping import LadderGroup
from tpucfg.spec.project import Project
from tpucfg.text_format import listed

MAX_NAMED_ENVIRONMENTS: Final = 3
"""Limit for environments in a heading; the lead below it lists all."""


def build_narrative(
    project: Project,
    group: LadderGroup,
    measured: Mapping[str, MeasuredThroughput],
    memory: Column | None = None,
) -> Narrative:
    """Return the narrative of one ladder of a project.

    Args:
        project: The project.
        group: The ladder.
        measured: The throughput by environment, where there are results.
        memory: The column of memory, if the spec names a training step.
    """
    scaling = (scaling_chart(name, group.rungs, measured[name]) for name in group.environments if name in measured)
    sizes = _sizes_text(group.rungs)
    return Narrative(
        headline=f"{project.name} scales {sizes}" if len(group.rungs) > 1 else f"{project.name} {sizes}",
        heading=f"{listed(group.environments, limit=MAX_NAMED_ENVIRONMENTS)}: {sizes}",
        lead=(_summary(group.rungs, project.training.tuned_on), f"{group.title}."),
        charts=(ladder_chart(group.rungs, memory), *(chart for chart in scaling if chart)),
    )


def _sizes_text(rungs: Sequence[Rung]) -> str:
    first, last = rungs[0].size, rungs[-1].size
    return f"on {first}" if first == last else f"from {first} to {last}"


def _summary(rungs: Sequence[Rung], tuned_on: str) -> str:
    first, last = rungs[0], rungs[-1]
    more = "" if first is last else f"{format_rounded(last.cores_scale / first.cores_scale)}× the cores, "
    return f"{more}{_examples_text(rungs)}. Tuned on {tuned_on}."


def _examples_text(rungs: Sequence[Rung]) -> str:
    """Return the examples, tokens or epochs of a run, which scaling keeps constant."""
    if rungs[0].epochs:
        epochs = "1 epoch" if rungs[0].epochs == "1" else f"{rungs[0].epochs} epochs"
        return f"{epochs} on every rung" if len(rungs) > 1 else epochs
    unit = "tokens" if all(rung.tokens for rung in rungs) else "examples"
    counts = [(rung.tokens if unit == "tokens" else rung.examples) or 0 for rung in rungs]
    lowest, highest = (count_text(count, max_length=MAX_PROSE_COUNT_LENGTH) for count in (min(counts), max(counts)))
    if len(rungs) == 1:
        return f"{lowest} {unit}"
    # Rounding up the steps may add examples. Different long counts may round to equal texts, so both are compared.
    same = "the same " if min(counts) == max(counts) else ""
    return f"{same}{lowest}{'' if lowest == highest else f' to {highest}'} {unit} on every rung"
