"""Hours and cost as cells of a table, and as data for programs: the same in `status` and in `ladder`."""

from collections.abc import Iterator
from typing import Any

from tpucfg.number_format import UNKNOWN, format_dollars, format_hours
from tpucfg.results.cost import Cost
from tpucfg.results.ladder_status import LadderStatus
from tpucfg.text_format import listed


def cost_cells(survey: LadderStatus) -> dict[str, dict[str, str]]:
    """The columns of each rung, by size, with what the figures come from; without hours where no rung has any."""
    return {it.size: _cells(cost, it.size, survey) for it, cost in zip(survey.rungs, survey.costs, strict=True)}


def cost_data(survey: LadderStatus, size: str) -> dict[str, Any]:
    """The same of one rung, for a program; null is what is not known."""
    cost = survey.cost(size)
    numbers = {"usd_per_hour": cost.usd_per_hour, "hours": cost.hours, "usd": cost.usd}
    known = {key: None if value is None else float(value) for key, value in numbers.items()}
    return known | {"figures": _source(cost, size, survey) if cost.source else None}


def cost_note(survey: LadderStatus) -> Iterator[str]:
    """What is missing to know the cost: a price, a measurement, or the examples of a run."""
    priced = zip(survey.rungs, survey.costs, strict=True)
    if unpriced := sorted({rung.slice.generation for rung, cost in priced if cost.usd_per_hour is None}):
        yield f"the spec has no price for {listed(unpriced)}"
    if _has_hours(survey):
        return
    if survey.rungs[0].examples is None:
        yield "what a run costs is not known: it is counted in epochs, and not in examples"
    else:
        yield "what a run costs is not known yet: no rung has a record of examples_per_second"


def _has_hours(survey: LadderStatus) -> bool:
    return any(cost.hours is not None for cost in survey.costs)


def _cells(cost: Cost, size: str, survey: LadderStatus) -> dict[str, str]:
    always = {"USD/hour": format_dollars(cost.usd_per_hour)}
    if not _has_hours(survey):
        return always
    return always | {
        "hours": format_hours(cost.hours),
        "USD": format_dollars(cost.usd),
        "figures": _source(cost, size, survey),
    }


def _source(cost: Cost, size: str, survey: LadderStatus) -> str:
    """What the figures come from: what was measured with another config may be as true as before, and may not."""
    if cost.source is None:
        return UNKNOWN
    said = "measured" if cost.source == size else f"forecast from {cost.source}"
    return f"{said}, other config" if cost.source in survey.outdated else said
