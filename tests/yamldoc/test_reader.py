"""The reader accepts the YAML of a spec, and refuses the rest with a finding at the mistake."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reading import canonical
from spec_factory import finding_with_id, ids
from tpucfg.yamldoc.reader import read_bytes, read_file, read_text
from yaml_texts import CONSTRUCTS, MAPPINGS, REFUSED


@pytest.mark.parametrize(("text", "data"), CONSTRUCTS.items(), ids=map(repr, CONSTRUCTS))
@pytest.mark.usefixtures("parser")
def test_every_construct_is_read_as_yaml_1_2(text: str, data: object) -> None:
    """Block and flow style, the five styles of a scalar, aliases and JSON are read by YAML 1.2."""
    document = read_text(text, "a.yaml")
    assert document.findings == ()
    assert canonical(document.data) == canonical(data)


@given(MAPPINGS, st.sampled_from([None, True, False]), st.sampled_from([20, 1000]))
def test_the_text_of_another_writer_is_read_as_its_data(
    data: dict[str, Any], flow: bool | None, width: int
) -> None:
    """Data that PyYAML writes, in block or flow style and with folded lines, is read unchanged."""
    # PyYAML writes for YAML 1.1, where `0E0` is text: with a leading letter, both versions agree.
    data = with_letters(data)
    text = yaml.safe_dump(
        data, default_flow_style=flow, width=width, allow_unicode=True, sort_keys=False
    )
    assert canonical(read_text(text, "a.yaml").data) == canonical(data)


def with_letters(data: Any) -> Any:
    """Return the data with a letter before each text and each key."""
    if isinstance(data, dict):
        return {f"x{key}": with_letters(item) for key, item in data.items()}
    if isinstance(data, list):
        return [with_letters(item) for item in data]
    return f"x{data}" if isinstance(data, str) else data


@pytest.mark.parametrize(("text", "expected"), REFUSED.items(), ids=map(repr, REFUSED))
@pytest.mark.usefixtures("parser")
def test_a_mistake_is_one_error_at_its_location(text: str, expected: tuple[str, int, int]) -> None:
    """One mistake is one finding of level error, at the first character of the mistake."""
    (finding,) = read_text(text, "a.yaml").findings
    assert (finding.id, finding.location.line, finding.location.column) == expected
    assert finding.level == "error"


@pytest.mark.parametrize(
    "text",
    ['{"a": "\\ud83d"}', '{"a": "\\ude00\\ud83d"}', '{"a": "\\\\ud83d\\ude00"}', 'a: "\\ud800"\n'],
)
@pytest.mark.usefixtures("parser")
def test_half_a_surrogate_pair_is_refused(text: str) -> None:
    """With either parser, a lone surrogate never reaches the data."""
    (finding,) = read_text(text, "a.yaml").findings
    assert finding.id in ("TPU002", "TPU011")
    assert finding.location.line == 1


def test_a_duplicate_key_is_reported_with_both_locations() -> None:
    """The finding is at the second key and refers to the first, whose value is kept."""
    document = read_text("a: 1\nb: 2\na: 3\na: 4\n", "a.yaml")
    assert [
        (finding.location.line, finding.related[0][0].line) for finding in document.findings
    ] == [(3, 1), (4, 1)]
    assert document.data == {"a": 1, "b": 2}


def test_reading_continues_after_a_local_mistake() -> None:
    """A duplicate key, a tag, an infinite number and a control character are all reported in one run."""
    document = read_text('a: !x 1\nb: .nan\na: 2\nc: "\\0"\nd: 4\n', "a.yaml")
    assert ids(document.findings) == ["TPU011", "TPU006", "TPU003", "TPU011"]
    assert document.root is not None


def test_a_tab_has_its_own_help() -> None:
    """The help for a tab as indentation names the tab."""
    (finding,) = read_text("a:\n\tb: 1\n", "a.yaml").findings
    assert "tab" in finding.help


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
def test_a_file_must_be_utf_8(
    content: bytes, byte: str, location: tuple[int, int], mark: bytes
) -> None:
    """The finding about another encoding names the first invalid byte, at its location."""
    finding = finding_with_id("TPU001", read_bytes(mark + content, "a.yaml").findings)
    assert byte in finding.message
    assert (finding.location.line, finding.location.column) == location


def test_a_leading_byte_order_mark_is_dropped() -> None:
    """Behind a byte order mark, the first key is in column 1."""
    document = read_bytes(b"\xef\xbb\xbfa: 1\n", "a.yaml")
    assert document.data == {"a": 1}
    assert tuple(document.key_location(("a",))[1:3]) == (1, 1)


def test_an_unreadable_file_is_a_finding(tmp_path: Path) -> None:
    """A missing file and a folder are findings with help, not exceptions."""
    for path in (tmp_path / "none.yaml", tmp_path):
        finding = finding_with_id("TPU001", read_file(path).findings)
        assert finding.location.file == str(path)
        assert "give the path of a file that exists" in finding.help


@given(st.text(st.sampled_from("ab:-[]{}&*!|>'\"%@`,?#~\\ \t\n01.\x00é😀$"), max_size=40))
def test_no_text_raises_an_exception(text: str) -> None:
    """Every text gives a document or a finding."""
    document = read_text(text, "a.yaml")
    assert document.root is not None or document.findings


SEVERAL = "a: &x 1\nb: *x\n---\n---\n# nothing\n---\n- 2\n--- 3\n"


def test_a_stream_of_documents_is_read_where_it_is_allowed() -> None:
    """Each document has its data and its own locations, in the lines of the whole text; empty ones are left out."""
    document = read_text(SEVERAL, "config.yaml", several=True)
    parts = document.parts()
    assert [part.data for part in parts] == [{"a": 1, "b": 1}, [2], 3]
    assert [part.value_location(()).line for part in parts[1:]] == [7, 8]
    assert parts[1].value_location((0,)).line == 7
    assert document.findings == ()


def test_one_document_is_the_only_part() -> None:
    """A text with one document is read in the same way, whether or not several are allowed."""
    for several in (False, True):
        document = read_text("a: 1\n", "config.yaml", several=several)
        assert [part.data for part in document.parts()] == [{"a": 1}]
        assert not document.is_part


@pytest.mark.parametrize(
    ("text", "id_", "line"),
    [
        ("a: &x 1\n---\nb: *x\n", "TPU011", 3),
        ("a: 1\n---\nb: 1\nb: 2\n", "TPU003", 4),
        ("a: 1\n---\nb: [\n", "TPU002", 4),
        ("---\n---\n", "TPU002", None),
        ("- 1\n" + "---\n- 1\n" * 30_000, "TPU010", 50_001),
    ],
)
def test_mistakes_in_any_document_are_found(text: str, id_: str, line: int | None) -> None:
    """Aliases stay within their document, and limits count the whole text."""
    document = read_text(text, "config.yaml", several=True)
    assert [finding.id for finding in document.findings] == [id_]
    assert line is None or document.findings[0].location.line in {line, line - 1}


def test_a_second_document_stays_an_error_elsewhere() -> None:
    """A spec has one document."""
    (finding,) = read_text(SEVERAL, "tpucfg.yaml").findings
    assert (finding.id, finding.location.line) == ("TPU011", 3)
