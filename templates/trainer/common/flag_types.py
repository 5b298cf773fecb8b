"""Types of the flags' values: each parses a flag's text, or raises an error that names it."""

from __future__ import annotations

import argparse
import math
import re
from fractions import Fraction


def folder(text: str) -> str:
    """Parse a path or URL, without the slashes at its end."""
    return text.rstrip("/") or text  # in a bucket, `data//x` is another object than `data/x`


def count(text: str) -> int:
    """Parse a whole number of at least 1."""
    return _whole(text, 1)


def count_or_zero(text: str) -> int:
    """Parse a whole number of at least 0."""
    return _whole(text, 0)


def _whole(text: str, minimum: int) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) < minimum:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {minimum}")
    return int(text)


def passes(text: str) -> Fraction:
    """Parse the exact decimal: the float 1.1 is slightly larger, which may add a step."""
    if re.fullmatch(r"[+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?0*[0-9]{1,3})?", text):
        value = Fraction(text)
        if value > 0:
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")


def rate(text: str) -> float:
    """Parse a number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value
