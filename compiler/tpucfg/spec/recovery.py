"""The parts of a spec that nothing is wrong with, so that a mistake in one part does not hide those in another.

A section with an error in it is replaced by a stand-in that breaks no rule. A rule that compares sections with each
other says which it reads, and is left out where one of those is broken: what it found could be the stand-in's fault.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from tpucfg.findings import Finding
from tpucfg.text_format import nearest
from tpucfg.yamldoc.document import Document, Node
from tpucfg.yamldoc.reader import read_text

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


def replace_broken_sections(document: Document, found: Sequence[Finding]) -> tuple[Document, frozenset[str]]:
    """The document with stand-ins for its broken sections, and their names. `found`: the errors known of it."""
    root, spare = document.root or _stand_in(), _stand_in()
    broken = frozenset(_broken(root, found))
    kept = {name: node for name, node in _entries(root) if name in SECTIONS - broken}
    put_in = {name: node for name, node in _entries(spare) if name in broken}
    if "environments" in broken and (sound := _sound_environments(document, found)):
        put_in["environments"] = sound
    environments = (kept | put_in)["environments"]
    if "sizes" not in kept and not all("sizes" in node.value for _, node in _entries(environments)):
        broken |= {"sizes"}
        put_in["sizes"] = dict(_entries(spare))["sizes"]
    return document._replace(root=_mapping(root, spare, kept | put_in), findings=()), broken


def _entries(node: Node | None) -> Iterable[tuple[str, Node]]:
    """The keys and values of a mapping; none of what is none."""
    return node.children.items() if node and isinstance(node.children, Mapping) else ()


def _mapping(like: Node, spare: Node, children: Mapping[str, Node]) -> Node:
    """A mapping with these values, at the place of another; a key that it lacks is the spare one's."""
    node = Node(like.start, like.end, {name: child.value for name, child in children.items()})
    node.keys = {name: like.keys.get(name) or spare.keys[name] for name in children}
    node.children = children
    return node


def _broken(root: Node, found: Iterable[Finding]) -> Iterator[str]:
    """The sections that an error stands in, those that are missing, and those that an unknown key was meant for."""
    known = dict(_entries(root))
    starts = sorted((key.start.line + 1, key.start.column + 1, name) for name, key in root.keys.items())
    for finding in found:
        yield from [name for line, column, name in starts if (line, column) <= finding.location[1:3]][-1:]
    yield from _REQUIRED - set(known)
    for name in set(known) - SECTIONS:
        yield from [meant for meant in [nearest(name, sorted(SECTIONS - set(known)))] if meant]


def _sound_environments(document: Document, found: Sequence[Finding]) -> Node | None:
    """The environments without an error between their key and their end; None where there is none."""
    node = document.node(("environments",))
    sound = {}
    for name, child in _entries(node):
        start, end = document.key(("environments", name))[1:3], (child.end.line + 1, child.end.column + 1)
        if isinstance(child.value, dict) and not any(start <= finding.location[1:3] < end for finding in found):
            sound[name] = child
    return _mapping(node, node, sound) if node and sound else None


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


def without_stand_ins(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings but those about a stand-in."""
    for finding in findings:
        if finding.location.line > 0 and all(location.line > 0 for location, _ in finding.related):
            yield finding
