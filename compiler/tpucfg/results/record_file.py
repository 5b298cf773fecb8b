"""The file on disk: opened without following a link, locked while it is read or appended to."""

import errno
import fcntl
import json
import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tpucfg import schemas
from tpucfg.findings import Finding, Location
from tpucfg.results.record import SCHEMA, Record, Results
from tpucfg.results.record_parser import RECORD_IDS, ExampleRecord, parse_record
from tpucfg.schemas import Problem
from tpucfg.text_format import lines

FOLDER: Final = "results"
"""Beside the spec."""
MAX_FILE_BYTES: Final = 4 << 20
"""Bytes: some twenty thousand records."""

_PATIENCE_SECONDS: Final = 30
"""An append takes milliseconds; whoever holds the lock for longer was stopped in the middle."""
_REPLACED_AT_MOST: Final = 100
"""Times, while its lock is waited for: more often is no editor."""
_MOVE_AWAY: Final = "move it away"
_ROOM: Final = "make room and record it again"
_RIGHTS: Final = "give yourself the right to read and write it"
_REASONS: Final = {
    errno.ENOSPC: ("the disk is full", _ROOM),
    errno.EDQUOT: ("the disk quota is used up", _ROOM),
    errno.EFBIG: ("the system allows no file to grow further", _ROOM),
    errno.EACCES: ("permission denied", _RIGHTS),
    errno.EPERM: ("permission denied", _RIGHTS),
    errno.EROFS: ("the file system is read-only", _RIGHTS),
    errno.ENOTDIR: ("a file or a symbolic link stands where a folder is needed", _MOVE_AWAY),
    errno.EISDIR: ("a folder stands where the file belongs", _MOVE_AWAY),
    errno.ELOOP: ("it is a symbolic link, which is not followed", _MOVE_AWAY),
    errno.ENXIO: ("it is no regular file", _MOVE_AWAY),
    errno.EWOULDBLOCK: ("another program keeps it locked", "end the other program, or wait for it"),
}


class RecordFileError(Exception):
    """The file cannot be read or written; what it held is still there, whole."""

    def __init__(self, message: str, help: str) -> None:
        super().__init__(message)
        self.help = help


def record_path(folder: Path, environment: str) -> Path:
    """Where the records of an environment are, for a spec in that folder."""
    return folder / FOLDER / f"{environment}.jsonl"


@contextmanager
def locked_file(path: Path, *, write: bool) -> Iterator[int]:
    """The file's descriptor, locked against every other user of this module; made where it is written and missing.

    Raises:
        FileNotFoundError: It is to be read, and there is none.
        StoreError: It cannot be opened, is no regular file, or is reached through a symbolic link.
    """
    try:
        descriptor = _locked(path, write=write)
        try:
            yield descriptor
        finally:
            os.close(descriptor)  # which lets go of the lock
    except OSError as error:
        if error.errno == errno.ENOENT and not write:
            raise
        raise explain_os_error(error, path) from None


def explain_os_error(error: OSError, path: Path) -> RecordFileError:
    """The error in the words of this file."""
    reason, hint = _REASONS.get(error.errno or 0, (error.strerror or str(error), _MOVE_AWAY))
    return RecordFileError(f"{path}: {reason}", hint)


def _locked(path: Path, *, write: bool) -> int:
    """The file that has the name once the lock is held: git and editors replace a file while others wait for it."""
    for _ in range(_REPLACED_AT_MOST):
        descriptor = _open(path, write=write)
        try:
            _lock(descriptor, fcntl.LOCK_EX if write else fcntl.LOCK_SH)
            if os.fstat(descriptor).st_nlink:
                return descriptor
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)
    raise OSError(errno.EWOULDBLOCK, "")


def _open(path: Path, *, write: bool) -> int:
    """Both steps below the spec's folder refuse a link, and what is no file cannot make the opening wait."""
    above = os.open(path.parent.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if write:
            _make_folder(path.parent.name, above)
        folder = os.open(path.parent.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    finally:
        os.close(above)
    mode = os.O_RDWR | os.O_APPEND | os.O_CREAT if write else os.O_RDONLY
    try:
        descriptor = os.open(path.name, mode | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666, dir_fd=folder)
    finally:
        os.close(folder)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise OSError(errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.ENXIO, "")
    return descriptor


def _make_folder(name: str, above: int) -> None:
    try:
        os.mkdir(name, dir_fd=above)
    except FileExistsError:  # whatever it is: opening it tells
        return


def _lock(descriptor: int, kind: int) -> None:
    """Waits for the lock, but not for ever; where a file system has no locks, a reader goes on without."""
    end = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)
        except OSError:
            if kind == fcntl.LOCK_SH:
                return
            raise
        else:
            return


# The file of an environment to its records, under bounds: what is no record is a finding and counts for nothing.


MAX_BAD_LINES: Final = 20
"""Of one file: what has more is another file, and nobody reads on."""


def read_records(folder: Path, environment: str, example: ExampleRecord) -> Results:
    """The records of an environment, for a spec in that folder; none where there is no file."""
    path = record_path(folder, environment)
    try:
        with locked_file(path, write=False) as descriptor:
            content = b"".join(_chunks(descriptor))
    except FileNotFoundError:
        return Results(str(path), "")
    except RecordFileError as error:
        return _unread(str(path), "", str(error).removeprefix(f"{path}: "), error.help)
    if len(content) > MAX_FILE_BYTES:
        hint = "move its oldest lines to another file: only the last record of a rung counts"
        return _unread(str(path), "", f"the file is larger than {MAX_FILE_BYTES:,} bytes", hint)
    return parse_records(content.decode("utf-8-sig", "surrogateescape"), str(path), example)


def parse_records(text: str, file: str, example: ExampleRecord) -> Results:
    """The records in a text; blank lines are none. `example`: what a help shows."""
    records: list[Record] = []
    found: list[Finding] = []
    bad = 0
    rows = lines(text)
    for number, row in enumerate(rows, 1):
        if not row.strip():
            continue
        made = parse_record(row, Location(file, number, 1, number, len(row) + 1), example, last=number == len(rows))
        if isinstance(made, Record):
            records.append(made)
            continue
        found += made
        bad += 1
        if bad > MAX_BAD_LINES:
            message = f"the file has more than {MAX_BAD_LINES} lines that are no records, so nothing of it counts"
            return _unread(file, text, message, f"is this the right file? A record is one line: {example}")
    return Results(file, text, tuple(records), tuple(found))


def latest_records(results: Results, name: str) -> Mapping[str, Record]:
    """By size, the last record of each rung of the project of that name: the one that counts."""
    return {record.size: record for record in results.records if record.name == name}


def _unread(file: str, text: str, message: str, hint: str) -> Results:
    return Results(file, text, (), (Finding.of("TPU100", message, Location(file), help=hint),))


def _chunks(descriptor: int) -> Iterator[bytes]:
    left = MAX_FILE_BYTES + 1
    while left and (chunk := os.read(descriptor, min(left, 1 << 20))):
        left -= len(chunk)
        yield chunk


# One more record at the end of the file: the whole line, or nothing of it.


_LARGEST_WHOLE: Final = 1e15
"""Up to there a float without a fraction is written as the whole number that it is."""


def append_record(folder: Path, environment: str, record: Record) -> Path:
    """Writes the record under the file's lock, for a spec in that folder, and gives the file's path.

    A last line without its end, which an editor or a power cut may have left, is ended first and otherwise kept.

    Raises:
        StoreError: It could not be written; the file holds what it held before.
    """
    path = record_path(folder, environment)
    line = record_line(record).encode()
    with locked_file(path, write=True) as descriptor:
        size = os.fstat(descriptor).st_size
        text = line if not size or os.pread(descriptor, 1, size - 1) == b"\n" else b"\n" + line
        if size + len(text) > MAX_FILE_BYTES:
            hint = "move its oldest lines to another file: only the last record of a rung counts"
            raise RecordFileError(f"{path} would grow beyond {MAX_FILE_BYTES:,} bytes", hint)
        try:
            _write(descriptor, text)
        except OSError:
            os.ftruncate(descriptor, size)
            raise
    return path


def record_line(record: Record) -> str:
    """The record as its line: keys sorted, and nothing in it that the record does not hold."""
    return json.dumps(record_payload(record), sort_keys=True, allow_nan=False) + "\n"


def record_payload(record: Record) -> dict[str, Any]:
    """The record as the schema has it."""
    metrics = {key: _plain(value) for key, value in record.metrics.items()}
    known = {"job": record.job, "name": record.name, "run": record.run, "size": record.size}
    return {"metrics": metrics} | {key: value for key, value in known.items() if value is not None}


def record_problems(record: Record) -> Sequence[Problem]:
    """Why the record does not fit its schema; empty where it does."""
    return schemas.schema_problems(SCHEMA, record_payload(record), RECORD_IDS)


def _plain(value: float) -> float:
    return int(value) if abs(value) < _LARGEST_WHOLE and value == int(value) else value


def _write(descriptor: int, text: bytes) -> None:
    """In one call, so that whoever reads without the lock sees the line whole; a call that stops short has failed."""
    if os.write(descriptor, text) < len(text):
        raise OSError(errno.ENOSPC, "")
    os.fsync(descriptor)
