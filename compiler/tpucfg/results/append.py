"""One more record at the end of the file: the whole line, or nothing of it."""

import errno
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tpucfg import schemas
from tpucfg.results.line import IDS
from tpucfg.results.model import SCHEMA, Record
from tpucfg.results.store import LARGEST_FILE, StoreError, opened, path_of
from tpucfg.schemas import Problem

_LARGEST_WHOLE: Final = 1e15
"""Up to there a float without a fraction is written as the whole number that it is."""


def append(folder: Path, environment: str, record: Record) -> Path:
    """Writes the record under the file's lock, for a spec in that folder, and gives the file's path.

    A last line without its end, which an editor or a power cut may have left, is ended first and otherwise kept.

    Raises:
        StoreError: It could not be written; the file holds what it held before.
    """
    path = path_of(folder, environment)
    line = line_of(record).encode()
    with opened(path, write=True) as descriptor:
        size = os.fstat(descriptor).st_size
        text = line if not size or os.pread(descriptor, 1, size - 1) == b"\n" else b"\n" + line
        if size + len(text) > LARGEST_FILE:
            hint = "move its oldest lines to another file: only the last record of a rung counts"
            raise StoreError(f"{path} would grow beyond {LARGEST_FILE:,} bytes", hint)
        try:
            _write(descriptor, text)
        except OSError:
            os.ftruncate(descriptor, size)
            raise
    return path


def line_of(record: Record) -> str:
    """The record as its line: keys sorted, and nothing in it that the record does not hold."""
    return json.dumps(payload_of(record), sort_keys=True, allow_nan=False) + "\n"


def payload_of(record: Record) -> dict[str, Any]:
    """The record as the schema has it."""
    metrics = {key: _plain(value) for key, value in record.metrics.items()}
    known = {"job": record.job, "name": record.name, "run": record.run, "size": record.size}
    return {"metrics": metrics} | {key: value for key, value in known.items() if value is not None}


def problems(record: Record) -> Sequence[Problem]:
    """Why the record does not fit its schema; empty where it does."""
    return schemas.problems(SCHEMA, payload_of(record), IDS)


def _plain(value: float) -> float:
    return int(value) if abs(value) < _LARGEST_WHOLE and value == int(value) else value


def _write(descriptor: int, text: bytes) -> None:
    """In one call, so that whoever reads without the lock sees the line whole; a call that stops short has failed."""
    if os.write(descriptor, text) < len(text):
        raise OSError(errno.ENOSPC, "")
    os.fsync(descriptor)
