"""The columns of a ladder's rungs, as table cells, as notes below the table, and as data for JSON."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from tpucfg.cli.table import Column
from tpucfg.number_format import UNKNOWN, format_dollars, format_figure, format_number, format_rounded, to_json_number
from tpucfg.plan import LadderGroup, Rung, rung_figures, shows_parallelism
from tpucfg.spec import CapacityKind, Training
from tpucfg.text_format import format_count, listed

# Imported by the functions that show them: a ladder without prices does not need the results, nor one without a
# training step the fits.
if TYPE_CHECKING:
    from tpucfg.fit.forecast import StepInterval
    from tpucfg.fit.rung_fit import RungFit
    from tpucfg.results.cost import Cost
    from tpucfg.results.ladder_status import LadderStatus


def ladder_columns(
    group: LadderGroup,
    training: Training,
    status: "LadderStatus | None" = None,
    fits: "Mapping[str, RungFit] | None" = None,
) -> Iterator[Column]:
    """Yield the columns of a ladder.

    Args:
        group: The ladder.
        training: The settings that its rungs are scaled from.
        status: The measurements that the cost is computed from; None for a table without cost.
        fits: The fits of the rungs; None for a table without them.
    """
    rungs = group.rungs
    yield from _figure_columns(rungs, training)
    if fits:
        yield from _fit_columns(rungs, fits)
    yield from capacity_columns(group.capacities)
    if status:
        yield from cost_columns(status, rungs)


PAID_BY_KIND: Final = ("spot", "flex-start", "reservation")
"""The kinds of capacity that have prices of their own."""


def capacity_columns(capacities: Sequence[str]) -> Iterator[Column]:
    """Yield the column of capacities; none if all is priced as on-demand."""
    if any(capacity in PAID_BY_KIND for capacity in capacities):
        yield Column("capacity", capacities)


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


def _figure_columns(rungs: Sequence[Rung], training: Training) -> Iterator[Column]:
    """Yield the slices, the figures of the rungs, and what they see in a run."""
    yield Column("size", [rung.size for rung in rungs])
    for name in ("chips", "cores", "hosts"):
        yield Column(name, [f"{getattr(rung.slice, name):,}" for rung in rungs])
    figures: dict[str, list[str]] = {}
    for rung in rungs:
        for key, text in rung_figures(rung):
            figures.setdefault(key, []).append(format_figure(text))
    if shows_parallelism(rungs):
        yield Column("batch_size", figures.pop("batch_size"))
        yield from parallelism_columns(rungs)
        figures.pop("grad_accum", None)
    else:
        yield Column("per device", [format_number(rung.per_device) for rung in rungs])
    yield from (Column(key, cells) for key, cells in figures.items())
    yield from _length_columns(rungs, training)


def parallelism_columns(rungs: Sequence[Rung]) -> Iterator[Column]:
    """Yield the split of the devices and of the batch; none for a ladder without either."""
    if not shows_parallelism(rungs):
        return
    yield Column("data_parallel", [f"{rung.data_parallel:,}" for rung in rungs])
    if any(rung.model_parallel > 1 for rung in rungs):
        yield Column("model_parallel", [f"{rung.model_parallel:,}" for rung in rungs])
    yield Column("grad_accum", [f"{rung.grad_accum or 1:,}" for rung in rungs])
    yield Column("micro-batch", [format_number(rung.micro_batch) for rung in rungs])


def _length_columns(rungs: Sequence[Rung], training: Training) -> Iterator[Column]:
    """Yield the examples and tokens seen, with the surplus that rounding a step count up adds to a whole run."""
    tuned_examples = training.train_steps and training.batch_size * training.train_steps
    wanted = {"examples": tuned_examples, "tokens": training.train_tokens}
    if rungs[0].is_probe:
        wanted = dict.fromkeys(wanted)
    for unit, tuned in wanted.items():
        counts = [getattr(rung, unit) for rung in rungs]
        if None not in counts:
            yield Column(unit, [_with_surplus(count, 0 if tuned is None else count - tuned) for count in counts])


def _with_surplus(count: int, surplus: int) -> str:
    return f"{count:,}" + (f" ({surplus:+,})" if surplus else "")


# Hours and cost of a run.


def cost_notes(status: "LadderStatus | None") -> Iterator[str]:
    """Yield the notes about the cost; none for a table without cost."""
    if status:
        from tpucfg.results.gate import other_program_notes

        yield from cost_note(status)
        if any(cost.hours is not None and cost.source in status.others for cost in status.costs):
            yield from other_program_notes(status)


def cost_columns(status: "LadderStatus", rungs: Sequence[Rung]) -> Iterator[Column]:
    """Yield the columns of cost of some rungs of a ladder, without unknown hours."""
    costs = [status.cost(rung.size) for rung in rungs]
    yield Column("USD/hour", [format_dollars(cost.usd_per_hour) for cost in costs])
    if _has_hours(status):
        sources = [_source(cost, rung.size, status) for cost, rung in zip(costs, rungs, strict=True)]
        yield Column("hours", [format_rounded(cost.hours) for cost in costs])
        yield Column("USD", [format_dollars(cost.usd) for cost in costs])
    if any(cost.usd is not None for cost in status.probe_costs):
        probes = [status.probe_cost(rung.size) for rung in rungs]
        yield Column("USD/probe", [format_dollars(cost.usd if cost else None) for cost in probes])
    if _has_hours(status):
        yield Column("figures", [source or UNKNOWN for source in sources])


def cost_data(status: "LadderStatus", size: str) -> dict[str, Any]:
    """Return the cost of one rung as data; an unknown value is None."""
    cost = status.cost(size)
    figures = {"usd_per_hour": cost.usd_per_hour, "hours": cost.hours, "usd": cost.usd}
    values = {key: to_json_number(value) for key, value in figures.items()}
    if probe := status.probe_cost(size):
        values["probe_hours"], values["probe_usd"] = to_json_number(probe.hours), to_json_number(probe.usd)
    return values | {"figures": _source(cost, size, status)}


def cost_note(status: "LadderStatus") -> Iterator[str]:
    """Yield a note about each value that the cost cannot be computed without."""
    priced = zip(status.rungs, status.costs, status.capacities, strict=True)
    unpriced = {_priced_as(rung, capacity) for rung, cost, capacity in priced if cost.usd_per_hour is None}
    if unpriced:
        yield f"the spec has no price for {listed(sorted(unpriced))}"
    else:
        decided = [name for name in dict.fromkeys(status.capacity_names) if name not in (*PAID_BY_KIND, "on-demand")]
        yield from (f"priced as on-demand: {name}" for name in decided)
    yield from _probe_note(status)
    if _has_hours(status):
        return
    if status.rungs[0].examples is None:
        yield "the cost of a run is unknown: its length is given in epochs, not in examples"
    else:
        is_probe = status.rungs[0].is_probe
        name = "a run and of a probe" if status.probe else "a probe" if is_probe else "a run"
        yield f"the cost of {name} is not known yet: no rung has a record of examples_per_second"


def _probe_note(status: "LadderStatus") -> Iterator[str]:
    """Yield the cost of probing the whole ladder, which is done rung by rung; a whole run is made on one of them."""
    known = [cost.usd for cost in status.probe_costs if cost.usd is not None]
    if known:
        count = format_count(len(known), "rung")
        if len(known) < len(status.rungs):
            count = f"{len(known)} of {format_count(len(status.rungs), 'rung')}, as far as known,"
        dollars = format_dollars(sum(known, Fraction(0)))
        beside = "; USD is that of one whole run" if _has_hours(status) else ""
        yield f"probes of {count} cost {dollars} USD, without start-up and compilation{beside}"


def _priced_as(rung: Rung, capacity: CapacityKind) -> str:
    """Return the name of a price: the generation, with the capacity unless it is the default."""
    return rung.slice.generation if capacity == "on-demand" else f"{rung.slice.generation} {capacity}"


def _has_hours(status: "LadderStatus") -> bool:
    return any(cost.hours is not None for cost in status.costs)


def _source(cost: "Cost", size: str, status: "LadderStatus") -> str | None:
    """Return the basis of the figures; a measurement of another program is marked."""
    if cost.source is None:
        return None
    source = "measured" if cost.source == size else f"forecast from {cost.source}"
    return f"{source}, other program" if cost.source in status.others else source


# The memory and the least time of a step.


def _fit_columns(rungs: Sequence[Rung], fits: "Mapping[str, RungFit]") -> Iterator[Column]:
    """Yield the column of memory and, if they are known, those of the least time of a step and of its forecast."""
    from tpucfg.fit.rung_fit import interval_text, step_time

    yield hbm_column(fits.get(rung.size) for rung in rungs)
    bounds = [step_bound(rung, fits.get(rung.size)) for rung in rungs]
    if any(bounds):
        yield Column("bound", [step_time(bound) if bound else UNKNOWN for bound in bounds])
    intervals = [_interval(rung, fits.get(rung.size)) for rung in rungs]
    if any(intervals):
        yield Column("forecast", [interval_text(each) if each else UNKNOWN for each in intervals])


def hbm_column(fits: "Iterable[RungFit | None]") -> Column:
    """Return the column of memory: `11.2 of 15.75 GiB`, `does not fit`, `outdated` or a dash."""
    from tpucfg.fit.rung_fit import memory_text

    def cell(fit: "RungFit | None") -> str:
        if fit is None or fit.result is None:
            return UNKNOWN
        return memory_text(fit.result.memory) if fit.verdict == "fits" else fit.verdict

    return Column("HBM", [cell(fit) for fit in fits])


def fit_data(rung: Rung, fit: "RungFit | None") -> dict[str, Any]:
    """Return the fit of a rung as data, with the keys of `tpucfg fit`; an unknown value is None."""
    if fit is None:
        return {"fit": None}
    result, bound = fit.current, step_bound(rung, fit)
    memory = result.memory if result else None
    return {
        "fit": {
            "verdict": fit.verdict,
            "hbm": {**memory._asdict(), "headroom": memory.headroom} if memory else None,
            "least_step_seconds": to_json_number(bound),
            "forecast_step_seconds": interval_data(_interval(rung, fit)),
            "changes": list(fit.changes),
            "as_committed": None if result is None else not fit.is_trusted,
        }
    }


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

    return lower_bound(fit.current, rung.slice) if fit and fit.current and fit.current.fits else None


def _interval(rung: Rung, fit: "RungFit | None") -> "StepInterval | None":
    """Return the forecast of a rung's step; None for a step that is not known to run."""
    from tpucfg.fit.forecast import step_interval

    return step_interval(fit.current, rung.slice) if fit and fit.current and fit.current.fits else None


def interval_data(interval: "StepInterval | None") -> dict[str, Any] | None:
    """Return a forecast as data; None if it is not known."""
    if interval is None:
        return None
    numbers = {name: to_json_number(getattr(interval, name)) for name in ("low", "middle", "high")}
    return {**numbers, "basis": interval.basis}
