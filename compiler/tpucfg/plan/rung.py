"""A size of the ladder to a Rung: the scaling rules applied to the spec's training, with the rung's overrides."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

from tpucfg.catalog import Slice
from tpucfg.plan.scaling import scale_batch, scale_learning_rate, scale_steps
from tpucfg.spec.project import Arg, Override, Project, Training


class Rung(NamedTuple):
    """One size of a ladder with every figure worked out."""

    slice: Slice
    cores_scale: Fraction
    """Cores of this rung over cores of the size that the training was tuned on."""
    scale: Fraction
    """What steps are divided by, and the learning rate follows: cores_scale, unless the batch is overridden."""
    batch_size: int
    """Examples of one step, over all cores."""
    steps: Mapping[str, int]
    """train_steps first, where the run is counted in steps, then every other figure counted in steps."""
    epochs: str | None
    learning_rate: str | None
    overridden: frozenset[str]
    """The figures that the spec sets for this rung."""

    @property
    def size(self) -> str:
        """The accelerator type: `v3-32`."""
        return self.slice.size

    @property
    def per_core(self) -> Fraction:
        """Examples of one step on one core."""
        return Fraction(self.batch_size, self.slice.cores)

    @property
    def train_steps(self) -> int | None:
        """Steps of the whole run; None where it is counted in epochs."""
        return self.steps.get("train_steps")

    @property
    def examples(self) -> int | None:
        """Examples that the whole run sees; None where it is counted in epochs."""
        return self.batch_size * self.steps["train_steps"] if "train_steps" in self.steps else None


NO_OVERRIDE = Override()


def make_rung(project: Project, tuned_on: Slice, slice_: Slice) -> Rung:
    """Every figure of one rung. The batch is taken to divide over the cores; `rules` says where it does not."""
    training = project.training
    override = project.overrides.get(slice_.size, NO_OVERRIDE)
    cores_scale = Fraction(slice_.cores, tuned_on.cores)
    batch = override.batch_size or int(scale_batch(training.batch_size, cores_scale))
    scale = Fraction(batch, training.batch_size) if override.batch_size else cores_scale
    fixed = dict(override.steps or {})
    return Rung(
        slice=slice_.on(override.machine)
        if override.machine in {machine.name for machine in slice_.machines}
        else slice_,
        cores_scale=cores_scale,
        scale=scale,
        batch_size=batch,
        steps={key: fixed.get(key) or scale_steps(count, scale) for key, count in _step_figures(training)},
        epochs=training.epochs.text if training.epochs else None,
        learning_rate=_learning_rate(training, override, scale),
        overridden=frozenset(_overridden(override)),
    )


def rung_figures(rung: Rung) -> Iterator[tuple[str, str]]:
    """The rung's figures as the trainer gets them, in the order of its flags."""
    yield "batch_size", str(rung.batch_size)
    if rung.train_steps is not None:
        yield "train_steps", str(rung.train_steps)
    if rung.epochs is not None:
        yield "epochs", rung.epochs
    if rung.learning_rate is not None:
        yield "learning_rate", rung.learning_rate
    yield from ((key, str(count)) for key, count in rung.steps.items() if key != "train_steps")


def flag_name(training: Training, figure: str) -> str | None:
    """The flag that the program knows a figure by; None where the spec leaves it out."""
    return training.flags.get(figure, figure)


def program_args(project: Project, size: str) -> tuple[Arg, ...]:
    """The program's own flags on this size: an override takes its flag's place, a new flag comes last."""
    override = {arg.key: arg for arg in project.overrides.get(size, NO_OVERRIDE).args}
    own = tuple(override.pop(arg.key, arg) for arg in project.trainer.args)
    return (*own, *override.values())


def _step_figures(training: Training) -> Iterator[tuple[str, int]]:
    if training.train_steps is not None:
        yield "train_steps", training.train_steps
    yield from training.steps.items()


def _learning_rate(training: Training, override: Override, scale: Fraction) -> str | None:
    if override.learning_rate:
        return override.learning_rate.text
    rate = training.learning_rate
    if rate is None or scale == 1 or training.learning_rate_rule == "keep":
        return rate.text if rate else None
    return scale_learning_rate(rate.value, scale, training.learning_rate_rule)


def _overridden(override: Override) -> Iterator[str]:
    if override.batch_size:
        yield "batch_size"
    if override.learning_rate:
        yield "learning_rate"
    yield from override.steps or ()
