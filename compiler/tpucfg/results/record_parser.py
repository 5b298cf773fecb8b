"""Parse one line of a results file into a record, or into findings."""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from tpucfg import schemas
from tpucfg.findings import Finding, Location
from tpucfg.results.record import SCHEMA, THROUGHPUT, Record, record_payload
from tpucfg.schemas import Problem, RuleIds
from tpucfg.strict_json import AmbiguousJsonError, finite_float, parse_strict_json
from tpucfg.yamldoc.reader import read_text

MAX_LINE_LENGTH: Final = 8 << 10
"""Characters: enough for the maximum number of metrics, each with the longest name."""
MAX_FINDINGS_PER_LINE: Final = 5
"""A line with more findings is probably not a record at all."""
RECORD_IDS: Final = RuleIds("TPU102", "TPU102", "TPU102", "TPU102", "TPU102", "key", "the record")
_SIZE: Final = re.compile(r'"size": ?"([a-z0-9]{1,20}-[0-9]{1,6})"')


class ExampleRecord(NamedTuple):
    """The project and size of the example record in a help line, so that the example can be used unchanged."""

    name: str
    """The project's name."""
    size: str
    """A rung of the environment."""

    def __str__(self) -> str:
        """Return the example as a line of the file."""
        return json.dumps({"metrics": {THROUGHPUT: 1234.5}, "name": self.name, "size": self.size})


def parse_record(
    line: str, location: Location, example: ExampleRecord, *, is_last: bool = False
) -> Record | tuple[Finding, ...]:
    """Parse a line that is not blank.

    Args:
        line: The line, without its line break.
        location: The line's location, for findings.
        example: The record that help lines show.
        is_last: True if no line break follows, so that the line may be truncated.
    """
    # Checked before parsing, which needs time and memory for a line of megabytes.
    if len(line) > MAX_LINE_LENGTH:
        message = f"the line has {len(line):,} characters; a record has at most {MAX_LINE_LENGTH:,}"
        return (_invalid_line("", location, message, example),)
    try:
        data = parse_strict_json(line, parse_int=finite_float)
    except json.JSONDecodeError as error:
        column = min(error.pos, len(line) - 1) + 1
        message = _json_error_text(line, error, is_last=is_last)
        return (_invalid_line(line, location._replace(column=column), message, example),)
    except AmbiguousJsonError as error:
        return (_invalid_line(line, location, str(error), example),)
    # The compiled validator is fast; the explanation below parses the line again, with the location of each key.
    if not schemas.is_valid(SCHEMA, data):
        return tuple(islice(_schema_findings(line, data, location), MAX_FINDINGS_PER_LINE))
    return Record(data["name"], data["size"], data["metrics"], data.get("job"), data.get("run"), location)


def record_problems(record: Record) -> Sequence[Problem]:
    """Return the mismatches of a record with its schema."""
    return schemas.schema_problems(SCHEMA, record_payload(record), RECORD_IDS)


def _json_error_text(line: str, error: json.JSONDecodeError, *, is_last: bool) -> str:
    if is_last and line.lstrip().startswith("{") and not line.rstrip().endswith("}"):
        return "the last line is truncated in the middle of a record"
    return f"the line is not valid JSON: {error.msg[:1].lower()}{error.msg[1:]}"


def _invalid_line(line: str, location: Location, message: str, example: ExampleRecord) -> Finding:
    # The line is not JSON, but its size may be readable: the example is then a record of that rung.
    size = _SIZE.search(line)
    record = example._replace(size=size[1]) if size else example
    hint = f"delete line {location.line}, or write the record again: {record}"
    return Finding.of("TPU101", message, location, help=hint)


def _schema_findings(line: str, data: Any, location: Location) -> Iterator[Finding]:
    """Yield a finding for each mismatch with the schema, with its own column."""
    document = read_text(line, location.file)
    for problem in schemas.schema_problems(SCHEMA, data, RECORD_IDS, source_text=document.source_text):
        finding = problem.finding_in(document)
        # The document is this one line, so its locations have the right columns but always line 1.
        in_file = finding.location._replace(line=location.line, end_line=location.line)
        hint = finding.help or f"delete line {location.line}"
        yield finding._replace(location=in_file if document.root else location, help=hint)
