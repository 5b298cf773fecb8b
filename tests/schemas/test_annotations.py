"""The names in the schema's own keywords refer to keys that exist, and none of them is a key itself."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tpucfg.schemas import load_schema, resolve_references

SCHEMA = load_schema("tpucfg")


def nodes(part: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every mapping of the schema with its path."""
    if isinstance(part, dict):
        yield ".".join(map(str, path)), part
        for key, below in part.items():
            yield from nodes(below, (*path, key))


def annotated(keyword: str) -> dict[str, Mapping[str, Any]]:
    """Return the schemas with a keyword, by path."""
    return {path: node for path, node in nodes(SCHEMA) if keyword in node}


def known(node: Mapping[str, Any]) -> set[str]:
    """Return the keys of a section, or the values of a closed list or of a pattern with alternatives."""
    alternatives = str(node.get("pattern", "")).strip("^()$").split("|")
    return {*node.get("properties", ()), *node.get("enum", ()), *alternatives} - {""}


@pytest.mark.parametrize("keyword", ["x-synonyms", "x-opposites"])
def test_other_names_lead_to_known_ones(keyword: str) -> None:
    """Each entry is a key or a value of its section, and no other name is one, or means two of them."""
    assert annotated(keyword)
    for path, node in annotated(keyword).items():
        entries = resolve_references(SCHEMA, node[keyword])
        others = [other for names in entries.values() for other in names]
        assert entries.keys() <= known(node), path
        assert not known(node) & {*others}, path
        assert len({*others}) == len(others), path


def test_values_that_follow_from_others_are_no_keys() -> None:
    """A key that the section has cannot be explained away."""
    for path, node in annotated("x-derived").items():
        entries = resolve_references(SCHEMA, node["x-derived"])
        assert not known(node) & {name for names in entries.values() for name in names}, path
