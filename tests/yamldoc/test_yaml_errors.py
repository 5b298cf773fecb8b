"""The help for a text that is not YAML is an edit at the mistake: applied, it gives the data that was meant."""

from typing import Any, Final

import pytest

from autofix import apply_help
from tpucfg.yamldoc.reader import read_text

NO_SPACE: Final = {
    "a:1\nb: 2\n": ({"a": 1, "b": 2}, "write a: 1"),
    "a:1\n# c\nb: 2\n": ({"a": 1, "b": 2}, "write a: 1"),
    "x:\n  a:1\n  b: 2\n": ({"x": {"a": 1, "b": 2}}, "write a: 1"),
    "x:\n  a:1\n  # c\n  b: 2\n": ({"x": {"a": 1, "b": 2}}, "write a: 1"),
    "x: 1\na:{b: 1, c: 2}\n": ({"x": 1, "a": {"b": 1, "c": 2}}, "write a: {b: 1, c: 2}"),
}
UNCLOSED: Final = {
    'a: "b\nc: 1\nd: "e"\n': ({"a": "b", "c": 1, "d": "e"}, 'close it with "'),
    "a: 'b\nc: 1 # isn't\n": ({"a": "b", "c": 1}, "close it with '"),
    'a: "b\nc: {d: "e"}\n': ({"a": "b", "c": {"d": "e"}}, 'close it with "'),
    'a:\n- "b\n- "c"\n': ({"a": ["b", "c"]}, 'close it with "'),
}
NUMBERS: Final = {
    "a: {b: 2,000}\n": (
        {"a": {"b": 2000}},
        "write 2000, without separators; if it is text, put it in quotes",
    ),
    "{a: 20,000,000, b: 1}\n": (
        {"a": 20_000_000, "b": 1},
        "write 20000000, without separators; if it is text, put it in quotes",
    ),
}
QUOTES: Final = {
    "a: @b\nc: 1\n": ({"a": "@b", "c": 1}, "put the whole value in quotes: '@b'"),
    "a:\n  b: it's: c\n": ({"a": {"b": "it's: c"}}, "put the whole value in quotes: 'it''s: c'"),
    "a: 100%\nb: %c\n": ({"a": "100%", "b": "%c"}, "put the whole value in quotes: '%c'"),
}
ALL: Final = QUOTES | NO_SPACE | UNCLOSED | NUMBERS


@pytest.mark.parametrize("text", ALL)
def test_the_edit_gives_what_was_meant(text: str) -> None:
    """One finding at the mistake, whose help is the edit, although the parser stops further below or accepts it."""
    data, hint = ALL[text]
    document = read_text(text, "a.yaml")
    (finding,) = document.findings
    assert finding.help == hint
    fixed = apply_help(document, finding)
    assert fixed is not None
    assert read_text(fixed, "a.yaml").data == data


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("{a: b, 000, c: 1}", {"a": "b", "000": None, "c": 1}),
        ("{a: 2,000: 1}", {"a": 2, "000": 1}),
        ("{a: 2,00}", {"a": 2, "00": None}),
        ('{"a": 2,"000": null}', {"a": 2, "000": None}),
    ],
)
def test_other_keys_of_digits_stay_keys(text: str, data: Any) -> None:
    """Digits are a key if no number precedes them, a value follows them, or they are no group of three."""
    document = read_text(text, "a.yaml")
    assert document.findings == ()
    assert document.data == data


def test_text_behind_a_quoted_text_of_several_lines() -> None:
    """The lines of a text in quotes are indented deeper than its key, so its quotes are right."""
    (finding,) = read_text('a: "b\n  c" d\ne: 1\n', "a.yaml").findings
    assert finding.location.line == 2
    assert finding.message.endswith("did not find expected key")


@pytest.mark.parametrize(
    "row",
    [
        "API_KEY: @q7v2m9x4k1w8",
        "API_KEY:q7v2m9x4k1w8",
        "API_KEY q7v2m9x4k1w8",
        "A: @hf_q7v2m9x4k1w8q7v2m9x4k1w8q7v2m9x4k1w8",
    ],
)
def test_an_edit_shows_no_credential(row: str) -> None:
    """The help names the edit without the value."""
    (finding,) = read_text(f"{row}\nb: 1\n", "a.yaml").findings
    assert finding.help.startswith(("put the whole value in quotes", "write "))
    assert "q7v2m9x4k1w8" not in "".join(finding.lines)
