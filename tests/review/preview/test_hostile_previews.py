"""Previews that are cut, mixed, huge, or made to break their reader: each a failed one, with place and reason."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recorded_previews import read, read_text, text
from tpucfg.review.preview.events import MAX_PREVIEW_BYTES
from tpucfg.review.preview.reader import read_preview

NESTED = "[" * 100_000
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("data", "location", "reason"),
    [
        ("", "dev.jsonl:1", "the file is empty: pulumi preview printed nothing"),
        (" \n\n", "dev.jsonl:1", "the file is empty: pulumi preview printed nothing"),
        ("{}", "dev.jsonl:1", "this is no preview of Pulumi's"),
        ('{"a": 1}\n{"b": 2}', "dev.jsonl:1", "this is no preview of Pulumi's"),
        ("\n\nerror: no credentials", "dev.jsonl:3", "pulumi preview failed before it had begun"),
        (
            "error: no stack named 'dev' found",
            "dev.jsonl:1",
            "the stack does not exist yet: its first pulumi up makes everything",
        ),
        ('{"steps": [', "dev.jsonl:1", "this cannot be read as JSON: it ends in the middle of an object"),
        ('{\n "steps": [{"op": "cre', "dev.jsonl:2", "this cannot be read as JSON: it ends in the middle of an object"),
        ('{"steps" 1}', "dev.jsonl:1", "this cannot be read as JSON: Expecting ':' delimiter in column 10"),
        ('{"steps": ' + NESTED, "dev.jsonl:1", "this cannot be read as JSON: it is nested too deeply"),
        ('{"preludeEvent": {}}\n', "dev.jsonl:1", "the preview has no summary: it was cut off before its end"),
    ],
)
def test_unreadable_preview_is_a_failed_one(data: str, location: str, reason: str) -> None:
    """Whatever is wrong, it is said where and why."""
    failure = read_text(data).failure
    assert failure
    assert failure[:2] == (location, reason)


@pytest.mark.parametrize("form", ["json", "jsonl"])
@pytest.mark.parametrize("part", [1, 5, 9])
def test_cut_preview_is_a_failed_one(form: str, part: int) -> None:
    """A preview that stops anywhere is never taken for a whole one."""
    whole = text("region-move", form)
    assert read_text(whole[: len(whole) * part // 10], f"dev.{form}").failure


def test_cut_stream_tells_what_it_has() -> None:
    """The steps before the cut are read, beside the failure."""
    lines = text("region-move").splitlines()
    preview = read_text("\n".join([*lines[:-4], lines[-4][:100]]))
    assert preview.failure
    assert preview.failure.location == f"dev.jsonl:{len(lines) - 3}"
    assert preview.changes


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_lines_of_text_between(form: str) -> None:
    """Warnings on standard error change nothing, before or after, and on the last line of the JSON itself."""
    mixed = f"warning: a new version of Pulumi\n{text('update', form).rstrip()}warning: again\n\nresources: 12\n"
    assert read_text(mixed) == read("update", form)


def test_error_as_text_after_the_stream() -> None:
    """An error on standard error fails a preview whose stream looks whole."""
    failure = read_text(text("update") + "error: lost the connection\nto the backend").failure
    assert failure
    assert failure.lines == ("error: lost the connection", "to the backend")


def test_too_large_a_file_is_not_read() -> None:
    """The size is bounded before anything is parsed."""
    failure = read_preview("dev", "dev.json", b" " * (MAX_PREVIEW_BYTES + 1)).failure
    assert failure == ("dev.json", "the file has more than 32 MiB", ())


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_encodings_of_a_shell(encoding: str) -> None:
    """A file that PowerShell wrote is read as well."""
    assert read_preview("dev", "dev.jsonl", text("update").encode(encoding)) == read("update")


def test_words_of_pulumi_are_one_line_each_and_printable() -> None:
    """Colours go, control characters and reversed text are escaped, and nothing is longer than a line may be."""
    event = {"diagnosticEvent": {"severity": "error", "message": "\x1b[31mred\x1b[0m\r\n\u202eevil\x07" + "x" * 9999}}
    failure = read_text(json.dumps(event)).failure
    assert failure
    assert failure.lines[0] == "red"
    assert failure.lines[1].startswith("\\u202eevil\\u0007xxx")
    assert len(failure.lines[1]) == 400


def test_long_error_is_cut() -> None:
    """Of a thousand lines the first are shown, and how many more there are."""
    event = {"diagnosticEvent": {"severity": "error", "message": "\n".join(map(str, range(1000)))}}
    failure = read_text(json.dumps(event)).failure
    assert failure
    assert len(failure.lines) == 41
    assert failure.lines[-1] == "… and 960 more lines"


@given(VALUES, VALUES, VALUES)
def test_any_shape_is_read(op: Any, state: Any, anything: Any) -> None:
    """Whatever stands where something else is expected, there is no traceback."""
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
    """No bytes at all are a preview by accident."""
    assert read_preview("dev", "dev.json", data).failure


@pytest.mark.parametrize("line", ['{"a":', "{", '{"a', "{}", "{x}", "x", "error: ", '{"diagnosticEvent": {}} {', "}"])
def test_much_of_anything_is_read(line: str) -> None:
    """Each character is looked at a bounded number of times: a million such lines are read at once."""
    assert read_text(f"{line}\n" * 1_000_000).failure
    assert read_text(line * 1_000_000).failure


@pytest.mark.parametrize(
    "part", ["a@", "a.", "a@b.", "urn:pulumi:a::b::", "-----BEGIN ", "//a:b", "x\n", "\x1b[", "hf_"]
)
def test_much_of_anything_in_an_error_is_read(part: str) -> None:
    """Likewise what an error says, in which people and secrets are looked for."""
    event = {"diagnosticEvent": {"severity": "error", "message": part * 1_000_000}}
    failure = read_text(json.dumps(event)).failure
    assert failure
    assert len(failure.lines) <= 41
