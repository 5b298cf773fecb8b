"""Formats of exact numbers for tables, messages and charts."""

from decimal import Context, Decimal
from fractions import Fraction
from math import floor
from typing import Final

UNKNOWN: Final = "–"
"""A number that is not known, or that does not apply."""
_MIN_SHARE: Final = Fraction(1, 10_000)
"""The smallest share that is written in digits."""
_MIN_WHOLE_FACTOR: Final = 1000
_MIN_WHOLE_RATE: Final = 1000
_MIN_WHOLE_HOURS: Final = 100
"""From these values on, the fraction is omitted."""
_MIN_DOLLARS: Final = Fraction(1, 100)
"""Amounts below one cent are written to one digit instead of being rounded to 0.00."""
_MIN_WHOLE: Final = 100
_MAX_WHOLE: Final = 10**9
"""Between these bounds `format_rounded` writes whole numbers; beyond them an exponent is shorter."""
_MAX_PLAIN_EXPONENT: Final = 4
_THREE_DIGITS: Final = Context(prec=3)


def format_number(value: Fraction | None) -> str:
    """Return a whole number exactly and a fraction to six digits: `16,384`, `0.000125`."""
    if value is None:
        return UNKNOWN
    if value.denominator == 1:
        return f"{value.numerator:,}"
    return f"{float(value):.6g}"


def format_rounded(value: Fraction) -> str:
    """Return a number to three digits, however large or small it is: `0.919`, `12,300`, `1.05e15`."""
    if _MIN_WHOLE <= value < _MAX_WHOLE:
        return f"{round(value):,}"
    # Decimal, as a float would overflow or underflow for numbers that a spec may contain.
    digits = _THREE_DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize()
    exponent = digits.adjusted()
    if -_MAX_PLAIN_EXPONENT <= exponent < _MAX_PLAIN_EXPONENT:
        return f"{digits:f}"
    return f"{digits.scaleb(-exponent):f}e{exponent}"


def format_metric(value: Fraction) -> str:
    """Return a metric with all the digits that it was recorded with."""
    return f"{float(value):.12g}"


def format_factor(ratio: Fraction) -> str:
    """Return a factor to three digits, followed by a multiplication sign."""
    return f"{float(ratio):.3g}×" if ratio < _MIN_WHOLE_FACTOR else f"{int(ratio):,}×"


def floor_percent(ratio: Fraction) -> str:
    """Return a ratio as a percentage, rounded down to a tenth."""
    # Rounding to nearest would show 79.96% as 80%, and a rung that misses its threshold as one that meets it.
    return f"{floor(ratio * 1000) / 10:g}%"


def format_percent(share: Fraction) -> str:
    """Return a share of a whole to three digits; a share above zero is never shown as zero."""
    if 0 < share < _MIN_SHARE:
        return f"less than {float(_MIN_SHARE):.2%}"
    return f"{float(share * 100):.3g}%"


def format_rate(value: Fraction | None) -> str:
    """Return examples per second: whole from a thousand on, else to four digits."""
    if value is None:
        return UNKNOWN
    return f"{float(value):,.0f}" if value >= _MIN_WHOLE_RATE else f"{float(value):.4g}"


def format_hours(value: Fraction | None) -> str:
    """Return hours: whole from a hundred on, else to three digits."""
    if value is None:
        return UNKNOWN
    return f"{float(value):,.0f}" if value >= _MIN_WHOLE_HOURS else f"{float(value):.3g}"


def format_dollars(value: Fraction | None) -> str:
    """Return an amount of money to the cent, or to one digit below a cent."""
    if value is None:
        return UNKNOWN
    return f"{float(value):,.2f}" if value >= _MIN_DOLLARS else f"{float(value):.1g}"
