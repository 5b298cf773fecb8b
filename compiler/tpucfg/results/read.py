"""The file of an environment to its records, under bounds: what is no record is a finding and counts for nothing."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tpucfg.findings import Finding, Place
from tpucfg.results.line import Example, read_line
from tpucfg.results.model import Record, Results
from tpucfg.results.store import LARGEST_FILE, StoreError, opened, path_of
from tpucfg.wording import lines

MOST_BAD_LINES: Final = 20
"""Of one file: what has more is another file, and nobody reads on."""


def read(folder: Path, environment: str, example: Example) -> Results:
    """The records of an environment, for a spec in that folder; none where there is no file."""
    path = path_of(folder, environment)
    try:
        with opened(path, write=False) as descriptor:
            content = b"".join(_chunks(descriptor))
    except FileNotFoundError:
        return Results(str(path), "")
    except StoreError as error:
        return _unread(str(path), "", str(error).removeprefix(f"{path}: "), error.help)
    if len(content) > LARGEST_FILE:
        hint = "move its oldest lines to another file: only the last record of a rung counts"
        return _unread(str(path), "", f"the file is larger than {LARGEST_FILE:,} bytes", hint)
    return read_lines(content.decode("utf-8-sig", "surrogateescape"), str(path), example)


def read_lines(text: str, file: str, example: Example) -> Results:
    """The records in a text; blank lines are none. `example`: what a help shows."""
    records: list[Record] = []
    found: list[Finding] = []
    bad = 0
    rows = lines(text)
    for number, row in enumerate(rows, 1):
        if not row.strip():
            continue
        made = read_line(row, Place(file, number, 1, number, len(row) + 1), example, last=number == len(rows))
        if isinstance(made, Record):
            records.append(made)
            continue
        found += made
        bad += 1
        if bad > MOST_BAD_LINES:
            message = f"the file has more than {MOST_BAD_LINES} lines that are no records, so nothing of it counts"
            return _unread(file, text, message, f"is this the right file? A record is one line: {example}")
    return Results(file, text, tuple(records), tuple(found))


def latest(results: Results, name: str) -> Mapping[str, Record]:
    """By size, the last record of each rung of the project of that name: the one that counts."""
    return {record.size: record for record in results.records if record.name == name}


def _unread(file: str, text: str, message: str, hint: str) -> Results:
    return Results(file, text, (), (Finding.of("TPU100", message, Place(file), help=hint),))


def _chunks(descriptor: int) -> Iterator[bytes]:
    left = LARGEST_FILE + 1
    while left and (chunk := os.read(descriptor, min(left, 1 << 20))):
        left -= len(chunk)
        yield chunk
