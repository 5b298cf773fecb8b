"""Numbers as a chart has room for them."""

from decimal import Context, Decimal
from fractions import Fraction
from typing import Final

from tpucfg.spec.project import Number

MAX_COUNT_LENGTH: Final = 11
"""Characters: `999,999,999`. What is longer is rounded here; the table beside the chart has it in full."""
MAX_RATE_LENGTH: Final = 8
"""Characters: `0.000125`."""
_THREE: Final = Context(prec=3)
_WHOLE_FROM: Final = 100
_SHORT_BELOW: Final = 10**9
"""Between these a number is written in whole; from there on its exponent is shorter."""
_PLAIN: Final = 4
"""Places before and after the point up to which a number is written without an exponent."""
IN_PROSE: Final = 19
"""Characters: `999,999,999,999,999`."""


def count_text(count: int, *, longest: int = MAX_COUNT_LENGTH) -> str:
    """`16,384`; a count with more characters than there is room for as `1.05e15`."""
    text = f"{count:,}"
    return text if len(text) <= longest else rounded(Fraction(count))


def rate_text(text: str) -> str:
    """A number as the trainer gets it, or to three digits where it has more characters than there is room for."""
    return text if len(text) <= MAX_RATE_LENGTH else rounded(Number.read(text).value)


def rounded(value: Fraction) -> str:
    """A value to three digits: `0.919`, `12,300`, `1.05e15`."""
    if _WHOLE_FROM <= value < _SHORT_BELOW:
        return f"{round(value):,}"
    digits = _THREE.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize()
    exponent = digits.adjusted()
    if -_PLAIN <= exponent < _PLAIN:
        return f"{digits:f}"
    return f"{digits.scaleb(-exponent):f}e{exponent}"


def change_text(first: Fraction, last: Fraction) -> str:
    """How a figure changes from the first rung to the last: `stays`, or how many times more or less it becomes."""
    if first == last:
        return "stays"
    ratio = last / first if last > first else first / last
    exact = "" if ratio.denominator == 1 else "about "
    return f"grows {exact}{rounded(ratio)}×" if last > first else f"falls to {exact}1/{rounded(ratio)}"
