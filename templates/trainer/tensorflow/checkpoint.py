"""Checkpoints: one file each, written under a temporary name and then renamed, so that it is always complete."""

from __future__ import annotations

import io
import re
import zipfile
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple

import numpy as np

from trainer import storage

if TYPE_CHECKING:
    from numpy.typing import NDArray

KEEP = 3
"""Number of checkpoints to keep."""

_NAME = re.compile(r"step-[0-9]{9}\.npz")
_BROKEN = (ValueError, KeyError, EOFError, OSError, zipfile.BadZipFile)
"""Exceptions that numpy raises for an incomplete file."""


class Checkpoint(NamedTuple):
    """Training state after a number of steps."""

    step: int
    arrays: dict[str, NDArray[Any]]


def save(folder: str, step: int, arrays: Mapping[str, Any]) -> None:
    """Write a checkpoint and remove outdated ones."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    storage.write(f"{folder}/step-{step:09}.npz", buffer.getvalue())
    names = storage.names(folder)
    kept = sorted(filter(_NAME.fullmatch, names))[-KEEP:]
    for name in names:
        if name not in kept:  # an older one, or a temporary file of a killed run
            storage.remove(f"{folder}/{name}")


def newest(folder: str) -> Checkpoint | None:
    """Return the newest complete checkpoint; None if there is none."""
    for name in sorted(filter(_NAME.fullmatch, storage.names(folder)), reverse=True):
        arrays = _arrays(f"{folder}/{name}")
        if arrays is not None:
            return Checkpoint(int(name[5:14]), arrays)
    return None


def _arrays(path: str) -> dict[str, NDArray[Any]] | None:
    try:
        with np.load(io.BytesIO(storage.read(path))) as file:
            return {key: file[key] for key in file.files}
    except _BROKEN as error:
        print(f"{path} is incomplete and is skipped: {error}", flush=True)
        return None
