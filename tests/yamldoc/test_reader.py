"""Text to document: what is read and what is refused."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reading import canonical
from spec_factory import ids, the
from tpucfg.yamldoc.reader import read_bytes, read_file, read_text
from yaml_texts import CONSTRUCTS, MAPPINGS, REFUSED


@pytest.mark.parametrize(("text", "data"), CONSTRUCTS.items(), ids=map(repr, CONSTRUCTS))
@pytest.mark.usefixtures("parser")
def test_constructs(text: str, data: object) -> None:
    """Block and flow style, all five ways to write a scalar, aliases, JSON: each is read as YAML 1.2 means it."""
    document = read_text(text, "a.yaml")
    assert document.findings == ()
    assert canonical(document.data) == canonical(data)


@given(MAPPINGS, st.sampled_from([None, True, False]), st.sampled_from([20, 1000]))
def test_yaml_of_another_writer(data: dict[str, Any], flow: bool | None, width: int) -> None:
    """Whatever PyYAML writes, in block or flow style and with folded lines, is read as what it wrote.

    PyYAML writes for YAML 1.1, where `0E0` is text: here every text begins with a letter.
    """
    data = lettered(data)
    text = yaml.safe_dump(data, default_flow_style=flow, width=width, allow_unicode=True, sort_keys=False)
    assert canonical(read_text(text, "a.yaml").data) == canonical(data)


def lettered(data: Any) -> Any:
    """The data with a letter before each text and each key."""
    if isinstance(data, dict):
        return {f"x{key}": lettered(item) for key, item in data.items()}
    if isinstance(data, list):
        return [lettered(item) for item in data]
    return f"x{data}" if isinstance(data, str) else data


@pytest.mark.parametrize(("text", "expected"), REFUSED.items(), ids=map(repr, REFUSED))
@pytest.mark.usefixtures("parser")
def test_refusals(text: str, expected: tuple[str, int, int]) -> None:
    """One mistake is one finding of level error, at the character where the mistake is."""
    (found,) = read_text(text, "a.yaml").findings
    assert (found.id, found.location.line, found.location.column) == expected
    assert found.level == "error"


@pytest.mark.parametrize(
    "text", ['{"a": "\\ud83d"}', '{"a": "\\ude00\\ud83d"}', '{"a": "\\\\ud83d\\ude00"}', 'a: "\\ud800"\n']
)
@pytest.mark.usefixtures("parser")
def test_half_a_surrogate_pair_is_refused(text: str) -> None:
    """Half a character is none: neither parser lets one reach the data."""
    (found,) = read_text(text, "a.yaml").findings
    assert found.id in ("TPU002", "TPU011")
    assert found.location.line == 1


def test_both_places_of_a_duplicate_key() -> None:
    """The finding stands at the second key and names the first; the first one's value counts."""
    document = read_text("a: 1\nb: 2\na: 3\na: 4\n", "a.yaml")
    assert [(found.location.line, found.related[0][0].line) for found in document.findings] == [(3, 1), (4, 1)]
    assert document.data == {"a": 1, "b": 2}


def test_all_mistakes_that_do_not_end_the_text_are_found_at_once() -> None:
    """Reading goes on behind a duplicate key, a tag, an infinite number or a control character."""
    document = read_text('a: !x 1\nb: .nan\na: 2\nc: "\\0"\nd: 4\n', "a.yaml")
    assert ids(document.findings) == ["TPU011", "TPU006", "TPU003", "TPU011"]
    assert document.root is not None


def test_a_tab_is_named() -> None:
    """The most frequent mistake of all has its own line of help."""
    (found,) = read_text("a:\n\tb: 1\n", "a.yaml").findings
    assert "tab" in found.help


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["without mark", "with mark"])
@pytest.mark.parametrize(
    ("content", "byte", "location"),
    [
        (b"a: \xff\n", "0xff", (1, 4)),
        ("é: 日\nb: ".encode() + b"\xc3\x28\n", "0xc3", (2, 4)),
        ("a: 1\n".encode("utf-16-le") + b"\x80", "0x80", (2, 2)),
        (b"a: \xed\xa0\x80\n", "0xed", (1, 4)),
    ],
)
def test_a_file_is_utf_8(content: bytes, byte: str, location: tuple[int, int], mark: bytes) -> None:
    """Of a file in another encoding the first byte that does not fit is shown, with its place."""
    found = the("TPU001", read_bytes(mark + content, "a.yaml").findings)
    assert byte in found.message
    assert (found.location.line, found.location.column) == location


def test_a_byte_order_mark_is_no_character() -> None:
    """It is dropped, and the first key stands in column 1."""
    document = read_bytes(b"\xef\xbb\xbfa: 1\n", "a.yaml")
    assert document.data == {"a": 1}
    assert tuple(document.key(("a",))[1:3]) == (1, 1)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """A missing file and a folder are findings that say what to do, not exceptions."""
    for path in (tmp_path / "none.yaml", tmp_path):
        found = the("TPU001", read_file(path).findings)
        assert found.location.file == str(path)
        assert "--spec" in found.help


@given(st.text(st.sampled_from("ab:-[]{}&*!|>'\"%@`,?#~\\ \t\n01.\x00é😀$"), max_size=40))
def test_no_text_whatever_ends_in_an_exception(text: str) -> None:
    """Whatever is typed is a document or a finding."""
    document = read_text(text, "a.yaml")
    assert document.root is not None or document.findings
