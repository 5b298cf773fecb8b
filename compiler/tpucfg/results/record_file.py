"""The results file of an environment: read under bounds, and replaced atomically by one with another record.

Appending in place would not be atomic: a process that is killed during a write leaves a part of a line, cut at the
boundary of a page.

The lock of a writer is an flock on the file itself, and not a `filelock.FileLock`: that library locks a second file,
which it truncates when it acquires the lock and deletes when it releases it, and a `results` folder that is a symbolic
link would be followed.
"""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from tpucfg.findings import Finding, Location
from tpucfg.fs import output_lock, staged_files
from tpucfg.results.record import ExampleRecord, Record, Results, parse_record, record_line
from tpucfg.text_format import split_lines

FOLDER: Final = "results"
"""The folder's name, next to the spec."""
MAX_FILE_BYTES: Final = 4 << 20
"""About twenty thousand records."""
MAX_BAD_LINES: Final = 20
"""A file with more invalid lines is not a results file, and is reported with one finding."""

_LOCK_TIMEOUT_SECONDS: Final = 30
"""A writer takes milliseconds, so a process that keeps the lock for longer was probably stopped."""
_LOCK_POLL_SECONDS: Final = 0.01
_SHORTEN_HELP: Final = "move its oldest lines to another file: only the last record of a rung counts"
_MOVE_HELP: Final = "move it away"
_SPACE_HELP: Final = "free some space and record it again"
_ACCESS_HELP: Final = "give yourself permission to read and write it, and to write to its folder"
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
    errno.ESTALE: ("another program replaced it in the same moment", "record it again"),
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
        # No lock is needed: a writer replaces the file, so that an open file is whole and never changes.
        with _results_folder(path, create=False) as parent, _open_file(path.name, os.O_RDONLY, parent) as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        return Results(str(path), "")
    except OSError as error:
        reason, hint = _explain(error)
        return _unreadable(str(path), "", reason, hint)
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

    A last line without a line break, as an editor may leave it, is completed with one and otherwise kept.

    Raises:
        RecordFileError: The record could not be written; the file's content is unchanged.
    """
    path = record_path(folder, environment)
    line = record_line(record).encode()
    try:
        with _results_folder(path, create=True) as parent, _locked_file(path.name, parent) as file:
            content = file.read(MAX_FILE_BYTES + 1)
            line_break = b"\n" if content and not content.endswith(b"\n") else b""
            if len(content) + len(line_break) + len(line) > MAX_FILE_BYTES:
                raise RecordFileError(f"{path} would grow beyond {MAX_FILE_BYTES:,} bytes", _SHORTEN_HELP)
            with output_lock(path.parent, [str(path.parent)]):
                _replace(file, path.name, parent, content + line_break + line)
    except OSError as error:
        reason, hint = _explain(error)
        raise RecordFileError(f"{path}: {reason}", hint) from None
    return path


def _explain(error: OSError) -> tuple[str, str]:
    """Return the cause of an error and a help line."""
    return _ERROR_TEXTS.get(error.errno or 0, (error.strerror or str(error), _MOVE_HELP))


def _unreadable(file: str, text: str, message: str, hint: str) -> Results:
    return Results(file, text, (), (Finding.of("TPU100", message, Location(file), help=hint),))


@contextmanager
def _results_folder(path: Path, *, create: bool) -> Iterator[int]:
    """Yield a descriptor of the folder of a results file, refusing a symbolic link."""
    # The spec's own folder may be a link. Opening step by step relative to a descriptor leaves no moment in which a
    # checked folder could be replaced by a link.
    with _open_folder(path.parent.parent) as parent:
        if create:
            with suppress(FileExistsError):  # if the name is not that of a folder, opening it raises an error
                os.mkdir(path.parent.name, dir_fd=parent)
        with _open_folder(path.parent.name, os.O_NOFOLLOW, parent) as folder:
            yield folder


@contextmanager
def _open_folder(name: str | Path, flags: int = 0, parent: int | None = None) -> Iterator[int]:
    descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | flags, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open_file(name: str, flags: int, folder: int) -> BinaryIO:
    """Open a file, refusing a symbolic link and anything that is not a regular file."""
    # O_NONBLOCK: opening a named pipe would otherwise wait for a writer.
    descriptor = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666, dir_fd=folder)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise OSError(errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.ENXIO, "")
    return os.fdopen(descriptor, "rb" if flags == os.O_RDONLY else "r+b")


@contextmanager
def _locked_file(name: str, folder: int) -> Iterator[BinaryIO]:
    """Open the file, which is created if it is missing, and lock it against other writers."""
    deadline = time.monotonic() + _LOCK_TIMEOUT_SECONDS
    while True:
        # Closing the file releases its lock, and so does the kernel when the process is killed: none is ever stale.
        with _open_file(name, os.O_RDWR | os.O_CREAT, folder) as file:
            _lock(file, deadline)
            # Another writer, git or an editor may have replaced the file while its lock was awaited.
            if not _is_replaced(file, name, folder):
                yield file
                return


def _is_replaced(file: BinaryIO, name: str, folder: int) -> bool:
    """Return True if the open file is no longer the one with that name."""
    try:
        return not os.path.samestat(os.fstat(file.fileno()), os.stat(name, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:
        return True


def _lock(file: BinaryIO, deadline: float) -> None:
    """Acquire an exclusive lock.

    Raises:
        BlockingIOError: Another process keeps it until the deadline, in seconds of the monotonic clock.
    """
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_LOCK_POLL_SECONDS)


def _replace(file: BinaryIO, name: str, folder: int, content: bytes) -> None:
    """Replace a locked file by one with other content and the same mode."""
    with staged_files(folder) as stage:
        with stage(name) as new:
            os.fchmod(new.fileno(), stat.S_IMODE(os.fstat(file.fileno()).st_mode))
            new.write(content)
            new.flush()
            os.fsync(new.fileno())
        # Git and editors take no lock, and their content is not overwritten.
        if _is_replaced(file, name, folder):
            raise OSError(errno.ESTALE, "")
    with suppress(OSError):  # some file systems cannot synchronize a folder
        os.fsync(folder)
