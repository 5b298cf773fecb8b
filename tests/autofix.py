"""Findings repaired by the letter of their help, to see that it is the edit that ends them.

Only what can be read without understanding is applied: `did you mean X?`, `set P to V`, `delete P`, `add K: V` and the
like. The edit is made in the text where the help is about the place, and in the data, written as JSON, where it names a
path.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from tpucfg.findings import Finding
from tpucfg.text_format import dotted
from tpucfg.yamldoc.document import Document, KeyPath, Node
from tpucfg.yamldoc.reader import read_text


def repaired(document: Document, finding: Finding) -> str | None:
    """The document's text after the first edit that the help names; None where it is not to be read by the letter."""
    for pattern, edit in _EDITS:
        if found := re.fullmatch(pattern, finding.help):
            return edit(document, finding, *found.groups())
    return None


def _replace(document: Document, finding: Finding, new: str) -> str | None:
    """The new text in the place of the finding; a quoted text stays quoted."""
    location = finding.location
    if location.line != location.end_line:
        return None
    rows = document.text.split("\n")
    row, start, end = rows[location.line - 1], location.column - 1, location.end_column - 1
    quote = row[start] if row[start : start + 1] in ('"', "'") and row[start:end].endswith(row[start]) else ""
    quote = "" if new[:1] in ('"', "[", "{") or not re.match(r"[a-zA-Z$]", new) else quote
    rows[location.line - 1] = f"{row[:start]}{quote}{new}{quote}{row[end:]}"
    return "\n".join(rows)


def _literally(document: Document, finding: Finding, new: str) -> str | None:
    rows, location = document.text.split("\n"), finding.location
    row = rows[location.line - 1]
    rows[location.line - 1] = row[: location.column - 1] + new + row[location.end_column - 1 :]
    return "\n".join(rows)


def _set(document: Document, _: Finding, path: str, value: str) -> str | None:
    return _edited(document, _path(document, path), _value(value))


def _example(document: Document, finding: Finding, value: str) -> str | None:
    """`for example: key: value`, or the bare value for an entry of a list."""
    path = _path_at(document, finding)
    if path is None:
        return None
    if finding.location == document.key(path):
        return _replace(document, finding, value)
    key = f"{path[-1]}: "
    return _edited(document, path, _value(value.removeprefix(key) if isinstance(path[-1], str) else value))


def _delete(document: Document, finding: Finding, path: str) -> str | None:
    known = _path(document, path)
    return _edited(document, known if document.node(known) else _path_at(document, finding), _GONE)


def _delete_it(document: Document, finding: Finding) -> str | None:
    path = _path_at(document, finding) if document.root else None
    return _edited(document, path, _GONE) if path else _delete_span(document, finding)


def _add(document: Document, finding: Finding, entries: str) -> str | None:
    """`add a: 1`, `add a: 1 and b: 2`, or the first of several ways."""
    above = _path_at(document, finding) if finding.location[1:3] != (1, 1) else ()
    if above is None:
        return None
    node = document.node(above)
    above = above if node is not None and isinstance(node.value, dict) else above[:-1]
    data = document
    for entry in re.split(r" and (?=\w+: )", re.split(r", or (?=\w+: )", entries)[0]):
        key, _, value = entry.partition(": ")
        data = read_text(_edited(data, (*above, key), _value(value)), document.file)
    return data.text


def _delete_span(document: Document, finding: Finding) -> str | None:
    """`delete it` of what stands in the way of reading: the characters themselves."""
    return _literally(document, finding, "")


def _spaces(document: Document, finding: Finding) -> str | None:
    return _literally(document, finding, "  ")


def _quoted(document: Document, finding: Finding) -> str | None:
    """The rest of the line, which is the value."""
    rows, location = document.text.split("\n"), finding.location
    row = rows[location.line - 1]
    rows[location.line - 1] = f"{row[: location.column - 1]}'{row[location.column - 1 :]}'"
    return "\n".join(rows)


def _closed(document: Document, finding: Finding, sign: str) -> str | None:
    """At the end of the line: of the one that opens where two are shown."""
    rows, line = document.text.split("\n"), (finding.related[0][0] if finding.related else finding.location).line
    rows[line - 1] += sign
    return "\n".join(rows)


def _indented(document: Document, finding: Finding, width: str) -> str | None:
    rows, line = document.text.split("\n"), finding.location.line
    rows[line - 1] = " " * int(width) + rows[line - 1].lstrip()
    return "\n".join(rows)


def _the_first_counts(document: Document, finding: Finding) -> str | None:
    if finding.id == "TPU003":
        return json.dumps(document.data)
    return _delete_it(document, finding)


def _moved(document: Document, finding: Finding, key: str, below: str) -> str | None:
    path = _path_at(document, finding)
    value = document.node(path) if path else None
    if path is None or value is None:
        return None
    removed = _edited(document, path, _GONE)
    return _edited(read_text(removed, document.file), (*below.split("."), key), value.value)


_GONE: Final = object()
_VALUE: Final = r"(.+?)(?:,? or .+|, which .+|, if .+| to keep .+)?"
_EDITS: Final[tuple[tuple[str, Callable[..., str | None]], ...]] = (
    (r"did you mean (.+)\?", _replace),
    (r"put it in quotes: (\".*\")", _literally),
    (r"write it as a list: (\[.*\])", _literally),
    (r"write (\S+), without quotes or separators", _literally),
    (r"write (true|false): .*", _literally),
    (r"write (\$\$\{.*\}) if it is meant as text", _literally),
    (r"write (\w+: .*)", _literally),
    (r"copy it and write (\S+), or allow .*", _literally),
    (r"put the whole value in quotes: ('.*')", _literally),
    (r"put the whole value in quotes", _quoted),
    (r"replace the tab by spaces", _spaces),
    (r"indent it by (\d+), .*", _indented),
    (r"close it with (.), or .*", _closed),
    (r"close it with (.)", _closed),
    (r"add a comma, or close with (.)", _closed),
    (r"leave the tag out", _delete_span),
    (r"for example: (.+)", _example),
    (rf"set ([\w.\[\]-]+) to another name, such as {_VALUE}", _set),
    (r"set ([\w.-]+) to one that supports \w+ \(([\w-]+)[,)].*", _set),
    (rf"set ([\w.\[\]-]+) to (?!another)(?!a name){_VALUE}", _set),
    (r".*: set (target) to (\S+)", _set),
    (r"delete one of the two", _the_first_counts),
    (r"delete it", _delete_it),
    (r"delete this, or .*", _delete_span),
    (r"delete (?!it\b)([\w-]+(?:[.\[][\w.\[\]-]+)*)(?:: .*|, and .*|, which .*|,? or .*)?", _delete),
    (r"(\w+) belongs under ([\w.-]+): move it there.*", _moved),
    (r"add (\w+: .+?)(?:, here or .*|, or another .*)?", _add),
)
"""By the words of the help, the edit that they ask for."""


def _value(text: str) -> Any:
    return read_text(text, "value").data


def _edited(document: Document, path: KeyPath | None, value: Any) -> str:
    assert path
    data = json.loads(json.dumps(document.data))
    inner = data
    for step in path[:-1]:
        inner = inner.setdefault(step, {}) if isinstance(step, str) else inner[step]
    if value is _GONE:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return json.dumps(data, indent=1)


def _path(document: Document, text: str) -> KeyPath:
    """A path as a message writes it; a key of the document may hold dots and dashes itself."""
    known = {dotted(path): path for path, _ in _nodes((), document.root)}
    above = next((it for it in sorted(known, key=len, reverse=True) if text.startswith(f"{it}.")), "")
    return known.get(text) or (*known.get(above, ()), *text.removeprefix(f"{above}.").split("."))


def _path_at(document: Document, finding: Finding) -> KeyPath | None:
    """The path of the key or value that the finding is about."""
    for path, _ in _nodes((), document.root):
        if finding.location in (document.value(path), document.key(path)):
            return path
    return None


def _nodes(path: KeyPath, node: Node | None) -> Iterator[tuple[KeyPath, Node]]:
    if node is not None and path:
        yield path, node
    if node is not None:
        steps: Iterable[tuple[str | int, Node]] = enumerate(node.children)  # type: ignore[arg-type] # a list's are nodes
        if isinstance(node.children, Mapping):
            steps = node.children.items()
        for step, child in steps:
            yield from _nodes((*path, step), child)
