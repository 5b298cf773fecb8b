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
MONEY: Final = ("usd", "usd_per_hour", "max_usd", "probe_usd", "reserved")
"""Columns of the table of costs, which are shown wherever one of them is."""
_TOGETHER: Final = {
    **dict.fromkeys(("global batch", "steps"), (*_RUN_LENGTH, "learning rate")),
    **dict.fromkeys(MONEY, MONEY),
}
"""The columns that explain a change of another one."""

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


# Tables of rungs


class RungComparison(NamedTuple):
    """A rung of either revision, with its figures in both."""

    size: str
    baseline: str
    """The size that `before` belongs to: its own, the rung that it replaces, or the rung below; empty if none."""
    before: Figures
    """Empty if there is nothing to compare with."""
    after: Figures
    """Empty for a rung that is removed."""
    environments: tuple[str, ...]
    """The environments in which it is the same."""

    @property
    def differs(self) -> bool:
        """True for another rung than before, or one with another figure."""
        return self.baseline != self.size or figure_values(self.before) != figure_values(self.after)


Baselines = Mapping[Scope, tuple[str, Figures]]
"""The size that each new rung is compared with, and its figures."""


def rung_rows(
    before: Mapping[Scope, Figures], after: Mapping[Scope, Figures], baselines: Baselines
) -> list[RungComparison]:
    """Return a row for each rung of two revisions; environments where it is the same share one."""
    rows: dict[tuple[object, ...], RungComparison] = {}
    for key in sorted_keys({*before, *after}):
        baseline, old = (key.size, before[key]) if key in before else baselines.get(key, ("", {}))
        new = after.get(key, {})
        same = (key.size, baseline, *old.items(), "", *new.items())
        known = rows[same].environments if same in rows else ()
        rows[same] = RungComparison(key.size, baseline, old, new, (*known, key.environment))
    return [*rows.values()]


def scaling_rows(before: Jobs, after: Jobs) -> tuple[RungComparison, ...]:
    """Return a row for each rung that is new or has other figures, from small to large."""
    hidden = _hidden_columns([job.rung for job in (*before.values(), *after.values())])
    old, new = (
        {
            key: {
                name: number
                for name, number in rung_numbers(job.rung).items()
                if name not in hidden
            }
            for key, job in jobs.items()
        }
        for jobs in (before, after)
    )
    baselines = {
        key: (size, (new if is_rung_below else old)[Scope(key.environment, size)] if size else {})
        for key, (size, is_rung_below) in rung_baselines(before, after)
    }
    known = {key.size for key in old}
    rows = [row for row in rung_rows(old, new, baselines) if row.after and row.differs]
    # In a new environment, only sizes that no environment had before get a row: the figures of others are known.
    shown = (row for row in rows if row.baseline or row.size not in known)
    return tuple(sorted(shown, key=lambda row: (Scope("", row.size).sort_key, row.environments)))


def _hidden_columns(rungs: Sequence[Rung]) -> Collection[str]:
    """Return the columns that no rung of both revisions needs."""
    has_slices = any(rung.slice.slices > 1 for rung in rungs)
    return {
        *(() if has_slices else ("slices",)),
        *(() if shows_parallelism(rungs) else _PARALLELISM),
    }


def figure_values(figures: Figures) -> dict[str, Fraction]:
    """Return the known figures without their texts: 1e-3 and 0.001 are one figure."""
    return {name: number.value for name, number in figures.items() if number}


def changed_columns(rows: Sequence[RungComparison]) -> list[str]:
    """Return the columns with a change in some row, and those that explain them."""
    values = [(figure_values(row.before), figure_values(row.after)) for row in rows]
    columns = dict.fromkeys(name for row in rows for name in (*row.before, *row.after))
    changed = {
        name for name in columns if any(old.get(name) != new.get(name) for old, new in values)
    }
    changed |= {other for name in changed for other in _TOGETHER.get(name, ())}
    return [
        name
        for name in columns
        if name in changed and any(old.get(name) or new.get(name) for old, new in values)
    ]


def rung_cell(row: RungComparison, column: str) -> str:
    """Return a figure before and after, with the factor between them."""
    old, new = row.before.get(column), row.after.get(column)
    if not row.before or _text(old) == _text(new):
        return _text(new) + (" (as before)" if column == "examples" and old else "")
    factor = f" ({format_factor(new.value / old.value)})" if old and new and old.value else ""
    return f"{_text(old)} → {_text(new)}{factor}"


def _text(number: Number | None) -> str:
    return format_value(number.text, quoted=False) if number else UNKNOWN


def row_label(row: RungComparison) -> str:
    """Return the row's rung, with the baseline of a new one: `v2-8 in dev`, or `v2-8 → v2-32, new in dev`."""
    names = listed(row.environments)
    if not row.after:
        return f"{row.size}, removed from {names}"
    if row.baseline == row.size:
        return f"{row.size} in {names}"
    return f"{f'{row.baseline} → ' if row.baseline else ''}{row.size}, new in {names}"


# The ladder


def rung_baselines(before: Jobs, after: Jobs) -> Iterator[tuple[Scope, tuple[str, bool]]]:
    """Yield each added rung with its baseline, and True if the baseline is the rung below."""
    old_ladders = _ladders(before)
    for environment, ladder in _ladders(after).items():
        old_ladder = old_ladders.get(environment, [])
        for old, new in gaps(matches(old_ladder, ladder), len(old_ladder), len(ladder)):
            # Rungs are paired with those that they replace only if both are equally many: else pairs would be guesses.
            replaced = (
                [old_ladder[index] for index in old] if len(old) == len(new) else [""] * len(new)
            )
            for position, size in zip(new, replaced, strict=True):
                is_rung_below = not size and bool(position and old_ladder)
                yield (
                    Scope(environment, ladder[position]),
                    (ladder[position - 1] if is_rung_below else size, is_rung_below),
                )


def _ladders(jobs: Jobs) -> dict[str, list[str]]:
    """Return the sizes of each environment, from small to large."""
    return {
        name: [key.size for key in keys]
        for name, keys in groupby(jobs, key=lambda key: key.environment)
    }


def ladder_changes(before: Jobs, after: Jobs) -> Iterator[FactChange]:
    """Yield the rungs that are added above another, that replace one, and that are removed."""
    replaced = set()
    for key, (baseline, is_rung_below) in rung_baselines(before, after):
        if baseline:
            other = Scope(key.environment, baseline)
            rungs = after if is_rung_below else before
            factor = format_factor(Fraction(after[key].slice.cores, rungs[other].slice.cores))
            yield FactChange(
                key, ("rung", "above" if is_rung_below else "replacing"), baseline, factor
            )
            replaced |= set() if is_rung_below else {other}
    # A removed environment has a statement of its own, which includes its rungs.
    environments = {key.environment for key in after}
    for key in before:
        if key not in after and key.environment in environments and key not in replaced:
            yield FactChange(key, ("rung", "removed"), ABSENT, ABSENT)
