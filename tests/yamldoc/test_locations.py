"""Locations of keys and values."""

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from reading import below, canonical
from tpucfg.yamldoc.document import Node
from tpucfg.yamldoc.reader import read_text
from yaml_texts import MAPPINGS


def test_every_key_and_value_has_its_location() -> None:
    """Lines and columns count from 1, in characters and not in bytes; the end is exclusive."""
    document = read_text(
        "é: &x 日本 # c\nb: {c: 😀, d: [1, 'x']}\ne:\n  - |\n    z\n  - *x\n", "a.yaml"
    )
    expected = {
        (("é",), "key"): (1, 1, 1, 2),
        (("é",), "value"): (1, 4, 1, 9),
        (("b",), "key"): (2, 1, 2, 2),
        (("b",), "value"): (2, 4, 2, 23),
        (("b", "c"), "key"): (2, 5, 2, 6),
        (("b", "c"), "value"): (2, 8, 2, 9),
        (("b", "d"), "key"): (2, 11, 2, 12),
        (("b", "d"), "value"): (2, 14, 2, 22),
        (("b", "d", 0), "value"): (2, 15, 2, 16),
        (("b", "d", 1), "value"): (2, 18, 2, 21),
        (("e",), "key"): (3, 1, 3, 2),
        (("e", 0), "value"): (4, 5, 6, 1),
        (("e", 1), "value"): (6, 5, 6, 7),
    }
    locations = {
        (path, kind): tuple(getattr(document, f"{kind}_location")(path)[1:])
        for path, kind in expected
    }
    assert locations == expected


def test_a_missing_value_is_located_at_its_key() -> None:
    """A value that is missing, or a mapping of several lines, is located at its key; an entry of a list at itself."""
    document = read_text("a:\n  b:\n    c: 1\n  d: [x, y]\n", "a.yaml")
    expected = {
        ("a", "b", "c"): (3, 8),
        ("a", "b"): (2, 3),
        ("a", "missing"): (1, 1),
        ("a", "b", "missing", "deeper"): (2, 3),
        ("a", "d", 1): (4, 10),
        ("a", "d", 7): (4, 3),
        (): (1, 1),
    }
    assert {path: tuple(document.value_location(path)[1:3]) for path in expected} == expected
    assert tuple(document.key_location(("a", "d", 1))[1:3]) == (4, 10)


@given(MAPPINGS, st.sampled_from([None, 1, "\t"]))
@example({"a": {"b😀": "😀", "c": [1]}, "d": 2}, None)
def test_locations_in_json_are_exact(data: dict[str, Any], indent: Any) -> None:
    """The text at the location of a value or a key is that value or key."""
    text = json.dumps(data, indent=indent, ensure_ascii=False)
    document = read_text(text, "a.json")
    assert canonical(document.data) == canonical(data)
    for _, node in below((), document.root):
        assert canonical(json.loads(cut(text, node))) == canonical(node.value)
        for key, key_node in node.keys.items():
            assert json.loads(cut(text, key_node)) == key


@given(MAPPINGS)
@example({"a😀": "😀😀", "b": ["😀", 1], "c": 2})
def test_locations_in_json_with_escapes(data: dict[str, Any]) -> None:
    """In one long line of ASCII with escapes, every value and key starts at its location."""
    text = json.dumps(data)
    document = read_text(text, "a.json")
    assert canonical(document.data) == canonical(data)
    decoder = json.JSONDecoder()
    for _, node in below((), document.root):
        assert canonical(decoder.raw_decode(text, node.start.column)[0]) == canonical(node.value)
        for key, key_node in node.keys.items():
            assert decoder.raw_decode(text, key_node.start.column)[0] == key


def cut(text: str, node: Node) -> str:
    """Return the text between the two marks of a node."""
    rows = text.split("\n")[node.start.line : node.end.line + 1]
    rows[-1] = rows[-1][: node.end.column]
    rows[0] = rows[0][node.start.column :]
    return "\n".join(rows)
