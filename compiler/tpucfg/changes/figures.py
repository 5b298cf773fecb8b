"""The figures of rungs before and after: the table of rungs, new rungs with their baselines, and factors."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import groupby
from typing import Final, NamedTuple

from tpucfg.changes.facts import ABSENT, FactChange, Scope, sorted_keys
from tpucfg.changes.tree_diff import gaps, matches
from tpucfg.number_format import UNKNOWN, format_factor, format_figure
from tpucfg.plan import Job, Rung
from tpucfg.plan.rung import rung_figures, shows_parallelism
from tpucfg.spec.project import Number
from tpucfg.text_format import format_value, listed

_RUN_LENGTH: Final = ("global batch", "steps", "examples", "tokens")
"""Columns that are shown together: the third is the product of the first two, and the fourth follows from it."""
_PARALLELISM: Final = ("data parallel", "model parallel", "accumulation", "micro-batch")
_MAX_RATIOS: Final = 3
"""Factors of one figure that sentences name."""
_MAX_ROUNDING: Final = Fraction(21, 20)

Jobs = Mapping[Scope, Job]
Figures = Mapping[str, Number | None]
"""The figures of a rung by column, each with its text; None if the rung has no such figure."""


def rung_numbers(rung: Rung) -> Figures:
    """Return the figures of a rung in the order of the columns."""
    texts = dict(rung_figures(rung))
    return {
        "slices": _count(rung.slice.slices),
        "hosts": _count(rung.slice.hosts),
        "cores": _count(rung.slice.cores),
        "global batch": _count(rung.batch_size),
        "data parallel": _count(rung.data_parallel),
        "model parallel": _count(rung.model_parallel),
        "accumulation": _count(rung.grad_accum or 1),
        "micro-batch": _count(int(rung.micro_batch)),
        "steps": _count(rung.train_steps),
        "epochs": _setting(texts.get("epochs")),
        "examples": _count(rung.examples),
        "tokens": _count(rung.tokens),
        "learning rate": _setting(texts.get("learning_rate")),
        **{key: _count(count) for key, count in rung.steps.items() if key != "train_steps"},
    }


def _count(count: int | None) -> Number | None:
    return None if count is None else Number(Fraction(count), f"{count:,}")


def _setting(text: str | None) -> Number | None:
    """Return a number with its text as the trainer receives it, as `tpucfg ladder` shows it."""
    return None if text is None else Number(Number.read(text).value, format_figure(text))


# The table of rungs


class ScalingRow(NamedTuple):
    """A rung that is new, or that has other figures than before."""

    size: str
    new_in: tuple[str, ...]
    """The environments in which the rung is new; empty if it existed before."""
    baseline: str
    """The size that `before` belongs to: its own, the rung that it replaces, or the rung below; empty if none."""
    is_rung_below: bool
    """True if the baseline is the rung below."""
    before: Figures
    after: Figures


def scaling_rows(before: Jobs, after: Jobs) -> tuple[ScalingRow, ...]:
    """Return a row for each rung that is new or has other figures, from small to large."""
    # The figures of a rung depend on its size alone, and not on its environment.
    old, new = ({key.size: jobs[key].rung for key in sorted_keys(jobs)} for jobs in (before, after))
    hidden = _hidden_columns([*old.values(), *new.values()])
    figures = [{size: _without(hidden, rung_numbers(rung)) for size, rung in rungs.items()} for rungs in (old, new)]
    rows = [
        ScalingRow(size, (), size, False, figures[0][size], figures[1][size])
        for size in new
        if size in old and _values(figures[0][size]) != _values(figures[1][size])
    ]
    added: dict[tuple[str, str, bool], list[str]] = {}
    for key, (baseline, is_rung_below) in rung_baselines(before, after):
        # In a new environment, only sizes that no environment had before get a row: the figures of others are known.
        if key not in before and (baseline or key.size not in old):
            added.setdefault((key.size, baseline, is_rung_below), []).append(key.environment)
    known = {**figures[0], **figures[1]}
    for (size, baseline, is_rung_below), environments in added.items():
        rows.append(
            ScalingRow(size, tuple(environments), baseline, is_rung_below, known.get(baseline, {}), figures[1][size])
        )
    return tuple(sorted(rows, key=lambda row: (Scope("", row.size).sort_key, row.new_in)))


def _hidden_columns(rungs: Sequence[Rung]) -> Collection[str]:
    """Return the columns that no rung of both revisions needs."""
    has_slices = any(rung.slice.slices > 1 for rung in rungs)
    return {*(() if has_slices else ("slices",)), *(() if shows_parallelism(rungs) else _PARALLELISM)}


def _without(hidden: Collection[str], figures: Figures) -> Figures:
    return {name: number for name, number in figures.items() if name not in hidden}


def _values(figures: Figures) -> dict[str, Fraction | None]:
    # Without its text: 1e-3 and 0.001 are one figure.
    return {name: number.value if number else None for name, number in figures.items()}


def scaling_columns(rows: Sequence[ScalingRow]) -> list[str]:
    """Return the columns with a change in some row, and those that explain them."""
    values = [(_values(row.before), _values(row.after)) for row in rows]
    columns = dict.fromkeys(name for old, new in values for name in (*old, *new))
    shown = {name for name in columns if any(old.get(name) != new.get(name) for old, new in values)}
    if shown & {"global batch", "steps"}:
        shown |= {*_RUN_LENGTH}
    return [name for name in columns if name in shown and any(old.get(name) or new.get(name) for old, new in values)]


def scaling_cell(row: ScalingRow, column: str) -> str:
    """Return a figure before and after, with the factor between them."""
    old, new = row.before.get(column), row.after.get(column)
    if not row.before or (old and new and old.value == new.value):
        return _text(new) + (" (as before)" if column == "examples" and old else "")
    factor = f" ({format_factor(new.value / old.value)})" if old and new and old.value else ""
    return f"{_text(old)} → {_text(new)}{factor}"


def _text(number: Number | None) -> str:
    return format_value(number.text, quoted=False) if number else UNKNOWN


def row_label(row: ScalingRow) -> str:
    """Return the row's rung, with the baseline of a new one: `v2-8`, or `v2-8 → v2-32, new in dev`."""
    if not row.new_in:
        return row.size
    baseline = f"{row.baseline} → " if row.baseline else ""
    return f"{baseline}{row.size}, new in {listed(row.new_in)}"


# The ladder


def rung_baselines(before: Jobs, after: Jobs) -> Iterator[tuple[Scope, tuple[str, bool]]]:
    """Yield each added rung with its baseline, and True if the baseline is the rung below."""
    old_ladders = _ladders(before)
    for environment, ladder in _ladders(after).items():
        old_ladder = old_ladders.get(environment, [])
        for old, new in gaps(matches(old_ladder, ladder), len(old_ladder), len(ladder)):
            # Rungs are paired with those that they replace only if both are equally many: else pairs would be guesses.
            replaced = [old_ladder[index] for index in old] if len(old) == len(new) else [""] * len(new)
            for position, size in zip(new, replaced, strict=True):
                is_rung_below = not size and bool(position and old_ladder)
                yield (
                    Scope(environment, ladder[position]),
                    (ladder[position - 1] if is_rung_below else size, is_rung_below),
                )


def _ladders(jobs: Jobs) -> dict[str, list[str]]:
    """Return the sizes of each environment, from small to large."""
    return {name: [key.size for key in keys] for name, keys in groupby(jobs, key=lambda key: key.environment)}


def ladder_changes(before: Jobs, after: Jobs) -> Iterator[FactChange]:
    """Yield the rungs that are added above another, that replace one, and that are removed."""
    replaced = set()
    for key, (baseline, is_rung_below) in rung_baselines(before, after):
        if baseline:
            other = Scope(key.environment, baseline)
            rungs = after if is_rung_below else before
            factor = format_factor(Fraction(after[key].slice.cores, rungs[other].slice.cores))
            yield FactChange(key, ("rung", "above" if is_rung_below else "replacing"), baseline, factor)
            replaced |= set() if is_rung_below else {other}
    # A removed environment has a statement of its own, which includes its rungs.
    environments = {key.environment for key in after}
    for key in before:
        if key not in after and key.environment in environments and key not in replaced:
            yield FactChange(key, ("rung", "removed"), ABSENT, ABSENT)


# Factors


def ratio_changes(before: Jobs, after: Jobs) -> Iterator[FactChange]:
    """Yield the factors of batch, examples and learning rate, unless so many differ that only the table shows them."""
    ratios: dict[str, dict[Scope, Fraction]] = {}
    for key in after:
        for name, ratio in _ratios(before[key].rung, after[key].rung) if key in before else ():
            ratios.setdefault(name, {})[key] = ratio
    for name, by_rung in ratios.items():
        least = min(by_rung.values())
        # Steps are rounded up, by which rungs see some more examples.
        is_rounding = name == "examples" and max(by_rung.values()) <= least * _MAX_ROUNDING
        factors = {key: format_factor(least if is_rounding else ratio) for key, ratio in by_rung.items()}
        if len({*factors.values()}) <= _MAX_RATIOS:
            yield from (FactChange(key, ("ratio", name), ABSENT, factor) for key, factor in factors.items())


def _ratios(before: Rung, after: Rung) -> Iterator[tuple[str, Fraction]]:
    old, new = rung_numbers(before), rung_numbers(after)
    is_other_batch = before.batch_size != after.batch_size
    is_other_run = is_other_batch or before.train_steps != after.train_steps
    for name in ("global batch", "examples", "learning rate"):
        number, previous = new.get(name), old.get(name)
        if number and previous and previous.value:
            ratio = number.value / previous.value
            # A reviewer who sees a larger batch expects another learning rate.
            if is_other_run if name == "examples" else ratio != 1 or (is_other_batch and name == "learning rate"):
                yield name, ratio
