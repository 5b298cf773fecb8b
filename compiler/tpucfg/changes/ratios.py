"""Changes of the training in proportions, which follow from the spec's rules and not from rounded figures."""

from collections.abc import Iterator
from fractions import Fraction
from math import isqrt
from typing import Final

from tpucfg.changes.statements import Statement
from tpucfg.number_format import format_factor, format_percent
from tpucfg.plan import Rung
from tpucfg.spec.project import Number, Training

_MIN_SHARE_CHANGE: Final = Fraction(1, 100)
"""Change of a warm-up's share of the run that is worth a statement; a smaller one results from rounding steps."""
_MAX_ROUNDING: Final = Fraction(1, 20)
"""Relative error that rounding up a few steps can cause in a proportion."""
Trainings = tuple[Training, Training]


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
