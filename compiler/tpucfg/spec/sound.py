"""The parts of a spec that nothing is wrong with, so that a mistake in one part does not hide those in another.

A section with an error in it is replaced by a stand-in that breaks no rule. A rule that compares sections with each
other says which it reads, and is left out where one of those is broken: what it found could be the stand-in's fault.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Final, NamedTuple

from tpucfg.findings import Finding
from tpucfg.spec.document import Document, Node
from tpucfg.spec.reader import read_text
from tpucfg.wording import nearest

SECTIONS: Final = frozenset(
    (
        "version",
        "name",
        "target",
        "sizes",
        "environments",
        "trainer",
        "training",
        "overrides",
        "gate",
        "prices",
        "allow",
        "targets",
    )
)
_REQUIRED: Final = frozenset(("version", "name", "target", "environments", "trainer", "training"))
_STAND_IN: Final = """\
version: 1
name: x
target: vertex-ai
sizes: [v2-8]
environments: {x: {project: xxxxxx, region: us-central1}}
trainer: {image: x}
training: {tuned_on: v2-8, batch_size: 8, train_steps: 1000}
"""


class _Mark(NamedTuple):
    line: int
    column: int


_NOWHERE: Final = _Mark(-1, -1)


def sound_part(document: Document, found: Iterable[Finding]) -> tuple[Document, frozenset[str]]:
    """The document with stand-ins for its broken sections, and their names. `found`: the errors known of it."""
    keys, children = _members(document.root)
    broken = frozenset(_broken(children, keys, found))
    if "sizes" not in keys and ("environments" in broken or not _own_ladders(children["environments"].value)):
        broken |= {"sizes"}
    spare_keys, spare = _members(_stand_in())
    kept = [name for name in keys if name in SECTIONS - broken]
    put_in = [name for name in spare if name in broken]
    root = document.root or _stand_in()
    whole = Node(root.start, root.end, {})
    whole.keys = {name: keys[name] for name in kept} | {name: spare_keys[name] for name in put_in}
    whole.children = {name: children[name] for name in kept} | {name: spare[name] for name in put_in}
    whole.value = {name: node.value for name, node in whole.children.items()}
    return document._replace(root=whole, findings=()), broken


def _members(root: Node | None) -> tuple[Mapping[str, Node], Mapping[str, Node]]:
    """The keys and the values of a mapping; none of what is none."""
    return (root.keys, root.children) if root and isinstance(root.children, Mapping) else ({}, {})


def _broken(known: Mapping[str, Node], keys: Mapping[str, Node], found: Iterable[Finding]) -> Iterator[str]:
    """The sections that an error stands in, those that are missing, and those that an unknown key was meant for."""
    starts = sorted((key.start.line + 1, key.start.column + 1, name) for name, key in keys.items())
    for finding in found:
        yield from [name for line, column, name in starts if (line, column) <= finding.place[1:3]][-1:]
    yield from _REQUIRED - set(known)
    for name in set(known) - SECTIONS:
        yield from [meant for meant in [nearest(name, sorted(SECTIONS - set(known)))] if meant]


def _own_ladders(environments: Mapping[str, Mapping[str, object]]) -> bool:
    return all("sizes" in environment for environment in environments.values())


@cache
def _stand_in() -> Node:
    """The stand-ins, at a place that no text has."""
    root = read_text(_STAND_IN, "").root
    assert root is not None  # noqa: S101 - it is the text above
    _move(root)
    return root


def _move(node: Node) -> None:
    node.start = node.end = _NOWHERE
    children = node.children.values() if isinstance(node.children, dict) else node.children
    for child in [*children, *node.keys.values()]:
        _move(child)


def of_text(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings but those about a stand-in."""
    for finding in findings:
        if finding.place.line > 0 and all(place.line > 0 for place, _ in finding.related):
            yield finding
