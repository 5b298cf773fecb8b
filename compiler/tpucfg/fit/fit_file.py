"""The file `results/fit.json`: read under bounds, because anyone can write a committed file, and written atomically."""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from tpucfg import schemas
from tpucfg.findings import Finding, Location
from tpucfg.fit.result import SCHEMA, FitKey, FitResult, contradiction, parse_result, result_payload
from tpucfg.fs import open_regular_file, output_lock, staged_files
from tpucfg.schemas import RuleIds
from tpucfg.strict_json import AmbiguousJsonError, parse_strict_json, small_integer
from tpucfg.text_format import format_value
from tpucfg.yamldoc.reader import read_text

NAME: Final = "fit.json"
"""The file's name, in the folder of results next to the spec."""
MAX_FILE_BYTES: Final = 8 << 20
"""About two thousand results."""
_MAX_FINDINGS: Final = 5
"""A file with more mistakes was probably not written by `tpucfg fit`."""
_IDS: Final = RuleIds("TPU109", "TPU109", "TPU109", "TPU109", "TPU109", "key", "the file")
_COMMAND: Final = "tpucfg fit"


class FitFile(NamedTuple):
    """The results of one file, and the findings about it."""

    path: Path
    results: Mapping[FitKey, FitResult]
    findings: tuple[Finding, ...] = ()
    """Errors in the file, of which no result then counts."""
    text: str = ""
    """The file's text, which findings quote."""
    is_trusted: bool = False
    """True if a job of this run made the results; a committed file may have been written by hand."""


def fit_path(folder: Path) -> Path:
    """Return the path of the results for the specs in a folder."""
    return folder / "results" / NAME


def read_fit_file(path: Path, *, is_trusted: bool = False, command: str = _COMMAND) -> FitFile:
    """Read a file of results; no file means no results.

    Args:
        path: The file.
        is_trusted: True if a job of this run made the results.
        command: The command that writes the file again, for findings about it.
    """
    # As for records: a link in a checkout could lead anywhere on the machine that reads it.
    if path.parent.is_symlink() or path.parent.is_file():
        kind, reason = ("link", "a symbolic link") if path.parent.is_symlink() else ("file", "a file")
        hint = f"replace the {kind} {path.parent} by a folder"
        return _unreadable(path, "", Location(str(path)), f"its folder is {reason}", hint)
    try:
        with open_regular_file(path, follow_links=False) as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        return FitFile(path, {}, is_trusted=is_trusted)
    except OSError as error:
        reason = "it is a symbolic link" if path.is_symlink() else error.strerror or str(error)
        hint = _help(f"the folder {path}" if path.is_dir() and not path.is_symlink() else "the file", command)
        return _unreadable(path, "", Location(str(path)), reason, hint)
    if len(content) > MAX_FILE_BYTES:
        reason, hint = f"the file is larger than {MAX_FILE_BYTES:,} bytes", _help("the file", command)
        return _unreadable(path, "", Location(str(path)), reason, hint)
    return parse_fit_file(content.decode("utf-8", "replace"), path, is_trusted=is_trusted, command=command)


def parse_fit_file(text: str, path: Path, *, is_trusted: bool = False, command: str = _COMMAND) -> FitFile:
    """Parse the text of a file of results. A file with any mistake has no results."""
    hint = _help("the file", command)
    try:
        data = parse_strict_json(text, small_integer)
    except json.JSONDecodeError as error:
        location = Location(str(path), error.lineno, error.colno, error.lineno, error.colno + 1)
        reason = f"it is not valid JSON: {error.msg[:1].lower()}{error.msg[1:]}"
        return _unreadable(path, text, location, reason, hint)
    except AmbiguousJsonError as error:
        return _unreadable(path, text, Location(str(path)), str(error), hint)
    if not schemas.is_valid(SCHEMA, data):
        document = read_text(text, str(path))
        findings = islice(schemas.schema_findings(SCHEMA, document, _IDS), _MAX_FINDINGS)
        return FitFile(path, {}, tuple(finding._replace(help=hint) for finding in findings), text)
    every = [parse_result(row) for row in data["results"]]
    for index, result in enumerate(every):
        if problem := contradiction(result.memory, fits=result.fits):
            location = read_text(text, str(path)).value_location(("results", index, "fits"))
            rung = format_value(f"{result.key.environment} {result.key.size}", quoted=False)
            return _unreadable(path, text, location, f"the result of {rung} contradicts itself: {problem}", hint)
    results = {result.key: result for result in every}
    if len(results) < len(data["results"]):
        return _unreadable(path, text, Location(str(path)), "a rung has two results", hint)
    return FitFile(path, results, (), text, is_trusted)


def fit_file_text(results: Iterable[FitResult]) -> str:
    """Return the text of a file with these results; equal results have equal texts."""
    payload: dict[str, Any] = {
        "version": 1,
        "results": [result_payload(result) for result in sorted(results, key=lambda result: result.key)],
    }
    return json.dumps(payload, indent=2, ensure_ascii=False) + "\n"


def write_fit_file(path: Path, results: Iterable[FitResult]) -> bool:
    """Replace the file by one with these results, atomically; return False if it is unchanged.

    Raises:
        OSError: The file cannot be written; its content is unchanged.
    """
    text = fit_file_text(results)
    with suppress(OSError):
        if not path.is_symlink() and path.read_bytes() == text.encode():
            return False
    with output_lock(path.parent, [str(path.parent)]), staged_files() as stage, stage(str(path)) as file:
        file.write(text.encode())
    return True


def _help(place: str, command: str) -> str:
    return f"delete {place}, and compile again: {command}"


def _unreadable(path: Path, text: str, location: Location, reason: str, hint: str) -> FitFile:
    finding = Finding.of("TPU109", f"{path.name}: {reason}, so no result in it counts", location, help=hint)
    return FitFile(path, {}, (finding,), text)
