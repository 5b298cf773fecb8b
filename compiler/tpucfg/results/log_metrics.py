"""Read the final metrics from a log: those of the latest JSON object that has all of them."""

import json
from collections.abc import Mapping, Sequence
from io import TextIOWrapper
from math import isfinite
from typing import Any, BinaryIO, Final, NamedTuple

from tpucfg.results.cloud_logging import MAX_ENTRY_LENGTH, LogObject, TruncatedLogError, is_list, iter_log_objects
from tpucfg.text_format import format_value, listed

_NOT_FINITE: Final = ("NaN", "Infinity", "-Infinity")
"""As written by Python's json and by Cloud Logging: https://protobuf.dev/programming-guides/json/."""
_NO_ENTRIES_HELP: Final = (
    "gcloud logging read returns entries of the last day: add --freshness=30d, and check that its filter names the job"
)
_OLDER_ENTRIES_HELP: Final = (
    "if they are older than these entries, gcloud logging read returns entries of the last day, and at most --limit:"
    " add --freshness=30d, and raise --limit"
)


class LogMetrics(NamedTuple):
    """The metrics that a log reports."""

    metrics: Mapping[str, float]
    location: str
    """File and line, as the prefix of a message."""


class LogError(Exception):
    """A log without the metrics, or with a value that cannot be compared."""

    def __init__(self, message: str, help: str) -> None:
        super().__init__(message)
        self.help = help


def last_metrics(log: BinaryIO, name: str, keys: Sequence[str]) -> LogMetrics:
    """Return the metrics of the latest object that has all keys; `name` is the log's name in messages.

    Entries of Cloud Logging are ordered by their timestamps, everything else by its position in the log.

    Raises:
        LogError: No object has all keys, or the latest that does has a value that is not a finite number.
    """
    # Only \n ends a line: a progress bar's \r does not. Bytes that are not UTF-8 must not hide the rest of the log.
    text = TextIOWrapper(log, "utf-8-sig", "replace", newline="\n")
    try:
        return _last_metrics(text, name, keys)
    finally:
        text.detach()  # the caller closes the log


def _last_metrics(log: TextIOWrapper, name: str, keys: Sequence[str]) -> LogMetrics:
    latest: LogObject | None = None
    seen: dict[str, None] = {}
    first_line = log.readline(MAX_ENTRY_LENGTH)
    try:
        for candidate in iter_log_objects(first_line, log, keys):
            present = [key for key in keys if key in candidate.data]
            seen |= dict.fromkeys(present)
            # >= because entries without a timestamp are equal, and the last one in the log counts.
            if len(present) == len(keys) and (latest is None or candidate.timestamp >= latest.timestamp):
                latest = candidate
    except TruncatedLogError as error:
        hint = "fetch the whole log again: the last measurement may be in the missing part"
        raise LogError(f"{name}:{error.line}: the list of log entries is truncated or malformed", hint) from None
    if latest is None:
        raise _missing_metrics(name, keys, list(seen), first_line.strip())
    location = f"{name}:{latest.line}"
    return LogMetrics({key: _finite_metric(latest.data[key], key, location) for key in keys}, location)


def _finite_metric(value: Any, key: str, location: str) -> float:
    if isinstance(value, float) and isfinite(value):
        return value
    # An infinite float was a number beyond floats; the literal Infinity is a string (see cloud_logging).
    if isinstance(value, float):
        hint = "check how the trainer computes it, and print a number between -1e300 and 1e300"
        raise LogError(f"{location}: {key} is a number out of range, beyond 1e308", hint)
    if value in _NOT_FINITE:
        hint = "do not record a run that diverged: lower its learning rate, and run it again with another --run"
        raise LogError(f"{location}: {key} is {format_value(value, quoted=False)}, which is not a finite number", hint)
    hint = f"print it as a number, without quotes: {{{json.dumps(key)}: 0.97}}"
    raise LogError(f"{location}: {key} is {format_value(value)}, which is not a number", hint)


def _missing_metrics(name: str, keys: Sequence[str], seen: Sequence[str], first_line: str) -> LogError:
    options = " ".join(f"--metric {key}=NUMBER" for key in keys)
    hint = f"let the trainer print them as its last line, as JSON, or give them as options: {options}"
    # gcloud prints YAML by default, and each YAML document begins with ---.
    if first_line == "---":
        hint += "; if this is the output of gcloud logging read, add --format=json to it"
    if is_list(first_line):
        hint += f"; {_OLDER_ENTRIES_HELP}"
    if first_line == "[]":
        return LogError(f"{name} has no log entries", _NO_ENTRIES_HELP)
    if len(seen) == len(keys):
        return LogError(f"{name} has {listed(keys, last=' and ')} on several lines, but not on one", hint)
    missing = [key for key in keys if key not in seen]
    return LogError(f"{name} has no line of JSON with {listed(missing, last=' and ')}", hint)
