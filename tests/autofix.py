"""Apply the help of a finding literally, so that tests can check that the edit resolves the finding.

Only help lines of a known form are applied: `did you mean X?`, `set P to V`, `delete P`, `add K: V` and similar. Edits
at the finding's location change the text; edits that name a path change the data, which is then written as JSON.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from tpucfg.findings import Finding
from tpucfg.text_format import dotted
from tpucfg.yamldoc.document import Document, KeyPath, Node
from tpucfg.yamldoc.reader import read_text


def apply_help(document: Document, finding: Finding) -> str | None:
    """Return the document's text after the first edit of the help; None if the help has no known form."""
    for pattern, edit in _EDITS:
        if match := re.fullmatch(pattern, finding.help):
            return edit(document, finding, *match.groups())
    return None


def _replace(document: Document, finding: Finding, new: str) -> str | None:
    """Replace the text at the finding's location; a quoted text stays quoted."""
    location = finding.location
    if location.line != location.end_line:
        return None
    rows = document.text.split("\n")
    row, start, end = rows[location.line - 1], location.column - 1, location.end_column - 1
    quote = (
        row[start]
        if row[start : start + 1] in ('"', "'") and row[start:end].endswith(row[start])
        else ""
    )
    quote = "" if new[:1] in ('"', "[", "{") or not re.match(r"[a-zA-Z$]", new) else quote
    rows[location.line - 1] = f"{row[:start]}{quote}{new}{quote}{row[end:]}"
    return "\n".join(rows)


def _replace_exactly(document: Document, finding: Finding, new: str) -> str | None:
    rows, location = document.text.split("\n"), finding.location
    row = rows[location.line - 1]
    rows[location.line - 1] = row[: location.column - 1] + new + row[location.end_column - 1 :]
    return "\n".join(rows)


def _set(document: Document, _: Finding, path: str, value: str) -> str | None:
    return _edited(document, _path(document, path), _value(value))


def _set_both(
    document: Document, finding: Finding, path: str, value: str, other: str, other_value: str
) -> str | None:
    edited = _set(document, finding, path, value)
    return _set(read_text(edited, document.file), finding, other, other_value) if edited else None


def _example(document: Document, finding: Finding, value: str) -> str | None:
    """Apply `for example: key: value`, or the bare value for an entry of a list."""
    path = _path_at(document, finding)
    if path is None:
        return None
    if finding.location == document.key_location(path):
        return _replace(document, finding, value)
    key = f"{path[-1]}: "
    return _edited(
        document, path, _value(value.removeprefix(key) if isinstance(path[-1], str) else value)
    )


def _delete(document: Document, finding: Finding, path: str) -> str | None:
    known = _path(document, path)
    return _edited(
        document, known if document.node(known) else _path_at(document, finding), _DELETED
    )


def _delete_at_location(document: Document, finding: Finding) -> str | None:
    path = _path_at(document, finding) if document.root else None
    return _edited(document, path, _DELETED) if path else _delete_span(document, finding)


def _add(document: Document, finding: Finding, entries: str) -> str | None:
    """Apply `add a: 1`, `add a: 1 and b: 2`, or the first of several alternatives."""
    parent = _path_at(document, finding) if finding.location[1:3] != (1, 1) else ()
    if parent is None:
        return None
    node = document.node(parent)
    parent = parent if node is not None and isinstance(node.value, dict) else parent[:-1]
    edited = document
    for entry in re.split(r" and (?=\w+: )", re.split(r", or (?=\w+: )", entries)[0]):
        key, _, value = entry.partition(": ")
        edited = read_text(_edited(edited, (*parent, key), _value(value)), document.file)
    return edited.text


def _delete_span(document: Document, finding: Finding) -> str | None:
    """Delete the characters at the location, for text that cannot be parsed."""
    return _replace_exactly(document, finding, "")


def _replace_tab(document: Document, finding: Finding) -> str | None:
    return _replace_exactly(document, finding, "  ")


def _quote(document: Document, finding: Finding) -> str | None:
    """Quote the rest of the line, which is the value."""
    rows, location = document.text.split("\n"), finding.location
    row = rows[location.line - 1]
    rows[location.line - 1] = f"{row[: location.column - 1]}'{row[location.column - 1 :]}'"
    return "\n".join(rows)


def _close(document: Document, finding: Finding, sign: str) -> str | None:
    """Append the closing sign to the line; to the opening line if the finding has one."""
    rows, line = (
        document.text.split("\n"),
        (finding.related[0][0] if finding.related else finding.location).line,
    )
    rows[line - 1] += sign
    return "\n".join(rows)


def _indent(document: Document, finding: Finding, width: str) -> str | None:
    rows, line = document.text.split("\n"), finding.location.line
    rows[line - 1] = " " * int(width) + rows[line - 1].lstrip()
    return "\n".join(rows)


def _keep_the_first(document: Document, finding: Finding) -> str | None:
    if finding.id == "TPU003":
        return json.dumps(document.data)
    return _delete_at_location(document, finding)


def _move(document: Document, finding: Finding, key: str, below: str) -> str | None:
    path = _path_at(document, finding)
    value = document.node(path) if path else None
    if path is None or value is None or "<" in below:
        return None
    return _moved(document, path, below, key, value.value)


def _replace_by_line(document: Document, finding: Finding, line: str, below: str) -> str | None:
    """Apply `replace it by key: value under section`."""
    path, (key, _, value) = _path_at(document, finding), line.partition(": ")
    return _moved(document, path, below, key, _value(value)) if path else None


def _moved(document: Document, path: KeyPath, below: str, key: str, value: Any) -> str:
    """Delete a value, and its mapping if nothing is left of it, and set another key."""
    parent = document.node(path[:-1])
    removed = path[:-1] if parent is not None and len(parent.value) == 1 and len(path) > 2 else path
    rest = read_text(_edited(document, removed, _DELETED), document.file)
    section = (
        () if below == "at the top of the file" else _path(document, below.removeprefix("under "))
    )
    return _edited(rest, (*section, key), value)


def _move_keys(document: Document, _: Finding, source: str, target: str) -> str | None:
    """Apply `move the keys of X to Y itself`."""
    path = _path(document, source)
    node = document.node(path)
    edited = read_text(_edited(document, path, _DELETED), document.file)
    for key, value in node.value.items() if node else ():
        edited = read_text(_edited(edited, (*_path(edited, target), key), value), document.file)
    return edited.text


def _rename(
    document: Document, _: Finding, source: str, target: str, left: str | None
) -> str | None:
    """Apply `rename X to Y, without A (a reason) and B (another)`."""
    path, new = _path(document, source), target.rpartition(".")[2]
    node = document.node(path)
    if node is None:
        return None
    without = re.findall(r"(\w+) \(", left or "")
    value = {key: value for key, value in node.value.items() if key not in without}
    rest = read_text(_edited(document, path, _DELETED), document.file)
    return _edited(rest, (*path[:-1], new), value)


def _move_some(
    document: Document, finding: Finding, keys: str, target: str, source: str
) -> str | None:
    """Apply `move A and B to X, and delete Y`."""
    path, edited = _path(document, source), document
    for key in re.findall(r"\w+", keys.replace(" and ", " ")):
        value = document.node((*path, key))
        if value is None:
            return None
        edited = read_text(
            _edited(edited, (*_path(edited, target), key), value.value), document.file
        )
    return _delete(edited, finding, source)


def _delete_and_set(document: Document, finding: Finding, path: str, value: str) -> str | None:
    rest = _delete_at_location(document, finding)
    return _set(read_text(rest, document.file), finding, path, value) if rest else None


_DELETED: Final = object()
_VALUE: Final = r"(.+?)(?:,? or .+|, which .+|, if .+| to keep .+)?"
_EDITS: Final[tuple[tuple[str, Callable[..., str | None]], ...]] = (
    (r"did you mean (.+)\?", _replace),
    (r"set it to (\S+)", _replace),
    (r"write (\S+), without separators(?:; .*)?", _replace_exactly),
    (r"write (\$\$\{.*\}) if it is meant as text", _replace_exactly),
    (r"write (\w+: .*|\S+|[\[\"].*)", _replace_exactly),
    (r"copy it and write (\S+), or allow .*", _replace_exactly),
    (r"put the whole value in quotes: ('.*')", _replace_exactly),
    (r"if this is part of a text, put the whole text in quotes; .*", _quote),
    (r"replace the tab by spaces", _replace_tab),
    (r"indent it by (\d+), .*", _indent),
    (r"close it with (.), or .*", _close),
    (r"close it with (.)", _close),
    (r"add a comma, or close with (.)", _close),
    (r"leave the tag out", _delete_span),
    (r"for example: (.+)", _example),
    (rf"set ([\w.\[\]-]+) to another name, such as {_VALUE}", _set),
    (r"set ([\w.-]+) to one that supports \w+ \(([\w-]+)[,)].*", _set),
    (r"set (\S+) to (\S+) and (\S+) to (\S+?)(?:, or .+)?", _set_both),
    (r"set (\S+) to (\{.*\})", _set),
    (rf"set ([\w.\[\]/-]+) to (?!another)(?!a name){_VALUE}", _set),
    (r".*: set (target) to (\S+)", _set),
    (r"delete one of the two", _keep_the_first),
    (r"rename (\S+) to (\S+?)(?:, without (.+))?", _rename),
    (r"move ([\w, ]+) to (\S+), and delete (\S+)", _move_some),
    (r"move the keys of (\S+) to (\S+) itself", _move_keys),
    (r"delete \w+, and set (\S+) to (.+)", _delete_and_set),
    (r"delete it(?: here, and .*)?", _delete_at_location),
    (r"delete this, or .*", _delete_span),
    (
        r"delete (?!it\b)([\w-]+(?:[.\[][\w.\[\]-]+)*)(?:: .*|, and .*|, which .*|,? or .*)?",
        _delete,
    ),
    (r"(\w+) belongs (under \S+|at the top of the file): move it there.*", _move),
    (r"(?:.*, and )?replace it by (\w+: .+) (under \S+|at the top of the file)", _replace_by_line),
    (r"add (\w+: .+?)(?:, here or .*|, or another .*)?", _add),
)
"""The function for each form of help; the first that matches is applied."""


def _value(text: str) -> Any:
    return read_text(text, "value").data


def _edited(document: Document, path: KeyPath | None, value: Any) -> str:
    assert path
    data = json.loads(json.dumps(document.data))
    inner = data
    for step in path[:-1]:
        inner = inner.setdefault(step, {}) if isinstance(step, str) else inner[step]
    if value is _DELETED:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return json.dumps(data, indent=1)


def _path(document: Document, text: str) -> KeyPath:
    """Return the path that a message writes with dots; a key of the document may contain dots itself."""
    known = {dotted(path): path for path, _ in _nodes((), document.root)}
    parent = next(
        (path for path in sorted(known, key=len, reverse=True) if text.startswith(f"{path}.")), ""
    )
    return known.get(text) or (*known.get(parent, ()), *text.removeprefix(f"{parent}.").split("."))


def _path_at(document: Document, finding: Finding) -> KeyPath | None:
    """Return the path of the key or value at the finding's location."""
    for path, _ in _nodes((), document.root):
        if finding.location in (document.value_location(path), document.key_location(path)):
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
