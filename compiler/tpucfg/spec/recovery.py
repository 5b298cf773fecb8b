"""Replace the broken sections of a spec, so that a mistake in one section hides no mistake in another.

A section with an error is replaced by a stand-in that breaks no rule; a rule that compares it with another section is
skipped (`tpucfg.spec.sections`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from tpucfg.findings import Finding, Location
from tpucfg.schemas import load_schema
from tpucfg.text_format import nearest
from tpucfg.yamldoc import Document, Mark, Node
from tpucfg.yamldoc.reader import read_text

_STAND_IN: Final = """\
version: 1
name: x
target: vertex-ai
sizes: [v2-8]
environments: {x: {project: xxxxxx, region: us-central1}}
trainer: {image: x}
training: {tuned_on: v2-8, batch_size: 8, train_steps: 1000}
"""


_NOWHERE: Final = Mark(-1, -1)
"""The position of stand-ins, which occurs in no text: without_stand_ins() recognizes a finding there by its line 0."""


def replace_broken_sections(document: Document, known_errors: Sequence[Finding]) -> Document:
    """Return the document with stand-ins for its broken sections; `known_errors` are the errors in the document."""
    stand_in, sections = _stand_in(), load_schema("tpucfg")["properties"].keys()
    root = document.root or stand_in
    # An argument of the command line is not at the place of its section.
    changed = {
        section for error in known_errors if (section := document.changed_section(error.location))
    }
    in_text = [error for error in known_errors if document.changed_section(error.location) is None]
    broken = frozenset(_broken_sections(root, in_text)) | (changed & sections)
    valid_sections = {
        name: node for name, node in _entries(root) if name in sections and name not in broken
    }
    replacements = {name: node for name, node in _entries(stand_in) if name in broken}
    # Environments and sizes without an error are kept, so that further mistakes in them are found.
    for section in {"environments", "overrides"} & (broken - changed):
        if valid := _valid_entries(document, section, known_errors):
            replacements[section] = valid
    environments = (valid_sections | replacements)["environments"]
    if "sizes" not in valid_sections and not all(
        "sizes" in node.value for _, node in _entries(environments)
    ):
        broken |= {"sizes"}
        replacements["sizes"] = dict(_entries(stand_in))["sizes"]
    repaired = root.with_children(valid_sections | replacements, {**stand_in.keys, **root.keys})
    return document._replace(root=repaired, findings=(), broken=broken)


def section_at(root: Node, location: Location) -> str | None:
    """Return the name of the last section that starts before a place; None for a place before all of them."""
    starts = sorted(
        ((key.start.line + 1, key.start.column + 1), name) for name, key in root.keys.items()
    )
    return next((name for start, name in reversed(starts) if start <= location.start), None)


def _entries(node: Node | None) -> Iterable[tuple[str, Node]]:
    """Return the keys and values of a mapping; nothing for any other node."""
    return node.children.items() if node and isinstance(node.children, Mapping) else ()


def _broken_sections(root: Node, known_errors: Iterable[Finding]) -> Iterator[str]:
    """Yield the sections with an error, missing sections, and sections whose name an unknown key probably misspells."""
    present = dict(_entries(root))
    for finding in known_errors:
        # None for an error at the top of the file.
        if section := section_at(root, finding.location):
            yield section
    schema = load_schema("tpucfg")
    yield from (name for name in schema["required"] if name not in present)
    absent = [name for name in schema["properties"] if name not in present]
    for name in present:
        if name not in schema["properties"] and (meant := nearest(name, absent)):
            yield meant


def _valid_entries(
    document: Document, section: str, known_errors: Sequence[Finding]
) -> Node | None:
    """Return the entries of a section without an error between their key and their end, or None if there are none."""
    node = document.node((section,))
    valid = {}
    for name, child in _entries(node):
        start = document.key_location((section, name)).start
        end = (child.end.line + 1, child.end.column + 1)
        has_error = any(start <= error.location.start < end for error in known_errors)
        if isinstance(child.value, dict) and not has_error:
            valid[name] = child
    return node.with_children(valid) if node and valid else None


@cache
def _stand_in() -> Node:
    """Return a valid spec whose nodes are all at _NOWHERE."""
    root = read_text(_STAND_IN, "").root
    assert root is not None  # noqa: S101 - the text above is valid
    _move_nowhere(root)
    return root


def _move_nowhere(node: Node) -> None:
    node.start = node.end = _NOWHERE
    children = node.children.values() if isinstance(node.children, dict) else node.children
    for child in [*children, *node.keys.values()]:
        _move_nowhere(child)


def without_stand_ins(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings that are not about a stand-in."""
    for finding in findings:
        if finding.location.line > 0 and all(location.line > 0 for location, _ in finding.related):
            yield finding
