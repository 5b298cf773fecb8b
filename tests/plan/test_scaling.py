"""The arithmetic of a rung, compared with numbers calculated by hand."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tpucfg.plan.rung import (
    LEARNING_RATE_RULES,
    SIGNIFICANT_DIGITS,
    decimal_text,
    is_square,
    scale_steps,
)

SCALES = st.fractions(Fraction(1, 20_000), 20_000, max_denominator=20_000)
RATE_TEXTS = st.from_regex(r"(0|[1-9][0-9]{0,3})\.[0-9]{1,12}", fullmatch=True).filter(
    lambda text: Fraction(text) > 0
)


@pytest.mark.parametrize(
    ("rate", "scale", "rule", "text"),
    [
        ("0.1", Fraction(4), "linear", "0.4"),
        ("0.1", Fraction(16), "linear", "1.6"),
        ("0.1", Fraction(1, 4), "linear", "0.025"),
        ("1e-3", Fraction(4), "linear", "0.004"),
        ("3e-05", Fraction(2), "linear", "0.00006"),
        ("0.3", Fraction(1, 3), "linear", "0.1"),
        ("0.1", Fraction(1, 3), "linear", "0.0333333"),  # no finite decimal: six digits
        ("2", Fraction(1, 3), "linear", "0.666667"),
        ("5", Fraction(20), "linear", "100"),
        ("0.1", Fraction(16), "sqrt", "0.4"),  # an exact root
        ("0.1", Fraction(9, 4), "sqrt", "0.15"),
        ("0.1", Fraction(2), "sqrt", "0.141421"),
        ("0.1", Fraction(8), "sqrt", "0.282843"),
        ("0.1", Fraction(32), "sqrt", "0.565685"),
        ("0.1", Fraction(1, 2), "sqrt", "0.0707107"),
        ("0.00012345", Fraction(2), "sqrt", "0.000174585"),
        ("1e-3", Fraction(4), "keep", "0.001"),
    ],
)
def test_learning_rates_are_scaled(rate: str, scale: Fraction, rule: str, text: str) -> None:
    """A rate is the exact product in plain digits, or has six significant digits if that is no finite decimal."""
    assert LEARNING_RATE_RULES[rule](Fraction(rate), scale) == text


@given(RATE_TEXTS, SCALES, st.sampled_from(sorted(LEARNING_RATE_RULES)))
@example("0.1234567890123456789012345678901234567", Fraction(3, 2**46), "linear")
@example("0.0000000000001", Fraction(1, 2**14), "sqrt")
def test_a_learning_rate_is_exact_or_has_six_digits(rate: str, scale: Fraction, rule: str) -> None:
    """A finite decimal is exact, any other rate is rounded to six digits, and no text has an exponent."""
    text = LEARNING_RATE_RULES[rule](Fraction(rate), scale)
    assert set(text) <= set("0123456789.")
    scaled, power = Fraction(text), 2 if rule == "sqrt" else 1
    exact = Fraction(rate) ** power * (1 if rule == "keep" else scale)
    if scaled**power != exact:
        assert len(text.replace(".", "").strip("0")) <= SIGNIFICANT_DIGITS
        half = Fraction(10) ** (Decimal(text).adjusted() - SIGNIFICANT_DIGITS + 1) / 2
        assert (scaled - half) ** power <= exact <= (scaled + half) ** power


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("1/8", "0.125"),
        ("1", "1"),
        ("100", "100"),
        ("1/3", "0.333333"),
        ("2000000/3", "666667"),
        ("1/1024", "0.0009765625"),
    ],
)
def test_decimal_text_has_no_unnecessary_digits(value: str, text: str) -> None:
    """The text is in plain digits, without trailing zeros or a trailing point."""
    assert decimal_text(Fraction(value)) == text


@pytest.mark.parametrize(
    ("steps", "scale", "expected"),
    [
        (4000, 4, 1000),
        (100, 4, 25),
        (1001, 4, 251),
        (1, 16, 1),
        (3, Fraction(3, 2), 2),
        (250, Fraction(1, 4), 1000),
        (7, 1, 7),
    ],
)
def test_steps_are_divided_and_rounded_up(steps: int, scale: int | Fraction, expected: int) -> None:
    """Steps are divided by the scale, rounded up, and at least one."""
    assert scale_steps(steps, Fraction(scale)) == expected


@given(st.integers(1, 10**15), SCALES)
def test_steps_are_the_fewest_with_enough_examples(steps: int, scale: Fraction) -> None:
    """With one step less, the run would see fewer examples than it was tuned for."""
    scaled = scale_steps(steps, scale)
    assert scaled >= 1
    assert (scaled - 1) * scale < steps <= scaled * scale


@given(st.fractions(0, 1000, max_denominator=1000))
def test_squares_are_recognized(root: Fraction) -> None:
    """The square of a rational number is a square, and twice the square is not."""
    assert is_square(root * root)
    assert not is_square(root * root * 2) or root == 0
