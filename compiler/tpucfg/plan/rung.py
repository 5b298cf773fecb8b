"""Compute the figures of a rung by the scaling rules and the rung's overrides."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Final, NamedTuple

from tpucfg.catalog import Slice
from tpucfg.plan.scaling import scale_batch, scale_learning_rate, scale_steps
from tpucfg.spec.project import Override, Project, Training


class Rung(NamedTuple):
    """One size of a ladder with all its figures."""

    slice: Slice
    cores_scale: Fraction
    """Cores of this rung divided by the cores of `tuned_on`."""
    scale: Fraction
    """The factor k that divides steps and multiplies the learning rate: `cores_scale`, or the growth of an overridden
    batch."""
    batch_size: int
    """Examples of one step on all cores."""
    steps: Mapping[str, int]
    """All figures counted in steps; `train_steps` is the first one if the run is counted in steps."""
    epochs: str | None
    learning_rate: str | None
    overridden: frozenset[str]
    """The figures that the spec overrides."""

    @property
    def size(self) -> str:
        """The accelerator type, such as `v3-32`."""
        return self.slice.size

    @property
    def per_core(self) -> Fraction:
        """Examples of one step on one core."""
        return Fraction(self.batch_size, self.slice.cores)

    @property
    def train_steps(self) -> int | None:
        """Steps of the whole run; None if it is counted in epochs."""
        return self.steps.get("train_steps")

    @property
    def examples(self) -> int | None:
        """Examples that the whole run sees; None if it is counted in epochs."""
        return self.batch_size * self.steps["train_steps"] if "train_steps" in self.steps else None


NO_OVERRIDE: Final = Override()


def make_rung(project: Project, tuned_on: Slice, slice_: Slice) -> Rung:
    """Compute every figure of one rung. An uneven batch (TPU040) is rounded down."""
    training = project.training
    override = project.overrides.get(slice_.size, NO_OVERRIDE)
    cores_scale = Fraction(slice_.cores, tuned_on.cores)
    batch = override.batch_size or int(scale_batch(training.batch_size, cores_scale))
    scale = Fraction(batch, training.batch_size) if override.batch_size else cores_scale
    overridden_steps = dict(override.steps or {})
    # A machine that the size is not offered on is TPU026; the figures are then computed for the default machine.
    if override.machine in {machine.name for machine in (*slice_.machines, *slice_.named_machines)}:
        slice_ = slice_.on_machine(override.machine)
    if override.topology in slice_.topologies:  # another one is TPU026
        slice_ = slice_.on_topology(override.topology)
    return Rung(
        slice=slice_,
        cores_scale=cores_scale,
        scale=scale,
        batch_size=batch,
        steps={key: overridden_steps.get(key) or scale_steps(count, scale) for key, count in _step_figures(training)},
        epochs=training.epochs.text if training.epochs else None,
        learning_rate=_learning_rate(training, override, scale),
        overridden=frozenset(_overridden(override)),
    )


def rung_figures(rung: Rung) -> Iterator[tuple[str, str]]:
    """Yield the rung's figures as the trainer receives them, in the order of its flags."""
    yield "batch_size", str(rung.batch_size)
    if rung.train_steps is not None:
        yield "train_steps", str(rung.train_steps)
    if rung.epochs is not None:
        yield "epochs", rung.epochs
    if rung.learning_rate is not None:
        yield "learning_rate", rung.learning_rate
    yield from ((key, str(count)) for key, count in rung.steps.items() if key != "train_steps")


def flag_name(training: Training, figure: str) -> str | None:
    """Return the program's flag for a figure; None if the spec omits the flag."""
    return training.flags.get(figure, figure)


def _step_figures(training: Training) -> Iterator[tuple[str, int]]:
    if training.train_steps is not None:
        yield "train_steps", training.train_steps
    yield from ((key, setting.value) for key, setting in training.steps.items())


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
