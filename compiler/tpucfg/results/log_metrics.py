"""Read the final metrics from a log: plain text, or entries exported from Cloud Logging.

`gcloud logging read --format=json` prints an array of entries, the newest first; a sink to Cloud Storage writes one
entry per line; an entry copied from the Logs Explorer is indented over many lines. The printed text is in an entry's
payload: `textPayload`, `message` of `jsonPayload` (Vertex AI), or `jsonPayload` itself, if the logging agent parsed the
line (GKE). A `protoPayload` is an audit record, which no program prints.

Where the spec names a framework, the lines that its programs print after each step are read as well.

https://cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry
https://cloud.google.com/sdk/gcloud/reference/logging/read
https://cloud.google.com/logging/docs/structured-logging
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from io import TextIOWrapper
from itertools import islice
from math import isfinite
from statistics import median
from typing import Any, BinaryIO, Final, NamedTuple, TextIO

from tpucfg.refusal import RefusalError
from tpucfg.results.records import THROUGHPUT
from tpucfg.spec.presets import StepLine
from tpucfg.text_format import format_count, format_value, listed

# The time of a step from the lines that a framework's programs print: the median of those after the warm-up.
#
# A start compiles in its first steps, and the next ones look too fast, as the program runs ahead of the devices. Single
# steps that save a checkpoint, evaluate, or compile after a restart do not change a median.

_MAX_STEPS: Final = 100_000
"""Limit for the steps whose times are kept: a median needs no more, and memory stays bounded."""
_VALUE: Final = re.compile(
    r"([A-Za-z_][A-Za-z0-9_/]{0,62}): ([-+]?[0-9][0-9.e+-]{0,30}|[-+]?nan|[-+]?inf)(?=,|\s|$)"
)
_FROM_PYTHON: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
SHOWN_STEP: Final = StepLine(
    marker="step ",
    pattern=r"\bstep (?P<step>[0-9][0-9,]{0,15}) of [0-9,]{1,16}(?P<values>: .*|$)",
    warm_up=0,
    source="the trainer that `tpucfg init --trainer` writes",
)
"""The form of a program without a preset; it has no time."""


class Steps(NamedTuple):
    """The form of the lines of steps, and the figures of the spec that each must match."""

    form: StepLine
    batch_size: int
    """The examples of a step on the whole slice."""
    tokens_per_device: Fraction | None = None
    """The tokens of a step on one device; None if the spec has no sequence length."""
    total: int | None = None
    """The steps of a whole run; None for a part of one, a probe, and a run that is counted in epochs."""


def step_values(row: str, form: StepLine) -> dict[str, Any]:
    """Return the values on the line of a step: floats, or NaN and Infinity as texts; empty for another line."""
    match = re.search(form.pattern, row)
    if match is None:
        return {}
    values = {name: _number(text) for name, text in _VALUE.findall(match["values"])}
    seconds = match.groupdict().get("seconds")
    own = {"step": float(match["step"].replace(",", ""))} | (
        {} if seconds is None else {"seconds": float(seconds)}
    )
    return values | own


def _number(text: str) -> Any:
    try:
        return _FROM_PYTHON.get(text.removeprefix("+")) or float(text)
    except ValueError:  # 1.2.3
        return text


# The objects in a log.

MAX_ENTRY_LENGTH: Final = 1 << 20
"""Characters of a line, or of an entry of an array; Cloud Logging accepts entries of at most 256 KiB.

https://cloud.google.com/logging/quotas
"""
_PAYLOADS: Final = ("textPayload", "jsonPayload", "protoPayload")
_ROUNDING: Final = 0.02
"""The difference between two figures of one line that rounding explains: seconds have three decimals."""
_MAX_BRACES: Final = 8
"""Braces of a line that may begin its object; the prefix of a service or a logger has few."""
# Integers become floats: Python refuses to parse an integer of thousands of digits, and a float shows it as infinite.
# NaN and Infinity become strings, as Cloud Logging writes them, so an infinite float is always a number out of range.
_DECODER: Final = json.JSONDecoder(parse_int=float, parse_constant=str)


class LogTimestamp(NamedTuple):
    """The sort key by which Cloud Logging itself orders the entries of a log."""

    moment: datetime = datetime.min.replace(tzinfo=UTC)
    """The minimum for text outside of entries, which is then ordered by its position in the log."""
    insert_id: str = ""
    """The order of entries of the same moment."""


class LogObject(NamedTuple):
    """One object that the program printed."""

    line: int
    """The line of the log on which the object, or the entry around it, begins."""
    timestamp: LogTimestamp
    data: Mapping[str, Any]
    is_step: bool = False
    """True for the line of a step, whose data are its values."""


class TruncatedLogError(Exception):
    """An array that ends within an entry; `line` is where that entry, or the last one before the end, begins."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


def short_lines(log: TextIO) -> Iterator[tuple[int, str]]:
    """Yield the lines of a log up to the maximum length, with their numbers; a longer line is skipped."""
    number, at_line_start = 1, True
    # readline() returns a long line in parts, of which only the last has a line break.
    while part := log.readline(MAX_ENTRY_LENGTH):
        is_complete = part.endswith("\n")
        if at_line_start and (is_complete or len(part) < MAX_ENTRY_LENGTH):
            yield number, part
        number += is_complete
        at_line_start = is_complete


def iter_log_objects(
    lines: Iterable[tuple[int, str]], keys: Iterable[str], form: StepLine | None = None
) -> Iterator[LogObject]:
    """Yield the objects in the lines of a log, in its order, in bounded memory.

    Text before an object on its line, such as a time or a host name, is skipped.

    Args:
        lines: The lines, with their numbers.
        keys: A line that contains none of them is skipped without parsing.
        form: The form of the lines of steps; None if they are not read.

    Raises:
        TruncatedLogError: The log ends within an entry, or within an array of entries.
    """
    keys = (*keys, form.marker) if form else tuple(keys)
    for number, row in _joined_entries(lines):
        # Few lines of a log contain a key, and searching for keys is much cheaper than parsing every line.
        if any(key in row for key in keys):
            data = _object_at_end(row)
            yield from _printed_objects(
                number, data if _is_entry(data) else {"textPayload": row}, form
            )


def _joined_entries(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield each entry that is indented over several lines as one line, and all other lines as they are.

    Raises:
        TruncatedLogError: An entry, or an array with an entry, is not complete.
    """
    opened: list[str] = []
    opened_at, length, indent = 0, 0, ""
    in_array = has_entry = False
    for number, row in lines:
        # The lines of an entry are indented deeper than its braces, by gcloud, jq and the Logs Explorer alike.
        bare = row.rstrip().removesuffix(",")
        is_end = bare == f"{indent}}}"
        if opened and length < MAX_ENTRY_LENGTH and (is_end or row.startswith(f"{indent} ")):
            opened.append(bare if is_end else row)
            length += len(row)
            if is_end:
                entry, opened = "".join(opened), []
                has_entry = has_entry or any(payload in entry for payload in _PAYLOADS)
                yield opened_at, entry
        elif bare.strip() == "{":
            opened, opened_at, length, indent = [row], number, len(row), bare[:-1]
        else:
            opened, in_array = [], bare.strip() == "[" or (in_array and bare != "]")
            yield number, row
    if has_entry and (opened or in_array):
        raise TruncatedLogError(opened_at)


def _decode_object(text: str, start: int) -> tuple[dict[str, Any] | None, int]:
    """Return the object at a position and its end; None if there is none or it is incomplete."""
    try:
        data, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, start
    return (data, end) if isinstance(data, dict) else (None, start)


def _object_at_end(row: str) -> dict[str, Any]:
    """Return the object at the end of a line; an empty one if there is none."""
    # From the left, because a later brace can begin an inner object of the one that is printed.
    for brace in islice(re.finditer("{", row), _MAX_BRACES):
        data, end = _decode_object(row, brace.start())
        if data is not None and not row[end:].strip():
            return data
    return {}


def _is_entry(data: Mapping[str, Any]) -> bool:
    return any(payload in data for payload in _PAYLOADS)


def _printed_objects(
    line: int, entry: Mapping[str, Any], form: StepLine | None
) -> Iterator[LogObject]:
    """Yield the objects, and the lines of steps, in an entry's payload."""
    timestamp, payload = _timestamp(entry), entry.get("jsonPayload")
    text = entry.get("textPayload")
    if isinstance(payload, dict):
        yield LogObject(line, timestamp, payload)
        text = payload.get("message")
    # An agent may combine lines that arrive together into one entry.
    for row in text.split("\n") if isinstance(text, str) else ():
        if "{" in row and (data := _object_at_end(row)):
            yield LogObject(line, timestamp, data)
        elif form and (values := step_values(row, form)):
            yield LogObject(line, timestamp, values, is_step=True)


def _timestamp(entry: Mapping[str, Any]) -> LogTimestamp:
    try:
        moment = datetime.fromisoformat(str(entry.get("timestamp"))).astimezone(UTC)
    except (ValueError, OverflowError):  # none, or a day that does not exist, such as 2026-02-30
        return LogTimestamp()
    return LogTimestamp(moment, str(entry.get("insertId", "")))


_NOT_FINITE: Final = ("NaN", "Infinity", "-Infinity")
"""As written by Python's json and by Cloud Logging: https://protobuf.dev/programming-guides/json/."""
_GCLOUD_HELP: Final = (
    "read entries of Cloud Logging with: gcloud logging "
    "read … --format=json --freshness=30d --limit=1000"
)
"""By default gcloud prints YAML, and only entries of the last day."""


class LogMetrics(NamedTuple):
    """The metrics that a log reports."""

    metrics: Mapping[str, float]
    location: str
    """File and line, as the prefix of a message."""
    note: str = ""
    """The measurement of the throughput in words, if it was calculated from the lines of steps."""


class LogError(RefusalError):
    """A log without the metrics, or with a value that cannot be compared."""


def last_metrics(
    log: BinaryIO, name: str, keys: Sequence[str], steps: Steps | None = None
) -> LogMetrics:
    """Return the metrics of the latest object that has all keys; `name` is the log's name in messages.

    Entries of Cloud Logging are ordered by their timestamps, everything else by its position in the log. Without such
    an object, the lines of `steps` are read: the throughput of the median step, and other metrics of the latest line.

    Raises:
        LogError: No object has all keys, or the latest that does has a value that is not a finite number.
    """
    # Only \n ends a line: a progress bar's \r does not. Bytes that are not UTF-8 must not hide the rest of the log.
    text = TextIOWrapper(log, "utf-8-sig", "replace", newline="\n")
    try:
        return _last_metrics(text, name, keys, steps)
    finally:
        text.detach()  # the caller closes the log


def _last_metrics(
    log: TextIOWrapper, name: str, keys: Sequence[str], steps: Steps | None
) -> LogMetrics:
    latest: dict[bool, LogObject] = {}
    times: dict[float, float] = {}  # hosts that all print a step count once
    seen: dict[str, None] = {}
    try:
        for candidate in iter_log_objects(short_lines(log), keys, steps.form if steps else None):
            is_step, present = candidate.is_step, [key for key in keys if key in candidate.data]
            if is_step and len(times) < _MAX_STEPS:
                times[candidate.data["step"]] = candidate.data["seconds"]
            elif not is_step:
                seen |= dict.fromkeys(present)
            # >= because entries without a timestamp are equal, and the last one in the log counts.
            is_complete = is_step or len(present) == len(keys)
            if is_complete and (
                is_step not in latest or candidate.timestamp >= latest[is_step].timestamp
            ):
                latest[is_step] = candidate
    except TruncatedLogError as error:
        hint = "fetch the whole log again: the last measurement may be in the missing part"
        raise LogError(
            f"{name}:{error.line}: the list of log entries is truncated or malformed", hint
        ) from None
    if not latest:
        raise _missing_metrics(name, keys, seen, steps)
    printed = latest.get(False) or latest[True]
    location = f"{name}:{printed.line}"
    if printed.is_step and steps:
        return _step_metrics(printed, times, steps, keys, name)
    return LogMetrics(
        {key: _finite_metric(printed.data[key], key, location) for key in keys}, location
    )


def _step_metrics(
    latest: LogObject, times: Mapping[float, float], steps: Steps, keys: Sequence[str], name: str
) -> LogMetrics:
    """Return metrics from the lines of steps: the throughput of the median step, and values of the latest line.

    The steps of the warm-up, at most the first half, are left out.
    """
    location = f"{name}:{latest.line}"
    if missing := [key for key in keys if key != THROUGHPUT and key not in latest.data]:
        options = " ".join(f"--metric {key}=NUMBER" for key in missing)
        message = f"{location}: the line of the last step has no {listed(missing, last=' and no ')}"
        raise LogError(message, f"give what the log does not have as options: {options}")
    metrics = {
        key: _finite_metric(latest.data[key], key, location) for key in keys if key != THROUGHPUT
    }
    _refuse_other_run(latest.data, steps, location, finals=[*metrics])
    if THROUGHPUT not in keys:
        return LogMetrics(metrics, location)
    warm_up = steps.form.warm_up
    left_out = min(warm_up, len(times) // 2)
    measured = [seconds for _, seconds in sorted(times.items())[left_out:]]
    # The time is 0 for steps that are too short to be printed.
    if len(times) < warm_up or not (seconds := median(measured)):
        message = f"{name} has {format_count(len(times), 'timed step')}, too few to tell the warm-up from the rest"
        hint = f"let the program run at least {2 * warm_up} steps, or give --metric {THROUGHPUT}=NUMBER"
        raise LogError(message, hint)
    note = (
        f"{THROUGHPUT} is the batch of {steps.batch_size:,} in the median step, {seconds:g} seconds, of the"
        f" {len(measured):,} after the first {left_out:,}"
    )
    return LogMetrics({**metrics, THROUGHPUT: steps.batch_size / seconds}, location, note)


def _refuse_other_run(
    step: Mapping[str, Any], steps: Steps, location: str, finals: Sequence[str]
) -> None:
    """Refuse the line of a step with another number of tokens, and final metrics that are not those of the last step.

    Raises:
        LogError: The line is not of the run that the spec describes.
    """
    number = int(step["step"])
    if finals and steps.total and number + 1 < steps.total:
        message = (
            f"{location}: {listed(finals, last=' and ')} of step "
            f"{number:,} is not final: a run has {steps.total:,}"
        )
        hint = f"record a probe with --probe, or a part of a run with --run ID --step {number + 1}"
        raise LogError(message, hint)
    rate, expected = step.get(steps.form.tokens_per_second), steps.tokens_per_device
    if not (
        isinstance(rate, float)
        and expected
        and abs(rate * step["seconds"] / expected - 1) > _ROUNDING
    ):
        return
    message = f"{location}: a step has {rate * step['seconds']:,.0f} tokens a device, and {int(expected):,} in the spec"
    hint = f"record it with the batch and length of its run, by --set, or give --metric {THROUGHPUT}=NUMBER"
    raise LogError(message, hint)


def _finite_metric(value: Any, key: str, location: str) -> float:
    if isinstance(value, float) and isfinite(value):
        return value
    if value in _NOT_FINITE:
        hint = "do not record a run that diverged: lower its learning rate, and run it again with another --run"
        raise LogError(
            f"{location}: {key} is {format_value(value, quoted=False)}, which is not a finite number",
            hint,
        )
    # An infinite float was a number beyond floats; the literal Infinity is a string.
    is_float = isinstance(value, float)
    problem = (
        "a number out of range, beyond 1e308"
        if is_float
        else f"{format_value(value)}, which is not a number"
    )
    hint = f"print it as a number between -1e300 and 1e300, without quotes: {{{json.dumps(key)}: 0.97}}"
    raise LogError(f"{location}: {key} is {problem}", hint)


def _missing_metrics(
    name: str, keys: Sequence[str], seen: Collection[str], steps: Steps | None
) -> LogError:
    options = " ".join(f"--metric {key}=NUMBER" for key in keys)
    hint = f"let the trainer print them as its last line, as JSON, or give them as options: {options}; {_GCLOUD_HELP}"
    if len(seen) == len(keys):
        return LogError(
            f"{name} has {listed(keys, last=' and ')} on several lines, but not on one", hint
        )
    missing = [key for key in keys if key not in seen]
    of_steps = f'"{steps.form.marker} …", and none ' if steps else ""
    return LogError(
        f"{name} has no line {of_steps}of JSON with {listed(missing, last=' and ')}", hint
    )
