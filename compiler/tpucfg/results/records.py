"""Records: their lines, and the file of an environment, read under bounds and replaced atomically with one more line.

Appending in place would not be atomic: a process that is killed during a write leaves a part of a line, cut at the
boundary of a page.
"""

import errno
import json
import os
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, Final, NamedTuple

from tpucfg import schemas
from tpucfg.findings import Finding, Location
from tpucfg.fs import (
    explain_error,
    output_lock,
    read_result_file,
    refuse_links,
    sorted_glob,
    staged_files,
)
from tpucfg.plan import RunPart
from tpucfg.plan.job import SpeedSettings
from tpucfg.refusal import RefusalError
from tpucfg.schemas import Problem, RuleIds
from tpucfg.spec import Environment, Project
from tpucfg.strict_json import AmbiguousJsonError, finite_float, parse_strict_json
from tpucfg.text_format import dotted, format_count, listed, nearest, quote_key, split_lines
from tpucfg.yamldoc.reader import read_text

THROUGHPUT: Final = "examples_per_second"
"""The metric that scaling and cost are computed from: examples per second of the whole slice."""
SCHEMA: Final = "record"
"""The name of the schema of a record."""
_MAX_WHOLE: Final = 1e15
"""Below this bound, a float without a fraction is written as an integer."""

MAX_LINE_LENGTH: Final = 32 << 10
"""Characters: enough for the maximum number of metrics, each with the longest name, and for a long command line."""
MAX_FINDINGS_PER_LINE: Final = 5
"""A line with more findings is probably not a record at all."""
RECORD_IDS: Final = RuleIds("TPU102", "TPU102", "TPU102", "TPU102", "TPU102", "key", "the record")


class Record(NamedTuple):
    """The measurements of one run on one rung: one line of the file."""

    name: str
    """The project's name in the spec: two specs may share a folder."""
    size: str
    metrics: Mapping[str, float]
    run: str | None = None
    """The run's id, if the job was submitted with one."""
    is_probe: bool = False
    program: Mapping[str, Any] = MappingProxyType({})
    """The program that ran: the fields of a `Program`; a line that was written by hand may lack some."""
    step: int | None = None
    """The step that the run had reached, counted over all sizes; None for a probe, and for a run that stayed."""
    changes: tuple[str, ...] = ()
    """The values of the command line, as `PATH=VALUE`."""
    location: Location | None = None
    """The line in the file; None for a record that is not written yet."""
    folder: str | None = None
    """The folder of the run, in which it goes on; None for a record without a step."""

    def metric(self, name: str | None) -> Fraction | None:
        """Return a metric as the exact decimal in the file; None if it was not recorded."""
        value = self.metrics.get(name) if name else None
        return None if value is None else exact_decimal(value)

    @property
    def sequence_length(self) -> Fraction | None:
        """The tokens of an example of its program; None if the line does not state them."""
        length = self.program.get("figures", {}).get("sequence_length")
        return exact_decimal(length) if length else None

    @property
    def is_whole(self) -> bool:
        """True for a run that was on one size from its first step to its last."""
        return not self.is_probe and self.step is None

    @property
    def image(self) -> str | None:
        """The image or package that ran; None if the line does not state it."""
        return self.program.get("image")


class Results(NamedTuple):
    """The records of one file, and the findings about it."""

    file: str
    """The file's name in findings."""
    text: str
    records: tuple[Record, ...] = ()
    """In the order of the file."""
    findings: tuple[Finding, ...] = ()
    """Errors in the file or in its lines; a line with an error is not counted."""

    @property
    def problem(self) -> str:
        """The problem of a file with findings, as the end of a sentence that begins with the file."""
        is_unread = any(finding.id == "TPU100" for finding in self.findings)
        return "cannot be read" if is_unread else "has invalid lines"


def exact_decimal(value: float) -> Fraction:
    """Return the shortest decimal that reads as the float, so that 0.97 - 0.01 is exactly 0.96."""
    # Fraction(0.97) is the binary approximation: a metric exactly at its threshold would miss it.
    return Fraction(repr(value))


def record_line(record: Record) -> str:
    """Return the record as its line in the file; equal records have equal lines."""
    return json.dumps(record_payload(record), sort_keys=True, allow_nan=False) + "\n"


def record_payload(record: Record) -> dict[str, Any]:
    """Return the record in the form of its schema, without the keys that are None."""
    metrics = {key: without_point(value) for key, value in record.metrics.items()}
    optional = {
        "folder": record.folder,
        "name": record.name,
        "probe": record.is_probe or None,
        "run": record.run,
        "set": [*record.changes] or None,
        "size": record.size,
        "step": record.step,
    }
    return {"metrics": metrics, **record.program} | {
        key: value for key, value in optional.items() if value is not None
    }


def recorded_program(program: SpeedSettings) -> dict[str, Any]:
    """Return a program as the fields of a record, without those that are empty."""
    flags = {
        name: [*value] if isinstance(value, tuple) else value
        for name, value in program.flags.items()
    }
    fields = {
        **program._asdict(),
        "command": [*program.command],
        "flags": flags,
        "xla_flags": [*program.xla_flags],
    }
    return {name: value for name, value in fields.items() if value or name == "flags"}


def without_point(value: float) -> float:
    """Return a number as it is written: without a fraction, as an integer."""
    return int(value) if abs(value) < _MAX_WHOLE and value == int(value) else value


def parse_record(
    line: str, location: Location, *, is_last: bool = False
) -> Record | tuple[Finding, ...]:
    """Parse a line that is not blank.

    Args:
        line: The line, without its line break.
        location: The line's location, for findings.
        is_last: True if no line break follows, so that the line may be truncated.
    """
    # Checked before parsing, which needs time and memory for a line of megabytes.
    if len(line) > MAX_LINE_LENGTH:
        message = f"the line has {len(line):,} characters; a record has at most {MAX_LINE_LENGTH:,}"
        return (_invalid_line(location, message),)
    try:
        data = parse_strict_json(line, parse_int=finite_float)
    except json.JSONDecodeError as error:
        column = min(error.pos, len(line) - 1) + 1
        message = _json_error_text(line, error, is_last=is_last)
        return (_invalid_line(location._replace(column=column), message),)
    except AmbiguousJsonError as error:
        return (_invalid_line(location, str(error)),)
    # The compiled validator is fast; the explanation below parses the line again, with the location of each key.
    if not schemas.is_valid(SCHEMA, data):
        return tuple(islice(_schema_findings(line, data, location), MAX_FINDINGS_PER_LINE))
    program = {key: data[key] for key in SpeedSettings._fields if key in data}
    is_probe, step = data.get("probe", False), data.get("step")
    # A whole number is read as a float, like every number of a record.
    step = None if step is None else int(step)
    run, changes = data.get("run"), tuple(data.get("set", ()))
    folder = data.get("folder")
    return Record(
        data["name"],
        data["size"],
        data["metrics"],
        run,
        is_probe,
        program,
        step,
        changes,
        location,
        folder,
    )


def record_problems(record: Record) -> Sequence[Problem]:
    """Return the mismatches of a record with its schema."""
    return schemas.schema_problems(SCHEMA, record_payload(record), RECORD_IDS)


def _json_error_text(line: str, error: json.JSONDecodeError, *, is_last: bool) -> str:
    if is_last and line.lstrip().startswith("{") and not line.rstrip().endswith("}"):
        return "the last line is truncated in the middle of a record"
    return f"the line is not valid JSON: {error.msg[:1].lower()}{error.msg[1:]}"


def _invalid_line(location: Location, message: str) -> Finding:
    hint = f"delete line {location.line}, and record that run again with tpucfg record"
    return Finding.of("TPU101", message, location, help=hint)


def _schema_findings(line: str, data: Any, location: Location) -> Iterator[Finding]:
    """Yield a finding for each mismatch with the schema, with its own column."""
    document = read_text(line, location.file)
    for problem in schemas.schema_problems(
        SCHEMA, data, RECORD_IDS, source_text=document.source_text
    ):
        finding = problem.finding_in(document)
        # The document is this one line, so its locations have the right columns but always line 1.
        in_file = finding.location._replace(line=location.line, end_line=location.line)
        hint = finding.help or f"delete line {location.line}"
        yield finding._replace(location=in_file if document.root else location, help=hint)


_EXTENSION: Final = ".jsonl"
FOLDER: Final = "results"
"""The folder's name, next to the spec."""
MAX_FILE_BYTES: Final = 4 << 20
"""Several thousand records."""
_MAX_UNKNOWN_FILES: Final = 10
"""Maximum files that are reported."""
MAX_BAD_LINES: Final = 20
"""A file with more invalid lines is not a results file, and is reported with one finding."""

_SHORTEN_HELP: Final = (
    "move its oldest lines to another file: only the last record of a rung counts"
)


class RecordFileError(RefusalError):
    """The file cannot be read or written; its content is unchanged."""


def record_path(folder: Path, environment: str) -> Path:
    """Return the path of an environment's results, for a spec in that folder."""
    return folder / FOLDER / f"{environment}{_EXTENSION}"


def latest_rates(results: Results, name: str) -> Mapping[str, tuple[Fraction, Fraction | None]]:
    """Return the examples per second of each size of a project, above zero, with the sequence length of its program.

    They are those of the last probe, else of the last run: of any program, by which a run of another one is forecast.
    The length is None if the record states none.
    """
    records = [record for record in results.records if record.name == name]
    by_kind = sorted(
        records, key=lambda record: record.is_probe
    )  # stable: of each kind, the last one wins
    return {
        record.size: (rate, record.sequence_length)
        for record in by_kind
        if (rate := record.metric(THROUGHPUT))
    }


def read_records(folder: Path, environment: str) -> Results:
    """Read the records of an environment, for a spec in that folder; no file means no records."""
    path = record_path(folder, environment)
    try:
        # No lock is needed: a writer replaces the file, so that an open file is whole and never changes.
        content = _content(path)
    except OSError as error:
        reason, hint = explain_error(error)
        return _unreadable(str(path), "", reason, hint)
    if len(content) > MAX_FILE_BYTES:
        return _unreadable(
            str(path), "", f"the file is larger than {MAX_FILE_BYTES:,} bytes", _SHORTEN_HELP
        )
    # Editors may add a byte order mark. Bytes that are not UTF-8 become findings of their line, not a decoding error.
    return parse_records(content.decode("utf-8-sig", "surrogateescape"), str(path))


def read_every_record(folder: Path) -> Mapping[str, Results]:
    """Read the records of all environments, by the name of the environment, for a spec in that folder."""
    names = sorted(path.stem for path in (folder / FOLDER).glob(f"*{_EXTENSION}"))
    return {name: read_records(folder, name) for name in names}


def run_parts(
    files: Mapping[str, Results], run: str
) -> Mapping[tuple[str, str], tuple[RunPart, ...]]:
    """Return what the records of each environment say that a run has done, by project and environment."""
    parts: dict[tuple[str, str], tuple[RunPart, ...]] = {}
    for environment, results in files.items():
        for record in results.records:
            if record.run == run and record.step is not None:
                figures = record.program.get("figures", {})
                known = [
                    int(figures[name]) if name in figures else None
                    for name in ("batch_size", "sequence_length")
                ]
                part = RunPart(record.size, record.step, *known)
                key = record.name, environment
                parts[key] = (*parts.get(key, ()), part)
    return parts


def parse_records(text: str, file: str) -> Results:
    """Parse the records in a text, ignoring blank lines."""
    records: list[Record] = []
    findings: list[Finding] = []
    bad_lines = 0
    rows = split_lines(text)
    for number, row in enumerate(rows, 1):
        if not row.strip():
            continue
        location = Location(file, number, 1, number, len(row) + 1)
        parsed = parse_record(row, location, is_last=number == len(rows))
        if isinstance(parsed, Record):
            records.append(parsed)
            continue
        findings += parsed
        bad_lines += 1
        if bad_lines > MAX_BAD_LINES:
            message = (
                f"more than {MAX_BAD_LINES} lines are not records, so the whole file is ignored"
            )
            return _unreadable(file, text, message, "restore the file, or move it away")
    return Results(file, text, tuple(records), tuple(findings))


def append_record(folder: Path, environment: str, record: Record) -> Path:
    """Append a record atomically, for a spec in that folder, and return the file's path.

    A last line without a line break, as an editor may leave it, is completed with one and otherwise kept.

    Raises:
        RecordFileError: The record could not be written; the file's content is unchanged.
    """
    path = record_path(folder, environment)
    line = record_line(record).encode()
    if len(line) > MAX_LINE_LENGTH:  # the line has to be readable, and its figures decide most
        line = record_line(
            record._replace(program={"figures": record.program.get("figures", {})})
        ).encode()
    try:
        refuse_links(path)
        with output_lock(path.parent, [str(path.parent)]), staged_files() as stage:
            content = _content(path)
            line_break = b"\n" if content and not content.endswith(b"\n") else b""
            if len(content) + len(line_break) + len(line) > MAX_FILE_BYTES:
                raise RecordFileError(
                    f"{path} would grow beyond {MAX_FILE_BYTES:,} bytes", _SHORTEN_HELP
                )
            with stage(str(path)) as file:
                _keep_mode(path, file)
                file.write(content + line_break + line)
                file.flush()
                os.fsync(file.fileno())
    except OSError as error:
        reason, hint = explain_error(error)
        raise RecordFileError(f"{path}: {reason}", f"{hint}, and record it again") from None
    return path


def _unreadable(file: str, text: str, message: str, hint: str) -> Results:
    return Results(file, text, (), (Finding.of("TPU100", message, Location(file), help=hint),))


def _content(path: Path) -> bytes:
    """Return the bytes of a file, up to one more than the limit; none if it is missing."""
    try:
        return read_result_file(path, MAX_FILE_BYTES)
    except FileNotFoundError:
        return b""


def _keep_mode(path: Path, file: BinaryIO) -> None:
    """Give the file that replaces another one its mode; a file that may not be written is not replaced either."""
    with suppress(FileNotFoundError):
        os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
        if not os.access(path, os.W_OK, effective_ids=True):
            raise PermissionError(errno.EACCES, "")


# Findings about the folder of results. Records of sizes that were removed from the ladder are its history, and two
# specs may share a folder: what is not counted is no error. But if the project was renamed, or a file is named after no
# environment, the gate would be closed without an explanation.


def record_findings(
    folder: Path, project: Project, environments: Collection[str] = ()
) -> tuple[list[Finding], dict[str, str]]:
    """Return all findings about the results next to a spec, and the texts of their files by name.

    Args:
        folder: The spec's folder.
        project: The spec.
        environments: The environments to check; if empty, all of them, and files that are named after no environment.
    """
    files = [
        (read_records(folder, environment.name), environment)
        for environment in project.environments.values()
        if not environments or environment.name in environments
    ]
    findings = [finding for results, _ in files for finding in results.findings]
    # In a spec with errors, names and sizes may be stand-ins, with which no record would match.
    if not project.broken:
        for results, environment in files:
            findings += ignored_records(results, environment, project.name)
        if not environments:
            findings += _unknown_files(folder, project.environments)
    return findings, {results.file: results.text for results, _ in files}


def ignored_records(results: Results, environment: Environment, name: str) -> Iterator[Finding]:
    """Yield a note, at the last of them, about the records that are not counted in an environment of that project."""
    others = [record for record in results.records if record.name != name]
    names = listed(sorted({record.name for record in others}), last=" and ")
    ladder = listed(environment.sizes, last=" and ")
    outside = [
        record
        for record in results.records
        if record.name == name and record.size not in environment.sizes
    ]
    sizes = listed(sorted({record.size for record in outside}), last=" and ")
    rename = f'if {name} was called {names} before, write "name": "{name}" in those records'
    rename = f"{rename}; if another spec shares the folder, change nothing"
    keep = f"add {sizes} to {dotted(environment.sizes_path)}, or keep the records as history"
    for records, which, reason, hint in (
        (others, f"with another name ({names})", f"the spec's name is {name}", rename),
        (
            outside,
            f"of a size outside the ladder ({sizes})",
            f"{environment.name} has {ladder}",
            keep,
        ),
    ):
        if records:
            count, verb = format_count(len(records), "record"), "is" if len(records) == 1 else "are"
            location = records[-1].location or Location(results.file)
            yield Finding.of(
                "TPU103", f"{count} {which} {verb} not counted: {reason}", location, help=hint
            )


def _unknown_files(folder: Path, environments: Collection[str]) -> Iterator[Finding]:
    """Yield a finding for each results file that is named after no environment, and is therefore never read."""
    names = listed([*environments], last=" and ")
    paths = [] if (folder / FOLDER).is_symlink() else sorted_glob(folder / FOLDER, f"*{_EXTENSION}")
    for path in islice(
        (path for path in paths if path.stem not in environments), _MAX_UNKNOWN_FILES
    ):
        file, similar = path.name, nearest(path.stem, [*environments])
        rename = (
            f"rename it to {similar}{_EXTENSION}" if similar else "name it after an environment"
        )
        yield Finding.of(
            "TPU103",
            f"{quote_key(file)} is named after no environment, so its records are not counted: the spec has {names}",
            Location(str(path)),
            help=f"{rename}, or delete it; if another spec shares the folder, change nothing",
        )
