"""Labels of numbers, short enough for the columns of a chart."""

from fractions import Fraction
from typing import Final

from tpucfg.number_format import format_figure, format_number, format_rounded
from tpucfg.spec.project import Number

MAX_COUNT_LENGTH: Final = 11
"""Characters: `999,999,999`. A longer count is rounded; the table next to the chart shows it in full."""
MAX_RATE_LENGTH: Final = 12
"""Characters: `0.0000565685`, six digits."""
MAX_PROSE_COUNT_LENGTH: Final = 19
"""Characters in a sentence: `999,999,999,999,999`."""


def count_text(count: int, *, max_length: int = MAX_COUNT_LENGTH) -> str:
    """Return a count as `16,384`, or as `1.05e15` if that would be too long."""
    text = f"{count:,}"
    return text if len(text) <= max_length else format_rounded(Fraction(count))


def rate_text(text: str) -> str:
    """Return a number as the trainer receives it, or to six digits if that would be too long."""
    label = format_figure(text)
    return label if len(label) <= MAX_RATE_LENGTH else format_number(Number.read(text).value)


def change_text(first: Fraction, last: Fraction) -> str:
    """Return the change of a figure from the first rung to the last, with the factor by which it grows or falls."""
    if first == last:
        return "stays"
    ratio = last / first if last > first else first / last
    about = "" if ratio.denominator == 1 else "about "
    return f"grows {about}{format_rounded(ratio)}×" if last > first else f"falls to {about}1/{format_rounded(ratio)}"
