"""The columns of a ladder's rungs, as table cells, as notes below the table, and as data for JSON."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tpucfg.number_format import (
    UNKNOWN,
    format_dollars,
    format_figure,
    format_hours,
    format_number,
    to_json_number,
)
from tpucfg.plan import LadderGroup, Rung, rung_figures, shows_parallelism
from tpucfg.spec import CapacityKind, Training
from tpucfg.text_format import listed

# Imported by the functions that show them: a ladder without prices does not need the results, nor one without a
# training step the fits.
if TYPE_CHECKING:
    from tpucfg.fit.roofline import Bound
    from tpucfg.fit.rung_fit import RungFit
    from tpucfg.results.cost import Cost
    from tpucfg.results.ladder_status import LadderStatus


class Table(NamedTuple):
    """A table of formatted cells, for every output format that shows one."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """The cells of each rung."""


def ladder_table(
    group: LadderGroup,
    training: Training,
    status: "LadderStatus | None" = None,
    fits: "Mapping[str, RungFit] | None" = None,
) -> Table:
    """Return the table of a ladder.

    Args:
        group: The ladder.
        training: The settings that its rungs are scaled from.
        status: The measurements that the cost is computed from; None for a table without cost.
        fits: The fits of the rungs; None for a table without them.
    """
    costs = cost_cells(status) if status else {}
    fit_columns = fit_cells(group.rungs, fits) if fits else {}
    capacities = capacity_cells(group.rungs, group.capacities)
    rows = [
        {
            **_figure_cells(rung, group.rungs, training),
            **fit_columns.get(rung.size, {}),
            **capacities[rung.size],
            **costs.get(rung.size, {}),
        }
        for rung in group.rungs
    ]
    return Table(tuple(rows[0]), tuple(tuple(row.values()) for row in rows))


def capacity_cells(rungs: Sequence[Rung], capacities: Sequence[CapacityKind]) -> dict[str, dict[str, str]]:
    """Return the column of capacities, by size; none if all is on-demand."""
    has_column = any(capacity != "on-demand" for capacity in capacities)
    cells = zip(rungs, capacities, strict=True)
    return {rung.size: {"capacity": capacity} if has_column else {} for rung, capacity in cells}


def parallelism_data(rung: Rung, rungs: Sequence[Rung]) -> dict[str, Any]:
    """Return the split of devices and batch, and the tokens, as data for JSON: only where the ladder has them."""
    data: dict[str, Any] = {}
    if shows_parallelism(rungs):
        data |= {
            "slices": rung.slice.slices,
            "devices": rung.slice.devices,
            "data_parallel": rung.data_parallel,
            "model_parallel": rung.model_parallel,
            "grad_accum": rung.grad_accum or 1,
            "micro_batch_size": int(rung.micro_batch),
        }
    if rung.sequence_length is not None:
        data |= {"sequence_length": rung.sequence_length, "tokens": rung.tokens}
    return data


def _figure_cells(rung: Rung, rungs: Sequence[Rung], training: Training) -> Mapping[str, str]:
    """Return the cells of a rung by column; the columns are those of the whole ladder."""
    slice_cells = {
        "size": rung.size,
        "chips": f"{rung.slice.chips:,}",
        "cores": f"{rung.slice.cores:,}",
        "hosts": f"{rung.slice.hosts:,}",
    }
    figures = {key: format_figure(text) for key, text in rung_figures(rung)}
    if not shows_parallelism(rungs):
        return slice_cells | {"per core": format_number(rung.per_core)} | figures | _run_length(rung, training)
    batch = {"batch_size": figures["batch_size"]}
    return slice_cells | batch | parallelism_cells(rung, rungs) | figures | _run_length(rung, training)


def parallelism_cells(rung: Rung, rungs: Sequence[Rung]) -> dict[str, str]:
    """Return the split of the devices and of the batch; nothing for a ladder without either."""
    if not shows_parallelism(rungs):
        return {}
    has_model_parallelism = any(other.model_parallel > 1 for other in rungs)
    model_parallel = {"model_parallel": f"{rung.model_parallel:,}"} if has_model_parallelism else {}
    return {
        "data_parallel": f"{rung.data_parallel:,}",
        **model_parallel,
        "grad_accum": f"{rung.grad_accum or 1:,}",
        "micro-batch": format_number(rung.micro_batch),
    }


def _run_length(rung: Rung, training: Training) -> dict[str, str]:
    """Return the examples and tokens seen, with the surplus that rounding a step count up adds."""
    cells = {}
    if rung.examples is not None:
        tuned_steps = training.train_steps
        surplus = 0 if tuned_steps is None else rung.examples - training.batch_size * tuned_steps
        cells["examples"] = _with_surplus(rung.examples, surplus)
    if rung.tokens is not None:
        surplus = 0 if training.train_tokens is None else rung.tokens - training.train_tokens
        cells["tokens"] = _with_surplus(rung.tokens, surplus)
    return cells


def _with_surplus(count: int, surplus: int) -> str:
    return f"{count:,}" + (f" ({surplus:+,})" if surplus else "")


# Hours and cost of a run.


def cost_notes(status: "LadderStatus | None") -> Iterator[str]:
    """Yield the notes about the cost; none for a table without cost."""
    if status:
        from tpucfg.results.next_steps import outdated_notes

        yield from cost_note(status)
        if any(cost.hours is not None and cost.source in status.outdated for cost in status.costs):
            yield from outdated_notes(status)


def cost_cells(status: "LadderStatus") -> dict[str, dict[str, str]]:
    """Return the cost columns of each rung, by size, without unknown hours."""
    priced = zip(status.rungs, status.costs, strict=True)
    return {rung.size: _cost_cells(cost, rung.size, status) for rung, cost in priced}


def cost_data(status: "LadderStatus", size: str) -> dict[str, Any]:
    """Return the cost of one rung as data; an unknown value is None."""
    cost = status.cost(size)
    figures = {"usd_per_hour": cost.usd_per_hour, "hours": cost.hours, "usd": cost.usd}
    values = {key: to_json_number(value) for key, value in figures.items()}
    return values | {"figures": _source(cost, size, status) if cost.source else None}


def cost_note(status: "LadderStatus") -> Iterator[str]:
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


def _has_hours(status: "LadderStatus") -> bool:
    return any(cost.hours is not None for cost in status.costs)


def _cost_cells(cost: "Cost", size: str, status: "LadderStatus") -> dict[str, str]:
    hourly = {"USD/hour": format_dollars(cost.usd_per_hour)}
    if not _has_hours(status):
        return hourly
    return hourly | {
        "hours": format_hours(cost.hours),
        "USD": format_dollars(cost.usd),
        "figures": _source(cost, size, status),
    }


def _source(cost: "Cost", size: str, status: "LadderStatus") -> str:
    """Return the basis of the figures; a measurement of another config is marked, as it may be outdated."""
    if cost.source is None:
        return UNKNOWN
    source = "measured" if cost.source == size else f"forecast from {cost.source}"
    return f"{source}, other config" if cost.source in status.outdated else source


# The memory and the least time of a step.


def fit_cells(rungs: Sequence[Rung], fits: "Mapping[str, RungFit]") -> dict[str, dict[str, str]]:
    """Return the columns of memory and, if one is known, of the least step time, by size."""
    from tpucfg.fit.wording import bound_text

    bounds = {rung.size: _bound(rung, fits.get(rung.size)) for rung in rungs}
    has_bounds = any(bounds.values())
    cells = {}
    for rung in rungs:
        bound = bounds[rung.size]
        column = {"bound": bound_text(bound) if bound else UNKNOWN} if has_bounds else {}
        cells[rung.size] = {"HBM": hbm_cell(fits.get(rung.size)), **column}
    return cells


def hbm_cell(fit: "RungFit | None") -> str:
    """Return the memory of a rung: `11.2 of 15.75 GiB`, `does not fit`, `outdated` or a dash."""
    from tpucfg.fit.wording import memory_text

    if fit is None or fit.result is None:
        return UNKNOWN
    return memory_text(fit.result.memory) if fit.verdict == "fits" else fit.verdict


def fit_data(rung: Rung, fit: "RungFit | None") -> dict[str, Any]:
    """Return the fit of a rung as data, with the keys of `tpucfg fit`; an unknown value is None."""
    if fit is None:
        return {"fit": None}
    result, bound = fit.current, _bound(rung, fit)
    memory = result.memory if result else None
    return {
        "fit": {
            "verdict": fit.verdict,
            "hbm": {**memory._asdict(), "headroom": memory.headroom} if memory else None,
            "least_step_seconds": to_json_number(bound.seconds) if bound else None,
            "limited_by": bound.limit if bound else None,
            "changes": list(fit.changes),
            "as_committed": None if result is None else not fit.is_trusted,
        }
    }


def fit_note(rungs: Sequence[Rung], fits: "Mapping[str, RungFit]") -> Iterator[str]:
    """Yield the note about the columns; none if no rung was ever compiled."""
    from tpucfg.fit.fit_file import NAME

    if any(fit.result for fit in fits.values()):
        bound = (
            "; bound is the least time of a step" if any(_bound(rung, fits.get(rung.size)) for rung in rungs) else ""
        )
        yield f"HBM is the memory of a device that the training step needs, as committed in results/{NAME}{bound}"


def _bound(rung: Rung, fit: "RungFit | None") -> "Bound | None":
    """Return the least time of a rung's step; None for a step that is not known to run."""
    from tpucfg.fit.roofline import lower_bound

    return lower_bound(fit.current, rung.slice) if fit and fit.current and fit.current.fits else None
