"""Patterns of paths, by which the tables ORIGINS and RESERVED of a target name fields of its request body."""

from collections.abc import Iterator, Mapping
from typing import Final, TypeVar

from tpucfg.paths import KeyPath, first_match, matches, pattern_steps
from tpucfg.plan.job import Job
from tpucfg.spec.layers import LAYERED
from tpucfg.targets.interface import Origin, Reserved

_ENDS: Final = ((), ("**",))
"""The rests of patterns that match at the current position."""
_Row = TypeVar("_Row", Origin, Reserved)
Rows = tuple[tuple[tuple[str, ...], _Row], ...]
"""The rows of a table whose patterns match a path so far, each with the rest of its pattern."""


def matches_step(wanted: str, step: str) -> bool:
    """Return True if a step of a pattern other than `**` matches a step of a path."""
    return matches(f"[{wanted}]", (step,))


def table_rows(table: Mapping[str, _Row]) -> Rows[_Row]:
    """Return the rows of a table at the root, where all of them match."""
    return tuple((pattern_steps(pattern), row) for pattern, row in table.items())


def rows_after(rows: Rows[_Row], step: str) -> Rows[_Row]:
    """Return the rows that still match after one more step.

    A mapping may have thousands of keys, so the patterns that do not lead to it are dropped once, on the way to it.
    """
    return tuple(
        (rest if rest[0] == "**" else rest[1:], row)
        for rest, row in rows
        if rest and (rest[0] == "**" or matches_step(rest[0], step))
    )


def reached_rows(rows: Rows[_Row]) -> Iterator[_Row]:
    """Yield the rows whose whole pattern matches, in the order of the table."""
    return (row for rest, row in rows if rest in _ENDS)


def origin_of(origins: Mapping[str, Origin], path: KeyPath) -> Origin | None:
    """Return the origin of the field at a path; None for a field that only `extra` can have added."""
    return first_match(origins.items(), path)


def spec_path(origin: Origin, job: Job) -> KeyPath:
    """Return the path in the spec of an origin of kind `spec`, for the job's environment and size."""
    placeholders = {"<env>": job.environment.name, "<size>": job.size}
    path = tuple(placeholders.get(step, step) for step in origin.detail.split("."))
    return job.settings.source(path) if path[0] in LAYERED else path
