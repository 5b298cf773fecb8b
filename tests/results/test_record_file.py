"""Reading the results of an environment: every invalid line is a finding, and links are not followed."""

import json
import os
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec_factory import ids
from tpucfg.results import records as results
from tpucfg.results.records import (
    MAX_BAD_LINES,
    MAX_FILE_BYTES,
    MAX_FINDINGS_PER_LINE,
    MAX_LINE_LENGTH,
    latest_rates,
    parse_records,
)
from tpucfg.schemas import is_valid

LINE = '{"metrics": {"accuracy": 0.97, "examples_per_second": 1234.5}, "name": "mnist", "size": "v2-8"}'


def write_results(folder: Path, text: str | bytes) -> Path:
    """Write the results of dev, and return the folder."""
    (folder / "results").mkdir()
    (folder / "results" / "dev.jsonl").write_bytes(
        text if isinstance(text, bytes) else text.encode()
    )
    return folder


def test_the_last_record_of_a_rung_counts(tmp_path: Path) -> None:
    """Of several records of one size the last one counts, and records of another project do not."""
    rows = [
        {"metrics": {"examples_per_second": value}, "name": name, "size": "v2-8"}
        for name, value in (("mnist", 1), ("mnist", 2.5), ("resnet", 3))
    ]
    read = results.read_records(
        write_results(tmp_path, "".join(f"{json.dumps(row)}\n" for row in rows)), "dev"
    )
    assert read.findings == ()
    assert [record.location.line for record in read.records if record.location] == [1, 2, 3]
    assert latest_rates(read, "mnist") == {"v2-8": (Fraction("2.5"), None)}
    assert latest_rates(read, "bert") == {}


@pytest.mark.parametrize(
    "text", ["", "\n", f"{LINE}\n\n{LINE}", f"{LINE}\r\n", f"\ufeff{LINE}\n", f" {LINE} \n"]
)
def test_traces_of_editors_are_accepted(tmp_path: Path, text: str) -> None:
    """Blank lines, a byte order mark, other line breaks and a missing last one are not findings."""
    read = results.read_records(write_results(tmp_path, text), "dev")
    assert (read.findings, len(read.records)) == ((), text.count("mnist"))


def test_a_missing_file_has_no_records(tmp_path: Path) -> None:
    """A missing folder or file has neither records nor findings."""
    assert results.read_records(tmp_path, "dev") == results.Results(
        str(tmp_path / "results" / "dev.jsonl"), ""
    )
    (tmp_path / "results").mkdir()
    assert results.read_records(tmp_path, "dev").findings == ()


@pytest.mark.parametrize(
    ("line", "id_", "column_of", "expected"),
    [
        ("loss 0.1", "TPU101", "loss", "not valid JSON"),
        ("{size: v2-8, name: mnist, metrics: {a: 1}}", "TPU101", "size", "not valid JSON"),
        (LINE[:50], "TPU101", '"examples', "truncated"),
        (LINE[:-1], "TPU101", '"', "truncated"),
        (f"{LINE}{{}}", "TPU101", "{}", "extra data"),
        (LINE.replace("0.97", "NaN"), "TPU101", "{", "NaN is not a finite number"),
        (LINE.replace("0.97", "-Infinity"), "TPU101", "{", "-Infinity is not a finite number"),
        (LINE.replace("0.97", "1e999"), "TPU101", "{", "1e999 is not a finite number"),
        (LINE.replace("0.97", "9" * 5000), "TPU101", "{", "…"),
        (LINE.replace("v2-8", "x" * MAX_LINE_LENGTH), "TPU101", "{", "characters"),
        ("[" * 8000, "TPU101", "[", "too deeply"),
        (LINE.replace("size", "name"), "TPU101", "{", "the key name occurs twice"),
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
def test_an_invalid_line_is_a_finding(line: str, id_: str, column_of: str, expected: str) -> None:
    """An invalid line is a finding with line, column and help, and the other lines count."""
    read = parse_records(f"{LINE}\n{LINE}\n{line}", "results/dev.jsonl")
    (finding,) = read.findings
    column = (line.rindex(column_of) if expected == "truncated" else line.index(column_of)) + 1
    assert (finding.id, finding.location.line, finding.location.column) == (id_, 3, column)
    assert expected in finding.message
    assert finding.help
    assert (finding.message + finding.help).isprintable()
    assert len(finding.message) < 200
    assert len(read.records) == 2


def test_a_line_that_is_not_utf8_is_a_finding(tmp_path: Path) -> None:
    """A line that is not UTF-8 is one invalid line."""
    read = results.read_records(
        write_results(tmp_path, LINE.replace("mnist", "mn\xefst").encode("latin-1") + b"\n"), "dev"
    )
    assert ids(read.findings) == ["TPU102"]
    assert read.findings[0].message.isprintable()


def test_another_file_is_one_finding() -> None:
    """A log in place of the results is one finding, and none of its lines counts."""
    read = parse_records("step 1\n" * (MAX_BAD_LINES + 1) + LINE, "results/dev.jsonl")
    assert ids(read.findings) == ["TPU100"]
    assert read.records == ()
    assert (
        len(parse_records("step 1\n" * MAX_BAD_LINES, "results/dev.jsonl").findings)
        == MAX_BAD_LINES
    )


def test_findings_per_line_are_limited() -> None:
    """Hundreds of unknown keys on one line are a few findings."""
    read = parse_records(
        json.dumps({f"key{number}": 1 for number in range(500)}), "results/dev.jsonl"
    )
    assert len(read.findings) == MAX_FINDINGS_PER_LINE


def test_a_large_file_is_an_error(tmp_path: Path) -> None:
    """A file beyond the limit is one finding, however large it is, such as a sparse file of a terabyte."""
    with (write_results(tmp_path, "") / "results" / "dev.jsonl").open("r+b") as file:
        file.truncate(1 << 40)
    (finding,) = results.read_records(tmp_path, "dev").findings
    assert (finding.id, f"{MAX_FILE_BYTES:,}" in finding.message) == ("TPU100", True)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_link_is_not_followed(tmp_path: Path, kind: str) -> None:
    """A linked file or folder is not read."""
    outside, project = tmp_path / "outside", tmp_path / "project"
    outside.mkdir()
    project.mkdir()
    write_results(outside, f"{LINE}\n")
    if kind == "folder":
        (project / "results").symlink_to(outside / "results")
    else:
        (project / "results").mkdir()
        (project / "results" / "dev.jsonl").symlink_to(outside / "results" / "dev.jsonl")
    read = results.read_records(project, "dev")
    assert (ids(read.findings), read.records) == (["TPU100"], ())
    assert "symbolic link" in read.findings[0].message


def test_a_pipe_is_an_error(tmp_path: Path) -> None:
    """A named pipe is an error, without waiting for a writer."""
    (tmp_path / "results").mkdir()
    os.mkfifo(tmp_path / "results" / "dev.jsonl")
    (finding,) = results.read_records(tmp_path, "dev").findings
    assert (finding.id, "pipe" in finding.message) == ("TPU100", True)


@given(
    st.lists(
        st.text(max_size=60)
        | st.binary(max_size=60).map(lambda data: data.decode("utf-8", "surrogateescape"))
    )
)
def test_any_text_is_read(rows: list[str]) -> None:
    """Each line of any text is blank, a record, or a finding with a location."""
    text = "\n".join(rows)
    read = parse_records(text, "results/dev.jsonl")
    for finding in read.findings:
        assert finding.message.isprintable()
        assert 1 <= finding.location.line <= text.count("\n") + text.count("\r") + 1


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["metrics", "name", "size", "run", "job", "accuracy"]),
                inner,
                max_size=6,
            )
        ),
        max_leaves=12,
    )
)
def test_validator_and_explanation_agree(data: object) -> None:
    """The fast validator and the explanation agree on any JSON."""
    read = parse_records(json.dumps(data), "results/dev.jsonl")
    assert bool(read.records) != bool(read.findings)
    if read.records:
        assert is_valid("record", data)
