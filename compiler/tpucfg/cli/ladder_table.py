"""The table of a climb: what its columns are, and what stands in each cell."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from tpucfg.plan import Rung
from tpucfg.plan.grouping import LadderGroup
from tpucfg.plan.rung import rung_figures
from tpucfg.spec.project import Training

if TYPE_CHECKING:
    from tpucfg.results.ladder_status import LadderStatus


class Table(NamedTuple):
    """Cells as people read them, for every format that shows a table."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """One for each rung."""


def ladder_table(climb: LadderGroup, training: Training, survey: "LadderStatus | None" = None) -> Table:
    """The table of a climb; `training` is what its rungs were scaled from. With a survey it has the cost."""
    costs = _costs(survey) if survey else {}
    rows = [{**_row(rung, training), **costs.get(rung.size, {})} for rung in climb.rungs]
    return Table(tuple(rows[0]), tuple(tuple(row.values()) for row in rows))


def cost_notes(survey: "LadderStatus | None") -> Iterator[str]:
    """What there is to know of the cost; nothing where none is shown."""
    if survey:
        from tpucfg.cli.cost_table import cost_note
        from tpucfg.results.next_steps import outdated_notes

        yield from cost_note(survey)
        if any(cost.hours is not None and cost.source in survey.outdated for cost in survey.costs):
            yield from outdated_notes(survey)


def _costs(survey: "LadderStatus") -> Mapping[str, Mapping[str, str]]:
    from tpucfg.cli.cost_table import cost_cells

    return cost_cells(survey)


def _row(rung: Rung, training: Training) -> Mapping[str, str]:
    fixed = {
        "size": rung.size,
        "chips": f"{rung.slice.chips:,}",
        "cores": f"{rung.slice.cores:,}",
        "hosts": f"{rung.slice.hosts:,}",
        "per core": f"{float(rung.per_core):g}",
    }
    changing = {key: f"{int(text):,}" if text.isdecimal() else text for key, text in rung_figures(rung)}
    return fixed | changing | _examples(rung, training)


def _examples(rung: Rung, training: Training) -> dict[str, str]:
    """Examples seen, with the difference that rounding a step count up makes."""
    if rung.examples is None or training.train_steps is None:
        return {}
    more = rung.examples - training.batch_size * training.train_steps
    return {"examples": f"{rung.examples:,}" + (f" ({more:+,})" if more else "")}
