"""Formats of exact numbers, at the bounds where they change."""

from fractions import Fraction

import pytest

from tpucfg.number_format import (
    floor_percent,
    format_dollars,
    format_factor,
    format_figure,
    format_metric,
    format_number,
    format_percent,
    format_rate,
    format_rounded,
    to_json_number,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(1), "1"),
        (Fraction(12345), "12,345"),
        (Fraction(2, 3), "0.667"),
        (Fraction(314, 100), "3.14"),
        (Fraction(99999, 100), "1,000"),
        (Fraction(1, 10**7), "1e-7"),
        (Fraction(123456 * 10**15), "1.23e20"),
        (Fraction(10) ** 700, "1e700"),
        (Fraction(1, 10**700), "1e-700"),
    ],
)
def test_rounding_keeps_three_digits(value: Fraction, text: str) -> None:
    """A rounded number has three digits, or all those before its decimal point, beyond the range of floats too."""
    assert format_rounded(value) == text


def test_a_percentage_below_a_threshold_is_not_rounded_up_to_it() -> None:
    """79.99% is shown as 79.9%, and 80% as 80%."""
    assert floor_percent(Fraction(7999, 10_000)) == "79.9%"
    assert floor_percent(Fraction(4, 5)) == "80%"


def test_whole_numbers_are_exact() -> None:
    """A whole number has all its digits, a fraction six, and an unknown number is a dash."""
    assert [format_number(value) for value in (Fraction(1_234_567), Fraction(1, 8), None)] == [
        "1,234,567",
        "0.125",
        "–",
    ]


def test_a_metric_keeps_its_digits() -> None:
    """A metric is written as recorded."""
    assert format_metric(Fraction("0.970012")) == "0.970012"


@pytest.mark.parametrize(
    ("ratio", "text"), [(Fraction(1, 3), "0.333×"), (Fraction(4), "4×"), (Fraction(1500), "1,500×")]
)
def test_a_factor_has_three_digits_below_a_thousand(ratio: Fraction, text: str) -> None:
    """A factor has three digits below a thousand, and is a whole number from there on."""
    assert format_factor(ratio) == text


def test_rates_hours_and_dollars_have_few_digits() -> None:
    """Large values have no fraction, amounts below a cent keep a digit, and unknown values are a dash."""
    values = [Fraction(12345, 10), Fraction(123456, 1000), Fraction(12, 10_000), None]
    assert [format_rate(value) for value in values] == ["1,234", "123.5", "0.0012", "–"]
    assert [format_rounded(value) for value in values] == ["1,234", "123", "0.0012", "–"]
    assert [format_dollars(value) for value in values] == ["1,234.50", "123.46", "0.001", "–"]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (format_number(Fraction(4000, 3)), "1,333.33"),
        (format_factor(Fraction(9996, 10)), "1,000×"),
        (format_factor(Fraction(1, 10**5)), "1e-5×"),
        (format_percent(Fraction(99)), "9,900%"),
        (format_dollars(Fraction(10) ** 400), "1e400"),
        (format_dollars(Fraction(1, 10**5)), "1e-5"),
        (format_rounded(Fraction(10) ** 400), "1e400"),
        (format_rate(Fraction(99996, 100)), "1,000"),
        (floor_percent(Fraction(10) ** 400), "1e402%"),
        (format_figure("16384"), "16,384"),
        (format_figure("1e-4"), "1e-4"),
    ],
)
def test_every_magnitude_has_one_form(number: str, text: str) -> None:
    """Large numbers have separators, and very large or small ones an exponent without zeros."""
    assert number == text


def test_json_numbers_are_finite() -> None:
    """A number beyond the range of floats is a whole number in JSON."""
    assert to_json_number(Fraction(1, 4)) == 0.25
    assert to_json_number(Fraction(10) ** 400) == 10**400
    assert to_json_number(None) is None
