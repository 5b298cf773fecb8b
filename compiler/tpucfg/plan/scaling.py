"""The arithmetic of a rung, in exact rationals.

Google's guide to TPU Pods (https://cloud.google.com/tpu/docs/training-on-tpu-pods): keep the batch per core, so the
global batch grows with the cores; divide step counts by the same factor, so that as many examples are seen; leave
epochs alone; a larger batch may want another learning rate.
"""

import math
from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from fractions import Fraction
from typing import Final

SIGNIFICANT_DIGITS: Final = 6
"""Digits of a learning rate that has no exact decimal form."""


def scale_batch(batch: int, scale: Fraction) -> Fraction:
    """The global batch that keeps the batch per core; a fraction where it does not come out even."""
    return batch * scale


def scale_steps(steps: int, scale: Fraction) -> int:
    """As many steps as show at least the same examples: rounded up where the scale does not divide them."""
    return -(-steps * scale.denominator // scale.numerator)  # the ceiling, in integers: a tenth of the time


def scale_learning_rate(rate: Fraction, scale: Fraction, rule: str) -> str:
    """The learning rate by a rule of RATES: the exact product, or six significant digits where it has no end."""
    return RATES[rule](rate, scale)


def _linear(rate: Fraction, scale: Fraction) -> str:
    return decimal_text(rate * scale)


def _sqrt(rate: Fraction, scale: Fraction) -> str:
    if is_square(scale):
        return decimal_text(rate * Fraction(math.isqrt(scale.numerator), math.isqrt(scale.denominator)))
    wide = Context(prec=50)
    square = rate * rate * scale
    root = wide.sqrt(wide.divide(Decimal(square.numerator), Decimal(square.denominator)))
    return _plain(Context(prec=SIGNIFICANT_DIGITS).plus(root))


def _keep(rate: Fraction, _: Fraction) -> str:
    return decimal_text(rate)


RATES: Final[Mapping[str, Callable[[Fraction, Fraction], str]]] = {"keep": _keep, "linear": _linear, "sqrt": _sqrt}
"""The rules by which a learning rate follows the batch.

`linear` is that of Goyal et al. (https://arxiv.org/abs/1706.02677), `sqrt` that of Krizhevsky (https://arxiv.org/abs/1404.5997).
"""


def is_square(value: Fraction) -> bool:
    """Whether the root of the value is rational."""
    return all(math.isqrt(part) ** 2 == part for part in (value.numerator, value.denominator))


def decimal_text(value: Fraction) -> str:
    """The value in decimal digits: exactly where that ends, else to six significant digits."""
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    digits = len(str(value.numerator)) + value.denominator.bit_length() if rest == 1 else SIGNIFICANT_DIGITS
    return _plain(Context(prec=digits).divide(Decimal(value.numerator), Decimal(value.denominator)))


def _plain(value: Decimal) -> str:
    """Without an exponent: `1e-05` and `1E-5` are numbers to some readers of YAML and text to others."""
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
