"""Formats of exact numbers for tables, messages and charts.

Every output uses these functions, so that a figure reads the same in `ladder`, `status`, a chart and a review.
"""

from decimal import Context, Decimal
from fractions import Fraction
from math import floor
from typing import Final

UNKNOWN: Final = "–"
"""A number that is not known, or that does not apply."""
_MIN_SHARE: Final = Fraction(1, 10_000)
"""The smallest share that is written in digits."""
_MIN_IMPLAUSIBLE_RATIO: Final = 1000
"""Percentages of larger ratios may exceed the range of floats."""
_MIN_DOLLARS: Final = Fraction(1, 100)
"""Amounts below one cent are written to one digit instead of being rounded to 0.00."""
_MAX_WHOLE: Final = 10**9
"""From here on, an exponent is shorter than the whole number."""
_MAX_DOLLARS: Final = 10**12
_MAX_FLOAT: Final = 10**300
_MAX_PLAIN_EXPONENT: Final = 4


def format_number(value: Fraction | None) -> str:
    """Return a whole number exactly and a fraction to six digits: `16,384`, `0.000125`."""
    if value is None:
        return UNKNOWN
    return f"{value.numerator:,}" if value.denominator == 1 else _significant(value, 6)


def format_figure(text: str) -> str:
    """Return a figure of a rung as the trainer receives it, a whole number with separators: `16,384`, `1e-4`."""
    return f"{int(text):,}" if text.isascii() and text.isdecimal() else text


def format_rounded(value: Fraction | None) -> str:
    """Return a number to three digits, however large or small it is: `0.919`, `12,300`, `1.05e15`."""
    return UNKNOWN if value is None else _significant(value, 3)


def format_metric(value: Fraction) -> str:
    """Return a metric with all the digits that it was recorded with."""
    return f"{float(value):.12g}"


def format_factor(ratio: Fraction) -> str:
    """Return a factor to three digits, followed by a multiplication sign."""
    return f"{format_rounded(ratio)}×"


def floor_percent(ratio: Fraction) -> str:
    """Return a ratio as a percentage, rounded down to a tenth; an implausibly large one to three digits."""
    if ratio >= _MIN_IMPLAUSIBLE_RATIO:
        return f"{format_rounded(100 * ratio)}%"
    # Rounding to nearest would show 79.96% as 80%, and a rung that misses its threshold as one that meets it.
    return f"{floor(ratio * 1000) / 10:g}%"


def format_percent(share: Fraction) -> str:
    """Return a share of a whole to three digits; a share above zero is never shown as zero."""
    if 0 < share < _MIN_SHARE:
        return f"less than {float(_MIN_SHARE):.2%}"
    return f"{format_rounded(100 * share)}%"


def format_rate(value: Fraction | None) -> str:
    """Return examples per second: whole from a thousand on, else to four digits."""
    return UNKNOWN if value is None else _significant(value, 4)


def format_dollars(value: Fraction | None) -> str:
    """Return an amount of money to the cent, or to one digit below a cent."""
    if value is None:
        return UNKNOWN
    if not _MIN_DOLLARS <= value < _MAX_DOLLARS:
        return _significant(value, 1 if value < _MIN_DOLLARS else 3)
    whole, cents = divmod(round(value * 100), 100)
    return f"{whole:,}.{cents:02}"


def to_json_number(value: Fraction | None) -> float | None:
    """Return a number for JSON; a whole number if it is beyond the range of floats, which JSON does not limit."""
    if value is None:
        return None
    return float(value) if abs(value) < _MAX_FLOAT else round(value)


def _significant(value: Fraction, digits: int) -> str:
    """Return a number to some digits: whole if it has more, with an exponent if it is very large or small."""
    if 10 ** (digits - 1) <= value < _MAX_WHOLE:
        return f"{round(value):,}"
    # Decimal, as a float would overflow or underflow for numbers that a spec or a record may contain.
    rounded = (
        Context(prec=digits)
        .divide(Decimal(value.numerator), Decimal(value.denominator))
        .normalize()
    )
    exponent = rounded.adjusted()
    if -_MAX_PLAIN_EXPONENT <= exponent < max(_MAX_PLAIN_EXPONENT, digits):
        return f"{rounded:,f}"
    return f"{rounded.scaleb(-exponent):f}e{exponent}"
