"""One line of a file of results to its record, or to what is wrong with it."""

import json
import re
from collections.abc import Iterator
from itertools import islice
from math import isfinite
from typing import Any, Final, NamedTuple

from tpucfg import schemas
from tpucfg.findings import Finding, Place
from tpucfg.results.model import SCHEMA, THROUGHPUT, Record
from tpucfg.results.store import LARGEST_LINE
from tpucfg.schemas import Ids
from tpucfg.spec.reader import read_text
from tpucfg.wording import named, shown

MOST_OF_ONE_LINE: Final = 5
"""Findings: a line with more was no record before somebody misspelt a key."""
_SIZE: Final = re.compile(r'"size": ?"([a-z0-9]{1,20}-[0-9]{1,6})"')
IDS: Final = Ids("TPU102", "TPU102", "TPU102", "TPU102", "TPU102", "key", "the record")


class Example(NamedTuple):
    """What an example of a record is about, so that its reader can keep it."""

    name: str
    """The project's."""
    size: str
    """A rung of the environment."""

    def __str__(self) -> str:
        """The record as people would write it."""
        return json.dumps({"metrics": {THROUGHPUT: 1234.5}, "name": self.name, "size": self.size})


class RefusedError(ValueError):
    """JSON of which readers make different things."""


def plain_json(text: str) -> Any:
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
        raise RefusedError("this is nested deeper than any record") from None


def read_line(row: str, place: Place, example: Example, *, last: bool = False) -> Record | tuple[Finding, ...]:
    """The record in a line that is not blank. `example`: what a help shows; `last`: no line break follows it."""
    if len(row) > LARGEST_LINE:
        message = f"the line has {len(row):,} characters, and a record at most {LARGEST_LINE:,}"
        return (_no_record("", place, message, example),)
    try:
        data = plain_json(row)
    except json.JSONDecodeError as error:
        column = min(error.pos, len(row) - 1) + 1
        return (_no_record(row, place._replace(column=column), _no_json(row, error, last=last), example),)
    except RefusedError as error:
        return (_no_record(row, place, str(error), example),)
    if not schemas.valid(SCHEMA, data):
        return tuple(islice(_unfit(row, data, place), MOST_OF_ONE_LINE))
    return Record(data["name"], data["size"], data["metrics"], data.get("job"), data.get("run"), place)


def _number(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise RefusedError(f"{shown(text, quoted=False)} is no number that can be compared")
    return value


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key, value in pairs:
        if key in members:
            raise RefusedError(f"{named(key)} is written twice")
        members[key] = value
    return members


def _no_json(row: str, error: json.JSONDecodeError, *, last: bool) -> str:
    if last and row.lstrip().startswith("{") and not row.rstrip().endswith("}"):
        return "the last line is cut off: it ends in the middle of a record"
    return f"this is no JSON: {error.msg[:1].lower()}{error.msg[1:]}"


def _no_record(row: str, place: Place, message: str, example: Example) -> Finding:
    size = _SIZE.search(row)
    record = example._replace(size=size[1]) if size else example
    hint = f"delete line {place.line}, or write the record again: {record}"
    return Finding.of("TPU101", message, place, help=hint)


def _unfit(row: str, data: Any, place: Place) -> Iterator[Finding]:
    """Why the line does not fit the schema, each reason at its place in the line."""
    document = read_text(row, place.file)
    for problem in schemas.problems(SCHEMA, data, IDS, written=document.written):
        found = problem.found_in(document)
        inner = found.place._replace(line=place.line, end_line=place.line)
        hint = found.help or f"delete line {place.line}"
        yield found._replace(place=inner if document.root else place, help=hint)
