"""A climb to its story: headline, lead and charts."""

from collections.abc import Mapping, Sequence
from typing import Final

from tpucfg.charts.chart import Narrative
from tpucfg.charts.ladder_chart import ladder_chart
from tpucfg.charts.numbers import IN_PROSE, count_text, rounded
from tpucfg.charts.scaling_chart import MeasuredThroughput, scaling_chart
from tpucfg.plan import Rung
from tpucfg.plan.grouping import LadderGroup
from tpucfg.spec.project import Project
from tpucfg.text_format import listed

MAX_NAMED_ENVIRONMENTS: Final = 3
"""Environments in a heading; below it stand all."""


def narrative(project: Project, climb: LadderGroup, measured: Mapping[str, MeasuredThroughput]) -> Narrative:
    """One climb of a project; `measured` by environment, where there are results."""
    speeds = (scaling_chart(name, climb.rungs, measured[name]) for name in climb.environments if name in measured)
    return Narrative(
        f"{project.name} climbs {_way(climb.rungs)}" if len(climb.rungs) > 1 else f"{project.name} {_way(climb.rungs)}",
        f"{listed(climb.environments, most=MAX_NAMED_ENVIRONMENTS)}: {_way(climb.rungs)}",
        _lead(climb, project.training.tuned_on),
        (ladder_chart(climb.rungs), *(chart for chart in speeds if chart)),
    )


def _way(rungs: Sequence[Rung]) -> str:
    first, last = rungs[0].size, rungs[-1].size
    return f"on {first}" if first == last else f"from {first} to {last}"


def _lead(climb: LadderGroup, tuned_on: str) -> tuple[str, str]:
    first, last = climb.rungs[0], climb.rungs[-1]
    more = "" if first is last else f"{rounded(last.cores_scale / first.cores_scale)}× the cores, "
    return f"{more}{_seen(climb.rungs)}. Tuned on {tuned_on}.", f"{climb.title}."


def _seen(rungs: Sequence[Rung]) -> str:
    """How much each rung trains, which is what a ladder keeps."""
    if rungs[0].epochs:
        epochs = "1 epoch" if rungs[0].epochs == "1" else f"{rungs[0].epochs} epochs"
        return f"{epochs}{' on every rung' * (len(rungs) > 1)}"
    seen = [rung.examples or 0 for rung in rungs]
    least, most = (count_text(count, longest=IN_PROSE) for count in (min(seen), max(seen)))
    if len(rungs) == 1:
        return f"{least} examples"
    same = "the same " if min(seen) == max(seen) else ""
    return f"{same}{least}{'' if least == most else f' to {most}'} examples on every rung"
