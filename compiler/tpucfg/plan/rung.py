"""Compute the figures of a rung by the scaling rules, in exact rationals, and the rung's overrides.

By default the rules are those of Google's guide to TPU Pods
(https://cloud.google.com/tpu/docs/training-on-tpu-pods): keep the batch per core, so that the global batch grows with
the cores; divide step counts by the factor, so that the run sees an equal number of examples; keep epochs; and
reconsider the learning rate of a larger batch.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final

from tpucfg.catalog import Slice
from tpucfg.named_tuple import NamedTuple
from tpucfg.spec import Override, Probe, Project, Training
from tpucfg.spec.presets import NAMED_FIGURES
from tpucfg.yamldoc import KeyPath


# Cached because rules, figures and rungs divide the same numbers, and reducing a fraction takes most of their time.
@lru_cache(maxsize=1024)
def ratio(dividend: int, divisor: int) -> Fraction:
    """Return the exact quotient of two whole numbers."""
    return Fraction(dividend, divisor)


class Seen(NamedTuple):
    """The steps and examples of a run before it goes on; its sizes may have had other batches."""

    step: int
    """The step that it has reached, counted from its first."""
    examples: int


class Rung(NamedTuple):
    """One size of a ladder with all its figures."""

    slice: Slice
    cores_scale: Fraction
    """Cores of this rung divided by the cores of `tuned_on`."""
    scale: Fraction
    """The factor k that divides steps and multiplies the learning rate, which is the growth of the batch."""
    batch_size: int
    """Examples of one optimizer step on all cores."""
    grad_accum: int | None
    """Micro-batches of one optimizer step; None for 1 where the program gets no flag."""
    model_parallel: int
    """JAX devices that share one copy of the batch."""
    tuned_micro_batch: Fraction
    """Examples of one replica and micro-batch on `tuned_on`."""
    sequence_length: int | None
    """Tokens of one example, if the spec states them."""
    steps: Mapping[str, int]
    """All figures counted in steps; `train_steps` is the first one if the run is counted in steps."""
    epochs: str | None
    learning_rate: str | None
    overridden: frozenset[str]
    """The figures that the spec overrides."""
    is_probe: bool = False
    """True if `train_steps` are those of a probe."""
    seen: Seen | None = None
    """For a run that goes on, what it has seen; `train_steps` then count from its first step."""

    @property
    def size(self) -> str:
        """The accelerator type, such as `v3-32`."""
        return self.slice.size

    @property
    def per_core(self) -> Fraction:
        """Examples of one step on one core."""
        return ratio(self.batch_size, self.slice.cores)

    @property
    def data_parallel(self) -> int:
        """Replicas of the model, each with examples of its own: the JAX devices divided by `model_parallel`."""
        return self.slice.devices // self.model_parallel

    @property
    def micro_batch(self) -> Fraction:
        """Examples of one replica and micro-batch; a whole number unless the batch is uneven (TPU040)."""
        return ratio(self.batch_size, self.data_parallel * (self.grad_accum or 1))

    @property
    def per_device(self) -> Fraction:
        """Examples of one device and micro-batch; below 1 if several devices share an example."""
        return ratio(self.batch_size, self.slice.devices * (self.grad_accum or 1))

    @property
    def train_steps(self) -> int | None:
        """Steps of the whole run; None if it is counted in epochs."""
        return self.steps.get("train_steps")

    @property
    def examples(self) -> int | None:
        """Examples that the whole run sees; None if it is counted in epochs."""
        if "train_steps" not in self.steps:
            return None
        step, examples = self.seen or (0, 0)
        return examples + self.batch_size * (self.steps["train_steps"] - step)

    @property
    def tokens(self) -> int | None:
        """Tokens that the whole run sees; None if its examples or their length are not known."""
        return (
            self.examples * self.sequence_length if self.examples and self.sequence_length else None
        )


def probe_rung(rung: Rung, probe: Probe) -> Rung:
    """Return the figures of a probe: those of the whole run, but for its length."""
    return rung._replace(
        steps={**rung.steps, "train_steps": probe.steps}, epochs=None, is_probe=True
    )


BATCH_FIGURES: Final = ("batch_size", "per_device_batch_size", "micro_batch")
"""The figures that are one batch in different units."""
NO_OVERRIDE: Final = Override()
_OVERRIDES: Final = ("batch_size", "learning_rate", "grad_accum", "model_parallel", "machine")
"""The figures that an override may set, besides those counted in steps, and the machine."""


def slice_in_force(project: Project, target: str, slice_: Slice) -> Slice:
    """Return a size on the machine and with the topology that its jobs on a target have."""
    return _overridden(project.overrides.get(slice_.size, NO_OVERRIDE), slice_.on_target(target))


def _overridden(override: Override, slice_: Slice) -> Slice:
    # Another machine or topology than the size has is TPU026; the figures are then computed for the default one.
    if override.machine and override.machine in {
        machine.name for machine in (*slice_.machines, *slice_.named_machines)
    }:
        slice_ = slice_.on_machine(override.machine)
    return (
        slice_.on_topology(override.topology) if override.topology in slice_.topologies else slice_
    )


def make_rung(project: Project, tuned_on: Slice, slice_: Slice) -> Rung:
    """Compute every figure of one rung. An uneven batch (TPU040) is rounded down, but not to zero.

    `model_parallel` must divide the devices of both slices (TPU048); a larger one is replaced by all devices.
    """
    training = project.training
    override = project.overrides.get(slice_.size, NO_OVERRIDE)
    cores_scale = ratio(slice_.cores, tuned_on.cores)
    scale = batch_scale(training, override, cores_scale)
    batch = training.batch_size * scale.numerator // scale.denominator or 1
    model_parallel = min(override.model_parallel or training.model_parallel, slice_.devices)
    tuned_replicas = max(1, tuned_on.devices // training.model_parallel)
    tuned = ratio(training.batch_size, tuned_replicas * (training.grad_accum or 1))
    return Rung(
        slice=_overridden(override, slice_),
        cores_scale=cores_scale,
        scale=scale,
        batch_size=batch,
        grad_accum=_grad_accum(
            training, override, ratio(batch, slice_.devices // model_parallel), tuned
        ),
        model_parallel=model_parallel,
        tuned_micro_batch=tuned,
        sequence_length=training.sequence_length,
        steps=dict(_steps(training, override, batch, scale)),
        epochs=training.epochs.text if training.epochs else None,
        learning_rate=_learning_rate(training, override, scale),
        overridden=frozenset(
            (*(key for key in _OVERRIDES if getattr(override, key)), *(override.steps or ()))
        ),
    )


def rung_figures(rung: Rung) -> Iterator[tuple[str, str]]:
    """Yield the rung's figures as the trainer receives them, in the order of its flags."""
    figures = {
        "batch_size": rung.batch_size,
        "grad_accum": rung.grad_accum,
        "train_steps": rung.train_steps,
        "epochs": rung.epochs,
        "learning_rate": rung.learning_rate,
        **rung.steps,
    }
    return ((key, str(value)) for key, value in figures.items() if value is not None)


def figure_texts(rung: Rung) -> dict[str, str]:
    """Return every figure of a rung that a program can be given, as a placeholder or as a flag, in order."""
    figures = dict(rung_figures(rung))
    batch = {
        "batch_size": figures.pop("batch_size"),
        "per_device_batch_size": decimal_text(rung.per_device),
        "micro_batch": decimal_text(rung.micro_batch),
        "grad_accum": str(rung.grad_accum or 1),
        "model_parallel": str(rung.model_parallel),
    }
    length = {"sequence_length": str(rung.sequence_length)} if rung.sequence_length else {}
    return batch | length | figures


def flag_name(training: Training, figure: str) -> str | None:
    """Return the program's flag for a figure; None if it has none."""
    if figure == "batch_size" and training.flags.get("per_device_batch_size"):
        # The batch of a device takes the place of the whole batch, unless the spec names both flags.
        return training.flags.get(figure)
    return training.flags.get(figure, None if figure in NAMED_FIGURES else figure)


def figure_flags(
    training: Training, rung: Rung, texts: Mapping[str, str]
) -> list[tuple[str, str, str]]:
    """Return each figure of a rung that is a flag, with the flag and its text; `texts` are its `figure_texts`."""
    return [
        (figure, flag, text)
        for figure, text in texts.items()
        # A program gets accumulation only where the spec or the ladder uses it.
        if (figure != "grad_accum" or rung.grad_accum is not None)
        and (flag := flag_name(training, figure))
    ]


def shows_parallelism(rungs: Iterable[Rung]) -> bool:
    """Return True if accumulation or model parallelism plays a part in some rung, so that output shows both."""
    return any(rung.grad_accum is not None or rung.model_parallel > 1 for rung in rungs)


def setting_path(training: Training, figure: str) -> KeyPath:
    """Return the path in the spec of the setting that a figure is computed from."""
    if figure in training.steps:
        return ("training", "steps", figure)
    if figure in BATCH_FIGURES:
        return ("training", training.batch_key)
    return (
        "training",
        "train_tokens" if figure == "train_steps" and training.train_tokens else figure,
    )


def number_path(project: Project, figure: str) -> KeyPath:
    """Return the path of the number of a figure's setting: a setting of `training.steps` may be a mapping."""
    path = setting_path(project.training, figure)
    return (*path, "value") if project.document.node((*path, "value")) else path


def batch_scale(training: Training, override: Override, cores_scale: Fraction) -> Fraction:
    """Return the growth of a rung's batch: by its override, or by the rule of the spec."""
    if override.batch_size:
        return ratio(override.batch_size, training.batch_size)
    return cores_scale if training.batch_rule == "per_core" else ratio(1, 1)


def _grad_accum(
    training: Training, override: Override, examples: Fraction, max_micro_batch: Fraction
) -> int | None:
    """Return the micro-batches of a step.

    Args:
        training: The settings of the spec.
        override: The settings of the rung.
        examples: Examples of one replica and step.
        max_micro_batch: The micro-batch on `tuned_on`.
    """
    if override.grad_accum or training.batch_rule == "per_core":
        return override.grad_accum or training.grad_accum
    # AXLearn scales its Fuji models in this way: the global batch stays, and more slices accumulate less
    # (https://github.com/apple/axlearn/blob/34aed43/axlearn/experiments/text/gpt/fuji.py).
    count = max(1, math.ceil(examples / max_micro_batch))
    # A spec without the setting has a program without the flag, which must get one where a smaller slice needs it.
    return count if training.grad_accum or count > 1 else None


def _steps(
    training: Training, override: Override, batch: int, scale: Fraction
) -> Iterator[tuple[str, int]]:
    if training.train_tokens is not None and training.sequence_length is not None:
        yield "train_steps", -(-training.train_tokens // (training.sequence_length * batch))
    elif training.train_steps is not None:
        yield "train_steps", scale_steps(training.train_steps, scale)
    overridden = override.steps or {}
    for key, setting in training.steps.items():
        yield (
            key,
            overridden.get(key)
            or scale_steps(setting.value, scale if setting.scaled else ratio(1, 1)),
        )


def _learning_rate(training: Training, override: Override, scale: Fraction) -> str | None:
    if override.learning_rate:
        return override.learning_rate.text
    rate, rule = training.learning_rate, training.learning_rate_rule
    if rate is None or scale == 1 or rule == "keep":
        return rate.text if rate else None
    return LEARNING_RATE_RULES[rule](rate.value, scale)


# Steps, accumulation and learning rates by the scaling rules, and numbers as texts.

SIGNIFICANT_DIGITS: Final = 6
"""Digits of a learning rate without a finite decimal form."""


def scale_steps(steps: int, scale: Fraction) -> int:
    """Return the fewest steps that see at least as many examples, which is the quotient rounded up."""
    # In integers, because math.ceil of a Fraction takes ten times as long.
    return -(-steps * scale.denominator // scale.numerator)


def _sqrt(rate: Fraction, scale: Fraction) -> str:
    if is_square(scale):
        return decimal_text(
            rate * Fraction(math.isqrt(scale.numerator), math.isqrt(scale.denominator))
        )
    # The root has fifty digits, so that rounding it again, to six digits, is exact.
    wide = Context(prec=50)
    square = rate * rate * scale
    root = wide.sqrt(wide.divide(Decimal(square.numerator), Decimal(square.denominator)))
    return _plain(Context(prec=SIGNIFICANT_DIGITS).plus(root))


LEARNING_RATE_RULES: Final[Mapping[str, Callable[[Fraction, Fraction], str]]] = {
    "keep": lambda rate, _: decimal_text(rate),
    "linear": lambda rate, scale: decimal_text(rate * scale),
    "sqrt": _sqrt,
}
"""The rules that scale a learning rate with the batch: exact if its decimals end, else with six digits.

`linear` is the rule of Goyal et al. (https://arxiv.org/abs/1706.02677), and `sqrt` the rule of Krizhevsky
(https://arxiv.org/abs/1404.5997).
"""


def is_square(value: Fraction) -> bool:
    """Return True if the square root of the value is rational."""
    return all(math.isqrt(part) ** 2 == part for part in (value.numerator, value.denominator))


def has_finite_decimal(value: Fraction) -> bool:
    """Return True if the decimal form of the value ends: its denominator has no prime factors but 2 and 5."""
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return rest == 1


def decimal_text(value: Fraction) -> str:
    """Return the value in decimal digits: exactly if its decimal form is finite, else with six significant digits."""
    if value.denominator == 1:
        return str(value.numerator)
    is_finite = has_finite_decimal(value)
    digits = (
        len(str(value.numerator)) + value.denominator.bit_length()
        if is_finite
        else SIGNIFICANT_DIGITS
    )
    return _plain(Context(prec=digits).divide(Decimal(value.numerator), Decimal(value.denominator)))


def _plain(value: Decimal) -> str:
    """Return the digits without an exponent: YAML 1.1 reads `1e-05` as text, and YAML 1.2 as a number."""
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
