"""The parts of a spec that nothing is wrong with, so that a mistake in one part does not hide those in another.

A section with an error in it is replaced by a stand-in that breaks no rule. A rule that compares sections with each other says
which ones it reads, and is left out where one of those is broken: what it would find could be the stand-in's fault.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from tpucfg.findings import Finding
from tpucfg.spec.document import Document, Node
from tpucfg.spec.reader import read_text
from tpucfg.wording import nearest

SECTIONS: Final = frozenset(
    ("version", "name", "target", "sizes", "environments", "trainer", "training", "overrides", "gate", "prices", "allow", "targets")
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
    """The document with stand-ins for its broken sections, and their names. `found`: the errors that are known of it."""
    root = document.root
    known: Any = root.children if root is not None and isinstance(root.children, dict) else {}
    keys = dict(root.keys) if root is not None and known else {}
    broken = frozenset(_broken(known, keys, found))
    stand_in = _stand_in()
    for name in {*known, *broken} - (SECTIONS - broken):
        keys.pop(name, None)
        if name in broken and name in stand_in.keys:
            keys[name] = stand_in.keys[name]
    children = {name: known[name] if name not in broken else stand_in.children[name] for name in keys}  # type: ignore[call-overload] # a mapping's are by key
    whole = Node(root.start if root else _NOWHERE, root.end if root else _NOWHERE, {it: node.value for it, node in children.items()})
    whole.children, whole.keys = children, keys
    return document._replace(root=whole, findings=()), broken


def _broken(known: Any, keys: dict[str, Node], found: Iterable[Finding]) -> Iterator[str]:
    """The sections that an error stands in, those that are missing, and those that an unknown key was meant for."""
    starts = sorted((key.start.line + 1, key.start.column + 1, name) for name, key in keys.items())
    for finding in found:
        yield from [name for line, column, name in starts if (line, column) <= finding.place[1:3]][-1:]
    yield from _REQUIRED - set(known)
    for name in set(known) - SECTIONS:
        yield from [meant for meant in [nearest(name, sorted(SECTIONS - set(known)))] if meant]
    environments = known["environments"].value if "environments" in known else None
    ladders = environments.values() if isinstance(environments, dict) else ()
    if "sizes" not in known and not all(isinstance(ladder, dict) and "sizes" in ladder for ladder in ladders):
        yield "sizes"


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
