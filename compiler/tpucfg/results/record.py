"""One record, and all records of a file, as values."""

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final, NamedTuple

from tpucfg.findings import Finding, Location

THROUGHPUT: Final = "examples_per_second"
"""The metric that scaling and cost are computed from: examples per second of the whole slice."""
SCHEMA: Final = "record"
"""The name of the schema of a record."""
_MAX_WHOLE: Final = 1e15
"""Below this bound, a float without a fraction is written as an integer."""


class Record(NamedTuple):
    """The measurements of one run on one rung: one line of the file."""

    name: str
    """The project's name in the spec: two specs may share a folder."""
    size: str
    metrics: Mapping[str, float]
    job: str | None = None
    """The hash of the job at the time of recording."""
    run: str | None = None
    """The run's id, if the job was submitted with one."""
    location: Location | None = None
    """The line in the file; None for a record that is not written yet."""

    def metric(self, name: str | None) -> Fraction | None:
        """Return a metric as the exact decimal in the file; None if it was not recorded."""
        value = self.metrics.get(name) if name else None
        return None if value is None else exact_decimal(value)


class Results(NamedTuple):
    """The records of one file, and the findings about it."""

    file: str
    """The file's name in findings."""
    text: str
    records: tuple[Record, ...] = ()
    """In the order of the file."""
    findings: tuple[Finding, ...] = ()
    """Errors in the file or in its lines; a line with an error is not counted."""

    @property
    def problem(self) -> str:
        """The problem of a file with findings, as the end of a sentence that begins with the file."""
        is_unread = any(finding.id == "TPU100" for finding in self.findings)
        return "cannot be read" if is_unread else "has invalid lines"


def exact_decimal(value: float) -> Fraction:
    """Return the shortest decimal that reads as the float, so that 0.97 - 0.01 is exactly 0.96."""
    # Fraction(0.97) is the binary approximation: a metric exactly at its threshold would miss it.
    return Fraction(repr(value))


def record_line(record: Record) -> str:
    """Return the record as its line in the file; equal records have equal lines."""
    return json.dumps(record_payload(record), sort_keys=True, allow_nan=False) + "\n"


def record_payload(record: Record) -> dict[str, Any]:
    """Return the record in the form of its schema, without the keys that are None."""
    metrics = {key: _without_point(value) for key, value in record.metrics.items()}
    optional = {"job": record.job, "name": record.name, "run": record.run, "size": record.size}
    return {"metrics": metrics} | {key: value for key, value in optional.items() if value is not None}


def _without_point(value: float) -> float:
    return int(value) if abs(value) < _MAX_WHOLE and value == int(value) else value
