"""Three readers of YAML, and what it means that two of them read the same."""

import json
from collections.abc import Iterator
from typing import Any

import yaml
from ruamel.yaml import YAML

from tpucfg.yamldoc.document import KeyPath, Node
from tpucfg.yamldoc.reader import read_text


def by_pyyaml(text: str) -> Any:
    """What YAML 1.1 makes of a text, as most trainers read it."""
    return yaml.safe_load(text)


def by_ruamel(text: str) -> Any:
    """What YAML 1.2 makes of a text."""
    return YAML(typ="safe", pure=True).load(text)


def by_tpucfg(text: str) -> Any:
    """What this project's own reader makes of a text, without a word of complaint."""
    document = read_text(text, "config.yaml")
    assert document.findings == ()
    return document.data


READERS = {"PyYAML, 1.1": by_pyyaml, "ruamel.yaml, 1.2": by_ruamel, "tpucfg": by_tpucfg}


def canonical(value: Any) -> str:
    """Equal only for values of equal content, type and order: Python itself holds 1, 1.0 and True for equal."""
    return json.dumps(value)


def below(path: KeyPath, node: Node | None) -> Iterator[tuple[KeyPath, Node]]:
    """The node and all nodes below it, with their paths."""
    assert node is not None
    yield path, node
    children: Any = node.children
    for step, child in children.items() if isinstance(children, dict) else enumerate(children):
        yield from below((*path, step), child)
