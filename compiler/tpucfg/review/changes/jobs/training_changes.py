"""Changes to the training of one rung, as proportions; the scaling table shows the figures themselves."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Final, NamedTuple

from tpucfg.changes.statements import Risk, Statement
from tpucfg.number_format import format_factor, format_percent
from tpucfg.plan import Rung
from tpucfg.plan.rung import flag_name
from tpucfg.spec.project import Number, Project, Training

_MIN_SHARE_CHANGE: Final = Fraction(1, 100)
"""Change of a warm-up's share of the run that is worth a statement; a smaller one results from rounding steps."""
_MAX_ROUNDING: Final = Fraction(1, 20)
"""Relative error that rounding up a few steps can cause in a proportion."""


_UNSET: Final = "unset"


class TunedFigures(NamedTuple):
    """The proportions that a spec sets, before the step counts of each rung are rounded."""

    examples: Fraction | None
    """Examples of the whole run; None if the spec sets no steps."""
    learning_rate: Fraction
    shares: Mapping[str, Fraction]
    """Each count of `steps` as a share of the run."""
    counts: Mapping[str, int]
    """Each count of `steps`."""
    tuned_on: str


def tuned_figures(project: Project | None) -> TunedFigures:
    """Return the proportions of a spec; neutral ones if there is no spec."""
    training = project.training if project else None
    learning_rate = training.learning_rate.value if training and training.learning_rate else Fraction(1)
    counts = {key: setting.value for key, setting in training.steps.items()} if training else {}
    if training is None or training.train_steps is None:
        return TunedFigures(None, learning_rate, {}, counts, training.tuned_on if training else "")
    shares = {key: Fraction(count, training.train_steps) for key, count in counts.items()}
    return TunedFigures(
        Fraction(training.batch_size * training.train_steps), learning_rate, shares, counts, training.tuned_on
    )


def training_statements(before: Rung, after: Rung, tuned: tuple[TunedFigures, TunedFigures]) -> Iterator[Statement]:
    """Yield the changes to a rung in proportions, so that the statements of all rungs can be equal.

    Args:
        before: the rung in the base.
        after: the rung in the head.
        tuned: the proportions of the specs of base and head.
    """
    if before.batch_size != after.batch_size:
        factor = format_factor(Fraction(after.batch_size, before.batch_size))
        yield Statement(f"global batch size is {factor} the previous value")
    yield from _run_length(before, after, tuned)
    yield from _learning_rate(before, after, tuned)
    yield from _warmup(before, after, tuned)
    yield from _step_counts(before, after, tuned)
    for key in before.steps:
        if key not in after.steps and key != "train_steps":
            yield Statement("{} removed", (key,))


def parallelism_statements(before: Training, after: Training) -> Iterator[Statement]:
    """Yield the settings of the split of devices and batch that differ; the scaling table shows what follows."""
    for key in ("model_parallel", "grad_accum", "batch_rule", "sequence_length"):
        old, new = (getattr(training, key) for training in (before, after))
        if old != new:
            yield Statement("{} changed from {} to {}", (key, *(str(value or _UNSET) for value in (old, new))))


def learning_rate_statements(before: Training, after: Training) -> Iterator[Statement]:
    """Yield changes to the presence of a learning rate, and to the rule that scales it."""
    old, new = before.learning_rate, after.learning_rate
    if old and not new:
        yield Statement("learning rate removed (was {} on {})", (old.text, before.tuned_on))
    elif new and not old:
        yield Statement(
            "learning rate set to {} on {}, scaled by the rule {}",
            (new.text, after.tuned_on, after.learning_rate_rule),
        )
    elif old and before.learning_rate_rule != after.learning_rate_rule:
        rules = (before.learning_rate_rule, after.learning_rate_rule)
        yield Statement("learning rate rule changed from {} to {}", rules)


def flag_statements(before: Training, after: Training) -> Iterator[Statement]:
    """Yield the figures that the program receives by another flag, or no longer receives."""
    figures = ("batch_size", "train_steps", "epochs", "learning_rate", *{**before.steps, **after.steps})
    for figure in figures:
        old, new = (flag_name(training, figure) for training in (before, after))
        if old == new:
            continue
        if new is None:
            yield Statement("{} is no longer passed to the program (was {})", (figure, f"--{old}"), Risk.CAUTION)
        elif old is None:
            yield Statement("{} is now passed to the program as {}", (figure, f"--{new}"))
        else:
            yield Statement("flag for {} changed from {} to {}", (figure, f"--{old}", f"--{new}"))


def _run_length(before: Rung, after: Rung, tuned: tuple[TunedFigures, TunedFigures]) -> Iterator[Statement]:
    is_changed = (before.batch_size, before.train_steps) != (after.batch_size, after.train_steps)
    if before.examples and after.examples and is_changed:
        old, new = tuned[0].examples, tuned[1].examples
        ratio = _without_rounding(Fraction(after.examples, before.examples), new / old if old and new else None)
        if ratio == 1:
            yield Statement("the run sees the same number of examples")
        else:
            yield Statement(f"the run sees {format_factor(ratio)} as many examples")
    if (before.train_steps is None) != (after.train_steps is None):
        new_unit, old_unit = ("epochs", "steps") if after.epochs else ("steps", "epochs")
        yield Statement(f"run length is now set in {new_unit} instead of {old_unit}")
    if before.epochs and after.epochs and before.epochs != after.epochs:
        yield Statement("epochs changed from {} to {}", (before.epochs, after.epochs))


def _learning_rate(before: Rung, after: Rung, tuned: tuple[TunedFigures, TunedFigures]) -> Iterator[Statement]:
    if not before.learning_rate or not after.learning_rate:
        return
    ratio = Number.read(after.learning_rate).value / Number.read(before.learning_rate).value
    if ratio == 1 and before.batch_size != after.batch_size:
        # A reviewer who sees a larger batch expects another learning rate.
        yield Statement("learning rate is unchanged")
    elif ratio != 1 and ratio == tuned[1].learning_rate / tuned[0].learning_rate:
        # Any other ratio differs from rung to rung, and the scaling table shows each.
        yield Statement(f"learning rate is {format_factor(ratio)} the previous value")


def _warmup(before: Rung, after: Rung, tuned: tuple[TunedFigures, TunedFigures]) -> Iterator[Statement]:
    for key in after.steps:
        old, new = _share(before, key, tuned[0]), _share(after, key, tuned[1])
        if "warmup" in key.lower() and new is not None and (old is None or abs(new - old) >= _MIN_SHARE_CHANGE):
            previous = "" if old is None else f", previously {format_percent(old)}"
            yield Statement(f"{{}} now covers {format_percent(new)} of the run{previous}", (key,))


def _step_counts(before: Rung, after: Rung, tuned: tuple[TunedFigures, TunedFigures]) -> Iterator[Statement]:
    """Yield the other counts that the spec changes by a factor; the scaling table shows those that follow from it."""
    # With another `tuned_on` the factor differs from rung to rung.
    if tuned[0].tuned_on != tuned[1].tuned_on:
        return
    for key in after.steps:
        old, new = tuned[0].counts.get(key), tuned[1].counts.get(key)
        is_overridden = key in before.overridden | after.overridden
        if old and new and old != new and not is_overridden and "warmup" not in key.lower():
            yield Statement(f"{{}} is {format_factor(Fraction(new, old))} the previous value", (key,))


def _share(rung: Rung, key: str, tuned: TunedFigures) -> Fraction | None:
    if not rung.train_steps or key not in rung.steps:
        return None
    return _without_rounding(Fraction(rung.steps[key], rung.train_steps), tuned.shares.get(key))


def _without_rounding(proportion: Fraction, tuned: Fraction | None) -> Fraction:
    """Return the proportion that the spec sets, if the rung deviates from it no more than rounding explains."""
    return tuned if tuned and abs(proportion / tuned - 1) <= _MAX_ROUNDING else proportion
