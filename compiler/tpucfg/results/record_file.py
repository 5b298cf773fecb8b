"""The results file of an environment: read under bounds, appended to atomically, locked during both.

The lock is an flock on the file itself, and not a `filelock.FileLock`: that library locks a second file, which it
truncates when it acquires the lock and deletes when it releases it. A reader would need write access to the folder, two
readers would exclude each other, and a `results` folder that is a symbolic link would be followed.
"""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tpucfg.findings import Finding, Location
from tpucfg.results.record import Record, Results, record_line
from tpucfg.results.record_parser import ExampleRecord, parse_record
from tpucfg.text_format import split_lines

FOLDER: Final = "results"
"""The folder's name, next to the spec."""
MAX_FILE_BYTES: Final = 4 << 20
"""About twenty thousand records."""
MAX_BAD_LINES: Final = 20
"""A file with more invalid lines is not a results file, and is reported with one finding."""

_LOCK_TIMEOUT_SECONDS: Final = 30
"""An append takes milliseconds, so a process that keeps the lock for longer was probably stopped."""
_LOCK_POLL_SECONDS: Final = 0.01
_MAX_REOPENS: Final = 100
"""Maximum number of times that the file may be replaced while waiting for its lock."""
_READ_BYTES: Final = 1 << 20
_SHORTEN_HELP: Final = "move its oldest lines to another file: only the last record of a rung counts"
_MOVE_HELP: Final = "move it away"
_SPACE_HELP: Final = "free some space and record it again"
_ACCESS_HELP: Final = "give yourself permission to read and write it"
_ERROR_TEXTS: Final = {
    errno.ENOSPC: ("the disk is full", _SPACE_HELP),
    errno.EDQUOT: ("the disk quota is used up", _SPACE_HELP),
    errno.EFBIG: ("the file has reached the system's size limit", _SPACE_HELP),
    errno.EACCES: ("permission denied", _ACCESS_HELP),
    errno.EPERM: ("permission denied", _ACCESS_HELP),
    errno.EROFS: ("the file system is read-only", _ACCESS_HELP),
    errno.ENOTDIR: ("its folder is a file or a symbolic link", _MOVE_HELP),
    errno.EISDIR: ("it is a folder, not a file", _MOVE_HELP),
    errno.ELOOP: ("it is a symbolic link, which is not followed", _MOVE_HELP),
    errno.ENXIO: ("it is not a regular file", _MOVE_HELP),
    errno.EWOULDBLOCK: ("it is locked by another program", "wait for the other program, or end it"),
}


class RecordFileError(Exception):
    """The file cannot be read or written; its content is unchanged."""

    def __init__(self, message: str, help: str) -> None:
        super().__init__(message)
        self.help = help


def record_path(folder: Path, environment: str) -> Path:
    """Return the path of an environment's results, for a spec in that folder."""
    return folder / FOLDER / f"{environment}.jsonl"


def latest_records(results: Results, name: str) -> Mapping[str, Record]:
    """Return the record that counts for each rung, by size: the last one with the project's name."""
    return {record.size: record for record in results.records if record.name == name}


def read_records(folder: Path, environment: str, example: ExampleRecord) -> Results:
    """Read the records of an environment, for a spec in that folder; no file means no records."""
    path = record_path(folder, environment)
    try:
        with locked_file(path, write=False) as descriptor:
            content = b"".join(_chunks(descriptor))
    except FileNotFoundError:
        return Results(str(path), "")
    except RecordFileError as error:
        return _unreadable(str(path), "", str(error).removeprefix(f"{path}: "), error.help)
    if len(content) > MAX_FILE_BYTES:
        return _unreadable(str(path), "", f"the file is larger than {MAX_FILE_BYTES:,} bytes", _SHORTEN_HELP)
    # Editors may add a byte order mark. Bytes that are not UTF-8 become findings of their line, not a decoding error.
    return parse_records(content.decode("utf-8-sig", "surrogateescape"), str(path), example)


def parse_records(text: str, file: str, example: ExampleRecord) -> Results:
    """Parse the records in a text, ignoring blank lines; `example` is the record that help lines show."""
    records: list[Record] = []
    findings: list[Finding] = []
    bad_lines = 0
    rows = split_lines(text)
    for number, row in enumerate(rows, 1):
        if not row.strip():
            continue
        location = Location(file, number, 1, number, len(row) + 1)
        parsed = parse_record(row, location, example, is_last=number == len(rows))
        if isinstance(parsed, Record):
            records.append(parsed)
            continue
        findings += parsed
        bad_lines += 1
        if bad_lines > MAX_BAD_LINES:
            message = f"more than {MAX_BAD_LINES} lines are not records, so the whole file is ignored"
            return _unreadable(file, text, message, f"restore the file; a record is one line: {example}")
    return Results(file, text, tuple(records), tuple(findings))


def append_record(folder: Path, environment: str, record: Record) -> Path:
    """Append a record atomically, for a spec in that folder, and return the file's path.

    A last line without a line break, left by an editor or a power cut, is completed with one and otherwise kept.

    Raises:
        RecordFileError: The record could not be written; the file's content is unchanged.
    """
    path = record_path(folder, environment)
    line = record_line(record).encode()
    with locked_file(path, write=True) as descriptor:
        size = os.fstat(descriptor).st_size
        data = line if not size or os.pread(descriptor, 1, size - 1) == b"\n" else b"\n" + line
        if size + len(data) > MAX_FILE_BYTES:
            raise RecordFileError(f"{path} would grow beyond {MAX_FILE_BYTES:,} bytes", _SHORTEN_HELP)
        try:
            _write_whole(descriptor, data)
        except OSError:
            os.ftruncate(descriptor, size)
            raise
    return path


@contextmanager
def locked_file(path: Path, *, write: bool) -> Iterator[int]:
    """Open the file, locked against other processes; a missing file is created for writing.

    Raises:
        FileNotFoundError: The file is to be read, and does not exist.
        RecordFileError: The file cannot be opened, is not a regular file, or is reached through a symbolic link.
    """
    try:
        descriptor = _open_locked(path, write=write)
        try:
            yield descriptor
        finally:
            # Closing releases the lock, and so does the kernel when the process is killed: no stale lock remains.
            os.close(descriptor)
    except OSError as error:
        if error.errno == errno.ENOENT and not write:
            raise
        raise explain_os_error(error, path) from None


def explain_os_error(error: OSError, path: Path) -> RecordFileError:
    """Return the error with its cause and a help line."""
    reason, hint = _ERROR_TEXTS.get(error.errno or 0, (error.strerror or str(error), _MOVE_HELP))
    return RecordFileError(f"{path}: {reason}", hint)


def _unreadable(file: str, text: str, message: str, hint: str) -> Results:
    return Results(file, text, (), (Finding.of("TPU100", message, Location(file), help=hint),))


def _chunks(descriptor: int) -> Iterator[bytes]:
    """Yield at most one byte more than the limit: enough to detect a file of any size that is too large."""
    bytes_left = MAX_FILE_BYTES + 1
    while bytes_left and (chunk := os.read(descriptor, min(bytes_left, _READ_BYTES))):
        bytes_left -= len(chunk)
        yield chunk


def _write_whole(descriptor: int, data: bytes) -> None:
    """Write in a single call; a partial write is an error."""
    # With a second call, a reader that ignores the lock (an editor, git) could see half a line.
    if os.write(descriptor, data) < len(data):
        raise OSError(errno.ENOSPC, "")
    os.fsync(descriptor)


def _open_locked(path: Path, *, write: bool) -> int:
    """Return a locked descriptor of the file that is at the path once the lock is acquired."""
    # git and editors replace a file instead of writing to it. If that happened while waiting for the lock, the lock
    # is on a deleted file, and a record appended to it would be lost.
    for _ in range(_MAX_REOPENS):
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
    """Open the file, refusing a symbolic link for the file and for the results folder."""
    # The spec's own folder may be a link. Opening step by step relative to a descriptor leaves no moment in which a
    # checked folder could be replaced by a link.
    parent = os.open(path.parent.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if write:
            _create_folder(path.parent.name, parent)
        folder = os.open(path.parent.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    finally:
        os.close(parent)
    mode = os.O_RDWR | os.O_APPEND | os.O_CREAT if write else os.O_RDONLY
    try:
        # O_NONBLOCK: opening a named pipe would otherwise wait for a writer.
        descriptor = os.open(path.name, mode | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666, dir_fd=folder)
    finally:
        os.close(folder)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise OSError(errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.ENXIO, "")
    return descriptor


def _create_folder(name: str, parent: int) -> None:
    try:
        os.mkdir(name, dir_fd=parent)
    except FileExistsError:
        return  # if the name is not that of a folder, opening it raises an error


def _lock(descriptor: int, kind: int) -> None:
    """Acquire the lock before the timeout; a reader continues without one if the file system has no locks."""
    deadline = time.monotonic() + _LOCK_TIMEOUT_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_LOCK_POLL_SECONDS)
        except OSError:
            if kind == fcntl.LOCK_SH:
                return
            raise
        else:
            return
