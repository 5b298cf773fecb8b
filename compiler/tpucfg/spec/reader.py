"""Text to Document: libyaml's events, made into nodes under bounds."""

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Any, Final

import yaml

from tpucfg.findings import Finding, Place
from tpucfg.spec.builder import Builder, StopError
from tpucfg.spec.document import Document
from tpucfg.spec.syntax import syntax_finding

LARGEST_FILE: Final = 1 << 20
"""Bytes: a thousand times a long spec."""


def _parser() -> Any:
    """libyaml's parser, or PyYAML's own where it was built without libyaml: the same events, thirty times as slow."""
    if yaml.__with_libyaml__:
        return yaml.cyaml.CParser
    return type("Parser", (yaml.reader.Reader, yaml.scanner.Scanner, yaml.parser.Parser), {"__init__": _start_pure})


def _start_pure(self: Any, text: str) -> None:
    yaml.reader.Reader.__init__(self, text)
    yaml.scanner.Scanner.__init__(self)
    yaml.parser.Parser.__init__(self)


_Parser: Final = _parser()
_UNFIT: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
"""What YAML does not allow at all, and what its versions read otherwise: as a line's end, or as part of the line."""
_SEPARATORS: Final = {
    "\x85": ("TPU011", "line separator"),
    "\u2028": ("TPU011", "line separator"),
    "\u2029": ("TPU011", "line separator"),
    "\ufeff": ("TPU011", "byte order mark"),
}
_SURROGATES: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")


def read_file(path: FilePath, shown: str | None = None) -> Document:
    """The document in a file; a file that cannot be read is a finding, not an exception."""
    name = shown or str(path)
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        message = f"{name} cannot be read: {error.strerror or error}"
        place, hint = Place(name), "give the spec's path with --spec FILE, or make a new project with: tpucfg init"
        return Document(name, "", None, (Finding.of("TPU001", message, place, help=hint),))
    return read_bytes(content, name)


def read_bytes(content: bytes, name: str) -> Document:
    """The document in a file's content: UTF-8, with or without a byte order mark."""
    if len(content) > LARGEST_FILE:
        message = f"{name} is larger than {LARGEST_FILE:,} bytes"
        help_ = "a spec has a few thousand bytes: is this the right file?"
        return Document(name, "", None, (Finding.of("TPU010", message, Place(name), help=help_),))
    try:
        return read_text(content.decode("utf-8-sig"), name)
    except UnicodeDecodeError as error:
        return _undecodable(content, error, name)


def _undecodable(content: bytes, error: UnicodeDecodeError, name: str) -> Document:
    """The text is kept with a replacement character for what cannot be read, to show the place in."""
    if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        found = Finding.of("TPU001", "the file is UTF-16, and a spec is UTF-8", Place(name), help="save the file as UTF-8")
        return Document(name, "", None, (found,))
    before = content[: error.start].decode("utf-8-sig")
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    message = f"the byte 0x{content[error.start]:02x} is not UTF-8"
    found = Finding.of("TPU001", message, Place(name, line, column, line, column + 1), help="save the file as UTF-8")
    return Document(name, content.decode("utf-8-sig", "replace"), None, (found,))


def read_text(text: str, name: str) -> Document:
    """The document in a text, with every finding about the text itself."""
    if unfit := _UNFIT.search(text):
        return Document(name, text, None, (_unfit(unfit, text, name),))
    source = _json_as_yaml(text) if text.lstrip().startswith("{") else text
    builder = Builder(name)
    try:
        root = builder.document(_events(source, name))
    except StopError as stop:
        return Document(name, text, None, (*builder.findings, stop.finding))
    return Document(name, text, root, tuple(builder.findings))


def _unfit(found: re.Match[str], text: str, name: str) -> Finding:
    line, column = text.count("\n", 0, found.start()) + 1, found.start() - text.rfind("\n", 0, found.start())
    id_, what = _SEPARATORS.get(found[0], ("TPU002", "control character"))
    said = {
        "TPU002": f"this is not YAML: the {what} U+{ord(found[0]):04X} stands here",
        "TPU011": f"the {what} U+{ord(found[0]):04X} stands here, and readers of YAML differ on what it does",
    }
    return Finding.of(id_, said[id_], Place(name, line, column, line, column + 1), help="delete it")


def _json_as_yaml(text: str) -> str:
    """JSON's two habits that libyaml does not share: tabs as white space (no JSON string holds one), surrogate pairs."""
    return _SURROGATES.sub(_joined, text.replace("\t", " "))


def _joined(pair: re.Match[str]) -> str:
    code = 0x10000 + ((int(pair[2], 16) - 0xD800) << 10) + (int(pair[3], 16) - 0xDC00)
    return f"{pair[1]}\\U{code:08x}"


def _events(text: str, name: str) -> Iterator[Any]:
    """The parser's events; its complaints become one finding."""
    try:
        parser = _Parser(text)
        while (event := parser.get_event()) is not None:
            yield event
    except yaml.MarkedYAMLError as error:
        raise StopError(syntax_finding(error, text, name)) from None
