"""Read a file, bytes or a text as a Document, and find config files: every mistake is a finding, never an exception."""

import re
from collections.abc import Iterable
from itertools import islice
from pathlib import Path as FilePath
from typing import Final

import yaml

from tpucfg.findings import Finding, Location
from tpucfg.fs import is_directory, open_regular_file, walk_files
from tpucfg.named_tuple import NamedTuple
from tpucfg.text_format import line_and_column
from tpucfg.yamldoc.document import Document
from tpucfg.yamldoc.parser import NEVER_ALLOWED, NodeBuilder, ParseAborted, parse_events

MAX_FILE_BYTES: Final = 1 << 20
"""A thousand times the size of a long spec."""
_FIRST_READ_BYTES: Final = 1 << 16
"""Nearly every spec is smaller; a buffer for the maximum is allocated only for a larger file."""
_AMBIGUOUS: Final = "\x85\u2028\u2029\ufeff"
"""Characters that some versions of YAML read as a line break or drop, and other versions keep."""
# Strings, not compiled patterns: few texts are searched with them, and compiling costs start-up time.
_REFUSED: Final = f"[{NEVER_ALLOWED}{_AMBIGUOUS}]"
# Possessive, and with an optional closing quote: an unclosed string is scanned only once.
_STRING_OR_TAB: Final = r'"(?:[^"\\]++|\\.)*+"?|\t'
_ESCAPE: Final = r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|.)"


def read_file(
    path: FilePath, display_name: str | None = None, *, several: bool = False
) -> Document:
    """Return the document in a file; `display_name` replaces its path in findings.

    With `several`, the file may have several YAML documents: see `Document.parts`.
    """
    name = display_name or str(path)
    try:
        with open_regular_file(path) as file:
            content = file.read(_FIRST_READ_BYTES)
            if len(content) == _FIRST_READ_BYTES:
                # One byte beyond the limit shows that the file is too large; the rest of the file is never read.
                content += file.read(MAX_FILE_BYTES + 1 - _FIRST_READ_BYTES)
    except OSError as error:
        message = f"{name} cannot be read: {error.strerror or error}"
        hint = "give the path of a file that exists, or make a new project with: tpucfg init"
        return _unreadable(name, Finding.of("TPU001", message, Location(name), help=hint))
    return read_bytes(content, name, several=several)


def read_bytes(content: bytes, name: str, *, several: bool = False) -> Document:
    """Return the document in a file's content: UTF-8, with or without a byte order mark."""
    if len(content) > MAX_FILE_BYTES:
        message = f"{name} is larger than {MAX_FILE_BYTES:,} bytes"
        hint = "check the path: specs and configs have a few thousand bytes"
        return _unreadable(name, Finding.of("TPU010", message, Location(name), help=hint))
    try:
        return read_text(content.decode("utf-8-sig"), name, several=several)
    except UnicodeDecodeError as error:
        return _undecodable(content, error, name)


def read_text(text: str, name: str, *, several: bool = False) -> Document:
    """Return the document in a text, with every finding about the text itself."""
    # A text of printable lines has no refused character; isprintable() finds that in a tenth of the regex's time.
    if not text.replace("\n", "").isprintable() and (refused := re.search(_REFUSED, text)):
        return _unreadable(name, _refused_character(refused, name), text)
    source = _json_as_yaml(text) if text.lstrip().startswith("{") else text
    builder = NodeBuilder(name)
    try:
        root, *further = builder.documents(parse_events(source), several=several)
    except ParseAborted as aborted:
        return Document(name, text, None, (*builder.findings, aborted.finding))
    except yaml.MarkedYAMLError as error:
        # Imported here, as most texts are valid.
        from tpucfg.yamldoc.yaml_errors import syntax_finding

        return Document(name, text, None, (*builder.findings, syntax_finding(error, source, name)))
    return Document(name, text, root, tuple(builder.findings), tuple(further))


def _unreadable(name: str, finding: Finding, text: str = "") -> Document:
    return Document(name, text, None, (finding,))


def _undecodable(content: bytes, error: UnicodeDecodeError, name: str) -> Document:
    """Return a document whose text has replacement characters, so that the finding can show the line."""
    # Columns are counted in error.object, which unlike the content has no byte order mark.
    before = error.object[: error.start].decode("utf-8", "replace")
    line, column = line_and_column(before, len(before))
    message = f"the byte 0x{error.object[error.start]:02x} is not UTF-8"
    location = Location(name, line, column, line, column + 1)
    finding = Finding.of("TPU001", message, location, help="save the file as UTF-8")
    return _unreadable(name, finding, content.decode("utf-8-sig", "replace"))


def _refused_character(match: re.Match[str], name: str) -> Finding:
    line, column = line_and_column(match.string, match.start())
    message = f"this is not YAML: parsers refuse the character U+{ord(match[0]):04X}, or disagree on its meaning"
    id_ = "TPU011" if match[0] in _AMBIGUOUS else "TPU002"
    return Finding.of(
        id_, message, Location(name, line, column, line, column + 1), help="delete it"
    )


def _json_as_yaml(text: str) -> str:
    """Return JSON as YAML, with every value at its own column.

    JSON is almost a subset of YAML. YAML parsers refuse two parts of it: tabs between values, which become blanks, and
    characters written as a pair of surrogate escapes, which become one escape.
    """
    return re.sub(_STRING_OR_TAB, _string_or_blank, text, flags=re.DOTALL)


def _string_or_blank(match: re.Match[str]) -> str:
    part = match[0]
    if "\\u" in part:
        # Two escapes of 6 characters become one of 10: blanks after the string keep the later columns unchanged.
        return re.sub(_ESCAPE, _one_escape, part, flags=re.DOTALL).ljust(len(part))
    return " " if part == "\t" else part


def _one_escape(escape: re.Match[str]) -> str:
    if escape[1] is None:
        return escape[0]
    code = 0x10000 + ((int(escape[1], 16) - 0xD800) << 10) + (int(escape[2], 16) - 0xDC00)
    return f"\\U{code:08x}"


# The config files below a folder: YAML and JSON files by their suffix.

MAX_FILES: Final = 100_000
"""Limit for the config files of a folder: a large repository has a twentieth of it."""
SUFFIXES: Final = (".yaml", ".yml", ".json")


class ConfigFiles(NamedTuple):
    """The config files below a folder."""

    paths: tuple[str, ...]
    """Relative to the folder, sorted."""
    findings: tuple[Finding, ...] = ()
    """An error if some files are missing in `paths`."""


def find_config_files(folder: FilePath) -> ConfigFiles:
    """Return the config files below a folder. Symbolic links, hidden files and hidden folders are skipped."""
    name = str(folder)
    try:
        paths = tuple(islice(walk_files(name, SUFFIXES), MAX_FILES + 1))
    except OSError as error:
        unreadable = str(error.filename or name).rstrip("/")
        message = f"{unreadable} cannot be read: {error.strerror or error}"
        hint = "make the folder readable, or leave it out"
        return ConfigFiles((), (Finding.of("TPU001", message, Location(unreadable), help=hint),))
    if len(paths) > MAX_FILES:
        message = f"{name} has more than {MAX_FILES:,} YAML and JSON files"
        return ConfigFiles(
            (), (Finding.of("TPU010", message, Location(name), help="give folders inside it"),)
        )
    return ConfigFiles(paths)


def files_of(paths: Iterable[FilePath]) -> ConfigFiles:
    """Return files, and the config files below folders, in the order of the paths and without repetition."""
    files: list[str] = []
    findings: list[Finding] = []
    for path in paths:
        if not is_directory(path):
            files.append(str(path))
            continue
        below = find_config_files(path)
        files += [str(path / file) for file in below.paths]
        findings += below.findings
        if not below.paths and not below.findings:
            message = f"{path} has no file to check: none ends with {', '.join(SUFFIXES)}"
            hint = (
                "check the path; symbolic links, hidden files and hidden folders are not searched"
            )
            findings.append(Finding.of("TPU001", message, Location(str(path)), help=hint))
    return ConfigFiles(tuple(dict.fromkeys(files)), tuple(findings))
