"""Tables under titles, as text or as Markdown, and what they show of the rungs of a ladder."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from tpucfg.findings import Finding
from tpucfg.number_format import (
    UNKNOWN,
    format_dollars,
    format_figure,
    format_number,
    format_rounded,
)
from tpucfg.plan import LadderGroup, Rung, rung_figures, shows_parallelism
from tpucfg.plan.job import capacity_name
from tpucfg.spec import Training
from tpucfg.text_format import format_count, listed, printable

# Imported by the functions that show them: a ladder without prices does not need the results, nor one without a
# training step the fits.
if TYPE_CHECKING:
    from tpucfg.fit.fit_file import Memory
    from tpucfg.fit.forecast import StepInterval
    from tpucfg.fit.rung_fit import RungFit
    from tpucfg.results.cost import Cost
    from tpucfg.results.ladder_status import LadderStatus

_Value = TypeVar("_Value")
_Form = TypeVar("_Form")
_NUMERIC: Final = frozenset("0123456789+-.,<×% ()–")
"""The characters of a numeric cell."""
_LETTERS: Final = re.compile(r"(?<=[0-9])(e-?[0-9]+| (s|ms|µs)$)")
"""The exponent of a very large or very small number, as in 2.5e7, or a unit of time."""

Cell = tuple[str, str | None]
"""The title of a column, and the text of a row in it; None for a value that is not known."""
Line = str | tuple[str, str]
"""A line below a table: a sentence, or the purpose of a command and the command."""


class TableSection(NamedTuple):
    """A table with its title, and the lines below it."""

    title: str
    rows: Sequence[Sequence[Cell]]
    """The cells of each row; all rows have the same columns."""
    lines: Sequence[Line] = ()


class _Column(NamedTuple):
    title: str
    cells: Sequence[str]

    @property
    def is_numeric(self) -> bool:
        """True for a column that is aligned right."""
        return all(set(_LETTERS.sub("", cell)) <= _NUMERIC for cell in self.cells)


def known(value: _Value | None, form: Callable[[_Value], _Form]) -> _Form | None:
    """Return a value in a form; None if it is not known."""
    return None if value is None else form(value)


def print_sections(
    sections: Iterable[TableSection],
    format: str,
    lines: Sequence[Line] = (),
    findings: Sequence[Finding] = (),
) -> None:
    """Print sections, and below all of them further lines and findings, as `text` or `markdown`."""
    printed = (_markdown if format == "markdown" else _text)([*sections], lines, findings)
    for line in printed:
        print(line)


def _text(
    sections: Sequence[TableSection], lines: Sequence[Line], findings: Sequence[Finding]
) -> Iterator[str]:
    for number, section in enumerate(sections):
        yield from [""] if number else []
        yield printable(section.title)
        yield from text_table(section.rows)
        yield from (printable(str(line)) for line in section.lines)
    below = [*map(str, lines), *(f"{each.level}[{each.id}]: {each.message}" for each in findings)]
    yield from [""] if sections and below else []
    yield from map(printable, below)


def _markdown(
    sections: Sequence[TableSection], lines: Sequence[Line], findings: Sequence[Finding]
) -> Iterator[str]:
    from tpucfg.markdown import prose, table

    for number, section in enumerate(sections):
        columns = _columns(section.rows)
        yield from [""] if number else []
        yield f"**{prose(section.title)}**"
        yield ""
        rows = zip(*(map(_escaped, column.cells) for column in columns), strict=True)
        numbers = [index for index, column in enumerate(columns) if column.is_numeric]
        yield table([column.title for column in columns], rows, numbers)
        yield from _items(section.lines)
    yield from _items(lines)
    yield from [""] if findings and not lines else []
    for finding in findings:
        yield f"- {finding.level}[{finding.id}]: {prose(finding.message)}"
        if finding.help:
            yield f"  help: {prose(finding.help)}"


def _items(lines: Sequence[Line]) -> Iterator[str]:
    """Yield a list in Markdown, after an empty line."""
    from tpucfg.markdown import code, prose

    shown = [(line, "") if isinstance(line, str) else line for line in lines if line]
    yield from [""] if shown else []
    for text, command in shown:
        yield f"- {prose(text)}" + (f": {code(command)}" if command else "")


def text_table(rows: Sequence[Sequence[Cell]]) -> Iterator[str]:
    """Yield aligned lines, with numeric columns to the right and all others to the left."""
    aligned = []
    for column in _columns(rows):
        cells = (column.title, *column.cells)
        width = max(map(len, cells))
        align = str.rjust if column.is_numeric else str.ljust
        aligned.append([align(cell, width) for cell in cells])
    for row in zip(*aligned, strict=True):
        yield "  ".join(row).rstrip()


def _columns(rows: Sequence[Sequence[Cell]]) -> list[_Column]:
    """Return the columns, without those of which no row has a value."""
    columns = [(cells[0][0], [text for _, text in cells]) for cells in zip(*rows, strict=True)]
    return [
        _Column(title, [UNKNOWN if text is None else text for text in texts])
        for title, texts in columns
        if any(text is not None for text in texts)
    ]


def _escaped(cell: str) -> str:
    """Return a cell of plain text as Markdown."""
    return cell.replace("\\", "\\\\").replace("<", "&lt;")


# What tables show of a ladder's rungs: their cells, notes below the table, and data for JSON.


def ladder_rows(
    group: LadderGroup,
    training: Training,
    status: "LadderStatus | None" = None,
    fits: "Mapping[str, RungFit] | None" = None,
) -> list[list[Cell]]:
    """Return the rows of a ladder.

    Args:
        group: The ladder.
        training: The settings that its rungs are scaled from.
        status: The measurements that the cost is computed from; None for a table without cost.
        fits: The fits of the rungs; None for a table without them.
    """
    return [
        [
            *_figure_cells(rung, group.rungs, training),
            *(_fit_cells(rung, fits.get(rung.size)) if fits else ()),
            *capacity_cells(capacity, group.capacities),
            *(cost_cells(status, rung.size) if status else ()),
        ]
        for rung, capacity in zip(group.rungs, group.capacities, strict=True)
    ]


PAID_BY_KIND: Final = ("spot", "flex-start", "reservation")
"""The kinds of capacity that have prices of their own."""


def capacity_cells(capacity: str, every: Collection[str]) -> Iterator[Cell]:
    """Yield the capacity of a rung; nothing if all rungs of the table are priced as on-demand."""
    if any(kind in PAID_BY_KIND for kind in every):
        yield "capacity", capacity


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


def _figure_cells(rung: Rung, rungs: Sequence[Rung], training: Training) -> Iterator[Cell]:
    """Yield the slice, the figures of the rung, and what it sees in a run."""
    yield "size", rung.size
    for name in ("chips", "cores", "hosts"):
        yield name, f"{getattr(rung.slice, name):,}"
    figures = {key: format_figure(text) for key, text in rung_figures(rung)}
    if shows_parallelism(rungs):
        yield "batch_size", figures.pop("batch_size")
        yield from parallelism_cells(rung, rungs)
        figures.pop("grad_accum", None)
    else:
        yield "per device", format_number(rung.per_device)
    yield from figures.items()
    tuned = training.train_steps and training.batch_size * training.train_steps
    yield "examples", known(rung.examples, lambda count: _with_surplus(count, rung, tuned))
    yield (
        "tokens",
        known(rung.tokens, lambda count: _with_surplus(count, rung, training.train_tokens)),
    )


def parallelism_cells(rung: Rung, rungs: Sequence[Rung]) -> Iterator[Cell]:
    """Yield the split of the devices and of the batch; nothing for a ladder without either."""
    if not shows_parallelism(rungs):
        return
    yield "data_parallel", f"{rung.data_parallel:,}"
    if any(each.model_parallel > 1 for each in rungs):
        yield "model_parallel", f"{rung.model_parallel:,}"
    yield "grad_accum", f"{rung.grad_accum or 1:,}"
    yield "micro-batch", format_number(rung.micro_batch)


def _with_surplus(count: int, rung: Rung, tuned: int | None) -> str:
    """Return a count with the surplus that rounding a step count up adds to a whole run."""
    surplus = 0 if tuned is None or rung.is_probe else count - tuned
    return f"{count:,}" + (f" ({surplus:+,})" if surplus else "")


# Hours and cost of a run.


def cost_notes(status: "LadderStatus | None") -> Iterator[str]:
    """Yield the notes about the cost; none for a table without cost."""
    if status:
        from tpucfg.results.gate import other_program_notes

        yield from cost_note(status)
        if any(
            each.cost.hours is not None and each.cost.source in status.others
            for each in status.rungs
        ):
            yield from other_program_notes(status)


def cost_cells(status: "LadderStatus", size: str) -> Iterator[Cell]:
    """Yield the cost of a rung."""
    each = status.rung(size)
    cost, probe = each.cost, each.probe_cost
    yield "USD/hour", format_dollars(cost.usd_per_hour)
    if _has_hours(status):
        yield "hours", format_rounded(cost.hours)
        yield "USD", format_dollars(cost.usd)
    yield "USD/probe", known(probe.usd if probe else None, format_dollars)
    if _has_hours(status):
        yield "figures", _source(cost, size, status)


def cost_data(status: "LadderStatus", size: str) -> dict[str, Any]:
    """Return the cost of one rung as data; an unknown value is None."""
    each = status.rung(size)
    cost, probe = each.cost, each.probe_cost
    data = {"usd_per_hour": cost.usd_per_hour, "hours": cost.hours, "usd": cost.usd}
    if probe:
        data |= {"probe_hours": probe.hours, "probe_usd": probe.usd}
    return data | {"figures": _source(cost, size, status)}


def cost_note(status: "LadderStatus") -> Iterator[str]:
    """Yield a note about each value that the cost cannot be computed without."""
    unpriced = {
        f"{each.rung.slice.generation} {each.settings.capacity.kind}".removesuffix(" on-demand")
        for each in status.rungs
        if each.cost.usd_per_hour is None
    }
    if unpriced:
        yield f"the spec has no price for {listed(sorted(unpriced))}"
    else:
        names = dict.fromkeys(capacity_names(status))
        yield from (
            f"priced as on-demand: {name}"
            for name in names
            if name not in (*PAID_BY_KIND, "on-demand")
        )
    yield from _probe_note(status)
    if _has_hours(status):
        return
    first = status.rungs[0].rung
    if first.examples is None:
        yield "the cost of a run is unknown: its length is given in epochs, not in examples"
    else:
        name = "a run and of a probe" if status.probe else "a probe" if first.is_probe else "a run"
        yield f"the cost of {name} is not known yet: no rung has a record of examples_per_second"


def capacity_names(status: "LadderStatus") -> list[str]:
    """Return the capacity of each rung in words, such as for a spec that sets none."""
    return [capacity_name(status.environment.target, each.settings) for each in status.rungs]


def _probe_note(status: "LadderStatus") -> Iterator[str]:
    """Yield the cost of probing the whole ladder, which is done rung by rung; a whole run is made on one of them."""
    costs = [
        each.probe_cost.usd
        for each in status.rungs
        if each.probe_cost and each.probe_cost.usd is not None
    ]
    if costs:
        count = format_count(len(costs), "rung")
        if len(costs) < len(status.rungs):
            count = f"{len(costs)} of {format_count(len(status.rungs), 'rung')}, as far as known,"
        dollars = format_dollars(sum(costs, Fraction(0)))
        beside = "; USD is that of one whole run" if _has_hours(status) else ""
        yield f"probes of {count} cost {dollars} USD, without start-up and compilation{beside}"


def _has_hours(status: "LadderStatus") -> bool:
    return any(each.cost.hours is not None for each in status.rungs)


def _source(cost: "Cost", size: str, status: "LadderStatus") -> str | None:
    """Return the basis of the figures; a measurement of another program is marked."""
    if cost.source is None:
        return None
    source = "measured" if cost.source == size else f"forecast from {cost.source}"
    return f"{source}, other program" if cost.source in status.others else source


# The memory and the least time of a step.


def _fit_cells(rung: Rung, fit: "RungFit | None") -> Iterator[Cell]:
    """Yield the memory and, if they are known, the least time of a step and its forecast."""
    from tpucfg.fit.rung_fit import interval_text, step_time

    yield hbm_cell(fit)
    yield "bound", known(step_bound(rung, fit), step_time)
    yield "forecast", known(_interval(rung, fit), interval_text)


def hbm_cell(fit: "RungFit | None") -> Cell:
    """Return the memory of a rung: `11.2 of 15.75 GiB`, `does not fit`, `outdated` or a dash."""
    from tpucfg.fit.rung_fit import memory_text

    if fit is None or fit.result is None:
        return "HBM", UNKNOWN
    return "HBM", memory_text(fit.result.memory) if fit.verdict == "fits" else fit.verdict


def fit_data(rung: Rung, fit: "RungFit | None") -> dict[str, Any]:
    """Return the fit of a rung as data, with the keys of `tpucfg fit`; an unknown value is None."""
    if fit is None:
        return {"fit": None}
    return {
        "fit": {
            "verdict": fit.verdict,
            "hbm": known(fit.current and fit.current.memory, memory_data),
            "least_step_seconds": step_bound(rung, fit),
            "forecast_step_seconds": interval_data(_interval(rung, fit)),
            "changes": list(fit.changes),
            "as_committed": None if fit.current is None else not fit.is_trusted,
        }
    }


def memory_data(memory: "Memory") -> dict[str, Any]:
    """Return the memory of a device as data."""
    return {**memory._asdict(), "headroom": memory.headroom}


def fit_note(rungs: Sequence[Rung], fits: "Mapping[str, RungFit]") -> Iterator[str]:
    """Yield the note about the columns; none if no rung was ever compiled."""
    from tpucfg.fit.fit_file import NAME

    if any(fit.result for fit in fits.values()):
        has_bound = any(step_bound(rung, fits.get(rung.size)) for rung in rungs)
        bound = "; bound is the least time of a step" if has_bound else ""
        if any(_interval(rung, fits.get(rung.size)) for rung in rungs):
            bound += ", and forecast what it is expected to take"
        yield f"HBM is the memory of a device that the training step needs, as committed in results/{NAME}{bound}"


def step_bound(rung: Rung, fit: "RungFit | None") -> "Fraction | None":
    """Return the least time of a rung's step; None for a step that is not known to run."""
    from tpucfg.fit.forecast import lower_bound

    return (
        lower_bound(fit.current, rung.slice) if fit and fit.current and fit.current.fits else None
    )


def _interval(rung: Rung, fit: "RungFit | None") -> "StepInterval | None":
    """Return the forecast of a rung's step; None for a step that is not known to run."""
    from tpucfg.fit.forecast import step_interval

    return (
        step_interval(fit.current, rung.slice) if fit and fit.current and fit.current.fits else None
    )


def interval_data(interval: "StepInterval | None") -> dict[str, Any] | None:
    """Return a forecast as data; None if it is not known."""
    return interval and {
        name: getattr(interval, name) for name in ("low", "middle", "high", "basis")
    }
