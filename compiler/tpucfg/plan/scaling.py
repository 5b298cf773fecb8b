"""Scale batch, steps and learning rate from one number of cores to another, in exact rationals.

By default the rules are those of Google's guide to TPU Pods
(https://cloud.google.com/tpu/docs/training-on-tpu-pods): keep the batch per core, so that the global batch grows with
the cores; divide step counts by the factor, so that the run sees an equal number of examples; keep epochs; and
reconsider the learning rate of a larger batch.
"""

import math
from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from fractions import Fraction
from typing import Final

SIGNIFICANT_DIGITS: Final = 6
"""Digits of a learning rate without a finite decimal form."""


def scale_batch(batch: int, scale: Fraction) -> Fraction:
    """Return the global batch that keeps the batch per core; it may be a fraction."""
    return batch * scale


def scale_steps(steps: int, scale: Fraction) -> int:
    """Return the fewest steps that see at least as many examples, which is the quotient rounded up."""
    # In integers, because math.ceil of a Fraction takes ten times as long.
    return -(-steps * scale.denominator // scale.numerator)


def token_steps(tokens: int, sequence_length: int, batch: int) -> int:
    """Return the fewest steps that see at least as many tokens."""
    return -(-tokens // (sequence_length * batch))


def micro_batch(batch: int, replicas: int, grad_accum: int) -> Fraction:
    """Return the examples that one replica computes at a time."""
    return Fraction(batch, replicas * grad_accum)


def smallest_grad_accum(examples: Fraction, max_micro_batch: Fraction) -> int:
    """Return the fewest micro-batches of at most a maximum into which a replica's examples of a step are split.

    AXLearn scales its Fuji models in this way: the global batch stays, and more slices accumulate less
    (https://github.com/apple/axlearn/blob/34aed43/axlearn/experiments/text/gpt/fuji.py).
    """
    return max(1, math.ceil(examples / max_micro_batch))


def scale_learning_rate(rate: Fraction, scale: Fraction, rule: str) -> str:
    """Return the learning rate by a rule of LEARNING_RATE_RULES: exact if its decimals end, else with six digits."""
    return LEARNING_RATE_RULES[rule](rate, scale)


def _linear(rate: Fraction, scale: Fraction) -> str:
    return decimal_text(rate * scale)


def _sqrt(rate: Fraction, scale: Fraction) -> str:
    if is_square(scale):
        return decimal_text(rate * Fraction(math.isqrt(scale.numerator), math.isqrt(scale.denominator)))
    # The root has fifty digits, so that rounding it again, to six digits, is exact.
    wide = Context(prec=50)
    square = rate * rate * scale
    root = wide.sqrt(wide.divide(Decimal(square.numerator), Decimal(square.denominator)))
    return _plain(Context(prec=SIGNIFICANT_DIGITS).plus(root))


def _keep(rate: Fraction, _: Fraction) -> str:
    return decimal_text(rate)


LEARNING_RATE_RULES: Final[Mapping[str, Callable[[Fraction, Fraction], str]]] = {
    "keep": _keep,
    "linear": _linear,
    "sqrt": _sqrt,
}
"""The rules that scale a learning rate with the batch.

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
    is_finite = has_finite_decimal(value)
    digits = len(str(value.numerator)) + value.denominator.bit_length() if is_finite else SIGNIFICANT_DIGITS
    return _plain(Context(prec=digits).divide(Decimal(value.numerator), Decimal(value.denominator)))


def _plain(value: Decimal) -> str:
    """Return the digits without an exponent: YAML 1.1 reads `1e-05` as text, and YAML 1.2 as a number."""
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
