"""A file, its bytes or its text to a Document: what is wrong with any of them is a finding."""

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from pathlib import Path as FilePath
from typing import Final

import yaml

from tpucfg.findings import Finding, Location
from tpucfg.fs import open_regular_file
from tpucfg.text_format import position
from tpucfg.yamldoc.document import Document
from tpucfg.yamldoc.parser import CONTROL_CHARACTERS, NodeBuilder, ParseAborted, parse_events

MAX_FILE_BYTES: Final = 1 << 20
"""Bytes: a thousand times a long spec."""
_USUAL: Final = 1 << 16
"""Bytes that nearly every spec stays below: room for the largest is asked for only by what is larger."""
_AMBIGUOUS: Final = {
    "\x85": "line separator",
    "\u2028": "line separator",
    "\u2029": "line separator",
    "\ufeff": "byte order mark",
}
"""Some versions of YAML end a line there, or drop the character, and others do not."""
_UNFIT: Final = f"[{CONTROL_CHARACTERS}{''.join(_AMBIGUOUS)}]"
"""What no spec may hold; a carriage return may. Compiled when a text is searched, as few are."""
_SAVE: Final = "save the file as UTF-8"


def read_file(path: FilePath, shown: str | None = None) -> Document:
    """The document in a file; a file that cannot be read is a finding, not an exception."""
    name = shown or str(path)
    try:
        with open_regular_file(path) as file:
            content = file.read(_USUAL)
            if len(content) == _USUAL:
                content += file.read(MAX_FILE_BYTES + 1 - _USUAL)
    except OSError as error:
        message = f"{name} cannot be read: {error.strerror or error}"
        location, hint = (
            Location(name),
            "give the spec's path with --spec FILE, or make a new project with: tpucfg init",
        )
        return Document(name, "", None, (Finding.of("TPU001", message, location, help=hint),))
    return read_bytes(content, name)


def read_bytes(content: bytes, name: str) -> Document:
    """The document in a file's content: UTF-8, with or without a byte order mark."""
    if len(content) > MAX_FILE_BYTES:
        message = f"{name} is larger than {MAX_FILE_BYTES:,} bytes"
        hint = "a spec has a few thousand bytes: is this the right file?"
        return Document(name, "", None, (Finding.of("TPU010", message, Location(name), help=hint),))
    try:
        return read_text(content.decode("utf-8-sig"), name)
    except UnicodeDecodeError as error:
        return _undecodable(content, error, name)


def _undecodable(content: bytes, error: UnicodeDecodeError, name: str) -> Document:
    """The text is kept with a replacement character for what cannot be read, to show the place in."""
    if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        message = "the file is UTF-16, and a spec is UTF-8"
        return Document(name, "", None, (Finding.of("TPU001", message, Location(name), help=_SAVE),))
    before = error.object[: error.start].decode("utf-8", "replace")
    line, column = position(before, len(before))
    message = f"the byte 0x{error.object[error.start]:02x} is not UTF-8"
    found = Finding.of("TPU001", message, Location(name, line, column, line, column + 1), help=_SAVE)
    return Document(name, content.decode("utf-8-sig", "replace"), None, (found,))


def read_text(text: str, name: str) -> Document:
    """The document in a text, with every finding about the text itself."""
    # A text of printable lines, as nearly every one is, has none of these: that is known in a tenth of the time.
    if not text.replace("\n", "").isprintable() and (unfit := re.search(_UNFIT, text)):
        return Document(name, text, None, (_unfit(unfit, name),))
    source = _json_as_yaml(text) if text.lstrip().startswith("{") else text
    builder = NodeBuilder(name)
    try:
        root = builder.document(parse_events(source))
    except ParseAborted as stop:
        return Document(name, text, None, (*builder.findings, stop.finding))
    except yaml.MarkedYAMLError as error:
        return Document(name, text, None, (*builder.findings, _syntax(error, source, name)))
    return Document(name, text, root, tuple(builder.findings))


def _syntax(error: yaml.MarkedYAMLError, text: str, name: str) -> Finding:
    from tpucfg.yamldoc.yaml_errors import syntax_finding

    return syntax_finding(error, text, name)


def _unfit(found: re.Match[str], name: str) -> Finding:
    code, (line, column) = f"U+{ord(found[0]):04X}", position(found.string, found.start())
    location = Location(name, line, column, line, column + 1)
    if what := _AMBIGUOUS.get(found[0]):
        message = f"the {what} {code} stands here, and readers of YAML differ on what it means"
        return Finding.of("TPU011", message, location, help="delete it")
    return Finding.of(
        "TPU002", f"this is not YAML: the control character {code} stands here", location, help="delete it"
    )


def _json_as_yaml(text: str) -> str:
    from tpucfg.yamldoc.json_compat import json_to_yaml

    return json_to_yaml(text)
