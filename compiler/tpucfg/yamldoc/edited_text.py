"""Set a value in the text of a YAML document at its place; comments and everything else stay as they are."""

from collections.abc import Mapping

from tpucfg.text_format import quote_key, split_lines
from tpucfg.yamldoc.document import Document, KeyPath, Node
from tpucfg.yamldoc.reader import read_text


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
        lines[end.line] = f"{before}{'' if before.endswith(',') else ','} {entry}{line[end.column - 1 :]}"
        return
    first, last = next(iter(parent.keys.values())), _last_line(parent)
    lines.insert(last + 1, " " * first.start.column + entry)


def _last_line(node: Node) -> int:
    """Return the line of the last value in a mapping; the parser's end of a block is after the lines below it."""
    lines = [node.start.line, node.end.line - (node.end.column == 0)]
    children = [*node.keys.values(), *(node.children.values() if isinstance(node.children, Mapping) else node.children)]
    return max(map(_last_line, children)) if children else max(lines)


def _key(step: str | int) -> str:
    return quote_key(str(step))


def _name(path: KeyPath) -> str:
    return ".".join(map(str, path)) or "the file"
