"""Three readers of YAML, and a canonical form to compare what they return."""

import json
from collections.abc import Iterator
from typing import Any

import yaml
from ruamel.yaml import YAML

from tpucfg.yamldoc.document import KeyPath, Node
from tpucfg.yamldoc.reader import read_text


def by_pyyaml(text: str) -> Any:
    """Return the data by YAML 1.1, as most trainers read it."""
    return yaml.safe_load(text)


def by_ruamel(text: str) -> Any:
    """Return the data by YAML 1.2."""
    return YAML(typ="safe", pure=True).load(text)


def by_tpucfg(text: str) -> Any:
    """Return the data by this project's own reader, which must have no findings."""
    document = read_text(text, "config.yaml")
    assert document.findings == ()
    return document.data


READERS = {"PyYAML, 1.1": by_pyyaml, "ruamel.yaml, 1.2": by_ruamel, "tpucfg": by_tpucfg}


def canonical(value: Any) -> str:
    """Return a text that is equal only for values of equal content, type and order: in Python, 1 == 1.0 == True."""
    return json.dumps(value)


def below(path: KeyPath, node: Node | None) -> Iterator[tuple[KeyPath, Node]]:
    """Yield the node and all nodes below it, with their paths."""
    assert node is not None
    yield path, node
    children: Any = node.children
    for step, child in children.items() if isinstance(children, dict) else enumerate(children):
        yield from below((*path, step), child)
