"""round_trips() compares the text of a config with its request body."""

import json
from typing import Any

import pytest
from hypothesis import given

from tpucfg.yamldoc.reader import read_text
from tpucfg.yamldoc.writer import round_trips, yaml_entry
from yaml_texts import CONSTRUCTS, DATA, MAPPINGS


def as_text(body: dict[str, Any]) -> str:
    """Return the text of a config."""
    return "".join(f"{yaml_entry(key, value)}\n" for key, value in body.items())


@given(MAPPINGS)
def test_a_written_text_round_trips(body: dict[str, Any]) -> None:
    """The text of every request body, read again, is that body."""
    assert round_trips(as_text(body), body)


@given(MAPPINGS, DATA)
def test_a_text_round_trips_to_one_body_only(body: dict[str, Any], other: Any) -> None:
    """A body with another first value, or with one more key, does not match the text."""
    first = next(iter(body))
    changed = body | {first: other}
    assert round_trips(as_text(body), changed) == (json.dumps(body) == json.dumps(changed))
    assert not round_trips(as_text(body), body | {"one more": other})


@pytest.mark.parametrize(
    "text", [text for text in CONSTRUCTS if not text.lstrip().startswith("{") and "*" not in text]
)
def test_round_trips_agrees_with_the_reader(text: str) -> None:
    """A text matches the data that the reader returns for it, unless the text has an anchor."""
    assert round_trips(text, read_text(text, "x.yaml").data) == ("&" not in text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: 1\na: 1\n", id="a key twice"),
        pytest.param("a: 1\n---\na: 1\n", id="two documents"),
        pytest.param("a: &x 1\n", id="an anchor"),
        pytest.param("&x a: 1\n", id="an anchor at a key"),
        pytest.param("a: !!int 1\n", id="a tag"),
        pytest.param("!!map {a: 1}\n", id="a tag at the root"),
        pytest.param("a: .inf\n", id="no finite number"),
        pytest.param("a: [\n", id="no YAML"),
        pytest.param("? [b]\n: 1\n", id="a list as a key"),
        pytest.param("a: 1\nb: 1\n", id="a further key"),
        pytest.param("", id="nothing"),
    ],
)
def test_constructs_that_no_config_has_never_match(text: str) -> None:
    """Duplicate keys, further documents, anchors, tags and invalid YAML do not round-trip."""
    assert not round_trips(text, {"a": 1})
