"""The text of a config held against its message."""

import json
from typing import Any

import pytest
from hypothesis import given

from tpucfg.yamldoc.reader import read_text
from tpucfg.yamldoc.writer import round_trips, yaml_entry
from yaml_texts import CONSTRUCTS, DATA, MAPPINGS


def written(message: dict[str, Any]) -> str:
    """The message as a config has it."""
    return "".join(f"{yaml_entry(key, value)}\n" for key, value in message.items())


@given(MAPPINGS)
def test_a_text_says_what_it_was_made_of(message: dict[str, Any]) -> None:
    """Whatever a message holds, its text says it."""
    assert round_trips(written(message), message)


@given(MAPPINGS, DATA)
def test_a_text_says_one_thing_only(message: dict[str, Any], other: Any) -> None:
    """With another value in the place of its first, or with one more, a message is no longer what the text says."""
    first = next(iter(message))
    changed = message | {first: other}
    assert round_trips(written(message), changed) == (json.dumps(message) == json.dumps(changed))
    assert not round_trips(written(message), message | {"one more": other})


@pytest.mark.parametrize("text", [text for text in CONSTRUCTS if not text.lstrip().startswith("{") and "*" not in text])
def test_it_reads_as_the_reader_of_specs_does(text: str) -> None:
    """What the reader makes of a text is what the text says, for every construct but anchors."""
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
def test_anything_beside_the_message_is_seen(text: str) -> None:
    """What no config has is never taken for one."""
    assert not round_trips(text, {"a": 1})
