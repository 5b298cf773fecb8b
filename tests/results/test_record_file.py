"""Reading the results of an environment: every bad line is a finding, and nothing outside the folder is read."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec_factory import ids
from tpucfg import results
from tpucfg.results import ExampleRecord
from tpucfg.results.record_file import MAX_BAD_LINES, MAX_FILE_BYTES, parse_records
from tpucfg.results.record_parser import MAX_FINDINGS_PER_LINE, MAX_LINE_LENGTH
from tpucfg.schemas import is_valid

EXAMPLE = ExampleRecord("mnist", "v2-8")
LINE = '{"metrics": {"accuracy": 0.97, "examples_per_second": 1234.5}, "name": "mnist", "size": "v2-8"}'


def written(folder: Path, text: str | bytes) -> Path:
    """The folder, with these results of dev."""
    (folder / "results").mkdir()
    (folder / "results" / "dev.jsonl").write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def test_the_last_record_of_a_rung_counts(tmp_path: Path) -> None:
    """Of several records of one size the last is taken, and those of another project are another's."""
    rows = [
        {"metrics": {"examples_per_second": value}, "name": name, "size": "v2-8"}
        for name, value in (("mnist", 1), ("mnist", 2.5), ("resnet", 3))
    ]
    found = results.read_records(written(tmp_path, "".join(f"{json.dumps(row)}\n" for row in rows)), "dev", EXAMPLE)
    assert found.findings == ()
    assert [record.location.line for record in found.records if record.location] == [1, 2, 3]
    assert results.latest_records(found, "mnist")["v2-8"].metrics == {"examples_per_second": 2.5}
    assert results.latest_records(found, "bert") == {}


@pytest.mark.parametrize("text", ["", "\n", f"{LINE}\n\n{LINE}", f"{LINE}\r\n", f"\ufeff{LINE}\n", f" {LINE} \n"])
def test_what_editors_leave_is_no_mistake(tmp_path: Path, text: str) -> None:
    """Blank lines, a byte order mark, other line ends and a missing last one."""
    found = results.read_records(written(tmp_path, text), "dev", EXAMPLE)
    assert (found.findings, len(found.records)) == ((), text.count("mnist"))


def test_nothing_recorded(tmp_path: Path) -> None:
    """No folder and no file are no records, and no finding."""
    assert results.read_records(tmp_path, "dev", EXAMPLE) == results.Results(
        str(tmp_path / "results" / "dev.jsonl"), ""
    )
    (tmp_path / "results").mkdir()
    assert results.read_records(tmp_path, "dev", EXAMPLE).findings == ()


@pytest.mark.parametrize(
    ("line", "id_", "at", "said"),
    [
        ("loss 0.1", "TPU101", "loss", "no JSON"),
        ("{size: v2-8, name: mnist, metrics: {a: 1}}", "TPU101", "size", "no JSON"),
        (LINE[:50], "TPU101", '"examples', "cut off"),
        (LINE[:-1], "TPU101", '"', "cut off"),
        (f"{LINE}{{}}", "TPU101", "{}", "extra data"),
        (LINE.replace("0.97", "NaN"), "TPU101", "{", "NaN is no number"),
        (LINE.replace("0.97", "-Infinity"), "TPU101", "{", "-Infinity is no number"),
        (LINE.replace("0.97", "1e999"), "TPU101", "{", "1e999 is no number"),
        (LINE.replace("0.97", "9" * 5000), "TPU101", "{", "…"),
        (LINE.replace("v2-8", "x" * MAX_LINE_LENGTH), "TPU101", "{", "characters"),
        ("[" * 8000, "TPU101", "[", "deeper"),
        (LINE.replace("size", "name"), "TPU101", "{", "name is written twice"),
        ("[]", "TPU102", "[", "a list"),
        ("12", "TPU102", "1", "a number"),
        (LINE.replace("1234.5", "0"), "TPU102", "0}", "0"),
        (LINE.replace("1234.5", "true"), "TPU102", "true", "true"),
        (LINE.replace("accuracy", "a b"), "TPU102", '"a b', '"a b"'),
        (LINE.replace("accuracy", r"\u001b[31m"), "TPU102", r'"\u001b', r"\u001b"),
        (LINE.replace("v2-8", "../../x"), "TPU102", '"../', "as Google writes it"),
        (LINE.replace('"size"', '"sizes"'), "TPU102", '"sizes', "sizes"),
        (LINE.replace("mnist", r"\ud800"), "TPU102", "{", "lower-case"),
    ],
)
def test_a_bad_line_is_a_finding(line: str, id_: str, at: str, said: str) -> None:
    """With its line, its column and a help, and the other lines still count."""
    found = parse_records(f"{LINE}\n{LINE}\n{line}", "results/dev.jsonl", EXAMPLE)
    (finding,) = found.findings
    column = (line.rindex(at) if said == "cut off" else line.index(at)) + 1
    assert (finding.id, finding.location.line, finding.location.column) == (id_, 3, column)
    assert said in finding.message
    assert finding.help
    assert (finding.message + finding.help).isprintable()
    assert len(finding.message) < 200
    assert len(found.records) == 2


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    """A line that is not UTF-8 is a bad line like any other."""
    found = results.read_records(
        written(tmp_path, LINE.replace("mnist", "mn\xefst").encode("latin-1") + b"\n"), "dev", EXAMPLE
    )
    assert ids(found.findings) == ["TPU102"]
    assert found.findings[0].message.isprintable()


def test_another_file_is_one_finding() -> None:
    """A log in the place of results is said once, and none of its lines count."""
    found = parse_records("step 1\n" * (MAX_BAD_LINES + 1) + LINE, "results/dev.jsonl", EXAMPLE)
    assert ids(found.findings) == ["TPU100"]
    assert found.records == ()
    assert len(parse_records("step 1\n" * MAX_BAD_LINES, "results/dev.jsonl", EXAMPLE).findings) == MAX_BAD_LINES


def test_a_line_of_another_format_is_not_said_key_by_key() -> None:
    """Hundreds of unknown keys on one line are a handful of findings."""
    found = parse_records(json.dumps({f"key{at}": 1 for at in range(500)}), "results/dev.jsonl", EXAMPLE)
    assert len(found.findings) == MAX_FINDINGS_PER_LINE


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    """A file beyond its bounds is one finding, however large: here a hole of a terabyte."""
    with (written(tmp_path, "") / "results" / "dev.jsonl").open("r+b") as file:
        file.truncate(1 << 40)
    (finding,) = results.read_records(tmp_path, "dev", EXAMPLE).findings
    assert (finding.id, f"{MAX_FILE_BYTES:,}" in finding.message) == ("TPU100", True)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_link_is_not_followed(tmp_path: Path, kind: str) -> None:
    """Neither a linked file nor a linked folder is read."""
    elsewhere, here = tmp_path / "elsewhere", tmp_path / "here"
    elsewhere.mkdir()
    here.mkdir()
    written(elsewhere, f"{LINE}\n")
    if kind == "folder":
        (here / "results").symlink_to(elsewhere / "results")
    else:
        (here / "results").mkdir()
        (here / "results" / "dev.jsonl").symlink_to(elsewhere / "results" / "dev.jsonl")
    found = results.read_records(here, "dev", EXAMPLE)
    assert (ids(found.findings), found.records) == (["TPU100"], ())
    assert "symbolic link" in found.findings[0].message


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """What is no regular file is refused at once."""
    (tmp_path / "results").mkdir()
    os.mkfifo(tmp_path / "results" / "dev.jsonl")
    (finding,) = results.read_records(tmp_path, "dev", EXAMPLE).findings
    assert (finding.id, "no regular file" in finding.message) == ("TPU100", True)


@given(st.lists(st.text(max_size=60) | st.binary(max_size=60).map(lambda it: it.decode("utf-8", "surrogateescape"))))
def test_any_text_is_read(rows: list[str]) -> None:
    """Whatever the lines hold, each is blank, a record, or a finding at its place."""
    text = "\n".join(rows)
    found = parse_records(text, "results/dev.jsonl", EXAMPLE)
    for finding in found.findings:
        assert finding.message.isprintable()
        assert 1 <= finding.location.line <= text.count("\n") + text.count("\r") + 1


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["metrics", "name", "size", "run", "job", "accuracy"]), inner, max_size=6)
        ),
        max_leaves=12,
    )
)
def test_a_line_is_a_record_or_says_why_not(data: object) -> None:
    """The quick validator and the explanation agree on any JSON."""
    found = parse_records(json.dumps(data), "results/dev.jsonl", EXAMPLE)
    assert bool(found.records) != bool(found.findings)
    if found.records:
        assert is_valid("record", data)
