"""The table of a ladder: its columns, and the cells of each rung."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from tpucfg.number_format import format_figure, format_number
from tpucfg.plan import Rung
from tpucfg.plan.grouping import LadderGroup
from tpucfg.plan.rung import rung_figures
from tpucfg.spec.project import Training

# The costs are imported by the functions that show them: a ladder without prices does not need the results.
if TYPE_CHECKING:
    from tpucfg.results.ladder_status import LadderStatus


class Table(NamedTuple):
    """A table of formatted cells, for every output format that shows one."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """The cells of each rung."""


def ladder_table(group: LadderGroup, training: Training, status: "LadderStatus | None" = None) -> Table:
    """Return the table of a ladder.

    Args:
        group: The ladder.
        training: The settings that its rungs are scaled from.
        status: The measurements that the cost is computed from; None for a table without cost.
    """
    costs = _cost_cells(status) if status else {}
    rows = [{**_cells(rung, training), **costs.get(rung.size, {})} for rung in group.rungs]
    return Table(tuple(rows[0]), tuple(tuple(row.values()) for row in rows))


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


def _cells(rung: Rung, training: Training) -> Mapping[str, str]:
    slice_cells = {
        "size": rung.size,
        "chips": f"{rung.slice.chips:,}",
        "cores": f"{rung.slice.cores:,}",
        "hosts": f"{rung.slice.hosts:,}",
        "per core": format_number(rung.per_core),
    }
    figures = {key: format_figure(text) for key, text in rung_figures(rung)}
    return slice_cells | figures | _examples(rung, training)


def _examples(rung: Rung, training: Training) -> dict[str, str]:
    """Return the examples seen, with the surplus that rounding a step count up adds."""
    if rung.examples is None or training.train_steps is None:
        return {}
    surplus = rung.examples - training.batch_size * training.train_steps
    return {"examples": f"{rung.examples:,}" + (f" ({surplus:+,})" if surplus else "")}
