"""The file `results/tune.json`: what searches have compiled, so that the next one goes on where this one was."""

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from tpucfg.fit.fit_file import (
    MAX_FILE_BYTES,
    FitFile,
    FitResult,
    read_fit_file,
    result_id,
    result_payload,
    update_fit_file,
)

NAME: Final = "tune.json"
"""The file's name, in the folder of results next to the spec."""
_MAX_RESULTS: Final = 500
_MAX_BYTES: Final = MAX_FILE_BYTES // 2
"""The lines of the file are indented, which adds less than as much again."""


def tune_path(folder: Path) -> Path:
    """Return the path of the results of searches for the specs in a folder."""
    return folder / "results" / NAME


def read_tune_file(path: Path) -> FitFile:
    """Read the results of earlier searches, by rung and inputs."""
    return read_fit_file(path, command="tpucfg tune", key=result_id)


def keep_results(path: Path, results: Iterable[FitResult]) -> None:
    """Add results to the file, which other searches may have written since; a file that is full keeps the new ones.

    Raises:
        OSError: The file cannot be written; its content is unchanged.
    """
    new = by_id(results)
    if new:
        update_fit_file(path, lambda: _bounded(new | by_id(read_tune_file(path).results.values()) | new))


def by_id(results: Iterable[FitResult]) -> dict[str, FitResult]:
    """Return results by their rung and inputs."""
    return {result_id(result): result for result in results}


def _bounded(results: dict[str, FitResult]) -> Iterator[FitResult]:
    """Yield the first results, as many as the file takes."""
    size = 0
    for result in islice(results.values(), _MAX_RESULTS):
        size += len(json.dumps(result_payload(result)))
        if size > _MAX_BYTES:
            return
        yield result
