"""One line of a file of results to its record, or to what is wrong with it."""

import json
import re
from collections.abc import Iterator
from itertools import islice
from math import isfinite
from typing import Any, Final, NamedTuple

from tpucfg import schemas
from tpucfg.findings import Finding, Location
from tpucfg.results.record import SCHEMA, THROUGHPUT, Record
from tpucfg.schemas import RuleIds
from tpucfg.text_format import format_value, quote_key
from tpucfg.yamldoc.reader import read_text

MAX_LINE_LENGTH: Final = 8 << 10
"""Bytes: a record with the most metrics that it may have, each with the longest name."""
MAX_FINDINGS_PER_LINE: Final = 5
"""Findings: a line with more was no record before somebody misspelt a key."""
_SIZE: Final = re.compile(r'"size": ?"([a-z0-9]{1,20}-[0-9]{1,6})"')
RECORD_IDS: Final = RuleIds("TPU102", "TPU102", "TPU102", "TPU102", "TPU102", "key", "the record")


class ExampleRecord(NamedTuple):
    """What an example of a record is about, so that its reader can keep it."""

    name: str
    """The project's."""
    size: str
    """A rung of the environment."""

    def __str__(self) -> str:
        """The record as people would write it."""
        return json.dumps({"metrics": {THROUGHPUT: 1234.5}, "name": self.name, "size": self.size})


class AmbiguousJsonError(ValueError):
    """JSON of which readers make different things."""


def parse_strict_json(text: str) -> Any:
    """The JSON in a text, with every number as a float.

    Raises:
        RefusedError: A number is no finite one, a key is written twice, or it is nested without end.
        json.JSONDecodeError: It is no JSON.
    """
    try:
        return json.loads(
            text, parse_int=_number, parse_float=_number, parse_constant=_number, object_pairs_hook=_members
        )
    except RecursionError:
        raise AmbiguousJsonError("this is nested deeper than any record") from None


def parse_record(
    row: str, location: Location, example: ExampleRecord, *, last: bool = False
) -> Record | tuple[Finding, ...]:
    """The record in a line that is not blank. `example`: what a help shows; `last`: no line break follows it."""
    if len(row) > MAX_LINE_LENGTH:
        message = f"the line has {len(row):,} characters, and a record at most {MAX_LINE_LENGTH:,}"
        return (_no_record("", location, message, example),)
    try:
        data = parse_strict_json(row)
    except json.JSONDecodeError as error:
        column = min(error.pos, len(row) - 1) + 1
        return (_no_record(row, location._replace(column=column), _no_json(row, error, last=last), example),)
    except AmbiguousJsonError as error:
        return (_no_record(row, location, str(error), example),)
    if not schemas.is_valid(SCHEMA, data):
        return tuple(islice(_unfit(row, data, location), MAX_FINDINGS_PER_LINE))
    return Record(data["name"], data["size"], data["metrics"], data.get("job"), data.get("run"), location)


def _number(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise AmbiguousJsonError(f"{format_value(text, quoted=False)} is no number that can be compared")
    return value


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key, value in pairs:
        if key in members:
            raise AmbiguousJsonError(f"{quote_key(key)} is written twice")
        members[key] = value
    return members


def _no_json(row: str, error: json.JSONDecodeError, *, last: bool) -> str:
    if last and row.lstrip().startswith("{") and not row.rstrip().endswith("}"):
        return "the last line is cut off: it ends in the middle of a record"
    return f"this is no JSON: {error.msg[:1].lower()}{error.msg[1:]}"


def _no_record(row: str, location: Location, message: str, example: ExampleRecord) -> Finding:
    size = _SIZE.search(row)
    record = example._replace(size=size[1]) if size else example
    hint = f"delete line {location.line}, or write the record again: {record}"
    return Finding.of("TPU101", message, location, help=hint)


def _unfit(row: str, data: Any, location: Location) -> Iterator[Finding]:
    """Why the line does not fit the schema, each reason at its place in the line."""
    document = read_text(row, location.file)
    for problem in schemas.schema_problems(SCHEMA, data, RECORD_IDS, source_text=document.source_text):
        found = problem.finding_in(document)
        inner = found.location._replace(line=location.line, end_line=location.line)
        hint = found.help or f"delete line {location.line}"
        yield found._replace(location=inner if document.root else location, help=hint)
