"""Records as values."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Final, NamedTuple

from tpucfg.findings import Finding, Location

THROUGHPUT: Final = "examples_per_second"
"""The metric that scaling and cost are worked out from: examples that the whole slice goes through in a second."""
SCHEMA: Final = "record"
"""The name of the schema that a line of the file fits."""


class Record(NamedTuple):
    """What one run on one rung measured: one line of the file."""

    name: str
    """The project's name in the spec: two specs may share a folder."""
    size: str
    metrics: Mapping[str, float]
    job: str | None = None
    """The hash of the job that the spec made when this was recorded."""
    run: str | None = None
    """The run's id, where the job was submitted with one."""
    location: Location | None = None
    """The line; None for a record that no file holds yet."""

    def metric(self, name: str | None) -> Fraction | None:
        """A metric as the decimal that the file has, exactly; None where it was not recorded."""
        value = self.metrics.get(name) if name else None
        return None if value is None else exact_decimal(value)


class Results(NamedTuple):
    """One file of records that was read."""

    file: str
    """The name it goes by in findings."""
    text: str
    records: tuple[Record, ...] = ()
    """In the order of the file."""
    findings: tuple[Finding, ...] = ()
    """What is wrong with the file, or with a line of it, which then counts for nothing."""

    @property
    def problem(self) -> str:
        """What is wrong with a file that has findings, as the end of a sentence about it."""
        is_unread = any(it.id == "TPU100" for it in self.findings)
        return "is not read at all" if is_unread else "is read only in part"


def exact_decimal(value: float) -> Fraction:
    """The decimal that a number is written as, so that 0.97 - 0.01 is 0.96."""
    return Fraction(repr(value))
