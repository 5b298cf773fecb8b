"""Hours and cost of a run on each rung: as table cells, as notes, and as data for JSON."""

from collections.abc import Iterator
from typing import Any

from tpucfg.number_format import UNKNOWN, format_dollars, format_hours, to_json_number
from tpucfg.plan import Rung
from tpucfg.results.cost import Cost
from tpucfg.results.ladder_status import LadderStatus
from tpucfg.spec.settings import CapacityKind
from tpucfg.text_format import listed


def cost_cells(status: LadderStatus) -> dict[str, dict[str, str]]:
    """Return the cost columns of each rung, by size, without unknown hours."""
    priced = zip(status.rungs, status.costs, strict=True)
    return {rung.size: _cells(cost, rung.size, status) for rung, cost in priced}


def cost_data(status: LadderStatus, size: str) -> dict[str, Any]:
    """Return the cost of one rung as data; an unknown value is None."""
    cost = status.cost(size)
    figures = {"usd_per_hour": cost.usd_per_hour, "hours": cost.hours, "usd": cost.usd}
    values = {key: to_json_number(value) for key, value in figures.items()}
    return values | {"figures": _source(cost, size, status) if cost.source else None}


def cost_note(status: LadderStatus) -> Iterator[str]:
    """Yield a note about each value that the cost cannot be computed without."""
    priced = zip(status.rungs, status.costs, status.capacities, strict=True)
    unpriced = {_priced_as(rung, capacity) for rung, cost, capacity in priced if cost.usd_per_hour is None}
    if unpriced:
        yield f"the spec has no price for {listed(sorted(unpriced))}"
    if _has_hours(status):
        return
    if status.rungs[0].examples is None:
        yield "the cost of a run is unknown: its length is given in epochs, not in examples"
    else:
        yield "the cost of a run is not known yet: no rung has a record of examples_per_second"


def _priced_as(rung: Rung, capacity: CapacityKind) -> str:
    """Return the name of a price: the generation, with the capacity unless it is the default."""
    return rung.slice.generation if capacity == "on-demand" else f"{rung.slice.generation} {capacity}"


def _has_hours(status: LadderStatus) -> bool:
    return any(cost.hours is not None for cost in status.costs)


def _cells(cost: Cost, size: str, status: LadderStatus) -> dict[str, str]:
    hourly = {"USD/hour": format_dollars(cost.usd_per_hour)}
    if not _has_hours(status):
        return hourly
    return hourly | {
        "hours": format_hours(cost.hours),
        "USD": format_dollars(cost.usd),
        "figures": _source(cost, size, status),
    }


def _source(cost: Cost, size: str, status: LadderStatus) -> str:
    """Return the basis of the figures; a measurement of another config is marked, as it may be outdated."""
    if cost.source is None:
        return UNKNOWN
    source = "measured" if cost.source == size else f"forecast from {cost.source}"
    return f"{source}, other config" if cost.source in status.outdated else source
