"""Findings as values: they are collected, sorted and printed, and never raised."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Self

from tpucfg.findings.rules import RULES, Level
from tpucfg.named_tuple import NamedTuple
from tpucfg.text_format import format_count, listed, printable

SEVERITY_ORDER: Final[Mapping[str, int]] = {"error": 0, "warning": 1, "note": 2}
"""The sort key of each level, the most severe first."""
FORMATS: Final = ("text", "json", "sarif", "github")
"""The values of `--format`."""
MAX_FINDINGS: Final = 100
"""The number of mistakes that one stage lists for one file: a reader needs no more, and each takes time to explain."""
ALLOWED_PREFIX: Final = "allowed by the spec: "
"""The start of the last detail of a finding that `allow` turned into a note; the spec's reason follows."""


# NamedTuples and not dataclasses: they are sortable, hashable and cheap to create, and a run may create thousands.
class Location(NamedTuple):
    """A range of a file. Lines and columns count from 1, in characters; the end is exclusive."""

    file: str
    line: int = 1
    column: int = 1
    end_line: int = 1
    end_column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    @property
    def start(self) -> tuple[int, int]:
        """The line and column of its first character."""
        return self.line, self.column

    @property
    def point(self) -> tuple[str, int, int]:
        """The file, and where it starts there."""
        return self.file, self.line, self.column


class Allowance(NamedTuple):
    """The reason for which a spec allows a finding."""

    reason: str
    places: tuple[Location, ...] = ()
    """The parts of the spec for which it holds, each with its key; empty for the whole spec."""

    def covers(self, location: Location) -> bool:
        """Return True if a finding at a location is allowed."""
        return not self.places or any(
            place.file == location.file
            and place.start <= location.start
            and (location.end_line, location.end_column) <= (place.end_line, place.end_column)
            for place in self.places
        )


class Finding(NamedTuple):
    """One mistake, with everything that a reader needs to fix it."""

    id: str
    """The rule's id, `TPU021`; its section is in a page of docs/findings."""
    level: Level
    """An error stops a command; a warning or a note does not."""
    message: str
    """One sentence with the value at fault and the numbers of the rule."""
    location: Location
    """The key or value at fault."""
    help: str = ""
    """The exact edit or command that resolves the finding."""
    details: tuple[str, ...] = ()
    """Further facts: the values that would be allowed, the source of a list."""
    related: tuple[tuple[Location, str], ...] = ()
    """The other locations of a disagreement, each with a label."""

    @classmethod
    def of(
        cls,
        id: str,
        message: str,
        location: Location,
        *,
        help: str = "",
        details: Iterable[str] = (),
        related: Iterable[tuple[Location, str]] = (),
        level: Level | None = None,
    ) -> Self:
        """Make a finding with the level of its rule, unless `level` overrides it.

        The texts quote names and values from untrusted files, so characters that a terminal would interpret, or not
        show, are escaped here, once for every output format.
        """
        return cls(
            id,
            level or RULES[id].level,
            printable(message),
            location,
            printable(help),
            tuple(printable(detail) for detail in details),
            tuple((related_location, printable(label)) for related_location, label in related),
        )

    @property
    def lines(self) -> tuple[str, ...]:
        """The message, the details and the help as lines of text, for formats that show a single text."""
        return (self.message, *self.details, *((f"help: {self.help}",) if self.help else ()))

    def data(self, *fields: str) -> dict[str, Any]:
        """Return some fields as data for JSON, with the location as text."""
        return {
            name: str(self.location) if name == "location" else getattr(self, name)
            for name in fields
        }

    def allowed_by(self, allow: Mapping[str, Allowance]) -> Self:
        """Return the finding; if `allow` of the spec has its id at its place, as a note that carries the reason."""
        allowance = allow.get(self.id)
        if allowance is None or not allowance.covers(self.location):
            return self
        reason = printable(f"{ALLOWED_PREFIX}{allowance.reason}")
        return self._replace(level="note", help="", details=(*self.details, reason))


def format_counts(findings: Iterable[Finding]) -> str:
    """Return a summary such as `2 errors and 1 warning`, or `no findings`."""
    levels: list[str] = [finding.level for finding in findings]
    counts = [(levels.count(level), level) for level in SEVERITY_ORDER]
    return (
        listed([format_count(count, level) for count, level in counts if count], last=" and ")
        or "no findings"
    )


def collect(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings without duplicates, sorted by location and then by severity."""
    unique = dict.fromkeys(findings)
    return tuple(
        sorted(
            unique, key=lambda finding: (finding.location, SEVERITY_ORDER[finding.level], finding)
        )
    )


def errors(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the findings of level error."""
    return tuple(finding for finding in findings if finding.level == "error")
