"""The table of a ladder: its columns, and the cells of each rung."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tpucfg.number_format import format_figure, format_number
from tpucfg.plan import Rung
from tpucfg.plan.grouping import LadderGroup
from tpucfg.plan.rung import rung_figures, shows_parallelism
from tpucfg.spec.project import Training
from tpucfg.spec.settings import CapacityKind

# Imported by the functions that show them: a ladder without prices does not need the results, nor one without a
# training step the fits.
if TYPE_CHECKING:
    from tpucfg.fit.rung_fit import RungFit
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
    costs = _cost_cells(status) if status else {}
    fit_columns = _fit_cells(group.rungs, fits) if fits else {}
    capacities = capacity_cells(group.rungs, group.capacities)
    rows = [
        {
            **_cells(rung, group.rungs, training),
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


def cost_notes(status: "LadderStatus | None") -> Iterator[str]:
    """Yield the notes about the cost; none for a table without cost."""
    if status:
        from tpucfg.cli.cost_table import cost_note
        from tpucfg.results.next_steps import outdated_notes

        yield from cost_note(status)
        if any(cost.hours is not None and cost.source in status.outdated for cost in status.costs):
            yield from outdated_notes(status)


def _cost_cells(status: "LadderStatus") -> Mapping[str, Mapping[str, str]]:
    from tpucfg.cli.cost_table import cost_cells

    return cost_cells(status)


def _fit_cells(rungs: Sequence[Rung], fits: "Mapping[str, RungFit]") -> Mapping[str, Mapping[str, str]]:
    from tpucfg.cli.fit_table import fit_cells

    return fit_cells(rungs, fits)


def _cells(rung: Rung, rungs: Sequence[Rung], training: Training) -> Mapping[str, str]:
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
