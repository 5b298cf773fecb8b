"""Previews that are cut off, mixed with text, huge or hostile: each has a failure with location and reason."""

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recorded_previews import read, read_text, text
from tpucfg.changes.previews import MAX_PREVIEW_BYTES, read_preview

NESTED = "[" * 100_000
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("data", "location", "lines"),
    [
        ("", "dev.jsonl", ""),
        (" \n\n", "dev.jsonl", ""),
        ("{}", "dev.jsonl", ""),
        ('{"a": 1}\n{"b": 2}', "dev.jsonl", ""),
        ("\n\nerror: no credentials", "dev.jsonl:3", "error: no credentials"),
        ('{"steps": [', "dev.jsonl:1", "invalid JSON: Expecting value: line 1 column 12 (char 11)"),
        (
            '{\n "steps": [{"op": "cre',
            "dev.jsonl:2",
            "invalid JSON: Unterminated string starting at: line 2 column 19",
        ),
        ('{"steps" 1}', "dev.jsonl:1", "invalid JSON: Expecting ':' delimiter: line 1 column 10"),
        ('{"steps": ' + NESTED, "dev.jsonl:1", "invalid JSON: it is nested too deeply"),
        ('{"preludeEvent": {}}\n', "dev.jsonl", ""),
    ],
)
def test_unreadable_preview_has_a_failure(data: str, location: str, lines: str) -> None:
    """The failure has the location, and the lines that are no events."""
    failure = read_text(data).failure
    assert failure
    assert failure[:2] == (location, "pulumi preview did not complete")
    assert "\n".join(failure.lines).startswith(lines)


def test_a_stack_that_does_not_exist_is_a_reason_of_its_own() -> None:
    """There is nothing to compare with yet, which is no error."""
    assert read_text("error: no stack named 'dev' found").has_no_stack


@pytest.mark.parametrize("form", ["json", "jsonl"])
@pytest.mark.parametrize("part", [1, 5, 9])
def test_cut_preview_has_a_failure(form: str, part: int) -> None:
    """A preview that ends anywhere is never accepted as complete."""
    complete = text("region-move", form)
    assert read_text(complete[: len(complete) * part // 10], f"dev.{form}").failure


def test_cut_stream_has_its_first_changes() -> None:
    """The steps before the cut are read in addition to the failure."""
    lines = text("region-move").splitlines()
    preview = read_text("\n".join([*lines[:-4], lines[-4][:100]]))
    assert preview.failure
    assert preview.failure.location == f"dev.jsonl:{len(lines) - 3}"
    assert preview.changes


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_lines_of_text_are_ignored(form: str) -> None:
    """Warnings on standard error change nothing, before or after the JSON or on its last line."""
    mixed = f"warning: a new version of Pulumi\n{text('update', form).rstrip()}warning: again\n\nresources: 12\n"
    assert read_text(mixed) == read("update", form)


def test_error_line_after_the_stream_is_a_failure() -> None:
    """An error on standard error fails a preview whose stream looks complete."""
    failure = read_text(text("update") + "error: lost the connection\nto the backend").failure
    assert failure
    assert failure.lines == ("error: lost the connection", "to the backend")


def test_too_large_file_is_not_parsed() -> None:
    """The size is checked before anything is parsed."""
    failure = read_preview("dev", "dev.json", b" " * (MAX_PREVIEW_BYTES + 1)).failure
    assert failure == ("dev.json", "the file is larger than 32 MiB", ())


def test_messages_are_printable_and_bounded() -> None:
    """Colors are removed, control characters and reversed text are escaped, and long lines are cut."""
    event = {
        "diagnosticEvent": {
            "severity": "error",
            "message": "\x1b[31mred\x1b[0m\r\n\u202eevil\x07" + "x" * 9999,
        }
    }
    failure = read_text(json.dumps(event)).failure
    assert failure
    assert failure.lines[0] == "red"
    assert failure.lines[1].startswith("\\u202eevil\\u0007xxx")
    assert len(failure.lines[1]) == 400


def test_long_error_is_cut() -> None:
    """Of a thousand lines, the first are shown and the others counted."""
    event = {"diagnosticEvent": {"severity": "error", "message": "\n".join(map(str, range(1000)))}}
    failure = read_text(json.dumps(event)).failure
    assert failure
    assert len(failure.lines) == 41
    assert failure.lines[-1] == "… and 960 more lines"


@given(VALUES, VALUES, VALUES)
def test_any_shape_is_read(op: Any, state: Any, anything: Any) -> None:
    """A value of an unexpected type never raises an exception."""
    urn = "urn:pulumi:dev::p::gcp:storage/bucket:Bucket::data"
    sides = {"old": state, "new": {"custom": True, "inputs": state, "protect": op}}
    meta = {"op": "update", "urn": urn, "keys": anything, "diffs": op, **sides}
    events = [
        {"resourcePreEvent": {"metadata": meta}},
        {"resourcePreEvent": {"metadata": {**meta, "op": op, "urn": anything}}},
        {"resourcePreEvent": anything},
        {"diagnosticEvent": {"severity": op, "message": anything}},
        {"policyEvent": {"message": anything, "enforcementLevel": op, "resourceUrn": state}},
        {"summaryEvent": anything},
        {"steps": anything, "diagnostics": [anything], "changeSummary": op},
    ]
    read_text("\n".join(json.dumps(event) for event in events))


@given(st.binary(max_size=300) | st.text(alphabet='{}[]":,\n ae1\\', max_size=200).map(str.encode))
def test_any_bytes_are_read(data: bytes) -> None:
    """Random bytes are never accepted as a preview."""
    assert read_preview("dev", "dev.json", data).failure


_LINES: Final = ("{", '{"a', "{}", "{x}", "x", "error: ", '{"diagnosticEvent": {}} {', "}")


@pytest.mark.parametrize(
    "line", ['{"a":', *(pytest.param(line, marks=pytest.mark.slow) for line in _LINES)]
)
def test_long_input_is_read_in_linear_time(line: str) -> None:
    """Each character is read a bounded number of times, so a million such lines take seconds."""
    assert read_text(f"{line}\n" * 1_000_000).failure
    assert read_text(line * 1_000_000).failure


@pytest.mark.slow
@pytest.mark.parametrize(
    "part", ["a@", "a.", "a@b.", "urn:pulumi:a::b::", "-----BEGIN ", "//a:b", "x\n", "\x1b[", "hf_"]
)
def test_long_error_is_read_in_linear_time(part: str) -> None:
    """The search for personal data and secrets in a message is bounded as well."""
    event = {"diagnosticEvent": {"severity": "error", "message": part * 1_000_000}}
    failure = read_text(json.dumps(event)).failure
    assert failure
    assert len(failure.lines) <= 41
