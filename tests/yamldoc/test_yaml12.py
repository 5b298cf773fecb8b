"""Plain scalars are resolved by the core schema of YAML 1.2: https://yaml.org/spec/1.2.2/#103-core-schema."""

import json
import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpucfg.yamldoc.parser import MAX_NUMBER_LENGTH, NumberRefusedError, resolve_scalar

NULLS = ["", "~", "null", "Null", "NULL"]
TRUE = ["true", "True", "TRUE"]
FALSE = ["false", "False", "FALSE"]
INTEGERS = {
    "0": 0,
    "-0": 0,
    "+12": 12,
    "007": 7,
    "-19": -19,
    "0o17": 15,
    "0x1F": 31,
    "0xff": 255,
    "1" * 40: int("1" * 40),
}
FLOATS = {
    "1.": 1.0,
    ".5": 0.5,
    "-.5": -0.5,
    "+1.5": 1.5,
    "1e3": 1000.0,
    "1E+3": 1000.0,
    "1e-3": 0.001,
    "12.5e1": 125.0,
    "0e0": 0.0,
}
TEXTS = [
    *("yes", "no", "Yes", "NO", "on", "off", "y", "n"),  # booleans in YAML 1.1
    *("tRUE", "nULL", "None", "nil"),
    *(
        "12:30",
        "190:20:30",
        "1_000",
        "0b11",
        "2001-01-01",
        "2001-01-01T00:00:00Z",
    ),  # numbers and times in YAML 1.1
    *(
        "0x",
        "0o8",
        "0o",
        "+0x1",
        "-0o1",
        "1e",
        "e3",
        ".",
        "+",
        "-",
        "--",
        "-.",
        "1.2.3",
        "2.2.0",
        "v2-8",
        "١",
        "1 2",
    ),
    *("<<", "=", "inf", "nan", "Infinity", "NaN"),
]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((text, None) for text in NULLS),
        *((text, True) for text in TRUE),
        *((text, False) for text in FALSE),
        *INTEGERS.items(),
        *FLOATS.items(),
        *((text, text) for text in TEXTS),
    ],
)
def test_plain_scalars_follow_the_core_schema(text: str, value: object) -> None:
    """Each form is read as its type, and a form that only YAML 1.1 knows is text."""
    resolved = resolve_scalar(text)
    assert (type(resolved), resolved) == (type(value), value)


@pytest.mark.parametrize(
    "text",
    [
        ".inf",
        "-.Inf",
        "+.INF",
        ".nan",
        ".NaN",
        ".NAN",
        "1e309",
        "-1e309",
        "9" * 41,
        "0x" + "f" * 39,
        "0." + "1" * 39,
    ],
)
def test_unusable_numbers_are_refused(text: str) -> None:
    """A number that JSON cannot contain, or that is too long, is refused and not rounded."""
    with pytest.raises(NumberRefusedError):
        resolve_scalar(text)


@given(
    st.integers(-(10 ** (MAX_NUMBER_LENGTH - 1)) + 1, 10**MAX_NUMBER_LENGTH - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
)
def test_every_json_number_is_read_exactly(number: float) -> None:
    """A number of JSON is read with its type and to the last bit."""
    text = json.dumps(number)
    resolved = resolve_scalar(text)
    assert type(resolved) is type(number)
    assert resolved == number
    assert math.copysign(1, resolved) == math.copysign(1, number)


@given(st.text("0123456789+-.eExoabfnul~_:TRUEtrue", max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Any text resolves to a value or is refused, and a value of type str is the text itself."""
    with suppress(NumberRefusedError):
        resolved = resolve_scalar(text)
        assert not isinstance(resolved, str) or resolved == text
