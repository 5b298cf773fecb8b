"""The figures of rungs before and after: the table of rungs, new rungs with their baselines, and proportions.

Proportions of the training follow from the spec's rules, and not from rounded figures.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import groupby
from math import isqrt
from typing import Final, NamedTuple

from tpucfg.changes.describe import group_by_config
from tpucfg.changes.facts import Scope, sorted_keys
from tpucfg.changes.statements import LocatedStatement, Statement
from tpucfg.changes.tree_diff import gaps, matches
from tpucfg.number_format import UNKNOWN, format_factor, format_figure, format_percent
from tpucfg.plan import Job, Rung
from tpucfg.plan.rung import rung_figures, shows_parallelism
from tpucfg.spec.project import Number, Training
from tpucfg.text_format import format_value, listed

_RUN_LENGTH: Final = ("global batch", "steps", "examples", "tokens")
"""Columns that are shown together: the third is the product of the first two, and the fourth follows from it."""
_PARALLELISM: Final = ("data parallel", "model parallel", "accumulation", "micro-batch")
_MAX_NAMES: Final = 16
"""Environments, and replaced rungs, that are named."""

Jobs = Mapping[Scope, Job]
Figures = Mapping[str, Number | None]
"""The figures of a rung by column, each with its text; None if the rung has no such figure."""
_MIN_SHARE_CHANGE: Final = Fraction(1, 100)
"""Change of a warm-up's share of the run that is worth a statement; a smaller one results from rounding steps."""
_MAX_ROUNDING: Final = Fraction(1, 20)
"""Relative error that rounding up a few steps can cause in a proportion."""
Trainings = tuple[Training, Training]


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


def ladder_statements(before: Jobs, after: Jobs, rows: Sequence[ScalingRow]) -> Iterator[LocatedStatement]:
    """Yield the rungs that only one revision has; `rows` are those of the scaling table."""
    yield from _removed(before, after, rows)
    replacements: dict[tuple[tuple[str, ...], str], list[ScalingRow]] = {}
    for row in rows:
        if not row.new_in or not row.baseline:
            continue
        if row.is_rung_below:
            template = f"{{}} added to the ladder, with {_cores_factor(row)} the cores of {{}}, the rung below"
            yield LocatedStatement(listed(row.new_in, _MAX_NAMES), Statement(template, (row.size, row.baseline)))
        else:
            replacements.setdefault((row.new_in, _cores_factor(row)), []).append(row)
    for (environments, factor), replaced in replacements.items():
        yield LocatedStatement(listed(environments, _MAX_NAMES), _replacement(replaced, factor))


def _removed(before: Jobs, after: Jobs, rows: Sequence[ScalingRow]) -> Iterator[LocatedStatement]:
    replaced = {Scope(name, row.baseline) for row in rows for name in row.new_in if not row.is_rung_below}
    # A removed environment has a statement of its own, which includes its rungs.
    environments = {key.environment for key in after}
    removed = [key for key in before if key not in after and key.environment in environments and key not in replaced]
    return group_by_config((key, Statement("removed from the ladder")) for key in removed)


def _replacement(rows: Sequence[ScalingRow], factor: str) -> Statement:
    """Return one sentence for rungs that replace others, all with the factor between their cores."""
    named = rows[:_MAX_NAMES]
    parts = ["{} replaces {}" for _ in named]
    if len(rows) > len(named):
        parts.append(f"{len(rows) - len(named)} more are replaced")
    each = "" if len(rows) == 1 else "each "
    cores = "the same number of cores" if factor == "1×" else f"{factor} {'the' if each else 'its'} cores"
    values = tuple(size for row in named for size in (row.size, row.baseline))
    return Statement(f"{listed(parts, len(parts), ' and ')}, {each}with {cores}", values)


def _cores_factor(row: ScalingRow) -> str:
    old, new = row.before.get("cores"), row.after.get("cores")
    return format_factor(new.value / old.value) if old and new else UNKNOWN


# Proportions


def ratio_statements(before: Rung, after: Rung, trainings: Trainings) -> Iterator[Statement]:
    """Yield the changes of a rung in proportions, so that the statements of all rungs can be equal.

    Args:
        before: The rung in the base.
        after: The rung in the head.
        trainings: The settings of both revisions.
    """
    if before.batch_size != after.batch_size:
        factor = format_factor(Fraction(after.batch_size, before.batch_size))
        yield Statement(f"global batch size is {factor} the previous value")
    yield from _run_length(before, after, trainings)
    yield from _learning_rate(before, after, trainings)
    yield from _warmup(before, after, trainings)
    yield from _step_counts(before, after, trainings)
    for key in before.steps:
        if key not in after.steps and key != "train_steps":
            yield Statement("{} removed", (key,))


def _run_length(before: Rung, after: Rung, trainings: Trainings) -> Iterator[Statement]:
    is_changed = (before.batch_size, before.train_steps) != (after.batch_size, after.train_steps)
    if before.examples and after.examples and is_changed:
        old, new = map(_tuned_examples, trainings)
        ratio = _without_rounding(Fraction(after.examples, before.examples), new / old if old and new else None)
        number = "the same number of" if ratio == 1 else f"{format_factor(ratio)} as many"
        yield Statement(f"the run sees {number} examples")
    if (before.train_steps is None) != (after.train_steps is None):
        new_unit, old_unit = ("epochs", "steps") if after.epochs else ("steps", "epochs")
        yield Statement(f"run length is now set in {new_unit} instead of {old_unit}")
    if before.epochs and after.epochs and before.epochs != after.epochs:
        yield Statement("epochs changed from {} to {}", (before.epochs, after.epochs))


def _tuned_examples(training: Training) -> Fraction | None:
    """Return the examples of the whole run as the spec sets them, before the steps of each rung are rounded."""
    if training.train_steps is not None:
        return Fraction(training.batch_size * training.train_steps)
    if training.train_tokens is not None and training.sequence_length:
        return Fraction(training.train_tokens, training.sequence_length)
    return None


def _learning_rate(before: Rung, after: Rung, trainings: Trainings) -> Iterator[Statement]:
    old, new = (training.learning_rate for training in trainings)
    if not (before.learning_rate and after.learning_rate and old and new):
        return
    ratio = _rate_ratio(before, after, trainings)
    if ratio == 1 and before.batch_size != after.batch_size:
        # A reviewer who sees a larger batch expects another learning rate.
        yield Statement("learning rate is unchanged")
    elif ratio != 1 and ratio == new.value / old.value:
        # Any other ratio differs from rung to rung, and the scaling table shows each.
        yield Statement(f"learning rate is {format_factor(ratio)} the previous value")


def _rate_ratio(before: Rung, after: Rung, trainings: Trainings) -> Fraction:
    """Return the factor between two rates: that of the rule where both follow it, as a rate may be rounded."""
    old, new = (training.learning_rate for training in trainings)
    rules = {training.learning_rate_rule for training in trainings}
    if old and new and len(rules) == 1 and "learning_rate" not in before.overridden | after.overridden:
        growth = _root(after.scale / before.scale) if rules == {"sqrt"} else after.scale / before.scale
        if rules == {"keep"}:
            growth = Fraction(1)
        if growth is not None:
            return new.value / old.value * growth
    rates = (Number.read(rung.learning_rate or "1").value for rung in (after, before))
    return next(rates) / next(rates)


def _root(value: Fraction) -> Fraction | None:
    """Return the square root, if it is rational."""
    root = Fraction(isqrt(value.numerator), isqrt(value.denominator))
    return root if root * root == value else None


def _warmup(before: Rung, after: Rung, trainings: Trainings) -> Iterator[Statement]:
    for key in after.steps:
        old, new = _share(before, key, trainings[0]), _share(after, key, trainings[1])
        if "warmup" in key.lower() and new is not None and (old is None or abs(new - old) >= _MIN_SHARE_CHANGE):
            previous = "" if old is None else f", previously {format_percent(old)}"
            yield Statement(f"{{}} now covers {format_percent(new)} of the run{previous}", (key,))


def _share(rung: Rung, key: str, training: Training) -> Fraction | None:
    if not rung.train_steps or key not in rung.steps:
        return None
    setting = training.steps.get(key)
    tuned = Fraction(setting.value, training.train_steps) if setting and training.train_steps else None
    return _without_rounding(Fraction(rung.steps[key], rung.train_steps), tuned)


def _step_counts(before: Rung, after: Rung, trainings: Trainings) -> Iterator[Statement]:
    """Yield the other counts that the spec changes by a factor; the scaling table shows those that follow from it."""
    # With another `tuned_on` the factor differs from rung to rung.
    if trainings[0].tuned_on != trainings[1].tuned_on:
        return
    for key in after.steps:
        old, new = (training.steps.get(key) for training in trainings)
        is_overridden = key in before.overridden | after.overridden
        if old and new and old.value != new.value and not is_overridden and "warmup" not in key.lower():
            yield Statement(f"{{}} is {format_factor(Fraction(new.value, old.value))} the previous value", (key,))


def _without_rounding(proportion: Fraction, tuned: Fraction | None) -> Fraction:
    """Return the proportion that the spec sets, if the rung deviates from it no more than rounding explains."""
    return tuned if tuned and abs(proportion / tuned - 1) <= _MAX_ROUNDING else proportion
