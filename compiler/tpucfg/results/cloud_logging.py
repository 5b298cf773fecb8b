"""The JSON objects that a program printed, out of its log: plain text, or what Cloud Logging gives out of itself.

`gcloud logging read --format=json` prints an array of entries, the newest first; a sink to Cloud Storage writes one
entry a line; one that is copied from the Logs Explorer is laid out over many lines. What was printed is in an entry's
payload: `textPayload`, `message` of `jsonPayload` (Vertex AI), or `jsonPayload` itself, where the agent took the line
apart (GKE). A `protoPayload` is an audit record, which no program prints.

https://cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry
https://cloud.google.com/sdk/gcloud/reference/logging/read
https://cloud.google.com/logging/docs/structured-logging
"""

import json
import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from io import StringIO
from typing import Any, Final, NamedTuple, TextIO

MAX_ENTRY_LENGTH: Final = 1 << 20
"""Characters of a line, or of an entry of an array: Cloud Logging takes entries of 256 KiB.

https://cloud.google.com/logging/quotas
"""
_PAYLOADS: Final = ("textPayload", "jsonPayload", "protoPayload")
_LAID_OUT: Final = re.compile(r"\s*(?:(\[)\s*(?:\{|$)|\{\s*$)")
"""How a list of entries begins, or an entry that is laid out over several lines."""
_FOLLOWING: Final = re.compile(r"[^\s,]")
_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[-+]\d\d:\d\d)", re.ASCII)
_DECODER: Final = json.JSONDecoder(parse_int=float, parse_constant=str)
"""NaN and its like stay words, as in what Cloud Logging gives; a float that is infinite was a number beyond floats."""


class LogTimestamp(NamedTuple):
    """By what Cloud Logging itself orders the entries of a log."""

    second: datetime = datetime.min.replace(tzinfo=UTC)
    """Without an entry around it nothing has a time, and the order of the log is all there is."""
    fraction: str = ""
    """Nine digits."""
    insert_id: str = ""
    """Which of two is the later at the same moment."""


class LogObject(NamedTuple):
    """One object that the program printed."""

    line: int
    """Of the log: where the object stands, or where the entry that holds it begins."""
    when: LogTimestamp
    data: Mapping[str, Any]


class TruncatedLogError(Exception):
    """An array of entries ends within one; `line` is where that begins."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


def is_list(opening: str) -> bool:
    """Whether a log that begins with this line is an array of entries, as gcloud prints it."""
    begins = _LAID_OUT.match(opening)
    return begins is not None and begins[1] is not None


def iter_log_objects(opening: str, rest: TextIO, words: Iterable[str]) -> Iterator[LogObject]:
    """The objects in a log, in its order.

    What stands before an object in its line, a time or the name of a host, is passed over. No line, and no entry, is
    held that is longer than it may be.

    Args:
        opening: The log's first line.
        rest: What follows it.
        words: A line without any of them is passed over.

    Raises:
        CutOffError: The log is an array of entries, and not whole.
    """
    words = tuple(words)
    begins = _LAID_OUT.match(opening)
    number, left = (yield from _laid_out(opening, rest, begins)) if begins else (1, opening)
    for line, row in _rows(number, StringIO(left + rest.readline(MAX_ENTRY_LENGTH)), rest):
        if any(word in row for word in words):
            data = _object(row)
            yield from _of_entry(line, data) if _is_entry(data) else (LogObject(line, LogTimestamp(), data),)


def _laid_out(opening: str, rest: TextIO, begins: re.Match[str]) -> Generator[LogObject, None, tuple[int, str]]:
    """What the entries hold, one decoded at a time. Gives what is to be read as lines, with the number of its first.

    That is what follows the list; and everything, where it turns out to be text that only begins like one.
    """
    is_list = begins[1] is not None
    window, at, number, begun = opening, begins.end(1) if is_list else 0, 1, False
    while True:
        following = _FOLLOWING.search(window, at)
        start = following.start() if following else len(window)
        number, at = number + window.count("\n", at, start), start
        if is_list and window.startswith("]", at):
            return number, window[at + 1 :]
        entry, end = _decoded(window, at)
        if entry is not None and (begun or _is_entry(entry)):
            yield from _of_entry(number, entry)
            number, at, begun = number + window.count("\n", at, end), end, True
            continue
        kept = at if begun else 0
        more = rest.read(MAX_ENTRY_LENGTH) if entry is None and len(window) - kept < MAX_ENTRY_LENGTH else ""
        if more:
            window, at = window[kept:] + more, at - kept
        elif begun and (is_list or at < len(window)):
            raise TruncatedLogError(number)
        else:
            return (number, "") if begun else (1, window)


def _decoded(text: str, at: int) -> tuple[dict[str, Any] | None, int]:
    """The object at that place, and where it ends; None where there is none, or it is not whole."""
    try:
        data, end = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None, at
    return (data, end) if isinstance(data, dict) else (None, at)


def _rows(number: int, *sources: TextIO) -> Iterator[tuple[int, str]]:
    """The lines, by number, of which none is longer than it may be."""
    whole = True
    for source in sources:
        while part := source.readline(MAX_ENTRY_LENGTH):
            ended = part.endswith("\n")
            if whole and (ended or len(part) < MAX_ENTRY_LENGTH):
                yield number, part
            number += ended
            whole = ended


def _object(row: str) -> dict[str, Any]:
    """The object that the line ends with; an empty one where there is none."""
    try:
        data = _DECODER.decode(row[row.index("{") :])
    except (ValueError, RecursionError):  # text that only looks like it
        return {}
    return data if isinstance(data, dict) else {}


def _is_entry(data: Mapping[str, Any]) -> bool:
    return any(payload in data for payload in _PAYLOADS)


def _of_entry(line: int, entry: Mapping[str, Any]) -> Iterator[LogObject]:
    when, payload = _when(entry), entry.get("jsonPayload")
    text = entry.get("textPayload")
    if isinstance(payload, dict):
        yield LogObject(line, when, payload)
        text = payload.get("message")
    for row in text.split("\n") if isinstance(text, str) else ():
        if "{" in row:
            yield LogObject(line, when, _object(row))


def _when(entry: Mapping[str, Any]) -> LogTimestamp:
    time = _TIME.fullmatch(str(entry.get("timestamp")))
    if time is None:
        return LogTimestamp()
    try:
        second = datetime.fromisoformat(time[1] + time[3].replace("Z", "+00:00"))
    except ValueError:  # of a day that there is not
        return LogTimestamp()
    return LogTimestamp(second, (time[2] or "").ljust(9, "0"), str(entry.get("insertId", "")))
