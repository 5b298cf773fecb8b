"""The finding: a value that is collected, sorted and printed, and never raised."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, Self

from tpucfg.findings.rules import RULES
from tpucfg.text_format import printable

Level = Literal["error", "warning", "note"]

SEVERITY_ORDER: Final[Mapping[str, int]] = {"error": 0, "warning": 1, "note": 2}
"""The sort key of each level, the most severe first."""
MAX_FINDINGS: Final = 100
"""The mistakes of one file that one stage lists: more would not be read, and each takes time to explain."""
ALLOWED_PREFIX: Final = "allowed by the spec: "
"""The start of the last detail of a finding that `allow` turned into a note; the spec's reason follows."""


# Findings and locations are NamedTuples: they sort and hash as they are, and a run may make thousands.
class Location(NamedTuple):
    """A range of a file. Lines and columns count from 1, in characters; the end is exclusive."""

    file: str
    line: int = 1
    column: int = 1
    end_line: int = 1
    end_column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Finding(NamedTuple):
    """One mistake, with everything that its reader needs to fix it."""

    id: str
    """The rule's id, `TPU021`; its page is docs/findings/TPU021.md."""
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
        """Make a finding with its rule's level, unless another level is given.

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

    def allowed(self, reason: str) -> Self:
        """Return the finding as a note that carries the spec's reason for allowing it."""
        return self._replace(level="note", help="", details=(*self.details, printable(f"{ALLOWED_PREFIX}{reason}")))


def collect(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings without duplicates, sorted by location and then by severity."""
    unique = dict.fromkeys(findings)
    return tuple(sorted(unique, key=lambda finding: (finding.location, SEVERITY_ORDER[finding.level], finding)))


def errors(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the findings of level error."""
    return tuple(finding for finding in findings if finding.level == "error")
