"""Texts as people see them: nothing is invisible, and nothing looks the same that differs."""

import time
from unicodedata import is_normalized, normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpucfg.findings import Finding, Location
from tpucfg.findings.text import report
from tpucfg.text_format import is_visible, json_text, printable
from tpucfg.yamldoc.reader import read_text
from tpucfg.yamldoc.writer import to_yaml

INVISIBLE = [
    *"\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f\u2800\u3164\ufe00\ufe0e\ufe0f\uffa0",
    *"\u00ad\u200b\u200c\u200d\u200e\u2060\u2064\u061c\u202e\u2066\ufeff\u00a0\u3000\u2003\u0000\u001b\u007f\u2028",
    *"\U000e0001\U000e0041\U000e0100\U000e01ef\U0001d159\U00016fe4\U00013441\U0001bca0\U0001d173",
]
"""Fillers, selectors, blanks, tags, joiners, directions, spaces and controls."""


@pytest.mark.parametrize("char", INVISIBLE, ids=lambda char: f"U+{ord(char):04X}")
def test_invisible_characters_are_escaped(char: str) -> None:
    """A character that shows nothing is escaped in messages, in JSON and in YAML, which still read as the same text."""
    text = f"mnist{char}:1.0"
    assert not is_visible(text)
    assert (
        printable(text) == f"mnist\\u{ord(char):04x}:1.0"
        if ord(char) <= 0xFFFF
        else "\\U000" in printable(text)
    )
    assert char not in json_text({"image": text})
    yaml_text = to_yaml(text)
    assert char not in yaml_text
    if ord(char) >= 0xA0 and char not in "\u2028\ufeff":
        assert read_text(f"a: {yaml_text}\n", "x").data == {"a": text}


@pytest.mark.parametrize(
    "text",
    ["mnist", "größe", "ตัวอย่าง", "हिन्दी", "日本語", "한국어", "emoji 🚀", "Ada Lovelace", "→ × …"],
)
def test_languages_are_not_escaped(text: str) -> None:
    """Words of any language are shown as they are, if they are written as Unicode recommends."""
    assert is_visible(text)
    assert printable(text) == text


@pytest.mark.parametrize("text", ["größe", "한국", "Å", "é"])
def test_equal_looks_differ(text: str) -> None:
    """A text with separate accents does not look like the one with precomposed letters."""
    decomposed = normalize("NFD", text)
    assert printable(decomposed) != printable(text)
    assert is_normalized("NFC", printable(decomposed))


@pytest.mark.parametrize(("char", "look"), [("\u212a", "K"), ("\u037e", ";"), ("\u1fef", "`")])
def test_characters_defined_as_equal_are_escaped(char: str, look: str) -> None:
    """The Kelvin sign, the Greek question mark and the like do not look like the character that they equal."""
    assert normalize("NFC", char) == look
    assert printable(f"a{char}") == f"a\\u{ord(char):04x}"


@given(st.text())
def test_what_is_printed_is_visible(text: str) -> None:
    """Escapes leave nothing invisible, and a second pass changes nothing."""
    assert is_visible(printable(text))
    assert printable(printable(text)) == printable(text)


@given(st.text(), st.text())
def test_texts_that_unicode_defines_as_equal_are_told_apart(text: str, other: str) -> None:
    """Two printed texts are equal for Unicode only if they are equal."""
    shown, other_shown = printable(text), printable(other)
    assert (normalize("NFC", shown) == normalize("NFC", other_shown)) == (shown == other_shown)


def test_source_lines_of_findings_show_blanks_for_invisible_characters() -> None:
    """The underline stays below the value, as an invisible character is shown as one blank."""
    location = Location("x.yaml", 1, 9, 1, 10)
    finding = Finding.of("TPU007", "bad", location)
    line, underline = report([finding], {"x.yaml": "a: b\u3164\ufe0f\u2800cd"}).splitlines()[2:4]
    assert line == "1 | a: b   cd"
    assert underline.rstrip() == "  |         ^"


@pytest.mark.slow
@pytest.mark.parametrize("part", ["é", "e\u0301", "\u3164", "漢", "\u1100\u1161"])
def test_long_texts_take_linear_time(part: str) -> None:
    """Half a million characters are printed within seconds."""
    start = time.process_time()
    printable(part * (500_000 // len(part)))
    assert time.process_time() - start < 3
