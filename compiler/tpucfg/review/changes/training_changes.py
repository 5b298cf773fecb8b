"""What a change means for the training on one rung, in proportions; the table of the review has the figures."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Final, NamedTuple

from tpucfg.number_format import format_factor, format_percent
from tpucfg.plan import Rung
from tpucfg.review.changes.statements import Statement
from tpucfg.spec.project import Project, Training

_WORTH_SAYING: Final = Fraction(1, 100)
"""Of the run: a smaller change of a warm-up's share is rounding."""
_ROUNDED: Final = Fraction(1, 20)
"""Of a proportion: what rounding a few steps up may make of it."""


class TunedFigures(NamedTuple):
    """The proportions that the spec sets, before any step count is rounded."""

    examples: Fraction | None
    rate: Fraction
    shares: Mapping[str, Fraction]


def tuned_figures(project: Project | None) -> TunedFigures:
    """What the spec of a side sets; ones and nothing where there is no spec."""
    training = project.training if project else None
    rate = training.learning_rate.value if training and training.learning_rate else Fraction(1)
    if training is None or training.train_steps is None:
        return TunedFigures(None, rate, {})
    shares = {key: Fraction(count, training.train_steps) for key, count in training.steps.items()}
    return TunedFigures(Fraction(training.batch_size * training.train_steps), rate, shares)


def training_statements(before: Rung, after: Rung, tuned: tuple[TunedFigures, TunedFigures]) -> Iterator[Statement]:
    """What is the same on every rung, but for what rounding its steps makes of it."""
    if before.batch_size != after.batch_size:
        yield Statement(
            f"the global batch is {format_factor(Fraction(after.batch_size, before.batch_size))} what it was"
        )
    figures = ((rung.batch_size, rung.train_steps) for rung in (before, after))
    if before.examples and after.examples and len({*figures}) > 1:
        meant = tuned[1].examples / tuned[0].examples if tuned[0].examples and tuned[1].examples else None
        ratio = _meant(Fraction(after.examples, before.examples), meant)
        yield Statement(
            "the run sees as many examples as before"
            if ratio == 1
            else f"the run sees {format_factor(ratio)} the examples"
        )
    if (before.train_steps is None) != (after.train_steps is None):
        now, was = ("epochs", "steps") if after.epochs else ("steps", "epochs")
        yield Statement(f"the run is counted in {now}, and no longer in {was}")
    if before.epochs and after.epochs and before.epochs != after.epochs:
        yield Statement("the run has {1} epochs instead of {0}", (before.epochs, after.epochs))
    if before.learning_rate and after.learning_rate:
        ratio = Fraction(after.learning_rate) / Fraction(before.learning_rate)
        if ratio != 1 and ratio == tuned[1].rate / tuned[0].rate:  # or else each rung has its own, in the table
            yield Statement(f"the learning rate is {format_factor(ratio)} what it was")
        elif ratio == 1 and before.batch_size != after.batch_size:
            yield Statement("the learning rate stays as it was")
    yield from _shares(before, after, tuned)
    for key in before.steps:
        if key not in after.steps and key != "train_steps":
            yield Statement("{} is set no longer", (key,))


def learning_rate_statements(before: Training, after: Training) -> Iterator[Statement]:
    """Whether the spec sets one, and by which rule the rungs follow it."""
    old, new = before.learning_rate, after.learning_rate
    if old and not new:
        yield Statement("no learning rate is set any longer; it was {} on {}", (old.text, before.tuned_on))
    elif new and not old:
        yield Statement(
            "a learning rate is set: {} on {}, by the rule {}", (new.text, after.tuned_on, after.learning_rate_rule)
        )
    elif old and before.learning_rate_rule != after.learning_rate_rule:
        rules = (before.learning_rate_rule, after.learning_rate_rule)
        yield Statement("the learning rate follows the rule {1} instead of {0}", rules)


def _shares(before: Rung, after: Rung, tuned: tuple[TunedFigures, TunedFigures]) -> Iterator[Statement]:
    """How much of the run a warm-up covers."""
    for key in after.steps:
        old, new = _share(before, key, tuned[0]), _share(after, key, tuned[1])
        if "warmup" in key.lower() and new is not None and (old is None or abs(new - old) >= _WORTH_SAYING):
            was = "" if old is None else f", and was {format_percent(old)}"
            yield Statement(f"{{}} is now {format_percent(new)} of the run{was}", (key,))


def _share(rung: Rung, key: str, tuned: TunedFigures) -> Fraction | None:
    if not rung.train_steps or key not in rung.steps:
        return None
    return _meant(Fraction(rung.steps[key], rung.train_steps), tuned.shares.get(key))


def _meant(found: Fraction, meant: Fraction | None) -> Fraction:
    """What is meant, where a rung is off by no more than its rounded steps make it."""
    return meant if meant and abs(found / meant - 1) <= _ROUNDED else found
