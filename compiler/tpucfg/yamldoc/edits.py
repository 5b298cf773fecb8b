"""Replace values of a document by those of arguments, remove keys, or set a value in the text at its place."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from tpucfg import paths
from tpucfg.findings import Finding, Location
from tpucfg.text_format import dotted, format_count, quote_key, split_lines
from tpucfg.yamldoc.document import Assignment, Document, KeyPath, Mark, Node
from tpucfg.yamldoc.reader import read_text

_STEP: Final = re.compile(
    r'\.?(?:"(?P<quoted>[^"]+)"|\[(?P<index>[0-9]{1,4})\]|(?P<key>[^."\[\]=]+))'
)


def parse_change(argument: str) -> Assignment | None:
    """Return the change that `PATH=VALUE` describes; None if it is malformed.

    A key with dots is quoted: `trainer.args."optim.lr"=0.1`. An item of a list has its index: `sizes[0]`.
    """
    path: list[str | int] = []
    position = 0
    while match := _STEP.match(argument, position):
        path.append(int(match["index"]) if match["index"] else match["quoted"] or match["key"])
        position = match.end()
    if not path or argument[position : position + 1] != "=":
        return None
    return Assignment(tuple(path), argument, position + 1)


def replace_values(document: Document, changes: Sequence[Assignment]) -> Document:
    """Return a document with other values, which it has as if its text had them; a later change wins.

    The arguments are further lines of the document's text. A value that is not YAML is a finding.
    """
    if document.root is None or not changes:
        return document
    first_line = len(split_lines(document.text)) + 1
    text = "\n".join([document.text, *(change.argument for change in changes)])
    root, findings = document.root, [*document.findings]
    for line, change in enumerate(changes, first_line):
        value = change.argument[change.start :]
        # Blank lines and columns before the value give its nodes their marks in the longer text.
        padded = "\n" * (line - 1) + " " * change.start + (value if value.strip() else "null")
        parsed = read_text(padded, change.origin)
        findings += map(_in_argument, parsed.findings)
        if missing := _missing_item(root, change):
            findings.append(missing)
        elif parsed.root:
            key = Node(Mark(line - 1, 0), Mark(line - 1, change.start - 1), None)
            root = _with_value(root, change.path, parsed.root, key)
    return document._replace(
        text=text,
        root=root,
        findings=tuple(findings),
        changes=tuple(changes),
        first_change=first_line - 1,
    )


def remove_values(document: Document, removed: Iterable[KeyPath]) -> Document:
    """Return a document without the keys at these paths, of which some may be missing; its text stays."""
    root = document.root
    for path in removed:
        root = _without(root, path) if root else None
    return document._replace(root=root)


def _without(node: Node, path: KeyPath) -> Node:
    """Return a node without the key at a path; mappings that it leaves empty are removed as well."""
    step, rest = path[0], path[1:]
    if not isinstance(node.children, dict) or step not in node.children:
        return node
    entries = dict(node.children)
    if rest and (kept := _without(entries[str(step)], rest)).children:
        entries[str(step)] = kept
    else:
        del entries[str(step)]
    return node.with_children(entries)


def _missing_item(root: Node, change: Assignment) -> Finding | None:
    """Return the error about an item beyond the end of a list, or of what is no list, or about a key of a list."""
    node: Node | None = root
    for depth, step in enumerate(change.path):
        children: Any = node.children if node else ()
        is_list, is_index, name = (
            isinstance(children, list),
            isinstance(step, int),
            dotted(change.path[:depth]),
        )
        if is_list != is_index or (isinstance(step, int) and step > len(children)):
            kind = (
                f"it is a list of {format_count(len(children), 'item')}, counted from 0"
                if is_list
                else "it is no list"
            )
            message = f"{name} has no {dotted((step,))}: {kind}"
            hint = (
                f"write the number of an item, as {name}[0], or the whole value: --set {name}=VALUE"
            )
            return Finding.of(
                "TPU007", message, Location(change.origin, 1, 1, 1, change.start), help=hint
            )
        node = dict(paths.children(children)).get(step)
    return None


def _in_argument(finding: Finding) -> Finding:
    """Return a finding about a value with its place in the argument, which is one line."""
    related = tuple(
        (location._replace(line=1, end_line=1), label) for location, label in finding.related
    )
    return finding._replace(location=finding.location._replace(line=1, end_line=1), related=related)


def _with_value(node: Node, path: KeyPath, value: Node, key: Node) -> Node:
    """Return a copy of a node with another value at a path; what is not a mapping or a list on the way becomes one.

    The copies keep the marks of the originals, and a new key has those of `key`.
    """
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(step, int) and isinstance(node.children, list) and step <= len(node.children):
        items = [*node.children]
        items[step : step + 1] = [
            _with_value(items[step] if step < len(items) else key, rest, value, key)
        ]
        return node.with_children(items)
    entries, name = dict(node.children) if isinstance(node.children, dict) else {}, str(step)
    entries[name] = _with_value(entries.get(name) or key, rest, value, key)
    return node.with_children(
        entries, {**node.keys, name: node.keys.get(name, key) if rest else key}
    )


# Edits of the text; comments and everything else in it stay as they are.


class EditError(ValueError):
    """The place of a value is written in a form that is not edited."""


def set_value(document: Document, path: KeyPath, value: str) -> Document:
    """Return the document with a YAML text as the value at a path; mappings that are missing are created.

    Raises:
        EditError: The value is a list, a mapping or of several lines, or a part of the path is no mapping.
    """
    lines = split_lines(document.text)
    node = document.node(path)
    if node is not None:
        if node.children or node.start.line != node.end.line:
            raise EditError(f"{_name(path)} is not one word")
        new = read_text(value, document.file).root
        if new is not None and type(new.value) is type(node.value) and new.text == node.text:
            return document  # with its own quotes
        line = lines[node.start.line]
        # A key without a value has its node after the colon.
        gap = "" if line[: node.start.column].endswith(" ") else " "
        lines[node.start.line] = line[: node.start.column] + gap + value + line[node.end.column :]
    else:
        _add(lines, document, path, value)
    newline = "\r\n" if "\r\n" in document.text else "\n"
    return read_text(newline.join(lines), document.file)


def _add(lines: list[str], document: Document, path: KeyPath, value: str) -> None:
    """Add a key to the nearest mapping that exists; those between are written on its line."""
    depth = max(end for end in range(len(path)) if document.node(path[:end]))
    parent, missing = document.node(path[:depth]), path[depth:]
    for key in reversed(missing[1:]):
        value = f"{{{_key(key)}: {value}}}"
    entry = f"{_key(missing[0])}: {value}"
    if parent is None or not isinstance(parent.children, Mapping) or not parent.children:
        raise EditError(f"{_name(path[:depth])} is not a mapping with keys")
    if lines[parent.start.line][parent.start.column : parent.start.column + 1] == "{":
        end = parent.end
        line = lines[end.line]
        before = line[: end.column - 1].rstrip()
        lines[end.line] = (
            f"{before}{'' if before.endswith(',') else ','} {entry}{line[end.column - 1 :]}"
        )
        return
    first, last = next(iter(parent.keys.values())), _last_line(parent)
    lines.insert(last + 1, " " * first.start.column + entry)


def _last_line(node: Node) -> int:
    """Return the line of the last value in a mapping; the parser's end of a block is after the lines below it."""
    lines = [node.start.line, node.end.line - (node.end.column == 0)]
    children = [
        *node.keys.values(),
        *(node.children.values() if isinstance(node.children, Mapping) else node.children),
    ]
    return max(map(_last_line, children)) if children else max(lines)


def _key(step: str | int) -> str:
    return quote_key(str(step))


def _name(path: KeyPath) -> str:
    return ".".join(map(str, path)) or "the file"
