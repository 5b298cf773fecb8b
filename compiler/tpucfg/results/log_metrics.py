"""The last measurement in a log: the latest JSON object with all the metrics that are wanted."""

import json
from collections.abc import Mapping, Sequence
from io import TextIOWrapper
from math import isfinite
from typing import Any, BinaryIO, Final, NamedTuple

from tpucfg.results.cloud_logging import MAX_ENTRY_LENGTH, LogObject, TruncatedLogError, is_list, iter_log_objects
from tpucfg.text_format import format_value, listed

_NOT_FINITE: Final = ("NaN", "Infinity", "-Infinity")
"""How Python's JSON writes such numbers, and Cloud Logging: https://protobuf.dev/programming-guides/json/."""
_NO_ENTRIES: Final = (
    "gcloud logging read looks back one day: add --freshness=30d, and see that its filter names the job"
)
_MORE_ENTRIES: Final = (
    "if they are older than these entries, gcloud logging read looks back one day, and gives no more than --limit:"
    " add --freshness=30d, and raise --limit"
)


class LogMetrics(NamedTuple):
    """What a log says was measured."""

    metrics: Mapping[str, float]
    place: str
    """File and line, as a message begins."""


class LogError(Exception):
    """The log has no measurement, or the last one cannot be compared."""

    def __init__(self, message: str, help: str) -> None:
        super().__init__(message)
        self.help = help


def last_metrics(log: BinaryIO, name: str, wanted: Sequence[str]) -> LogMetrics:
    """The metrics of the latest object that has them all; `name` is the log's in messages.

    Entries of Cloud Logging are compared by their time, and everything else by its place in the log.

    Raises:
        LogError: No object has them all, or the latest that does has a value that is no finite number.
    """
    text = TextIOWrapper(log, "utf-8-sig", "replace", newline="\n")
    try:
        return _last(text, name, wanted)
    finally:
        text.detach()  # or it would close what is not its own


def _last(log: TextIOWrapper, name: str, wanted: Sequence[str]) -> LogMetrics:
    found: LogObject | None = None
    seen: dict[str, None] = {}
    opening = log.readline(MAX_ENTRY_LENGTH)
    try:
        for it in iter_log_objects(opening, log, wanted):
            there = [key for key in wanted if key in it.data]
            seen |= dict.fromkeys(there)
            if len(there) == len(wanted) and (found is None or it.when >= found.when):
                found = it
    except TruncatedLogError as error:
        hint = "fetch the log again, whole: the last measurement may be in what is missing"
        raise LogError(f"{name}:{error.line}: the list of log entries is cut off, or broken", hint) from None
    if found is None:
        raise _nowhere(name, wanted, list(seen), opening.strip())
    place = f"{name}:{found.line}"
    return LogMetrics({key: _finite(found.data[key], key, place) for key in wanted}, place)


def _finite(value: Any, key: str, place: str) -> float:
    if isinstance(value, float) and isfinite(value):
        return value
    if isinstance(value, float):
        hint = "see how the trainer works it out, and let it print a number between -1e300 and 1e300"
        raise LogError(f"{place}: {key} is a number out of range, beyond 1e308", hint)
    if value in _NOT_FINITE:
        hint = "a run that diverged is not recorded: lower its learning rate, say, and run it again with another --run"
        raise LogError(f"{place}: {key} is {format_value(value, quoted=False)}, which is no finite number", hint)
    hint = f"let the trainer print it as a number, without quotes: {{{json.dumps(key)}: 0.97}}"
    raise LogError(f"{place}: {key} is {format_value(value)}, which is no number", hint)


def _nowhere(name: str, wanted: Sequence[str], seen: Sequence[str], opening: str) -> LogError:
    instead = " ".join(f"--metric {key}=NUMBER" for key in wanted)
    hint = f"let the trainer print them as its last line, as JSON, or give them yourself: {instead}"
    if opening == "---":
        hint += "; if gcloud logging read printed this, let it print JSON: --format=json"
    if is_list(opening):
        hint += f"; {_MORE_ENTRIES}"
    if opening == "[]":
        return LogError(f"{name} has no log entries", _NO_ENTRIES)
    if len(seen) == len(wanted):
        return LogError(f"{name} has {listed(wanted, last=' and ')} in several lines, and in none together", hint)
    lacking = [key for key in wanted if key not in seen]
    return LogError(f"{name} has no line of JSON with {listed(lacking, last=' and ')}", hint)
